/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefix directories that SCR 3 wrote; see scr3.h. */
#include "prefix/scr3.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "common/record_size.h"
#include "prefix/adoption.h"
#include "prefix/index.h"
#include "prefix/scan.h"
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

#define VERSION_3 2
#define FOLDER ".scr/scr.dataset.%d/"
#define MAP FOLDER "rank2file"
#define ASIDE SCR_INDEX_NAME ".3"

enum { LEVELS_MAX = 16, NAME_SIZE = SCR_NAME_SIZE };

/* ---- rank2file ---- */

/* The map of SCR 3 is a tree of trees. A tree of level 0 has the files of ranks; other
 * trees refer to further trees by file and offset. */
typedef struct scr3_map {
    int prefix;
    char root[64]; /* root: its name below the prefix directory */
    kvtree *files; /* files of ranks, as for scr_adopt_files */
    int ranks;
    uint64_t left; /* total bytes of trees that may still be read */
} scr3_map;

static int scr3_read_tree(scr3_map *m, const char *name, unsigned long offset,
                          kvtree *tree, kvtree_error *err)
{
    int fd, rc = beneath_open(m->prefix, name, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    ssize_t n = lseek(fd, (off_t)offset, SEEK_SET) < 0
                    ? err_sys(err, -errno, "read")
                    : kvtree_fd_read(fd, m->left, tree, err);
    io_close(&fd);
    if (n > 0) m->left -= (uint64_t)n;
    return n < 0 ? err_wrap(err, (int)n, "%s", name) : 0;
}

static int scr3_damaged(const char *name, const char *what, kvtree_error *err)
{
    return err_set(err, -EBADMSG, "%s has no valid %s", name, what);
}

static int scr3_take_ranks(scr3_map *m, const char *name, const kvtree *ranks,
                           kvtree_error *err)
{
    const kvtree_elem *e = kvtree_elem_first(ranks);
    for (; e; e = kvtree_elem_next(e)) {
        const char *rank = kvtree_elem_key(e);
        kvtree *copy = kvtree_new();
        int rc = copy ? kvtree_merge(copy, kvtree_elem_hash(e)) : -ENOMEM;
        if (!rc && kvtree_get(m->files, rank)) rc = -EEXIST;
        if (!rc && !kvtree_set(m->files, rank, copy)) rc = -ENOMEM;
        if (!rc) continue;
        kvtree_delete(&copy);
        return rc == -EEXIST ? scr3_damaged(name, "RANK: one is there twice", err)
                             : err_set(err, rc, "no memory");
    }
    return 0;
}

static int scr3_read_level(scr3_map *m, const char *name, unsigned long offset, int depth,
                           kvtree_error *err);

/* Reads the tree that e refers to. A FILE that begins with a dot, such as ".0.0", is
 * appended to the name of the root. The file lies beside the root, so the same users can
 * write to it. */
static int scr3_follow(scr3_map *m, const char *name, const kvtree_elem *e, int depth,
                       kvtree_error *err)
{
    char next[NAME_SIZE], *file;
    unsigned long offset;
    const kvtree *where = kvtree_elem_hash(e);
    if (kvtree_util_get_str(where, "FILE", &file) != 0 ||
        kvtree_util_get_bytecount(where, "OFFSET", &offset) != 0 || offset > LONG_MAX ||
        strchr(file, '/'))
        return scr3_damaged(name, "FILE or OFFSET", err);
    const size_t folder = *file == '.' ? strlen(m->root) : beneath_folder_length(m->root);
    int n = snprintf(next, sizeof next, "%.*s%s", (int)folder, m->root, file);
    if (n < 0 || n >= (int)sizeof next) return scr3_damaged(name, "FILE", err);
    return scr3_read_level(m, next, offset, depth, err);
}

static int scr3_read_level(scr3_map *m, const char *name, unsigned long offset, int depth,
                           kvtree_error *err)
{
    int level, ranks;
    kvtree *tree = kvtree_new();
    int rc = tree ? scr3_read_tree(m, name, offset, tree, err)
                  : err_set(err, -ENOMEM, "no memory");
    if (!rc &&
        (kvtree_util_get_int(tree, "LEVEL", &level) != 0 || level < 0 || level >= depth))
        rc = scr3_damaged(name, "LEVEL", err);
    if (!rc && kvtree_util_get_int(tree, "RANKS", &ranks) != 0)
        rc = scr3_damaged(name, "RANKS", err);
    if (!rc && depth == LEVELS_MAX) m->ranks = ranks;
    const kvtree *list = rc ? NULL : kvtree_get(tree, "RANK");
    /* an empty tree is an error, so that trees that refer to each other repeatedly soon
     * give a rank twice, which is an error, too */
    if (!rc && kvtree_size(list) == 0) rc = scr3_damaged(name, "RANK", err);
    if (!rc && level == 0) rc = scr3_take_ranks(m, name, list, err);
    if (!rc && level > 0)
        for (const kvtree_elem *e = kvtree_elem_first(list); e && !rc;
             e = kvtree_elem_next(e))
            rc = scr3_follow(m, name, e, level, err);
    kvtree_delete(&tree);
    return rc;
}

static int scr3_read_map(scr3_map *m, int id, kvtree_error *err)
{
    snprintf(m->root, sizeof m->root, MAP, id);
    m->left = RECORD_SIZE_FILES;
    m->files = kvtree_new();
    int rc = m->files ? scr3_read_level(m, m->root, 0, LEVELS_MAX, err)
                      : err_set(err, -ENOMEM, "no memory");
    if (!rc && kvtree_size(m->files) != m->ranks)
        rc = scr3_damaged(m->root, "number of ranks", err);
    return rc == -ENOENT ? -EBADMSG : rc;
}

/* ---- datasets ---- */

/* Reads the description of a dataset from its entry in the index. */
static int scr3_describe(const kvtree *entry, int id, scr_dataset *d, kvtree_error *err)
{
    int flag;
    const kvtree *tree = kvtree_get(entry, "DSET");
    int rc = scr_dataset_from_tree(tree, d, err);
    if (rc) return rc;
    if (d->id != id) return err_set(err, -EBADMSG, "its ID is %d", d->id);
    if (kvtree_util_get_int(tree, "FLAG_OUTPUT", &flag) == 0) d->output = flag == 1;
    if (kvtree_util_get_int(tree, "FLAG_CKPT", &flag) == 0 && flag == 0) d->ckpt = 0;
    d->bypass = 0;
    return 0;
}

static bool scr3_is_complete(const kvtree *entry)
{
    int complete = 0;
    return kvtree_util_get_int(entry, "COMPLETE", &complete) == 0 && complete == 1;
}

/* ---- the index ---- */

typedef struct scr3 {
    int prefix;
    const char *real;
    kvtree *old, *index;
    int64_t shared; /* other users who can write the index, as from others_put_below */
    scr3_result *result;
} scr3;

/* Returns the id of an entry; 0 if it is invalid. An id that is also written as "05"
 * would be read again and again. */
static int scr3_id(const kvtree_elem *e)
{
    char key[16];
    const int id = kvtree_elem_key_int(e);
    snprintf(key, sizeof key, "%d", id);
    return id > 0 && id <= SCR_ID_MAX && strcmp(key, kvtree_elem_key(e)) == 0 ? id : 0;
}

/* Adopts a dataset. Users who can write the index or the map may have chosen names in
 * them. */
static int scr3_adopt(const scr3 *s, const kvtree *entry, int id, kvtree_error *err)
{
    char folder[64];
    scr_dataset d;
    scr3_map map = {.prefix = s->prefix};
    int rc = scr3_describe(entry, id, &d, err);
    if (rc) return rc;
    snprintf(folder, sizeof folder, FOLDER, id);
    const int64_t some = others_put_below(s->prefix, folder, err);
    rc = some < 0 ? (int)some : scr3_read_map(&map, id, err);
    const scr_adoption from = {.prefix = s->prefix,
                               .real = s->real,
                               .shared = others_join(s->shared, some),
                               .files = map.files};
    rc = rc ? rc : scr_adopt_files(&from, &d, err);
    kvtree_delete(&map.files);
    return rc;
}

/* Adopts all complete datasets. An unusable dataset does not affect the others. */
static int scr3_adopt_all(scr3 *s, kvtree_error *err)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(s->old, "DSET"));
    for (; e; e = kvtree_elem_next(e)) {
        kvtree_error why = {""};
        const int id = scr3_id(e);
        if (!scr3_is_complete(kvtree_elem_hash(e))) continue;
        int rc = scr3_adopt(s, kvtree_elem_hash(e), id, &why);
        if (rc && !err_is_damage(rc) && rc != -EINVAL)
            return err_set(err, rc, "dataset %d of SCR 3: %.400s", id, why.text);
        if (rc && s->result->refused++ == 0)
            err_set(&s->result->why, rc, "dataset %d of SCR 3: %.400s", id, why.text);
    }
    return 0;
}

