/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic alone, on one core: adding one source to k sums, compared with memcpy of
 * the same bytes. Once with buffers that stay in the cache, as in an encode, and once
 * with buffers that do not fit into it. */
#include "bench.h"
#include "src/codec/gf.h"

enum { MOST = 4 };

typedef struct load {
    size_t size; /* of each buffer */
    int times;   /* number of passes over it */
    redset_factors factors;
    uint8_t *from, *sum[MOST];
} load;

static double copy(void *arg)
{
    const load *l = arg;
    double start = bench_cpu();
    for (int i = 0; i < l->times; i++)
        memcpy(l->sum[i % 2], l->from, l->size);
    return bench_cpu() - start;
}

static double add(void *arg)
{
    const load *l = arg;
    double start = bench_cpu();
    for (int i = 0; i < l->times; i++)
        redset_factors_add(&l->factors, l->sum, l->from, l->size);
    return bench_cpu() - start;
}

static double add_portably(void *arg)
{
    const load *l = arg;
    double start = bench_cpu();
    for (int i = 0; i < l->times; i++)
        redset_factors_add_portable(&l->factors, l->sum, l->from, l->size);
    return bench_cpu() - start;
}

static void begin(const bench *b, load *l, size_t size, int sums, const uint8_t each[])
{
    *l = (load){.size = size, .times = (int)(256 * (size_t)MiB / size)};
    int rc = redset_factors_init(&l->factors, MOST);
    l->from = malloc(size);
    bench_require(b, rc == 0 && l->from, "no memory");
    bench_fill(l->from, size);
    redset_factors_set(&l->factors, sums, each);
    for (int i = 0; i < MOST; i++) {
        l->sum[i] = malloc(size);
        bench_require(b, l->sum[i] != NULL, "no memory");
        bench_fill(l->sum[i], size);
    }
}

static void end(load *l)
{
    redset_factors_done(&l->factors);
    free(l->from);
    for (int i = 0; i < MOST; i++)
        free(l->sum[i]);
}

/* bound: minimum throughput of source bytes, relative to memcpy. */
static void measure(bench *b, const char *name, size_t size, int sums,
                    const uint8_t each[], double bound)
{
    enum { COPY, ADD, PORTABLE, CASES };
    load l;
    double t[CASES];
    char text[32];
    begin(b, &l, size, sums, each);
    bench_measure(b, CASES,
                  (const bench_case[CASES]){{copy, &l}, {add, &l}, {add_portably, &l}},
                  t);
    double bytes = 1e-9 * (double)l.size * l.times;
    snprintf(text, sizeof text, "at least %g", bound);
    bench_text(b, name);
    bench_number(b, (double)size / KiB);
    for (int i = 0; i < CASES; i++)
        bench_number(b, bytes / t[i]);
    bench_number(b, t[COPY] / t[ADD]);
    bench_text(b, isnan(bound) ? "-" : text);
    bench_text(b, isnan(bound) ? "-" : t[COPY] / t[ADD] >= bound ? "reached" : "missed");
    end(&l);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "sums",    "KiB",      "memcpy [GB/s]", "GB/s", "without ISA-L [GB/s]",
        "/memcpy", "to reach", "result",        NULL};
    static const uint8_t ones[MOST] = {1}, factors[MOST] = {1, 142, 244, 71};
    bench b;
    bench_begin(&b, argc, argv, columns);
    for (size_t size = 128 * KiB; size <= 64 * MiB; size *= 512) {
        int in_cache = size < MiB;
        measure(&b, "XOR", size, 1, ones, in_cache ? NAN : 0.7);
        measure(&b, "RS k=2", size, 2, factors, in_cache ? NAN : 0.5);
        measure(&b, "RS k=4", size, 4, factors, NAN);
    }
    return bench_end(&b);
}
