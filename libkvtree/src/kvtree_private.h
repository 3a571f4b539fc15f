/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KVTREE_PRIVATE_H
#define KVTREE_PRIVATE_H

/* The layout of a tree in memory, for the sources of libkvtree.
 *
 * An element is one piece of memory: it holds its key and, in `own`, its value. Only a
 * value that came in through kvtree_set is stored elsewhere, because callers keep the
 * address they passed. The owner and tree pointers lead from any value back up, so that
 * no walk needs a stack or recursion, however deep the tree is. */

#include "src/kvtree_names_private.h"
#include <errno.h>
#include <kvtree/kvtree.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A tree of at most this number of elements is searched linearly. A wider tree gets an
 * index on its first search, because many trees are only sent, stored and walked. */
#define KVTREE_NARROW 8

struct kvtree_index;

struct kvtree_struct {
    kvtree_elem *first;         /* first->prev is the last element, with next NULL */
    struct kvtree_index *index; /* NULL: the tree is narrow, or was never searched */
    kvtree_elem *owner;         /* the element with this value; NULL: the caller's */
    unsigned count;
    unsigned place : 31; /* of an `own`: position of its element in its block; 0: not in a
                          * block */
    unsigned inside : 1; /* this is the `own` of an element, and is freed with it */
};

struct kvtree_elem_struct {
    kvtree_elem *next, *prev;
    kvtree *tree;  /* the tree that holds this element; NULL once extracted */
    kvtree *value; /* &own, or a tree that came from the caller */
    kvtree own;
    char key[];
};

/* ---- kvtree_tree.c ---- */

/* Returns the element of key, appended if missing; NULL without memory. */
kvtree_elem *kvtree_elem_ensure(kvtree *tree, const char *key);

/* Like kvtree_elem_get; *hash becomes the hash of key if tree has an index. */
kvtree_elem *kvtree_elem_find(const kvtree *tree, const char *key, uint64_t *hash);

/* Replaces the elements of tree by those of `from`, which becomes empty. Neither tree may
 * lie within the other. */
void kvtree_replace(kvtree *tree, kvtree *from);

/* Returns the element after elem in preorder below root (elem NULL: the first one), or
 * NULL after the last. *depth, if given, must start at 0 and follows the level. */
static inline kvtree_elem *kvtree_walk(const kvtree *root, const kvtree_elem *elem,
                                       size_t *depth)
{
    if (!elem) return kvtree_elem_first(root);
    if (elem->value->first) {
        if (depth) ++*depth;
        return elem->value->first;
    }
    while (!elem->next) {
        if (elem->tree == root) return NULL;
        elem = elem->tree->owner;
        if (depth) --*depth;
    }
    return elem->next;
}

/* ---- kvtree_block.c: memory of elements ---- */

#define KVTREE_PLACE_MAX 0x7fffffff

/* The elements follow the block header. */
struct kvtree_block {
    size_t live; /* elements in the block, plus one while it is being filled */
};

/* The block that is being filled. Initialized with zeros. */
struct kvtree_blocks {
    struct kvtree_block *block;
    size_t used, size;
};

#define KVTREE_UNIT _Alignof(kvtree_elem)

/* Allocates an element with a key of key_size bytes; only own.place is set. NULL without
 * memory. */
kvtree_elem *kvtree_elem_new(size_t key_size);

/* Like kvtree_blocks_elem if the block has no room: allocates the element in a new block,
 * or alone. */
kvtree_elem *kvtree_blocks_more(struct kvtree_blocks *blocks, size_t key_size,
                                size_t packed_rest);

/* Allocates an element in a block. packed_rest bytes of input remain to be unpacked. */
static inline kvtree_elem *kvtree_blocks_elem(struct kvtree_blocks *blocks,
                                              size_t key_size, size_t packed_rest)
{
    size_t size =
        (sizeof(kvtree_elem) + key_size + KVTREE_UNIT - 1) / KVTREE_UNIT * KVTREE_UNIT;
    if (size > blocks->size - blocks->used)
        return kvtree_blocks_more(blocks, key_size, packed_rest);
    kvtree_elem *elem = (void *)((char *)blocks->block + blocks->used);
    elem->own.place = (unsigned)(blocks->used / KVTREE_UNIT) & KVTREE_PLACE_MAX;
    blocks->used += size;
    blocks->block->live++;
    return elem;
}

/* Ends the filling of the block; its elements remain. */
void kvtree_blocks_close(struct kvtree_blocks *blocks);

/* Frees the memory of an element, wherever it is. */
void kvtree_elem_free(kvtree_elem *elem);

/* ---- kvtree_index.c: finding an element of a wide tree ---- */

uint64_t kvtree_index_hash(const struct kvtree_index *index, const char *key);
kvtree_elem *kvtree_index_find(const struct kvtree_index *index, const char *key,
                               uint64_t hash);

/* Creates or enlarges the index, so that it has room for count elements in all. */
int kvtree_index_reserve(kvtree *tree, size_t count);

/* Adds elem, which is not yet in the tree, with the hash of its key. */
int kvtree_index_add(kvtree *tree, kvtree_elem *elem, uint64_t hash);

void kvtree_index_remove(struct kvtree_index *index, const kvtree_elem *elem);

