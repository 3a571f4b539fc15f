/* SPDX-License-Identifier: BSD-3-Clause */
/* The packed form (SCR Developer Guide 1.2, section 2.3.4): count u32, then count times a
 * key with its NUL and its packed tree; all numbers are big-endian. This is the order of
 * a preorder walk. */
#include "src/kvtree_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The shortest element: an empty key's NUL, and the count of an empty tree. */
#define ELEM_SIZE_MIN (1 + KVTREE_COUNT_SIZE)

size_t kvtree_measure(const kvtree *tree, size_t *depth)
{
    size_t size = KVTREE_COUNT_SIZE, level = 0;
    *depth = 0;
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, &level));) {
        size += strlen(e->key) + 1 + KVTREE_COUNT_SIZE;
        if (level >= *depth) *depth = level + 1;
    }
    return size;
}

size_t kvtree_pack_size(const kvtree *tree)
{
    size_t size = KVTREE_COUNT_SIZE;
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, NULL));)
        size += strlen(e->key) + 1 + KVTREE_COUNT_SIZE;
    return size;
}

size_t kvtree_pack(char *buf, const kvtree *tree)
{
    if (!buf) return 0;
    char *p = kvtree_put32(buf, (uint32_t)kvtree_size(tree));
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, NULL));)
        p = kvtree_put32(stpcpy(p, e->key) + 1, e->value->count);
    return (size_t)(p - buf);
}

/* ---- packing in pieces ---- */

/* Copies the rest of size bytes at from, of which p->done are already produced. */
static size_t packer_copy(struct kvtree_packer *p, char *buf, size_t room,
                          const char *from, size_t size)
{
    size_t n = size - p->done < room ? size - p->done : room;
    memcpy(buf, from + p->done, n);
    p->done += n;
    return n;
}

static void packer_advance(struct kvtree_packer *p)
{
    p->elem = kvtree_walk(p->tree, p->elem, NULL);
    p->key_size = p->elem ? strlen(p->elem->key) + 1 : 0;
    p->done = 0;
    p->end = !p->elem;
}

/* Produces the rest of one element, or a part of it: first the key, then the count. */
static size_t packer_put_part(struct kvtree_packer *p, char *buf, size_t room)
{
    char count[KVTREE_COUNT_SIZE];
    size_t n = 0, key = p->key_size;
    kvtree_put32(count, (uint32_t)kvtree_size(p->elem ? p->elem->value : p->tree));
    if (p->done < key) n = packer_copy(p, buf, room, p->elem->key, key);
    if (p->done < key) return n;
    p->done -= key;
    n += packer_copy(p, buf + n, room - n, count, sizeof count);
    p->done += key;
    if (p->done == key + sizeof count) packer_advance(p);
    return n;
}

/* Produces a whole element. */
static size_t packer_put_elem(struct kvtree_packer *p, char *buf)
{
    memcpy(buf, p->elem->key, p->key_size);
    kvtree_put32(buf + p->key_size, p->elem->value->count);
    size_t n = p->key_size + KVTREE_COUNT_SIZE;
    packer_advance(p);
    return n;
}

size_t kvtree_packer_next(struct kvtree_packer *p, char *buf, size_t size)
{
    size_t used = 0;
    while (!p->end && used < size) {
        size_t room = size - used;
        bool whole = p->elem && p->done == 0 && p->key_size + KVTREE_COUNT_SIZE <= room;
        used +=
            whole ? packer_put_elem(p, buf + used) : packer_put_part(p, buf + used, room);
    }
    return used;
}

/* ---- unpacking ---- */

struct unpacker {
    const char *buf;
    size_t len, pos;
    size_t owed;       /* elements announced by the counts so far and not read yet */
    uint32_t *pending; /* for each level, how many of them belong to its tree */
    size_t depth, depth_room, depth_max;
    struct kvtree_blocks blocks;
    kvtree_error *err;
};

