/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank filemaps; see rankmap.h. */
#include "scavenge/rankmap.h"

#include "cache/filemap.h"
#include "common/array.h"
#include "common/beneath.h"
#include "common/number.h"
#include "common/record_size.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <redset/redset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_DSET "DSET"
#define KEY_RANK "RANK"
#define KEY_FILE "FILE"
#define KEY_FILES "FILES"
#define KEY_META "META"
#define KEY_DATASET "DSETDESC"
#define SUFFIX ".scrfilemap"

/* ---- memory ---- */

scavenge_rank *scavenge_rank_new(int rank)
{
    scavenge_rank *r = calloc(1, sizeof *r);
    if (r) r->rank = rank;
    return r;
}

static void rankmap_free_file(scavenge_file *file)
{
    kvtree *meta = (kvtree *)(uintptr_t)file->meta;
    free((char *)(uintptr_t)file->name);
    kvtree_delete(&meta);
}

scavenge_rank *scavenge_rank_free(scavenge_rank *rank)
{
    if (!rank) return NULL;
    for (int i = 0; i < rank->count; i++)
        rankmap_free_file(&rank->files[i]);
    free(rank->files);
    free(rank->lacks);
    free(rank);
    return NULL;
}

/* Returns the TYPE of a file; NULL for a redundancy file with an invalid name. */
static const char *rankmap_type(const char *name, bool redundancy)
{
    redset_place place;
    if (!redundancy) return SCR_META_FULL;
    return redset_file_name_parse(name, &place) ? NULL : redset_scheme_name(place.scheme);
}

/* Returns a copy of the metadata with the fields of f; NULL without memory. */
static kvtree *rankmap_copy_meta(const scavenge_file *f, const char *type)
{
    kvtree *meta = kvtree_new();
    int rc = meta ? 0 : -ENOMEM;
    if (!rc && f->meta) rc = kvtree_merge(meta, f->meta);
    if (!rc) rc = kvtree_util_set_str(meta, SCR_META_FILE, f->name);
    if (!rc) rc = kvtree_util_set_str(meta, SCR_META_TYPE, type);
    if (!rc) rc = kvtree_util_set_bytecount(meta, SCR_META_SIZE, f->size);
    if (!rc && f->has_crc) rc = kvtree_util_set_crc32(meta, SCR_META_CRC, f->crc);
    if (rc) kvtree_delete(&meta);
    return meta;
}

int scavenge_rank_add(scavenge_rank *rank, const scavenge_file *file)
{
    scavenge_file f = *file;
    const char *type = rankmap_type(file->name, file->redundancy);
    if (!type) return -EINVAL;
    scavenge_file *files = array_grow(rank->files, (size_t)rank->count, sizeof *files);
    if (!files) return -ENOMEM;
    rank->files = files;
    f.meta = rankmap_copy_meta(file, type);
    f.name = f.meta ? strdup(file->name) : NULL;
    if (!f.name) {
        rankmap_free_file(&f);
        return -ENOMEM;
    }
    files[rank->count++] = f;
    return 0;
}

/* ---- names ---- */

int scavenge_check_name(const char *name, kvtree_error *err)
{
    char padded[BENEATH_NAME_MAX + 3];
    if (beneath_check_name(name, err) != 0) return -EBADMSG;
    snprintf(padded, sizeof padded, "/%s/", name);
    if (!strstr(padded, "/" SCAVENGE_HIDDEN "/")) return 0;
    return err_set(err, -EBADMSG, "\"%.200s\" is reserved for SCR", name);
}

void scavenge_rank_name(int rank, char name[SCAVENGE_NAME_SIZE])
{
    snprintf(name, SCAVENGE_NAME_SIZE, SCAVENGE_HIDDEN "/%d" SUFFIX, rank);
}

int scavenge_rank_from_name(const char *name, int *rank)
{
    char again[SCAVENGE_NAME_SIZE];
    int64_t value;
    if (sscanf(name, "%18" SCNd64, &value) != 1 || value < 0 || value > INT_MAX)
        return -EINVAL;
    scavenge_rank_name((int)value, again);
    if (strcmp(strrchr(again, '/') + 1, name) != 0) return -EINVAL;
    *rank = (int)value;
    return 0;
}

/* ---- to a tree ---- */

static int rankmap_put_file(kvtree *entry, const scavenge_file *f)
{
    kvtree *file = kvtree_set_kv(entry, KEY_FILE, f->name);
    kvtree *meta = file ? kvtree_set(file, KEY_META, NULL) : NULL;
    return meta ? kvtree_merge(meta, f->meta) : -ENOMEM;
}

int scavenge_rank_to_tree(const scavenge_rank *rank, const scr_dataset *dataset,
                          kvtree *tree)
{
    kvtree *entry = kvtree_set_kv_int(kvtree_set_kv_int(tree, KEY_RANK, rank->rank),
                                      KEY_DSET, dataset->id);
    kvtree *index = kvtree_set_kv_int(tree, KEY_DSET, dataset->id);
    kvtree *description = entry ? kvtree_set(entry, KEY_DATASET, NULL) : NULL;
    if (!description || !kvtree_set_kv_int(index, KEY_RANK, rank->rank)) return -ENOMEM;
    int rc = scr_dataset_to_tree(dataset, description);
    if (!rc) rc = kvtree_util_set_int(entry, KEY_FILES, rank->count);
    for (int i = 0; i < rank->count && !rc; i++)
        rc = rankmap_put_file(entry, &rank->files[i]);
    return rc;
}