static const kvtree *scr3_entry(const scr3 *s, int id)
{
    char key[16];
    snprintf(key, sizeof key, "%d", id);
    return kvtree_get(kvtree_get(s->old, "DSET"), key);
}

/* Keeps the time of a flush, which SCR 3 writes as local time. */
static void scr3_take_time(const scr3 *s, scr_dataset *d)
{
    struct tm tm = {.tm_isdst = -1};
    char *text;
    if (kvtree_util_get_str(scr3_entry(s, d->id), "FLUSHED", &text) != 0) return;
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    const time_t when = end && !*end ? mktime(&tm) : -1;
    if (when > 0) d->flushed = when;
}

static int scr3_take_marks(const scr3 *s, const scr_dataset *list, int count)
{
    char *current;
    scr_dataset d;
    int rc = 0;
    for (int i = 0; i < count && !rc; i++)
        if (kvtree_get(scr3_entry(s, list[i].id), "FAILED"))
            rc = scr_index_mark_failed(s->index, &list[i]);
    if (!rc && kvtree_util_get_str(s->old, "CURRENT", &current) == 0 &&
        scr_index_get(s->index, current, &d) == 0)
        rc = scr_index_set_current(s->index, &d);
    return rc;
}

/* Makes the index from all datasets that are found now: an earlier conversion may have
 * adopted some. */
