/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_index --import: makes a dataset from files that SCR did not write. */
#include "commands/scr_index.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include "common/others.h"
#include "lib/tool.h"
#include "prefix/adoption.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PLACE "{rank}"

/* Maximum number of ranks, and of nested directories. */
enum { RANKS_MAX = 100000000, DEPTH_MAX = 64 };

typedef struct import {
    const char *map; /* patterns, separated by commas; NULL: the last number of a name */
    const char *folder;
    int prefix;     /* the open prefix directory */
    int64_t shared; /* other users who can put files into the directories, or exchange the
                     * directories */
    kvtree *tree;   /* RANK/<rank>/FILE/<name> */
} import;

/* ---- ranks from names ---- */

/* Parses the n digits at text; -1: not a valid rank. */
static int import_number(const char *text, size_t n)
{
    char digits[NUMBER_TEXT_SIZE];
    int64_t rank;
    while (n > 1 && *text == '0') {
        text++;
        n--;
    }
    if (n == 0 || n >= sizeof digits) return -1;
    memcpy(digits, text, n);
    digits[n] = 0;
    return number_int64(digits, &rank) == 0 && rank < RANKS_MAX ? (int)rank : -1;
}

static int import_last_number(const char *name)
{
    const char *end = name + strlen(name);
    while (end > name && !strchr("0123456789", end[-1]))
        end--;
    const char *begin = end;
    while (begin > name && strchr("0123456789", begin[-1]))
        begin--;
    return import_number(begin, (size_t)(end - begin));
}

/* Returns the rank if name is the pattern of n bytes with a number in place of {rank};
 * otherwise -1. */
static int import_match(const char *pattern, size_t n, const char *name)
{
    const char *place = strstr(pattern, PLACE);
    if (!place || place + strlen(PLACE) > pattern + n) return -1;
    const size_t before = (size_t)(place - pattern), after = n - before - strlen(PLACE);
    const size_t length = strlen(name), digits = length - before - after;
    if (length <= before + after || strncmp(name, pattern, before) != 0 ||
        strncmp(name + length - after, place + strlen(PLACE), after) != 0 ||
        strspn(name + before, "0123456789") < digits)
        return -1;
    return import_number(name + before, digits);
}

static int import_rank_of(const char *map, const char *name)
{
    int rank = map ? -1 : import_last_number(name);
    for (; map && rank < 0; map = strchr(map, ',') ? strchr(map, ',') + 1 : NULL)
        rank = import_match(map, strcspn(map, ","), name);
    return rank;
}

/* ---- the directory ---- */

static int import_note(import *m, const char *below, kvtree_error *err)
{
    char name[BENEATH_NAME_MAX];
    int n = snprintf(name, sizeof name, "%s/%s", m->folder, below);
    const int rank = import_rank_of(m->map, below);
    if (n >= (int)sizeof name) return err_sys(err, -ENAMETOOLONG, "%s", below);
    if (rank < 0 && m->map) return 0; /* the patterns choose files */
    if (rank < 0)
        return err_set(err, -EINVAL,
                       "the name of %s has no number for its rank; --map tells which "
                       "files belong to the dataset",
                       name);
    kvtree *list = kvtree_set_kv_int(m->tree, "RANK", rank);
    return list && kvtree_set_kv(list, "FILE", name) ? 0
                                                     : err_set(err, -ENOMEM, "no memory");
}

static int import_search(import *m, const char *below, int depth, kvtree_error *err);

/* Adds a file or searches a directory. Skips records of SCR, links, and other kinds of
 * files. */
static int import_see(import *m, const char *below, int folder, const char *name,
                      int depth, kvtree_error *err)
{
    char path[BENEATH_NAME_MAX];
    struct stat st;
    if (name[0] == '.' &&
        (!name[1] || strcmp(name, "..") == 0 || strcmp(name, ".scr") == 0))
        return 0;
    int n = snprintf(path, sizeof path, "%s%s%s", below, *below ? "/" : "", name);
    if (n >= (int)sizeof path) return err_sys(err, -ENAMETOOLONG, "%s", name);
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return err_sys(err, -errno, "%s", path);
    if (S_ISDIR(st.st_mode)) return import_search(m, path, depth + 1, err);
    return S_ISREG(st.st_mode) ? import_note(m, path, err) : 0;
}

