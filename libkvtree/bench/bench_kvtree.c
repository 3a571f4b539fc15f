/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree that SCR keeps most of, RANK/<i>/FILE/rank_<i>.ckpt/{SIZE,CRC}, for many
 * ranks: nanoseconds per element to build, look up, pack, unpack and delete it, beside a
 * memcpy of the packed bytes, and the memory that an element takes. */
#include "bench.h"

#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <malloc.h>

typedef struct load {
    const bench *b;
    int ranks;
    int *order; /* ranks as they are looked up */
    kvtree *tree, *back;
    size_t memory; /* bytes that malloc gave for tree */
    char *packed, *copy;
    size_t size;
} load;

static size_t memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static char *file_name(char name[32], int rank)
{
    snprintf(name, 32, "rank_%d.ckpt", rank);
    return name;
}

static double build(void *arg)
{
    load *l = arg;
    char name[32];
    int failed = 0;
    kvtree_delete(&l->tree);
    size_t before = memory_in_use();
    double start = bench_now();
    l->tree = kvtree_new();
    for (int i = 0; i < l->ranks; i++) {
        kvtree *file = kvtree_set_kv(kvtree_set_kv_int(l->tree, "RANK", i), "FILE",
                                     file_name(name, i));
        failed |= kvtree_util_set_bytecount(file, "SIZE", 524294);
        failed |= kvtree_util_set_crc32(file, "CRC", 0x9e3779b9);
    }
    double seconds = bench_now() - start;
    bench_require(l->b, !failed, "the tree cannot be built");
    l->memory = memory_in_use() - before;
    return seconds;
}

static double look_up(void *arg)
{
    load *l = arg;
    char name[32];
    unsigned long size = 0, sum = 0;
    double start = bench_now();
    for (int i = 0; i < l->ranks; i++) {
        int rank = l->order[i];
        const kvtree *file = kvtree_get_kv(kvtree_get_kv_int(l->tree, "RANK", rank),
                                           "FILE", file_name(name, rank));
        if (kvtree_util_get_bytecount(file, "SIZE", &size) == 0) sum += size;
    }
    double seconds = bench_now() - start;
    bench_require(l->b, sum == 524294ul * (unsigned long)l->ranks, "a rank is missing");
    return seconds;
}

static double pack(void *arg)
{
    load *l = arg;
    double start = bench_now();
    size_t size = kvtree_pack_size(l->tree);
    bench_require(l->b, size == l->size, "the packed size changed");
    kvtree_pack(l->packed, l->tree);
    return bench_now() - start;
}

static double copy(void *arg)
{
    load *l = arg;
    double start = bench_now();
    memcpy(l->copy, l->packed, l->size);
    double seconds = bench_now() - start;
    bench_require(l->b, memcmp(l->copy, l->packed, l->size) == 0, "the copy differs");
    return seconds;
}

static double unpack(void *arg)
{
    load *l = arg;
    l->back = kvtree_new();
    double start = bench_now();
    ssize_t size = kvtree_unpack_n(l->copy, l->size, l->back);
    double seconds = bench_now() - start;
    bench_require(l->b, size == (ssize_t)l->size, "the bytes cannot be unpacked");
    return seconds;
}

static double take_down(void *arg)
{
    load *l = arg;
    double start = bench_now();
    kvtree_delete(&l->back);
    return bench_now() - start;
}

/* A fixed shuffle of all ranks. */
static void shuffle(load *l)
{
    unsigned long state = 1;
    for (int i = 0; i < l->ranks; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        int other = (int)((state >> 33) % (unsigned long)(i + 1));
        l->order[i] = l->order[other];
        l->order[other] = i;
    }
}

static void begin(load *l)
{
    l->order = malloc((size_t)l->ranks * sizeof *l->order);
    bench_require(l->b, l->order != NULL, "no memory");
    shuffle(l);
    build(l);
    l->size = kvtree_pack_size(l->tree);
    l->packed = malloc(l->size);
    l->copy = malloc(l->size);
    bench_require(l->b, l->packed && l->copy, "no memory");
}

static void measure(bench *b, int ranks)
{
    enum { BUILD, LOOK_UP, PACK, COPY, UNPACK, DELETE, CASES };
    load l = {.b = b, .ranks = ranks};
    const bench_case cases[CASES] = {{build, &l}, {look_up, &l}, {pack, &l},
                                     {copy, &l},  {unpack, &l},  {take_down, &l}};
    double t[CASES], elements = 1 + 7.0 * ranks;
    begin(&l);
    bench_measure(b, CASES, cases, t);
    bench_number(b, ranks);
    bench_number(b, elements);
    bench_number(b, (double)l.memory / elements);
    bench_number(b, (double)l.size / elements);
    for (int i = 0; i < CASES; i++)
        bench_number(b, 1e9 * t[i] / elements);
    bench_number(b, t[PACK] / t[COPY]);
    bench_number(b, t[UNPACK] / t[COPY]);
    kvtree_delete(&l.tree);
    free(l.order);
    free(l.packed);
    free(l.copy);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "ranks",        "elements",      "memory [B]",  "packed [B]",  "build [ns]",
        "look up [ns]", "pack [ns]",     "memcpy [ns]", "unpack [ns]", "delete [ns]",
        "pack/memcpy",  "unpack/memcpy", NULL};
    bench b;
    bench_begin(&b, argc, argv, columns);
    measure(&b, 1000);
    measure(&b, 10000);
    measure(&b, 100000);
    return bench_end(&b);
}