static int unpack_no_memory(const struct unpacker *r)
{
    return err_sys(r->err, -ENOMEM, "unpack a tree of %zu bytes", r->len);
}

/* Opens a level of count elements. The room for levels grows with the input that was
 * read. */
static int unpack_open_level(struct unpacker *r, uint32_t count)
{
    if (r->depth == r->depth_max)
        return err_set(r->err, -EBADMSG, "packed tree: more than %zu levels at byte %zu",
                       r->depth_max, r->pos);
    if (r->depth == r->depth_room) {
        size_t room = 2 * r->depth_room + 32;
        uint32_t *pending = realloc(r->pending, room * sizeof *pending);
        if (!pending) return unpack_no_memory(r);
        r->pending = pending;
        r->depth_room = room;
    }
    r->pending[r->depth++] = count;
    return 0;
}

/* Accepts a count that ends at r->pos. A count beyond the input is refused before memory
 * is allocated for it. */
static int unpack_promise(struct unpacker *r, uint32_t count)
{
    const size_t left = r->len - r->pos, promised = r->owed + count;
    if (count > INT_MAX || promised > left / ELEM_SIZE_MIN)
        return err_set(
            r->err, -EBADMSG,
            "packed tree: count %lu at byte %zu is more than %zu bytes can hold",
            (unsigned long)count, r->pos - KVTREE_COUNT_SIZE, left);
    r->owed = promised;
    return unpack_open_level(r, count);
}

static int unpack_count(struct unpacker *r)
{
    if (r->len - r->pos < KVTREE_COUNT_SIZE)
        return err_set(r->err, -EBADMSG, "packed tree ends within the count at byte %zu",
                       r->pos);
    uint32_t count = kvtree_get32(r->buf + r->pos);
    r->pos += KVTREE_COUNT_SIZE;
    return count ? unpack_promise(r, count) : 0;
}

/* Order of keys: shorter keys first, keys of the same length by strcmp. In this order
 * "10" follows "9". */
static bool unpack_is_ascending(const kvtree_elem *elem, const char *key, size_t size)
{
    size_t before = strlen(elem->key) + 1;
    return size > before || (size == before && memcmp(key, elem->key, size) > 0);
}

/* Whether the next key, of size bytes, is repeated. The keys of a wide tree need no
 * search as long as they ascend, as rank numbers do. At the first key that does not
 * ascend, the tree gets an index with room for all remaining keys. */
static int unpack_find_key(const struct unpacker *r, kvtree *tree, const char *key,
                           size_t size, uint64_t *hash)
{
    size_t all = tree->count + (size_t)r->pending[r->depth - 1] + 1;
    if (!tree->first) return 0;
    if (!tree->index && all > KVTREE_NARROW) {
        if (unpack_is_ascending(tree->first->prev, key, size)) return 0;
        if (kvtree_index_reserve(tree, all) != 0) return -ENOMEM;
    }
    return kvtree_elem_find(tree, key, hash) != NULL;
}

static int unpack_key(struct unpacker *r, kvtree *tree, kvtree_elem **elem)
{
    uint64_t hash = 0;
    const char *key = r->buf + r->pos;
    const char *end = memchr(key, 0, r->len - r->pos);
    if (!end)
        return err_set(r->err, -EBADMSG, "packed tree: key at byte %zu has no end",
                       r->pos);
    size_t size = (size_t)(end - key) + 1;
    int repeated = unpack_find_key(r, tree, key, size, &hash);
    if (repeated < 0) return unpack_no_memory(r);
    if (repeated)
        return err_set(r->err, -EBADMSG,
                       "packed tree: key at byte %zu is there for the second time",
                       r->pos);
    r->pos += size;
    kvtree_elem *fresh = kvtree_blocks_elem(&r->blocks, size, r->len - r->pos);
    if (!fresh) return unpack_no_memory(r);
    if (kvtree_elem_append(tree, fresh, key, size, hash) != 0) {
        kvtree_elem_free(fresh);
        return unpack_no_memory(r);
    }
    *elem = fresh;
    return 0;
}

