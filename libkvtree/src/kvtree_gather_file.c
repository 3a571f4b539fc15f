/* SPDX-License-Identifier: BSD-3-Clause */
/* One of the files that hold the trees of many ranks: building, reading and taking apart
 * its tree, its name and its size (docs/formats/gather.md). A file that is read may come
 * from anyone, so all of it is checked before any of it is used. */
#include "src/kvtree_gather_private.h"

#include "common/array.h"
#include "common/errtext.h"
#include "common/record_size.h"
#include "src/kvtree_private.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".scr"

/* ---- names ---- */

size_t kvtree_gather_stem(const char *root)
{
    size_t length = strlen(root), suffix = strlen(SUFFIX);
    bool has = length > suffix && strcmp(root + length - suffix, SUFFIX) == 0;
    return has ? length - suffix : length;
}

int kvtree_gather_file_name(const char *root, int level, int rank,
                            char name[BENEATH_NAME_MAX])
{
    size_t stem = kvtree_gather_stem(root);
    int n = snprintf(name, BENEATH_NAME_MAX, "%.*s.%d.%d%s", (int)stem, root, level, rank,
                     root + stem);
    return n < BENEATH_NAME_MAX ? 0 : -ENAMETOOLONG;
}

int kvtree_gather_check_root(const char *name, kvtree_error *err)
{
    char lower[BENEATH_NAME_MAX];
    int rc = beneath_check_name(name, err);
    if (rc) return rc;
    rc = kvtree_gather_file_name(name, KVTREE_GATHER_LEVEL_MAX, INT_MAX, lower);
    return rc ? err_sys(err, rc, "%.60s...", name) : 0;
}

/* ---- sizes ---- */

/* Returns the bytes of a file besides its items: 24 bytes of header and checksum, and the
 * packed keys LEVEL, RANKS and RANK with two numbers and their counts. */
static uint64_t gather_overhead(const char *top)
{
    return 128 + (top ? strlen(top) : 0);
}

/* If no item is larger than a width, the items that begin within a width take at most two
 * widths, so the width is half of the room in a file. Above level 0, a width holds at
 * least two pointers, whatever the limit (128 bytes suffice for the key of a pointer and
 * for what it adds to the root's name). Therefore each level has at most half as many
 * files as the level below, and the levels end. */
uint64_t kvtree_gather_width(const kvtree_gather_place *to, int level)
{
    uint64_t most = to->limit ? to->limit : KVTREE_GATHER_LIMIT;
    uint64_t around = gather_overhead(to->top);
    if (most > RECORD_SIZE_FILES) most = RECORD_SIZE_FILES;
    uint64_t width = most > around ? (most - around) / 2 : 0;
    uint64_t least = level > 0 ? 2 * (strlen(to->name) + 128) : 0;
    return width > least ? width : least;
}

int kvtree_gather_check_size(const char *top, uint64_t size, kvtree_error *err)
{
    if (size + gather_overhead(top) <= RECORD_SIZE_FILES) return 0;
    return err_set(err, -EFBIG, "a tree of %llu bytes does not fit into a file",
                   (unsigned long long)size);
}

/* ---- building ---- */

/* Bytes of an item before its packed tree. */
#define RANKS_SIZE KVTREE_COUNT_SIZE

int kvtree_gather_pack(const kvtree_gather_place *to, int rank, int ranks,
                       const kvtree *tree, kvtree_gather_item *item, uint64_t *room,
                       kvtree_error *err)
{
    char key[16];
    size_t depth, size = kvtree_measure(tree, &depth);
    *room = (uint64_t)snprintf(key, sizeof key, "%d", rank) + 1 + size;
    const size_t above = to->top ? 3 : 2; /* the top key, RANK, a rank */
    if (depth + above > KVTREE_DEPTH_MAX)
        return err_set(err, -EOVERFLOW, "write a tree of %zu levels: more than %zu",
                       depth, KVTREE_DEPTH_MAX - above);
    int rc = kvtree_gather_check_size(to->top, *room, err);
    if (rc) return rc;
    item->size = RANKS_SIZE + size;
    item->bytes = malloc(item->size);
    if (!item->bytes) return err_sys(err, -ENOMEM, "write %s", to->name);
    kvtree_pack(kvtree_put32(item->bytes, (uint32_t)ranks), tree);
    return 0;
}

int kvtree_gather_pack_pointer(const kvtree_gather_place *to, int level, int rank,
                               int ranks, kvtree_gather_item *item, uint64_t *room,
                               kvtree_error *err)
{
    char name[BENEATH_NAME_MAX];
    kvtree *pointer = kvtree_new();
    kvtree_gather_file_name(to->name, level, rank, name);
    int rc = kvtree_util_set_int(pointer, "OFFSET", 0) != 0 ||
                     kvtree_util_set_str(pointer, "FILE", name) != 0
                 ? err_sys(err, -ENOMEM, "write %s", to->name)
                 : kvtree_gather_pack(to, rank, ranks, pointer, item, room, err);
    kvtree_delete(&pointer);
    return rc;
}

/* An item in a group. */
struct kvtree_gather_member {
    int rank;
    kvtree_gather_item item;
};

