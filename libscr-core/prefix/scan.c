/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets found on a prefix directory; see prefix/scan.h. */
#include "prefix/scan.h"

#include "base/transient.h"

#include "base/path.h"
#include "base/versions.h"
#include "common/beneath.h"
#include "common/io.h"
#include "prefix/index.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <kvtree/kvtree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int scr_scan_open(scr_scan *scan, const char *prefix, kvtree_error *err)
{
    memset(scan, 0, sizeof *scan);
    scan->dir = io_open(AT_FDCWD, prefix, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (scan->dir < 0) return err_sys(err, scan->dir, "open directory %s", prefix);
    scan->path = strdup(prefix);
    scan->staged = kvtree_new();
    if (scan->path && scan->staged) return 0;
    scr_scan_close(scan);
    return err_set(err, -ENOMEM, "no memory");
}

void scr_scan_close(scr_scan *scan)
{
    if (scan->dir >= 0) io_close(&scan->dir);
    free(scan->path);
    free(scan->found);
    kvtree_delete(&scan->staged);
    scan->path = NULL;
    scan->found = NULL;
    scan->count = 0;
}

void scr_scan_free(scr_scan **scan)
{
    if (!*scan) return;
    scr_scan_close(*scan);
    free(*scan);
    *scan = NULL;
}

/* Opens the directory of a dataset; "" is the prefix directory. */
static int scan_open_folder(const scr_scan *scan, const char *name, int *folder,
                            kvtree_error *err)
{
    char inside[BENEATH_NAME_MAX + 2];
    const char *last;
    snprintf(inside, sizeof inside, "%s%sx", name, *name ? "/" : "");
    return beneath_open_parent(scan->dir, inside, 0, folder, &last, err);
}

/* ---- one dataset ---- */

struct sums {
    unsigned long files, bytes;
};

static int scan_add_up(void *arg, int rank, int count, const filo_file files[],
                       kvtree_error *err)
{
    struct sums *sums = arg;
    (void)rank;
    (void)err;
    for (int i = 0; i < count; i++) {
        if (files[i].shared) continue; /* its parts count instead */
        sums->bytes += files[i].size;
        sums->files++;
    }
    return 0;
}

/* Checks that the map belongs to the dataset of the summary. A crash may have occurred
 * between writing the two when the same name was written again. */
static int scan_check_map(const scr_scan *scan, const scr_dataset *d, kvtree_error *err)
{
    struct sums sums = {0, 0};
    char map[SCR_NAME_SIZE + 32], key[SCR_DATASET_KEY_SIZE], *folder;
    int ranks = 0;
    scr_dataset_key(d, key);
    snprintf(map, sizeof map, "%s%s" FILO_MAP, d->scattered ? d->name : "",
             d->scattered ? "/" : "");
    folder = d->scattered ? strdup(scan->path) : scr_path_join(scan->path, d->name);
    if (!folder) return err_set(err, -ENOMEM, "no memory");
    const filo_place place = {.folder = folder, .map = map, .dataset = key};
    int rc = filo_map_read(&place, &ranks, scan_add_up, &sums, err);
    free(folder);
    if (rc) return rc;
    if (ranks == d->ranks && sums.files == (unsigned long)d->files &&
        sums.bytes == d->size)
        return 0;
    return err_set(err, FILO_DAMAGED,
                   "%s: the map is of %d ranks, %lu files and %lu bytes, the summary of "
                   "%d, %ld and %lu",
                   d->name, ranks, sums.files, sums.bytes, d->ranks, d->files, d->size);
}

static int scan_keep(scr_scan *scan, const scr_dataset *d)
{
    int n = scan->count;
    if ((n & (n + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
        scr_dataset *more = realloc(scan->found, (2 * (size_t)n + 1) * sizeof *more);
        if (!more) return -ENOMEM;
        scan->found = more;
    }
    scan->found[scan->count++] = *d;
    return 0;
}

static void scan_note_refused(scr_scan *scan, const char *name, int rc, const char *why)
{
    scan->unread |= scr_is_transient(rc);
    if (scan->refused++ > 0 && (rc != SCR_OTHER_VERSION || scan->code == rc)) return;
    scan->code = rc;
    snprintf(scan->why.text, sizeof scan->why.text, "%.200s: %.300s", name, why);
}

int scr_scan_one(scr_scan *scan, const char *name, kvtree_error *err)
{
    kvtree_error why = {""};
    int folder;
    struct stat st;
    scr_dataset d;
    if (scr_dataset_check_name(name, err) != 0) return -ENOENT;
    int rc = scan_open_folder(scan, name, &folder, &why);
    if (rc)
        return err_set(err, rc == -ENOTDIR || rc == -ELOOP ? -ENOENT : rc, "%s",
                       why.text);
    rc = scr_summary_read(folder, &d, &why);
    if (!rc && beneath_stat(folder, SCR_SUMMARY_NAME, &st, NULL) == 0)
        d.flushed = st.st_mtime;
    io_close(&folder);
    if (rc == -ENOENT || rc == -ENOMEM) return err_set(err, rc, "%s: %s", name, why.text);
    if (rc) {
        scan_note_refused(scan, name, rc, why.text);
        return 0;
    }
    /* the directory may have been moved, or be a copy */
    snprintf(d.name, sizeof d.name, "%s", name);
    if (d.complete && (rc = scan_check_map(scan, &d, &why)) == -ENOMEM)
        return err_set(err, rc, "%s: %s", name, why.text);
    if (rc) {
        scan_note_refused(scan, name, rc, why.text);
        if (!err_is_damage(rc)) return 0;
        d.complete = 0;
    }
    return scan_keep(scan, &d) ? err_set(err, -ENOMEM, "no memory") : 0;
}

/* ---- the search ---- */

struct search {
    scr_scan *scan;
    scr_scan_limits limits;
    int seen;
    kvtree *plain, *datasets; /* directories still to be searched, as keys */
};

static int scan_depth(const char *name)
{
    int depth = *name != 0;
    for (; *name; name++)
        depth += *name == '/';
    return depth;
}

/* Whether an entry is a directory, and not a link. */
static bool scan_is_folder(int dir, const struct dirent *item)
{
    struct stat st;
    if (item->d_type != DT_UNKNOWN) return item->d_type == DT_DIR;
    return fstatat(dir, item->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(st.st_mode);
}

static int scan_note_stage(scr_scan *scan, const char *name)
{
    char stage[BENEATH_NAME_MAX + 256 + sizeof FILO_STAGE + 1];
    struct stat st;
    snprintf(stage, sizeof stage, "%s/" FILO_STAGE, name);
    if (beneath_stat(scan->dir, stage, &st, NULL) != 0) return 0;
    return kvtree_set(scan->staged, name, NULL) ? 0 : -ENOMEM;
}

/* Whether the directory is a prefix directory itself, whose datasets belong to other
 * runs. */
static int scan_has_index(const scr_scan *scan, const char *name)
{
    char index[BENEATH_NAME_MAX + 256 + sizeof SCR_INDEX_NAME + 1];
    struct stat st;
    snprintf(index, sizeof index, "%s/" SCR_INDEX_NAME, name);
    return beneath_stat(scan->dir, index, &st, NULL) == 0;
}

static int scan_see_folder(struct search *s, const char *name)
{
    kvtree_error why = {""};
    if (scan_has_index(s->scan, name)) return 0;
    int rc = scr_scan_one(s->scan, name, &why);
    if (rc == -ENOMEM || scan_note_stage(s->scan, name) != 0) return -ENOMEM;
    if (rc && rc != -ENOENT) { /* this process cannot read it */
        scan_note_refused(s->scan, name, rc, why.text);
        return 0;
    }
    return kvtree_set(rc ? s->plain : s->datasets, name, NULL) ? 0 : -ENOMEM;
}

/* Returns the next entry; NULL at the end, and with *rc set if the rest cannot be
 * read. */
static const struct dirent *scan_next_item(DIR *stream, int *rc)
{
    errno = 0;
    const struct dirent *item = readdir(stream);
    if (!item) *rc = -errno;
    return item;
}

/* Reads one directory. Returns 1 if the limit is reached. */
static int scan_read_folder(struct search *s, const char *name, DIR *stream)
{
    const struct dirent *item;
    int rc = 0;
    while (!rc && (item = scan_next_item(stream, &rc)) != NULL) {
        char child[BENEATH_NAME_MAX + 256];
        const char *last = item->d_name;
        if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0 ||
            strcmp(last, ".scr") == 0)
            continue;
        if (++s->seen > s->limits.names) return 1;
        if (!scan_is_folder(dirfd(stream), item)) continue;
        snprintf(child, sizeof child, "%s%s%s", name, *name ? "/" : "", last);
        if (beneath_check_name(child, NULL) == 0) rc = scan_see_folder(s, child);
    }
    return rc;
}

static int scan_open_and_read(struct search *s, const char *name)
{
    int folder;
    int rc = scan_open_folder(s->scan, name, &folder, NULL);
    if (rc) return rc;
    DIR *stream = beneath_list(folder);
    rc = stream ? scan_read_folder(s, name, stream) : -errno;
    if (stream) closedir(stream);
    io_close(&folder);
    return rc;
}

/* Searches one directory. Returns 0, 1 if a limit is reached, or -ENOMEM. */
static int scan_look_into(struct search *s, const char *name)
{
    if (scan_depth(name) >= s->limits.depth) {
        s->scan->stopped = 1;
        return 0;
    }
    int rc = scan_open_and_read(s, name);
    if (rc >= 0 || rc == -ENOMEM) return rc;
    if (!err_is_damage(rc)) s->scan->stopped = 1; /* it exists */
    if (scr_is_transient(rc)) {
        s->scan->unread = 1;
        if (!s->scan->why.text[0])
            err_sys(&s->scan->why, rc, "list directory %.300s",
                    *name ? name : s->scan->path);
    }
    return 0;
}

/* Takes the next directory to search. Directories within datasets come last. */
static int scan_next_folder(struct search *s, char name[BENEATH_NAME_MAX])
{
    kvtree *from = kvtree_size(s->plain) > 0 ? s->plain : s->datasets;
    const kvtree_elem *e = kvtree_elem_first(from);
    if (!e) return 0;
    snprintf(name, BENEATH_NAME_MAX, "%s", kvtree_elem_key(e));
    kvtree_unset(from, name);
    return 1;
}

int scr_scan_all(scr_scan *scan, const scr_scan_limits *limits, kvtree_error *err)
{
    struct search s = {.scan = scan, .limits = {SCR_SCAN_DEPTH, SCR_SCAN_NAMES}};
    char name[BENEATH_NAME_MAX];
    if (limits) s.limits = *limits;
    s.plain = kvtree_new();
    s.datasets = kvtree_new();
    int rc = s.plain && s.datasets ? scan_look_into(&s, "") : -ENOMEM;
    while (!rc && scan_next_folder(&s, name))
        rc = scan_look_into(&s, name);
    kvtree_delete(&s.plain);
    kvtree_delete(&s.datasets);
    if (rc == 1) scan->stopped = 1;
    return rc < 0 ? err_set(err, rc, "no memory to search %s", scan->path) : 0;
}