/* Returns the tree of the next element; NULL when all elements are read. */
static kvtree *unpack_climb(struct unpacker *r, kvtree *tree)
{
    while (r->pending[r->depth - 1] == 0) {
        if (--r->depth == 0) return NULL;
        tree = tree->owner->tree;
    }
    return tree;
}

static int unpack_tree(struct unpacker *r, kvtree *root)
{
    kvtree_elem *elem = NULL;
    int rc = unpack_count(r);
    kvtree *tree = r->depth ? root : NULL;
    while (!rc && tree) {
        size_t depth = r->depth;
        r->pending[depth - 1]--;
        r->owed--;
        rc = unpack_key(r, tree, &elem);
        if (!rc) rc = unpack_count(r);
        if (!rc) tree = unpack_climb(r, r->depth > depth ? elem->value : tree);
    }
    return rc;
}

ssize_t kvtree_unpack_within(const char *buf, size_t len, kvtree *tree, size_t depth_max,
                             kvtree_error *err)
{
    if (!buf || !tree || tree->count)
        return err_set(err, -EINVAL, "unpack: %s",
                       !buf    ? "no bytes"
                       : !tree ? "no tree"
                               : "the tree is not empty");
    struct unpacker r = {.buf = buf, .depth_max = depth_max, .err = err};
    r.len = len < SSIZE_MAX ? len : SSIZE_MAX;
    int rc = unpack_tree(&r, tree);
    kvtree_blocks_close(&r.blocks);
    free(r.pending);
    if (!rc) return (ssize_t)r.pos;
    kvtree_unset_all(tree);
    return rc;
}

ssize_t kvtree_unpack_err(const char *buf, size_t len, kvtree *tree, kvtree_error *err)
{
    return kvtree_unpack_within(buf, len, tree, KVTREE_DEPTH_MAX, err);
}

ssize_t kvtree_unpack_n(const char *buf, size_t len, kvtree *tree)
{
    return kvtree_unpack_err(buf, len, tree, NULL);
}

/* A tree that is not empty is merged into: bytes after the packed tree must not destroy
 * the caller's tree. */
int kvtree_unpack_merge(const char *buf, size_t size, kvtree *tree, kvtree_error *err)
{
    kvtree *fresh = kvtree_size(tree) ? kvtree_new() : tree;
    if (!fresh) return err_sys(err, -ENOMEM, "unpack a tree of %zu bytes", size);
    ssize_t used = kvtree_unpack_err(buf, size, fresh, err);
    int rc = used < 0 ? (int)used : 0;
    if (!rc && (size_t)used < size)
        rc = err_set(err, -EBADMSG, "%zu bytes too many between the tree and the end",
                     size - (size_t)used);
    if (fresh == tree) {
        if (rc) kvtree_unset_all(tree);
        return rc;
    }
    if (!rc && (rc = kvtree_merge(tree, fresh)) != 0)
        err_sys(err, rc, "merge a tree of %zu bytes", size);
    kvtree_delete(&fresh);
    return rc;
}

/* Returns the size of a packed tree that kvtree_pack made. */
static size_t unpack_measure(const char *buf)
{
    const char *p = buf + KVTREE_COUNT_SIZE;
    for (size_t owed = kvtree_get32(buf); owed > 0; owed--) {
        p += strlen(p) + 1;
        owed += kvtree_get32(p);
        p += KVTREE_COUNT_SIZE;
    }
    return (size_t)(p - buf);
}

/* Memory is allocated according to the size, so the size must be known. */
size_t kvtree_unpack(const char *buf, kvtree *tree)
{
    ssize_t size = kvtree_unpack_err(buf, buf ? unpack_measure(buf) : 0, tree, NULL);
    return size < 0 ? 0 : (size_t)size;
}
