/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of names beside the index; see prefix/names.h. */
#include "prefix/names.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/replace.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define CHECKSUM 8                                      /* hex digits, behind a blank */
#define LINE_MAX_SIZE (BENEATH_NAME_MAX + CHECKSUM + 4) /* with its end and a NUL */

/* More lines than this, and than so many times the names, are too many. */
enum { MANY_LINES = 1000, LINES_PER_NAME = 4 };

/* Of a line "+NAME" or "-NAME" that follows one with the checksum before. */
static uint32_t checksum(uint32_t before, const char *text)
{
    return (uint32_t)crc32_z(before, (const Bytef *)text, strlen(text));
}

/* Cuts off the checksum of "+NAME 0123abcd"; 0: the line is none of ours. */
static int parse(char *line, uint32_t *crc)
{
    char digits[CHECKSUM + 1], *blank = strrchr(line, ' ');
    if ((*line != '+' && *line != '-') || !blank || strlen(blank + 1) != CHECKSUM)
        return 0;
    *crc = (uint32_t)strtoul(blank + 1, NULL, 16);
    snprintf(digits, sizeof digits, "%08" PRIx32, *crc);
    if (strcmp(digits, blank + 1) != 0) return 0;
    *blank = 0;
    return beneath_check_name(line + 1, NULL) == 0;
}

/* What the end of the list tells who adds a line. */
struct tail {
    int cut;      /* a crash cut the last line off: it has to be ended first */
    uint32_t crc; /* of the last line that is whole */
};

static int read_tail(int fd, struct tail *tail)
{
    char text[2 * LINE_MAX_SIZE + 1], *line, *rest = text;
    off_t size = lseek(fd, 0, SEEK_END), want = 2 * LINE_MAX_SIZE;
    uint32_t crc;
    *tail = (struct tail){0, 0};
    if (size <= 0) return (int)size;
    if (size < want) want = size;
    ssize_t n = io_pread(fd, text, (size_t)want, size - want);
    if (n <= 0) return n < 0 ? (int)n : -EIO;
    text[n] = 0;
    tail->cut = text[n - 1] != '\n';
    while ((line = strsep(&rest, "\n"))) /* one that lacks only its end is whole */
        if (parse(line, &crc) && (rest || crc == checksum(tail->crc, line)))
            tail->crc = crc;
    return 0;
}

/* The folder of a file that is new keeps its name only when it is synced, too. */
static int sync_folder(int prefix, char *err)
{
    int folder;
    const char *last;
    int rc = beneath_open_parent(prefix, SCR_NAMES_NAME, 0, &folder, &last, err);
    if (rc) return rc;
    rc = io_fsync(folder);
    io_close(&folder);
    return rc ? err_sys(err, rc, "sync the folder of %s", SCR_NAMES_NAME) : 0;
}

int scr_names_add(int prefix, const char *name, int entered, char *err)
{
    int fd;
    char text[BENEATH_NAME_MAX + 1], line[LINE_MAX_SIZE + 1];
    struct tail tail;
    int rc = beneath_check_name(name, err);
    rc = rc ? rc
            : beneath_open(prefix, SCR_NAMES_NAME, O_RDWR | O_CREAT | O_APPEND,
                           beneath_record_mode(prefix), &fd, err);
    if (rc) return rc;
    int is_new = lseek(fd, 0, SEEK_END) == 0;
    rc = read_tail(fd, &tail);
    snprintf(text, sizeof text, "%c%s", entered ? '+' : '-', name);
    int n = snprintf(line, sizeof line, "%s%s %08" PRIx32 "\n", tail.cut ? "\n" : "",
                     text, checksum(tail.crc, text));
    rc = rc ? rc : io_write(fd, line, (size_t)n);
    rc = rc ? rc : io_fsync(fd);
    int closed = io_close(&fd);
    rc = rc ? rc : closed;
    if (rc) return err_sys(err, rc, "write %s", SCR_NAMES_NAME);
    return is_new ? sync_folder(prefix, err) : 0;
}

/* All of the file, with a NUL; to be freed. */
static int read_all(int fd, char **text, char *err)
{
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0 || size > SCR_NAMES_MAX)
        return err_set(err, size < 0 ? -EIO : -EFBIG, "%s is longer than %d MB",
                       SCR_NAMES_NAME, SCR_NAMES_MAX >> 20);
    char *all = malloc((size_t)size + 1);
    if (!all) return err_set(err, -ENOMEM, "no memory for %s", SCR_NAMES_NAME);
    ssize_t n = io_pread(fd, all, (size_t)size, 0);
    if (n < 0) {
        free(all);
        return err_sys(err, (int)n, "read %s", SCR_NAMES_NAME);
    }
    for (ssize_t i = 0; i < n; i++) /* no line has a NUL */
        if (!all[i]) all[i] = 1;
    all[n] = 0;
    *text = all;
    return 0;
}