/* Records who can change the directory and the way to it. The files in it do not
 * matter. */
static int import_note_others(import *m, const char *path, kvtree_error *err)
{
    char inside[2 * BENEATH_NAME_MAX + 2];
    snprintf(inside, sizeof inside, "%s/.", path);
    const int64_t some = others_put_below(m->prefix, inside, err);
    if (some > 0) m->shared = others_join(m->shared, some);
    return some < 0 ? (int)some : 0;
}

static int import_search(import *m, const char *below, int depth, kvtree_error *err)
{
    char path[2 * BENEATH_NAME_MAX];
    int folder;
    snprintf(path, sizeof path, "%s%s%s", m->folder, *below ? "/" : "", below);
    if (depth > DEPTH_MAX) return err_sys(err, -ELOOP, "%.400s", path);
    int rc = beneath_open_below(m->prefix, path, &folder, err);
    if (rc) return rc;
    rc = import_note_others(m, path, err);
    DIR *stream = beneath_list(folder);
    const struct dirent *item;
    if (!stream) rc = err_sys(err, -errno, "read directory %.400s", path);
    while (!rc && (item = readdir(stream)) != NULL)
        rc = import_see(m, below, folder, item->d_name, depth, err);
    if (stream) closedir(stream);
    io_close(&folder);
    return rc;
}

/* ---- the dataset ---- */

/* Describes the dataset. Its id follows the highest id in the index, and it counts as the
 * newest. */
static int import_describe(const tool_prefix *prefix, const index_request *r,
                           const char *folder, scr_dataset *d, kvtree_error *err)
{
    scr_counters highest = {.id = 0};
    const char *name = r->dataset ? r->dataset : folder;
    struct timespec now;
    int rc = scr_dataset_check_name(name, err);
    if (rc) return rc;
    kvtree *index = kvtree_new();
    rc = index ? scr_index_read(prefix->dir, index, err) : -ENOMEM;
    if (!rc) highest = scr_index_highest(index);
    if (!rc && scr_index_get(index, name, d) == 0)
        rc = err_set(err, -EEXIST, "the index has a dataset %s already", name);
    kvtree_delete(&index);
    if (rc && rc != -ENOENT) return rc;
    clock_gettime(CLOCK_REALTIME, &now);
    *d = (scr_dataset){.id = highest.id + 1, .ckpt = highest.ckpt + 1};
    d->created = scr_counters_date(&highest, now.tv_sec * 1000000 + now.tv_nsec / 1000);
    snprintf(d->name, sizeof d->name, "%s", name);
    return 0;
}

static int import_enter(const tool_prefix *prefix, scr_dataset *d, kvtree_error *err)
{
    int added, rc = beneath_mkdirs(prefix->dir, ".scr", 0777, err);
    kvtree *index = kvtree_new();
    d->flushed = time(NULL);
    if (!rc)
        rc = index ? scr_index_make(prefix->dir, d, 1, index, &added, err)
                   : err_set(err, -ENOMEM, "no memory");
    kvtree_delete(&index);
    return rc;
}

int index_import(const tool_prefix *prefix, const index_request *r)
{
    kvtree_error err = {""};
    scr_dataset d;
    char folder[BENEATH_NAME_MAX];
import m = {.map = r->map, .prefix = prefix->dir, .folder = folder };
    snprintf(folder, sizeof folder, "%s", r->name);
    while (*folder && folder[strlen(folder) - 1] == '/')
        folder[strlen(folder) - 1] = 0;
    m.tree = kvtree_new();
    int rc = m.tree ? import_describe(prefix, r, folder, &d, &err) : -ENOMEM;
    rc = rc ? rc : import_search(&m, "", 0, &err);
    const scr_adoption from = {.prefix = prefix->dir,
                               .real = prefix->path,
                               .shared = m.shared,
                               .files = kvtree_get(m.tree, "RANK")};
    rc = rc ? rc : scr_adopt_files(&from, &d, &err);
    rc = rc ? rc : import_enter(prefix, &d, &err);
    kvtree_delete(&m.tree);
    if (rc) return tool_say(DATASET_NOT_IMPORTED, "%s: %s", r->name, err.text);
    printf("%s: %ld files of %d ranks, %lu bytes, are dataset %d\n", d.name, d.files,
           d.ranks, d.size, d.id);
    return COMMAND_GOOD;
}