static int scr3_make_index(scr3 *s, kvtree_error *err)
{
    scr_scan scan;
    int rc = scr_scan_open(&scan, s->real, err);
    if (rc) return rc;
    rc = scr_scan_all(&scan, NULL, err);
    for (int i = 0; i < scan.count && !rc; i++)
        scr3_take_time(s, &scan.found[i]);
    s->result->datasets = scan.count;
    if (!rc && (scr_index_restore(s->index, scan.found, scan.count) != 0 ||
                scr3_take_marks(s, scan.found, scan.count) != 0))
        rc = err_set(err, -ENOMEM, "no memory for the index");
    scr_scan_close(&scan);
    return rc;
}

static int scr3_exchange(scr3 *s, kvtree_error *err)
{
    char *aside = s->result->aside;
    struct stat st;
    strcpy(aside, ASIDE);
    for (int n = 1; fstatat(s->prefix, aside, &st, AT_SYMLINK_NOFOLLOW) == 0; n++)
        snprintf(aside, SCR3_ASIDE_SIZE, ASIDE ".%d", n);
    if (linkat(s->prefix, SCR_INDEX_NAME, s->prefix, aside, 0) != 0 &&
        renameat(s->prefix, SCR_INDEX_NAME, s->prefix, aside) != 0)
        return err_sys(err, -errno, "keep the index of SCR 3 as %s", aside);
    return kvtree_file_write(s->prefix, SCR_INDEX_NAME, RECORD_SIZE_INDEX, s->index, err);
}

/* Whether each entry has a description. Otherwise the index has this version by
 * chance. */
static bool scr3_is_known(const kvtree *index)
{
    scr_dataset d;
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(index, "DSET"));
    for (; e; e = kvtree_elem_next(e))
        if (!scr3_id(e) || scr3_describe(kvtree_elem_hash(e), scr3_id(e), &d, NULL) != 0)
            return false;
    return kvtree_get(index, "DIR") == NULL;
}

/* Reads the index. Returns false if it is not an index of SCR 3; its next reader reports
 * that. */
static bool scr3_has_index(scr3 *s)
{
    int version;
    kvtree_unset_all(s->old);
    return kvtree_file_read(s->prefix, SCR_INDEX_NAME, RECORD_SIZE_INDEX, s->old, NULL) ==
               0 &&
           kvtree_util_get_int(s->old, "VERSION", &version) == 0 &&
           version == VERSION_3 && scr3_is_known(s->old);
}

bool scr3_is_there(int prefix)
{
    scr3 s = {.prefix = prefix, .old = kvtree_new()};
    const bool found = s.old && scr3_has_index(&s);
    kvtree_delete(&s.old);
    return found;
}

static int scr3_convert_index(scr3 *s, kvtree_error *err)
{
    s->shared = others_put_below(s->prefix, ".scr/", err);
    int rc = s->shared < 0 ? (int)s->shared : scr3_adopt_all(s, err);
    rc = rc ? rc : scr3_make_index(s, err);
    rc = rc ? rc : scr3_exchange(s, err);
    s->result->converted = !rc;
    return rc;
}

/* Converts the index, unless another process has converted it while this one waited for
 * the lock. */
static int scr3_convert_under_lock(scr3 *s, kvtree_error *err)
{
    int lock, rc = scr_change_lock(s->prefix, &lock, err);
    if (!rc && scr3_has_index(s)) rc = scr3_convert_index(s, err);
    io_unlock(&lock);
    return rc;
}

int scr3_convert(int prefix, const char *real, scr3_result *result, kvtree_error *err)
{
    scr3 s = {.prefix = prefix,
              .real = real,
              .result = result,
              .old = kvtree_new(),
              .index = kvtree_new()};
    memset(result, 0, sizeof *result);
    int rc = s.old && s.index ? 0 : err_set(err, -ENOMEM, "no memory");
    if (!rc && scr3_has_index(&s)) rc = scr3_convert_under_lock(&s, err);
    kvtree_delete(&s.old);
    kvtree_delete(&s.index);
    return rc;
}