/* What is in a list. */
struct list {
    kvtree *names;
    int lines, damaged;
};

static int take(struct list *list, const char *line)
{
    if (*line == '-') kvtree_unset(list->names, line + 1);
    if (*line == '-' || kvtree_get(list->names, line + 1)) return 0;
    return kvtree_set(list->names, line + 1, NULL) ? 0 : -ENOMEM;
}

/* A line that a crash cut off is no damage where the next one goes on with the checksum
 * of the one before it. Where checksums do not fit, something is missing; a name that is
 * there all the same may be true, that one has left need not be. */
static int take_lines(struct list *list, char *text)
{
    uint32_t before = 0, crc;
    char *line, *rest = text;
    int rc = 0, cut = 0;
    while (!rc && (line = strsep(&rest, "\n"))) {
        if (!rest && !*line) break; /* behind the last end */
        list->lines++;
        if (!rest || !parse(line, &crc)) {
            cut = 1;
            continue;
        }
        int fits = crc == checksum(before, line);
        if (!fits) list->damaged = 1;
        if (fits || *line == '+') rc = take(list, line);
        before = crc;
        cut = 0;
    }
    if (cut) list->damaged = 1;
    return rc;
}

/* -ENOENT without lines. */
static int read_list(int prefix, struct list *list, char *err)
{
    int fd;
    char *text = NULL;
    int rc = beneath_open(prefix, SCR_NAMES_NAME, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    rc = read_all(fd, &text, err);
    io_close(&fd);
    if (!rc && take_lines(list, text) != 0)
        rc = err_set(err, -ENOMEM, "no memory for %s", SCR_NAMES_NAME);
    free(text);
    if (rc) return rc;
    return list->lines ? 0 : err_set(err, -ENOENT, "%s is empty", SCR_NAMES_NAME);
}

int scr_names_read(int prefix, kvtree *names, char *err)
{
    struct list list = {.names = names};
    int rc = read_list(prefix, &list, err);
    if (rc || !list.damaged) return rc;
    return err_set(err, -EBADMSG, "%s is damaged", SCR_NAMES_NAME);
}

/* ---- tidying ---- */

static int replace_list(int prefix, const kvtree *names, char *err)
{
    size_t size = 1, at = 0;
    uint32_t crc = 0;
    const kvtree_elem *e = kvtree_elem_first(names);
    for (; e; e = kvtree_elem_next(e))
        size += strlen(kvtree_elem_key(e)) + CHECKSUM + 3;
    char *text = malloc(size);
    if (!text) return err_set(err, -ENOMEM, "no memory for %s", SCR_NAMES_NAME);
    for (e = kvtree_elem_first(names); e; e = kvtree_elem_next(e)) {
        size_t begin = at;
        at += (size_t)snprintf(text + at, size - at, "+%s", kvtree_elem_key(e));
        crc = checksum(crc, text + begin);
        at += (size_t)snprintf(text + at, size - at, " %08" PRIx32 "\n", crc);
    }
    int rc = replace_bytes(prefix, SCR_NAMES_NAME, 0, text, at, err);
    free(text);
    return rc;
}

/* Those that are in the index are in the list, whatever it has lost. */
static int add_indexed(kvtree *names, const kvtree *indexed)
{
    const kvtree_elem *e = kvtree_elem_first(indexed);
    for (; e; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e);
        if (beneath_check_name(name, NULL) == 0 && !kvtree_get(names, name) &&
            !kvtree_set(names, name, NULL))
            return -ENOMEM;
    }
    return 0;
}

int scr_names_tidy(int prefix, const kvtree *indexed, char *text)
{
    struct list list = {.names = kvtree_new()};
    int rc = list.names ? read_list(prefix, &list, text)
                        : err_set(text, -ENOMEM, "no memory for %s", SCR_NAMES_NAME);
    int many =
        list.lines > MANY_LINES && list.lines > LINES_PER_NAME * kvtree_size(list.names);
    if (!rc && (list.damaged || many)) {
        rc = add_indexed(list.names, indexed);
        rc = rc ? err_set(text, rc, "no memory for %s", SCR_NAMES_NAME)
                : replace_list(prefix, list.names, text);
        if (!rc && list.damaged)
            rc = err_set(text, 1, "%s is damaged; it is made again from the index",
                         SCR_NAMES_NAME);
    }
    kvtree_delete(&list.names);
    return rc == -ENOENT ? 0 : rc;
}
