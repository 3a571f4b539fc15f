/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of elements. An element that is added has its own allocation. Elements that are
 * unpacked, or copied by a merge into an empty tree, are stored in blocks, thousands in
 * one allocation, which is freed with the last of them: half of the time to unpack was
 * spent in malloc and free. */
#include "src/kvtree_private.h"

#include <stdlib.h>
#include <sys/mman.h>

#define BLOCK_SIZE_MAX (2 << 20)

/* A packed element takes at least five bytes, about eleven in the trees of a job, and its
 * memory with a key of that length 72. This ratio estimates what the rest of the input
 * needs. */
#define BYTES_PER_PACKED_BYTE 8

kvtree_elem *kvtree_elem_new(size_t key_size)
{
    kvtree_elem *elem = malloc(sizeof *elem + key_size);
    if (elem) elem->own.place = 0;
    return elem;
}

static void kvtree_block_leave(struct kvtree_block *block)
{
    if (--block->live == 0) free(block);
}

void kvtree_elem_free(kvtree_elem *elem)
{
    size_t place = elem->own.place;
    if (place)
        kvtree_block_leave((void *)((char *)elem - place * KVTREE_UNIT));
    else
        free(elem);
}

/* Blocks of the largest size are huge pages if the system has them: fetching and clearing
 * ordinary pages one by one would take longer than the rest of unpacking. */
static struct kvtree_block *kvtree_block_new(size_t size)
{
    if (size < BLOCK_SIZE_MAX) return malloc(size);
    void *block = aligned_alloc(BLOCK_SIZE_MAX, size);
    if (block) madvise(block, size, MADV_HUGEPAGE);
    return block;
}

static bool kvtree_block_open(struct kvtree_blocks *blocks, size_t least,
                              size_t packed_rest)
{
    size_t size = sizeof(struct kvtree_block) + least;
    if (packed_rest > (BLOCK_SIZE_MAX - size) / BYTES_PER_PACKED_BYTE)
        size = BLOCK_SIZE_MAX;
    else
        size += packed_rest * BYTES_PER_PACKED_BYTE;
    struct kvtree_block *block = kvtree_block_new(size);
    if (!block) return false;
    kvtree_blocks_close(blocks);
    block->live = 1;
    *blocks = (struct kvtree_blocks){block, sizeof *block, size};
    return true;
}

kvtree_elem *kvtree_blocks_more(struct kvtree_blocks *blocks, size_t key_size,
                                size_t packed_rest)
{
    const size_t least = sizeof(kvtree_elem) + key_size + KVTREE_UNIT;
    /* an element that would fill a block gets no block */
    if (least > BLOCK_SIZE_MAX / 4) return kvtree_elem_new(key_size);
    if (!kvtree_block_open(blocks, least, packed_rest)) return NULL;
    return kvtree_blocks_elem(blocks, key_size, packed_rest);
}

void kvtree_blocks_close(struct kvtree_blocks *blocks)
{
    if (blocks->block) kvtree_block_leave(blocks->block);
    *blocks = (struct kvtree_blocks){NULL, 0, 0};
}
