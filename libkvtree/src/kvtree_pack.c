/* SPDX-License-Identifier: BSD-3-Clause */
/* The packed form (SCR Developer Guide 1.2, section 2.3.4): count u32, then count times a
 * key with its NUL and its packed tree; all numbers big-endian. That is the order of a
 * preorder walk. */
#include "src/kvtree_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <limits.h>
#include <string.h>

#define COUNT_SIZE 4
/* The shortest element: an empty key's NUL, and the count of an empty tree. */
#define ELEM_SIZE_MIN (1 + COUNT_SIZE)

size_t kvtree_pack_size(const kvtree *tree)
{
    size_t size = COUNT_SIZE;
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, NULL));)
        size += strlen(e->key) + 1 + COUNT_SIZE;
    return size;
}

size_t kvtree_pack(char *buf, const kvtree *tree)
{
    char *p = kvtree_put32(buf, (uint32_t)kvtree_size(tree));
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, NULL));) {
        size_t size = strlen(e->key) + 1;
        memcpy(p, e->key, size);
        p = kvtree_put32(p + size, e->value->count);
    }
    return (size_t)(p - buf);
}

struct reader {
    const char *buf;
    size_t len, pos;
    size_t owed; /* elements that all counts so far promise, and that did not come yet */
    char *err;
};

static int read_count(struct reader *r, kvtree *tree)
{
    size_t left = r->len - r->pos;
    if (left < COUNT_SIZE)
        return err_set(r->err, -EBADMSG, "packed tree ends within the count at byte %zu",
                       r->pos);
    uint32_t count = kvtree_get32(r->buf + r->pos);
    left -= COUNT_SIZE;
    /* Promises beyond the input are refused before anything is allocated for them. */
    if (count > INT_MAX || count > left / ELEM_SIZE_MIN - r->owed)
        return err_set(
            r->err, -EBADMSG,
            "packed tree: count %lu at byte %zu is more than %zu bytes can hold",
            (unsigned long)count, r->pos, left);
    tree->pending = count & INT_MAX;
    r->owed += count;
    r->pos += COUNT_SIZE;
    return 0;
}

static int read_key(struct reader *r, kvtree *tree, kvtree_elem **elem)
{
    const char *key = r->buf + r->pos;
    const char *end = memchr(key, 0, r->len - r->pos);
    if (!end)
        return err_set(r->err, -EBADMSG, "packed tree: key at byte %zu has no end",
                       r->pos);
    if (kvtree_elem_get(tree, key))
        return err_set(r->err, -EBADMSG,
                       "packed tree: key at byte %zu is there for the second time",
                       r->pos);
    *elem = kvtree_elem_append(tree, key);
    if (!*elem) return err_sys(r->err, -ENOMEM, "unpack a tree of %zu bytes", r->len);
    r->pos += (size_t)(end - key) + 1;
    return 0;
}

static int read_element(struct reader *r, kvtree *tree, kvtree **value)
{
    kvtree_elem *elem;
    tree->pending--;
    r->owed--;
    int rc = read_key(r, tree, &elem);
    if (rc) return rc;
    *value = elem->value;
    return read_count(r, elem->value);
}

static int read_tree(struct reader *r, kvtree *root)
{
    kvtree *tree = root;
    int rc = read_count(r, root);
    while (!rc) {
        for (; tree->pending == 0; tree = tree->owner->tree)
            if (tree == root) return 0;
        rc = read_element(r, tree, &tree);
    }
    return rc;
}

ssize_t kvtree_unpack_err(const char *buf, size_t len, kvtree *tree, char *err)
{
    if (!buf || !tree || tree->count)
        return err_set(err, -EINVAL, "unpack: %s",
                       !buf    ? "no bytes"
                       : !tree ? "no tree"
                               : "the tree is not empty");
    struct reader r = {.buf = buf, .len = len < SSIZE_MAX ? len : SSIZE_MAX, .err = err};
    int rc = read_tree(&r, tree);
    if (!rc) return (ssize_t)r.pos;
    kvtree_unset_all(tree);
    return rc;
}

ssize_t kvtree_unpack_n(const char *buf, size_t len, kvtree *tree)
{
    return kvtree_unpack_err(buf, len, tree, NULL);
}

size_t kvtree_unpack(const char *buf, kvtree *tree)
{
    ssize_t size = kvtree_unpack_err(buf, SSIZE_MAX, tree, NULL);
    return size < 0 ? 0 : (size_t)size;
}
