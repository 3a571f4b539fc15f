/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a packed tree. They are accepted exactly when an independent reader
 * accepts them. An accepted tree packs to the same bytes and is then modified: the bytes
 * after the packed tree, and then a sequence that depends on the whole input, choose
 * elements and operations. */
#include "fuzz_tree.h"

#include <stdio.h>

/* ---- unpacking ---- */

/* Without memory for one of its allocations, unpacking reports this and leaves nothing.
 */
static void without_memory(const char *bytes, size_t size, ssize_t expected, size_t calls)
{
    kvtree_error err = {""};
    kvtree *tree = kvtree_new();
    fuzz_memory_begin(fuzz_hash(bytes, size) % calls);
    ssize_t used = kvtree_unpack_err(bytes, size, tree, &err);
    fuzz_memory_end();
    REQUIRE(used == -ENOMEM || used == expected);
    REQUIRE(used >= 0 || (kvtree_size(tree) == 0 && err.text[0]));
    kvtree_delete(&tree);
}

static ssize_t unpack(const char *bytes, size_t size, kvtree *tree)
{
    char place[48];
    kvtree_error err = {""};
    size_t noticed;
    ssize_t expected = reference_unpack(bytes, size, &noticed);
    fuzz_memory_begin(SIZE_MAX);
    ssize_t used = kvtree_unpack_err(bytes, size, tree, &err);
    struct fuzz_memory memory = fuzz_memory_end();
    REQUIRE(memory.bytes <= UNPACK_BYTES_PER_BYTE * size + UNPACK_BYTES_MORE);
    if (expected < 0) {
        require_refusal((int)used, err.text);
        snprintf(place, sizeof place, "at byte %zu", noticed);
        if (!strstr(err.text, place))
            fprintf(stderr, "should be %s: %s\n", place, err.text);
        REQUIRE(strstr(err.text, place) != NULL);
        REQUIRE(kvtree_size(tree) == 0 && kvtree_elem_first(tree) == NULL);
    } else {
        REQUIRE(used == expected);
        REQUIRE(err.text[0] == 0);
    }
    if (memory.calls) without_memory(bytes, size, used, memory.calls);
    return used;
}

static void same_by_all_ways(const char *bytes, size_t size, const kvtree *tree)
{
    kvtree *other = kvtree_new();
    REQUIRE(packs_to(tree, bytes, size));
    REQUIRE(kvtree_merge(other, tree) == 0);
    REQUIRE(packs_to(other, bytes, size));
    REQUIRE(kvtree_merge(other, tree) == 0);
    REQUIRE(packs_to(other, bytes, size));
    REQUIRE(kvtree_unset_all(other) == 0);
    fuzz_memory_begin(SIZE_MAX);
    REQUIRE(kvtree_unpack(bytes, other) == size);
    REQUIRE(fuzz_memory_end().bytes <= UNPACK_BYTES_PER_BYTE * size + UNPACK_BYTES_MORE);
    REQUIRE(packs_to(other, bytes, size));
    REQUIRE(kvtree_unpack_n(bytes, size, other) == (size > 4 ? -EINVAL : (ssize_t)size));
    REQUIRE(packs_to(other, bytes, size));
    kvtree_delete(&other);
}

/* ---- choosing ---- */

struct choice {
    const char *bytes;
    size_t size, at;
    uint32_t state;
};

static size_t choose(struct choice *c, size_t below)
{
    c->state = c->state * 1664525u + 1013904223u;
    uint32_t value = c->at < c->size ? (unsigned char)c->bytes[c->at++] : c->state >> 16;
    return value % below;
}

static kvtree_elem *nth(const kvtree *tree, size_t n)
{
    kvtree_elem *e = kvtree_elem_first(tree);
    while (n--)
        e = kvtree_elem_next(e);
    return e;
}

/* Descends from root at most eight levels; *tree becomes the tree that holds the element.
 */
static kvtree_elem *choose_elem(struct choice *c, kvtree *root, kvtree **tree)
{
    *tree = root;
    for (int level = 0;; level++) {
        kvtree_elem *e = nth(*tree, choose(c, (size_t)kvtree_size(*tree)));
        kvtree *value = kvtree_elem_hash(e);
        if (kvtree_size(value) == 0 || level == 8 || choose(c, 3) == 0) return e;
        *tree = value;
    }
}

/* ---- operations on an element ---- */

struct target {
    kvtree *root, *tree;
    kvtree_elem *elem;
    char *key; /* a copy: most verbs free the key of the element */
    kvtree *value;
};

/* Returns the keys of a tree except one, each with its NUL. */
static char *keys_but(const kvtree *tree, const char *but, size_t *size)
{
    char *keys = NULL;
    *size = 0;
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = kvtree_elem_next(e)) {
        size_t len = strlen(kvtree_elem_key(e)) + 1;
        if (strcmp(kvtree_elem_key(e), but) == 0) continue;
        keys = realloc(keys, *size + len);
        REQUIRE(keys != NULL);
        memcpy(keys + *size, kvtree_elem_key(e), len);
        *size += len;
    }
    return keys;
}

/* The index of a wide tree and its list agree. */
static void require_found(const kvtree *tree)
{
    int count = 0;
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = kvtree_elem_next(e), count++)
        REQUIRE(kvtree_elem_get(tree, kvtree_elem_key(e)) == e);
    REQUIRE(count == kvtree_size(tree));
}