/* Appends elem, newly allocated for a key of size bytes with its NUL, which must be
 * missing in tree. If tree has an index, hash is that of kvtree_elem_find. -ENOMEM: the
 * caller still owns elem. */
static inline int kvtree_elem_append(kvtree *tree, kvtree_elem *elem, const char *key,
                                     size_t size, uint64_t hash)
{
    unsigned place = elem->own.place & KVTREE_PLACE_MAX;
    if (tree->count == INT_MAX) return -ENOMEM;
    *elem =
        (kvtree_elem){.tree = tree, .own = {.owner = elem, .place = place, .inside = 1}};
    elem->value = &elem->own;
    memcpy(elem->key, key, size);
    if (tree->index && kvtree_index_add(tree, elem, hash) != 0) return -ENOMEM;
    if (tree->first) {
        elem->prev = tree->first->prev;
        elem->prev->next = elem;
    } else {
        elem->prev = tree->first = elem;
    }
    tree->first->prev = elem;
    tree->count++;
    return 0;
}

/* ---- kvtree_pack.c ---- */

/* Bytes of a packed element count, and of a packed empty tree. */
#define KVTREE_COUNT_SIZE 4

/* Produces the packed bytes of a tree in pieces of any size. */
struct kvtree_packer {
    const kvtree *tree;
    const kvtree_elem *elem; /* the element to produce next; NULL: the count of tree */
    size_t key_size;         /* key size of elem, measured once: keys may be long */
    size_t done;             /* bytes of the element already produced */
    int end;
};

/* Fills buf with the next size bytes, or fewer at the end. Returns their number. */
size_t kvtree_packer_next(struct kvtree_packer *p, char *buf, size_t size);

/* Like kvtree_pack_size; *depth becomes the number of levels. */
size_t kvtree_measure(const kvtree *tree, size_t *depth);

/* Merges a packed tree of exactly size bytes into tree, which is unchanged on failure. */
int kvtree_unpack_merge(const char *buf, size_t size, kvtree *tree, kvtree_error *err);

/* Like kvtree_unpack_err with another limit than KVTREE_DEPTH_MAX, for tests. */
ssize_t kvtree_unpack_within(const char *buf, size_t len, kvtree *tree, size_t depth_max,
                             kvtree_error *err);

/* ---- kvtree_file.c ---- */

/* Kinds of files. Files that serve as their own lock have the mode of a lock file. */
enum kvtree_kind {
    KVTREE_PLAIN,
    KVTREE_LOCKED,    /* name has one component */
    KVTREE_NEW_LOCKED /* like KVTREE_LOCKED; -EEXIST if the file exists */
};

/* Writes the file name below dir, like kvtree_file_write. */
int kvtree_write_below(int dir, const char *name, uint64_t limit, const kvtree *tree,
                       enum kvtree_kind kind, kvtree_error *err);

/* Bytes of a file before and after its packed tree: header, checksum. */
#define KVTREE_FILE_BEFORE 20
#define KVTREE_FILE_BEHIND 4

/* Writes the file name below dir, like kvtree_file_write. bytes has the size of the file
 * and contains the packed tree at its position; header and checksum are filled in. */
int kvtree_write_packed(int dir, const char *name, char *bytes, size_t size,
                        kvtree_error *err);

struct kvtree_file_facts {
    uint64_t size;     /* size of the file in bytes */
    uint64_t elements; /* elements of the tree, at all levels */
    bool has_crc;
    uint32_t crc; /* valid with has_crc */
};

/* Reads a file of at most limit bytes, from the current offset to its end, also from a
 * pipe. *facts, if given, describes the file; tree must be empty then. */
int kvtree_read_whole(int fd, uint64_t limit, kvtree *tree,
                      struct kvtree_file_facts *facts, kvtree_error *err);

/* Like kvtree_read_whole without a limit, but a file of 0 bytes is an empty tree: KVTree
 * creates such a file when it locks a missing one. */
int kvtree_read_or_empty(int fd, kvtree *tree, kvtree_error *err);

/* ---- kvtree_format.c ---- */

/* Longest "%f": a sign, 309 digits, a point, six digits, NUL. */
#define KVTREE_DOUBLE_SIZE 320

/* Formats as "%f", or as "%.17g", which keeps every bit; with a decimal point, whatever
 * the locale of the program. */
void kvtree_double_text(char text[KVTREE_DOUBLE_SIZE], bool is_exact, double value);

/* ---- kvtree_print.c: for the commands ---- */

/* Prints a key (or another name of foreign origin) as in the form KVTREE_FORM_TREE. */
int kvtree_fprint_key(FILE *out, const char *key);

/* Like kvtree_fprint with margin columns before each line; not for JSON. */
int kvtree_fprint_at(FILE *out, const kvtree *tree, int form, int indent, size_t margin);

/* ---- big-endian numbers ---- */

static inline char *kvtree_put32(char *p, uint32_t v)
{
    const unsigned char bytes[] = {v >> 24 & 0xff, v >> 16 & 0xff, v >> 8 & 0xff,
                                   v & 0xff};
    memcpy(p, bytes, sizeof bytes);
    return p + sizeof bytes;
}

static inline uint32_t kvtree_get32(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

#endif