int kvtree_gather_group_add(kvtree_gather_group *group, int rank, kvtree_gather_item item)
{
    const bool valid = item.bytes && item.size >= RANKS_SIZE + KVTREE_COUNT_SIZE;
    struct kvtree_gather_member *members =
        valid ? array_grow(group->members, group->count, sizeof *members) : NULL;
    if (!members) {
        free(item.bytes);
        return valid ? -ENOMEM : -EBADMSG;
    }
    members[group->count++] = (struct kvtree_gather_member){rank, item};
    group->members = members;
    group->ranks += (int)kvtree_get32(item.bytes);
    return 0;
}

void kvtree_gather_group_free(kvtree_gather_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        free(group->members[i].item.bytes);
    free(group->members);
    *group = (kvtree_gather_group){0};
}

static int gather_compare_ranks(const void *a, const void *b)
{
    const struct kvtree_gather_member *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Builds the tree of a file without its items. RANK is the last key at all levels, so the
 * packed tree ends with the number of items, 0, and the items only have to be appended.
 */
static kvtree *gather_make_frame(const kvtree_gather_group *group, const char *top,
                                 int level)
{
    kvtree *tree = kvtree_new();
    kvtree *body = level == 0 && top ? kvtree_set(tree, top, NULL) : tree;
    if (kvtree_util_set_int(body, "LEVEL", level) != 0 ||
        kvtree_util_set_int(body, "RANKS", group->ranks) != 0 ||
        !kvtree_set(body, "RANK", NULL))
        kvtree_delete(&tree);
    return tree;
}

/* Builds the bytes of a file, with room for header and checksum. NULL without memory. */
static char *gather_pack_file(const kvtree_gather_group *group, const kvtree *frame,
                              size_t *size)
{
    enum { KEY_SIZE = 12 }; /* key of a rank */
    size_t most = KVTREE_FILE_BEFORE + kvtree_pack_size(frame) + KVTREE_FILE_BEHIND;
    for (size_t i = 0; i < group->count; i++)
        most += KEY_SIZE + group->members[i].item.size - RANKS_SIZE;
    char *bytes = malloc(most);
    if (!bytes) return NULL;
    char *p = bytes + KVTREE_FILE_BEFORE;
    p += kvtree_pack(p, frame);
    kvtree_put32(p - KVTREE_COUNT_SIZE, (uint32_t)group->count);
    for (size_t i = 0; i < group->count; i++) {
        const struct kvtree_gather_member *m = &group->members[i];
        const size_t packed = m->item.size - RANKS_SIZE;
        p += snprintf(p, KEY_SIZE, "%d", m->rank) + 1;
        memcpy(p, m->item.bytes + RANKS_SIZE, packed);
        p += packed;
    }
    *size = (size_t)(p - bytes) + KVTREE_FILE_BEHIND;
    return bytes;
}

int kvtree_gather_group_write(kvtree_gather_group *group, const kvtree_gather_place *to,
                              int level, int rank, bool is_root, kvtree_error *err)
{
    char lower[BENEATH_NAME_MAX];
    const char *name = is_root ? to->name : lower;
    size_t size = 0;
    kvtree_gather_file_name(to->name, level, rank, lower);
    qsort(group->members, group->count, sizeof *group->members, gather_compare_ranks);
    kvtree *frame = gather_make_frame(group, to->top, level);
    char *bytes = frame ? gather_pack_file(group, frame, &size) : NULL;
    kvtree_delete(&frame);
    kvtree_gather_group_free(group);
    int rc = bytes ? kvtree_write_packed(to->dir, name, bytes, size, err)
                   : err_sys(err, -ENOMEM, "write %s", name);
    free(bytes);
    return rc;
}

/* ---- taking apart ---- */

static int gather_check_pointer(const char *rank, const kvtree *pointer,
                                kvtree_error *err)
{
    char *name;
    unsigned long offset;
    if (kvtree_util_get_bytecount(pointer, "OFFSET", &offset) != 0 || offset != 0)
        return err_set(err, -EBADMSG, "the OFFSET of reader %s is not 0", rank);
    if (kvtree_util_get_str(pointer, "FILE", &name) != 0)
        return err_set(err, -EBADMSG, "reader %s has no FILE", rank);
    return beneath_check_name(name, err) == 0
               ? 0
               : err_wrap(err, -EBADMSG, "reader %s", rank);
}

/* A rank has only one spelling, so that no two keys mean the same rank. */
static int gather_check_key(const kvtree_elem *item, kvtree_error *err)
{
    char digits[16];
    int rank = kvtree_elem_key_int(item);
    snprintf(digits, sizeof digits, "%d", rank);
    if (rank >= 0 && strcmp(digits, kvtree_elem_key(item)) == 0) return 0;
    return err_set(err, -EBADMSG, "\"%.20s\" is no rank", kvtree_elem_key(item));
}

static int gather_check_items(const kvtree *items, int level, kvtree_error *err)
{
    int rc = 0;
    for (kvtree_elem *e = kvtree_elem_first(items); e && rc == 0;
         e = kvtree_elem_next(e)) {
        rc = gather_check_key(e, err);
        if (rc == 0 && level > 0)
            rc = gather_check_pointer(kvtree_elem_key(e), kvtree_elem_hash(e), err);
    }
    return rc;
}

int kvtree_gather_file_take(kvtree *tree, const char *top, int level,
                            kvtree_gather_part *part, kvtree_error *err)
{
    kvtree *body = level == 0 && top ? kvtree_get(tree, top) : tree;
    kvtree_gather_part found = {0};
    if (kvtree_util_get_int(body, "LEVEL", &found.level) != 0)
        return err_set(err, -EBADMSG, "no valid LEVEL");
    if (level >= 0 && found.level != level)
        return err_set(err, -EBADMSG, "LEVEL is %d, not %d", found.level, level);
    if (level < 0 && (found.level < 1 || found.level > KVTREE_GATHER_LEVEL_MAX))
        return err_set(err, -EBADMSG, "LEVEL %d cannot be that of a root", found.level);
    if (level < 0 &&
        (kvtree_util_get_int(body, "RANKS", &found.ranks) != 0 || found.ranks < 1))
        return err_set(err, -EBADMSG, "no valid RANKS");
    found.items = kvtree_get(body, "RANK");
    if (kvtree_size(found.items) == 0)
        return err_set(err, -EBADMSG, "nothing under RANK");
    if (level == 0) found.ranks = kvtree_size(found.items);
    int rc = gather_check_items(found.items, found.level, err);
    if (rc) return rc;
    kvtree_extract(body, "RANK");
    *part = found;
    return 0;
}

/* ---- reading ---- */

/* Errors caused by the content of the directory mean damage. Others (no memory, no
 * permission, a failing disk) are passed on unchanged. */
static bool gather_is_damage(int rc)
{
    return rc == -EBADMSG || rc == -EINVAL || rc == -ELOOP || rc == -ENOTDIR ||
           rc == -EISDIR;
}

static int gather_load(const kvtree_gather_place *from, const char *name, kvtree *tree,
                       kvtree_error *err)
{
    if (strncmp(name, from->name, from->skip) != 0)
        return err_set(err, -EBADMSG, "%s is not beside %s", name, from->name);
    name += from->skip;
    int rc = kvtree_file_read(from->dir, name, RECORD_SIZE_FILES, tree, err);
    if (rc == -ENOENT) return err_set(err, rc, "%s is missing", name);
    return gather_is_damage(rc) ? -EBADMSG : rc;
}

/* Whether name is only a suffix: KVTree writes what must be appended to the name of the
 * root, ".<level>.<rank>". */
static bool gather_is_suffix(const char *name)
{
    static const char digits[] = "0123456789";
    for (int i = 0; i < 2; i++) {
        size_t length = *name == '.' ? strspn(name + 1, digits) : 0;
        if (length == 0) return false;
        name += 1 + length;
    }
    return *name == '\0';
}

/* Replaces such suffixes by names. */
static int gather_complete(const char *root, const kvtree *pointers, kvtree_error *err)
{
    char whole[2 * BENEATH_NAME_MAX];
    for (kvtree_elem *e = kvtree_elem_first(pointers); e; e = kvtree_elem_next(e)) {
        kvtree *pointer = kvtree_elem_hash(e);
        const char *name = kvtree_elem_get_first_val(pointer, "FILE");
        if (!gather_is_suffix(name)) continue;
        snprintf(whole, sizeof whole, "%s%s", root, name);
        if (kvtree_util_set_str(pointer, "FILE", whole) != 0)
            return err_sys(err, -ENOMEM, "read %s", root);
    }
    return 0;
}

int kvtree_gather_file_read(const kvtree_gather_place *from, const char *name, int level,
                            kvtree_gather_part *part, kvtree_error *err)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? gather_load(from, name, tree, err)
                  : err_sys(err, -ENOMEM, "read %s", name);
    if (rc == -ENOENT && level >= 0) rc = -EBADMSG; /* the level above names it */
    if (rc == 0) {
        rc = kvtree_gather_file_take(tree, from->top, level, part, err);
        if (rc) err_wrap(err, rc, "%s", name);
    }
    kvtree_delete(&tree);
    if (rc || part->level == 0) return rc;
    rc = gather_complete(from->name, part->items, err);
    if (rc) kvtree_delete(&part->items);
    return rc;
}

int kvtree_gather_check_rank(const char *name, int rank, int64_t ranks, kvtree_error *err)
{
    if (rank < ranks) return 0;
    return err_set(err, -EBADMSG, "%s: rank %d of only %lld is listed", name, rank,
                   (long long)ranks);
}

int kvtree_gather_listed_twice(const char *name, int rank, kvtree_error *err)
{
    return err_set(err, -EBADMSG, "%s: rank %d is listed twice", name, rank);
}

int kvtree_gather_check_sum(const char *root, int64_t ranks, int64_t sum,
                            kvtree_error *err)
{
    if (sum == ranks) return 0;
    return err_set(err, -EBADMSG, "%s is of %lld ranks, but its files list %lld", root,
                   (long long)ranks, (long long)sum);
}