static void remove_elem(const struct target *t, size_t how)
{
    size_t keys_size, size, all = kvtree_pack_size(t->root);
    size_t lost = strlen(t->key) + 1 + kvtree_pack_size(t->value);
    char *keys = keys_but(t->tree, t->key, &keys_size);
    if (how == 0) {
        REQUIRE(kvtree_unset(t->tree, t->key) == 0);
    } else if (how == 1) {
        kvtree *value = kvtree_extract(t->tree, t->key);
        REQUIRE(value == t->value);
        REQUIRE(kvtree_pack_size(value) + strlen(t->key) + 1 == lost);
        REQUIRE(kvtree_delete(&value) == 0);
    } else {
        kvtree_elem *elem = kvtree_elem_extract(t->tree, t->key);
        REQUIRE(elem == t->elem && kvtree_elem_hash(elem) == t->value);
        REQUIRE(kvtree_elem_next(elem) == NULL);
        REQUIRE(kvtree_elem_delete(&elem) == 0);
    }
    REQUIRE(kvtree_get(t->tree, t->key) == NULL);
    REQUIRE(kvtree_pack_size(t->root) + lost == all);
    char *after = keys_but(t->tree, t->key, &size);
    REQUIRE(size == keys_size && (!size || memcmp(after, keys, size) == 0));
    free(keys);
    free(after);
}

/* Moves the value to a new element at the end of root. */
static void move_value(const struct target *t)
{
    size_t size = kvtree_pack_size(t->value);
    kvtree *value = kvtree_extract(t->tree, t->key);
    REQUIRE(value == t->value && kvtree_set(t->root, "moved", value) == value);
    REQUIRE(kvtree_get(t->root, "moved") == value && kvtree_pack_size(value) == size);
    REQUIRE(kvtree_set(value, "self", t->root) == NULL);
    REQUIRE(kvtree_set(value, "self", value) == NULL);
    REQUIRE(kvtree_delete(&value) == -EINVAL);
}

static void replace_value(const struct target *t, size_t how)
{
    if (how == 0) {
        REQUIRE(kvtree_unset_all(t->value) == 0);
    } else {
        REQUIRE(kvtree_set(t->tree, t->key, kvtree_new()) != NULL);
        REQUIRE(kvtree_elem_get(t->tree, t->key) == t->elem);
    }
    REQUIRE(kvtree_size(kvtree_get(t->tree, t->key)) == 0);
}

static void merge_value(const struct target *t)
{
    kvtree *copy = kvtree_new();
    REQUIRE(kvtree_merge(t->root, t->value) == (kvtree_size(t->value) ? -EINVAL : 0));
    REQUIRE(kvtree_merge(t->value, t->root) == -EINVAL);
    REQUIRE(kvtree_merge(copy, t->value) == 0);
    REQUIRE(kvtree_merge(t->tree, copy) == 0);
    for (kvtree_elem *e = kvtree_elem_first(copy); e; e = kvtree_elem_next(e))
        REQUIRE(kvtree_get(t->tree, kvtree_elem_key(e)) != NULL);
    kvtree_delete(&copy);
}

static void sort_tree(kvtree *tree, int direction)
{
    size_t before = kvtree_pack_size(tree);
    int size = kvtree_size(tree);
    kvtree_sort_int(tree, direction);
    REQUIRE(kvtree_size(tree) == size && kvtree_pack_size(tree) == before);
    REQUIRE(kvtree_sort(tree, direction) == 0);
    REQUIRE(kvtree_size(tree) == size && kvtree_pack_size(tree) == before);
    for (kvtree_elem *next, *e = kvtree_elem_first(tree);
         e && (next = kvtree_elem_next(e)); e = next) {
        int order = strcmp(kvtree_elem_key(e), kvtree_elem_key(next));
        REQUIRE(direction == KVTREE_SORT_ASCENDING ? order < 0 : order > 0);
    }
}

static void widen(const struct target *t)
{
    char key[16];
    for (int i = 0; i < 12; i++) {
        snprintf(key, sizeof key, "new %d", i);
        REQUIRE(kvtree_set(t->tree, key, NULL) != NULL);
    }
}

static void work(struct choice *c, kvtree *root)
{
    struct target t = {.root = root};
    t.elem = choose_elem(c, root, &t.tree);
    t.value = kvtree_elem_hash(t.elem);
    t.key = strdup(kvtree_elem_key(t.elem));
    size_t verb = choose(c, 9);
    if (verb < 3) remove_elem(&t, verb);
    if (verb == 3) move_value(&t);
    if (verb == 4) replace_value(&t, choose(c, 2));
    if (verb == 5) merge_value(&t);
    if (verb == 6) sort_tree(t.tree, KVTREE_SORT_ASCENDING);
    if (verb == 7) sort_tree(t.tree, KVTREE_SORT_DESCENDING);
    if (verb == 8) widen(&t);
    free(t.key);
    require_found(root);
}

/* After any operation the tree is valid. */
static void require_good(const kvtree *tree)
{
    size_t size, noticed;
    char *bytes = packed(tree, &size);
    REQUIRE(reference_unpack(bytes, size, &noticed) == (ssize_t)size);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = fuzz_copy(data, size), *first = bytes;
    kvtree *tree = kvtree_new();
    if (size == 0) first = bytes + 1; /* the single byte must not be read */
    ssize_t used = unpack(first, size, tree);
    if (used >= 0) {
        struct choice c = {bytes, size, (size_t)used, fuzz_hash(bytes, size)};
        char *exact = fuzz_copy(bytes, (size_t)used);
        same_by_all_ways(exact, (size_t)used, tree);
        for (int i = 0; i < 24 && kvtree_size(tree); i++)
            work(&c, tree);
        require_good(tree);
        free(exact);
    }
    kvtree_delete(&tree);
    free(bytes);
    return 0;
}
