/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of a wide tree: an open-addressed table of its elements, probed linearly and
 * at most three quarters full. Keys come from files that others may have written.
 * Therefore they are hashed with SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast
 * short-input PRF", 2012) under a key that differs from process to process, so that no
 * file can contain keys chosen to collide. No output of the library depends on the hash
 * values. */
#include "src/kvtree_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

struct slot {
    kvtree_elem *elem;
    uint64_t hash;
};

struct kvtree_index {
    size_t mask; /* number of slots less one */
    uint64_t secret[2];
    struct slot slots[];
};

struct sip {
    uint64_t a, b, c, d;
};

static inline uint64_t sip_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void sip_round(struct sip *v)
{
    v->a += v->b;
    v->c += v->d;
    v->b = sip_rotate(v->b, 13) ^ v->a;
    v->d = sip_rotate(v->d, 16) ^ v->c;
    v->a = sip_rotate(v->a, 32);
    v->c += v->b;
    v->a += v->d;
    v->b = sip_rotate(v->b, 17) ^ v->c;
    v->d = sip_rotate(v->d, 21) ^ v->a;
    v->c = sip_rotate(v->c, 32);
}

static inline void sip_word(struct sip *v, uint64_t word)
{
    v->d ^= word;
    sip_round(v);
    v->a ^= word;
}

uint64_t kvtree_index_hash(const struct kvtree_index *index, const char *key)
{
    const uint64_t *secret = index->secret;
    size_t len = strlen(key), done = 0;
    struct sip v = {secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d,
                    secret[0] ^ 0x6c7967656e657261, secret[1] ^ 0x7465646279746573};
    uint64_t word;
    for (; len - done >= 8; done += 8) {
        memcpy(&word, key + done, 8);
        sip_word(&v, word);
    }
    word = 0;
    memcpy(&word, key + done, len - done);
    sip_word(&v, word ^ (uint64_t)len << 56);
    v.c ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(&v);
    return v.a ^ v.b ^ v.c ^ v.d;
}

static void kvtree_index_place(struct kvtree_index *index, struct slot entry)
{
    size_t at = entry.hash & index->mask;
    while (index->slots[at].elem)
        at = (at + 1) & index->mask;
    index->slots[at] = entry;
}

static struct kvtree_index *kvtree_index_new(size_t slots)
{
    struct kvtree_index *index = calloc(1, sizeof *index + slots * sizeof *index->slots);
    if (!index) return NULL;
    index->mask = slots - 1;
    /* The kernel gives every process 16 random bytes. Using them needs no file and no
     * call that may fail. */
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (random) memcpy(index->secret, random, sizeof index->secret);
    return index;
}

/* Creates an index of that number of slots with all elements of tree. */
static struct kvtree_index *kvtree_index_copy(const kvtree *tree, size_t slots)
{
    const struct kvtree_index *old = tree->index;
    struct kvtree_index *index = kvtree_index_new(slots);
    if (!index) return NULL;
    if (!old)
        for (kvtree_elem *e = tree->first; e; e = e->next)
            kvtree_index_place(index, (struct slot){e, kvtree_index_hash(index, e->key)});
    else
        for (size_t i = 0; i <= old->mask; i++)
            if (old->slots[i].elem) kvtree_index_place(index, old->slots[i]);
    return index;
}

int kvtree_index_reserve(kvtree *tree, size_t count)
{
    size_t slots = tree->index ? tree->index->mask + 1 : 4 * KVTREE_NARROW;
    if (tree->index && count <= slots / 4 * 3) return 0;
    while (count > slots / 4 * 3)
        slots *= 2;
    struct kvtree_index *index = kvtree_index_copy(tree, slots);
    if (!index) return -ENOMEM;
    free(tree->index);
    tree->index = index;
    return 0;
}

kvtree_elem *kvtree_index_find(const struct kvtree_index *index, const char *key,
                               uint64_t hash)
{
    for (size_t at = hash & index->mask;; at = (at + 1) & index->mask) {
        const struct slot *s = &index->slots[at];
        if (!s->elem) return NULL;
        if (s->hash == hash && strcmp(s->elem->key, key) == 0) return s->elem;
    }
}

int kvtree_index_add(kvtree *tree, kvtree_elem *elem, uint64_t hash)
{
    if (kvtree_index_reserve(tree, (size_t)tree->count + 1) != 0) return -ENOMEM;
    kvtree_index_place(tree->index, (struct slot){elem, hash});
    return 0;
}

void kvtree_index_remove(struct kvtree_index *index, const kvtree_elem *elem)
{
    size_t mask = index->mask, hole = kvtree_index_hash(index, elem->key) & mask;
    while (index->slots[hole].elem != elem)
        hole = (hole + 1) & mask;
    /* Close the hole with later entries of the same run. Each entry may only move to a
     * slot between its home and its current position. */
    for (size_t at = (hole + 1) & mask; index->slots[at].elem; at = (at + 1) & mask) {
        size_t home = index->slots[at].hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        index->slots[hole] = index->slots[at];
        hole = at;
    }
    index->slots[hole].elem = NULL;
}