/* ---- from a tree ---- */

/* Reads the only key below tree, a number in its shortest form. */
static int rankmap_only_number(const kvtree *tree, const char *what, int least,
                               int *number, kvtree_error *err)
{
    const kvtree_elem *e = kvtree_elem_first(tree);
    int64_t value;
    char text[NUMBER_TEXT_SIZE];
    if (!e || kvtree_elem_next(e) || number_int64(kvtree_elem_key(e), &value) != 0 ||
        value < least || value > INT_MAX ||
        strcmp(number_text_int64(text, value), kvtree_elem_key(e)) != 0)
        return err_set(err, -EBADMSG, "it does not describe exactly one %s", what);
    *number = (int)value;
    return 0;
}

static int rankmap_get_file(const kvtree_elem *e, scavenge_rank *rank, kvtree_error *err)
{
    const kvtree *meta = kvtree_get(kvtree_elem_hash(e), KEY_META);
    const char *name = kvtree_elem_key(e), *type = kvtree_get_val(meta, SCR_META_TYPE);
    unsigned long size = 0, crc = 0;
    bool full = type && strcmp(type, SCR_META_FULL) == 0;
    bool has_crc = kvtree_get(meta, SCR_META_CRC) != NULL;
    const char *expected = rankmap_type(name, !full);
    if (!type || !expected || strcmp(type, expected) != 0 ||
        kvtree_util_get_bytecount(meta, SCR_META_SIZE, &size) != 0 || size > INT64_MAX ||
        (has_crc && kvtree_util_get_crc32(meta, SCR_META_CRC, &crc) != 0))
        return err_set(err, -EBADMSG, "the record of \"%.200s\" is invalid", name);
    if (full && scavenge_check_name(name, err) != 0) return -EBADMSG;
    const scavenge_file f = {name, !full, size, (uint32_t)crc, has_crc, meta};
    return scavenge_rank_add(rank, &f) ? err_set(err, -ENOMEM, "no memory") : 0;
}

static int rankmap_get_files(const kvtree *entry, scavenge_rank *rank, kvtree_error *err)
{
    int expected = 0, rc = 0;
    const kvtree *files = kvtree_get(entry, KEY_FILE);
    if (kvtree_util_get_int(entry, KEY_FILES, &expected) != 0 || expected < 0 ||
        expected != kvtree_size(files))
        return err_set(err, -EBADMSG, "the number of files is not FILES");
    const kvtree_elem *e = kvtree_elem_first(files);
    for (; e && !rc; e = kvtree_elem_next(e))
        rc = rankmap_get_file(e, rank, err);
    return rc;
}

int scavenge_rank_from_tree(const kvtree *tree, scavenge_rank **rank,
                            scr_dataset *dataset, kvtree_error *err)
{
    int number, id;
    scr_dataset d;
    int rc = rankmap_only_number(kvtree_get(tree, KEY_RANK), "rank", 0, &number, err);
    if (rc) return rc;
    const kvtree *ids = kvtree_get(kvtree_get_kv_int(tree, KEY_RANK, number), KEY_DSET);
    rc = rankmap_only_number(ids, "dataset", 1, &id, err);
    if (rc) return rc;
    const kvtree *entry = kvtree_elem_hash(kvtree_elem_first(ids));
    rc = scr_dataset_from_tree(kvtree_get(entry, KEY_DATASET), &d, err);
    if (rc) return rc;
    if (d.id != id || number >= d.ranks || !d.complete)
        return err_set(err, -EBADMSG, "its description is of another dataset");
    scavenge_rank *made = scavenge_rank_new(number);
    rc = made ? rankmap_get_files(entry, made, err) : err_set(err, -ENOMEM, "no memory");
    if (rc) {
        scavenge_rank_free(made);
        return rc;
    }
    *rank = made;
    *dataset = d;
    return 0;
}

/* ---- files ---- */

int scavenge_rank_write(int folder, const scavenge_rank *rank, const scr_dataset *dataset,
                        kvtree_error *err)
{
    char name[SCAVENGE_NAME_SIZE];
    kvtree *tree = kvtree_new();
    scavenge_rank_name(rank->rank, name);
    int rc = tree ? scavenge_rank_to_tree(rank, dataset, tree) : -ENOMEM;
    rc = rc ? err_sys(err, rc, "%s", name)
            : kvtree_file_write(folder, name, RECORD_SIZE_FILES, tree, err);
    kvtree_delete(&tree);
    return rc;
}

int scavenge_rank_read(int folder, int number, scavenge_rank **rank, scr_dataset *dataset,
                       kvtree_error *err)
{
    char name[SCAVENGE_NAME_SIZE];
    kvtree *tree = kvtree_new();
    scavenge_rank_name(number, name);
    int rc = tree ? kvtree_file_read(folder, name, RECORD_SIZE_FILES, tree, err)
                  : err_set(err, -ENOMEM, "%s: no memory", name);
    if (!rc && (rc = scavenge_rank_from_tree(tree, rank, dataset, err)) != 0)
        err_wrap(err, rc, "%s", name);
    if (!rc && (*rank)->rank != number) {
        rc = err_set(err, -EBADMSG, "%s: it describes rank %d", name, (*rank)->rank);
        *rank = scavenge_rank_free(*rank);
    }
    kvtree_delete(&tree);
    return rc;
}
