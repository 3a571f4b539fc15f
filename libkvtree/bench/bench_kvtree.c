/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the most common tree of SCR, RANK/<i>/FILE/rank_<i>.ckpt/{SIZE,CRC}, for many
 * ranks: processor time in nanoseconds and bytes of memory per element. The references
 * are copying packed bytes, writing and reading them as a plain file and, if jansson was
 * found, the same data as JSON, in which sizes and checksums are integers, not texts;
 * names are built in the same way.
 *
 * `bench_kvtree --once RANKS` runs each operation of libkvtree once and measures nothing.
 * This is for callgrind, whose instruction counts have no noise (HACKING.md). */
#include "bench.h"

#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <malloc.h>

#define FILE_SIZE 524294L
#define FILE_CRC 0x9e3779b9L

/* Not inlined, so that callgrind lists the function. */
#define LISTED __attribute__((noinline))

typedef struct load {
    const bench *b;
    int ranks;
    int *order; /* ranks in the order of the lookups */
    kvtree *tree;
    size_t memory; /* bytes that malloc allocated for tree */
    char *packed, *copy;
    size_t size; /* number of packed bytes */
    char path[96], plain[96];
    struct json_t *json;
    size_t json_memory;
    char *text; /* JSON */
    size_t text_size;
} load;

enum { BUILD, LOOK_UP, PACK, UNPACK, WRITE, READ, DELETE, OPERATIONS };

static const char *const names[OPERATIONS] = {"build", "look up", "pack",  "unpack",
                                              "write", "read",    "delete"};

/* Seconds of each operation, for one number of ranks; NAN if not measured. */
typedef struct result {
    double ranks, elements, memory, json_memory;
    double ours[OPERATIONS], json[OPERATIONS], reference[OPERATIONS];
} result;

/* ---- what both sides share ---- */

static size_t memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* From now on the process keeps freed memory, so that later rounds do not measure how
 * fast the system provides pages. */
static void keep_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_MMAP_MAX, 0);
}

/* Makes malloc join the small pieces that a tree left behind, as it does before any large
 * allocation. Then every tree starts in contiguous memory, like in a program that builds
 * one. */
static void join_memory(void)
{
    void *volatile large = malloc(MiB);
    free(large);
}

static const char *rank_text(char text[16], int rank)
{
    snprintf(text, 16, "%d", rank);
    return text;
}

static const char *file_name(char name[32], int rank)
{
    snprintf(name, 32, "rank_%d.ckpt", rank);
    return name;
}

/* ---- libkvtree ---- */

static LISTED int fill_tree(kvtree *tree, int ranks)
{
    char text[16], name[32];
    int failed = 0;
    for (int i = 0; i < ranks; i++) {
        kvtree *file = kvtree_set_kv(kvtree_set_kv(tree, "RANK", rank_text(text, i)),
                                     "FILE", file_name(name, i));
        failed |= kvtree_util_set_bytecount(file, "SIZE", FILE_SIZE);
        failed |= kvtree_util_set_crc32(file, "CRC", FILE_CRC);
    }
    return failed;
}

static double build(void *arg)
{
    load *l = arg;
    join_memory();
    size_t before = memory_in_use();
    double start = bench_cpu();
    l->tree = kvtree_new();
    int failed = fill_tree(l->tree, l->ranks);
    double seconds = bench_cpu() - start;
    bench_require(l->b, !failed, "the tree cannot be built");
    l->memory = memory_in_use() - before;
    return seconds;
}

static LISTED unsigned long find_all(const kvtree *tree, int ranks, const int order[])
{
    char text[16], name[32];
    unsigned long size = 0, sum = 0;
    for (int i = 0; i < ranks; i++) {
        const kvtree *rank = kvtree_get_kv(tree, "RANK", rank_text(text, order[i]));
        const kvtree *file = kvtree_get_kv(rank, "FILE", file_name(name, order[i]));
        if (kvtree_util_get_bytecount(file, "SIZE", &size) == 0) sum += size;
    }
    return sum;
}

static double look_up(void *arg)
{
    load *l = arg;
    double start = bench_cpu();
    unsigned long sum = find_all(l->tree, l->ranks, l->order);
    double seconds = bench_cpu() - start;
    bench_require(l->b, sum == FILE_SIZE * (unsigned long)l->ranks, "a rank is missing");
    return seconds;
}

static LISTED size_t pack_tree(char *packed, size_t room, const kvtree *tree)
{
    size_t size = kvtree_pack_size(tree);
    return size <= room ? kvtree_pack(packed, tree) : 0;
}

static double pack(void *arg)
{
    load *l = arg;
    double start = bench_cpu();
    size_t size = pack_tree(l->packed, l->size, l->tree);
    double seconds = bench_cpu() - start;
    bench_require(l->b, size == l->size, "the packed size changed");
    return seconds;
}

static double copy(void *arg)
{
    load *l = arg;
    double start = bench_cpu();
    memcpy(l->copy, l->packed, l->size);
    double seconds = bench_cpu() - start;
    bench_require(l->b, memcmp(l->copy, l->packed, l->size) == 0, "the copy differs");
    return seconds;
}

static LISTED ssize_t unpack_tree(const char *packed, size_t size, kvtree *tree)
{
    return kvtree_unpack_n(packed, size, tree);
}

static double unpack(void *arg)
{
    load *l = arg;
    join_memory();
    double start = bench_cpu();
    kvtree *back = kvtree_new();
    ssize_t size = unpack_tree(l->packed, l->size, back);
    double seconds = bench_cpu() - start;
    bench_require(l->b, size == (ssize_t)l->size, "the bytes cannot be unpacked");
    kvtree_delete(&back);
    return seconds;
}

static double write_file(void *arg)
{
    load *l = arg;
    double start = bench_cpu();
    int rc = kvtree_write_file(l->path, l->tree);
    double seconds = bench_cpu() - start;
    bench_require(l->b, rc == 0, "the file cannot be written");
    return seconds;
}

static double read_file(void *arg)
{
    load *l = arg;
    join_memory();
    double start = bench_cpu();
    kvtree *back = kvtree_new();
    int rc = kvtree_read_file(l->path, back);
    double seconds = bench_cpu() - start;
    bench_require(l->b, rc == 0, "the file cannot be read");
    bench_require(l->b, kvtree_pack_size(back) == l->size, "the file differs");
    kvtree_delete(&back);
    return seconds;
}

static LISTED void drop_tree(kvtree **tree)
{
    kvtree_delete(tree);
}

static double take_down(void *arg)
{
    load *l = arg;
    double start = bench_cpu();
    drop_tree(&l->tree);
    return bench_cpu() - start;
}

static double (*const ours[OPERATIONS])(void *) = {
    build, look_up, pack, unpack, write_file, read_file, take_down};

/* ---- the packed bytes as a plain file ---- */

/* Moves all l->size bytes between fd and bytes. */
static int pump(int fd, char *bytes, size_t size, int writing)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = writing ? write(fd, bytes + done, size - done)
                            : read(fd, bytes + done, size - done);
        if (n <= 0) return 0;
        done += (size_t)n;
    }
    return 1;
}

static double write_plain(void *arg)
{
    load *l = arg;
    char temporary[104];
    snprintf(temporary, sizeof temporary, "%s.tmp", l->plain);
    double start = bench_cpu();
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
    int ok = fd >= 0 && pump(fd, l->packed, l->size, 1) && fsync(fd) == 0;
    ok = ok && close(fd) == 0 && rename(temporary, l->plain) == 0;
    double seconds = bench_cpu() - start;
    bench_require(l->b, ok, l->plain);
    return seconds;
}

static double read_plain(void *arg)
{
    load *l = arg;
    double start = bench_cpu();
    int fd = open(l->plain, O_RDONLY);
    int ok = fd >= 0 && pump(fd, l->copy, l->size, 0) && close(fd) == 0;
    double seconds = bench_cpu() - start;
    bench_require(l->b, ok, l->plain);
    return seconds;
}

static double (*const references[OPERATIONS])(void *) = {
    [PACK] = copy, [UNPACK] = copy, [WRITE] = write_plain, [READ] = read_plain};

/* ---- jansson ---- */

#ifdef BENCH_JANSSON

#include <jansson.h>

static json_t *json_child(json_t *object, const char *key)
{
    json_t *child = json_object_get(object, key);
    if (child) return child;
    child = json_object();
    json_object_set_new_nocheck(object, key, child);
    return child;
}

static double json_build(void *arg)
{
    load *l = arg;
    char text[16], name[32];
    int failed = 0;
    join_memory();
    size_t before = memory_in_use();
    double start = bench_cpu();
    l->json = json_object();
    for (int i = 0; i < l->ranks; i++) {
        json_t *rank = json_child(json_child(l->json, "RANK"), rank_text(text, i));
        json_t *file = json_child(json_child(rank, "FILE"), file_name(name, i));
        failed |= json_object_set_new_nocheck(file, "SIZE", json_integer(FILE_SIZE));
        failed |= json_object_set_new_nocheck(file, "CRC", json_integer(FILE_CRC));
    }
    double seconds = bench_cpu() - start;
    bench_require(l->b, !failed, "the JSON tree cannot be built");
    l->json_memory = memory_in_use() - before;
    return seconds;
}

static double json_look_up(void *arg)
{
    load *l = arg;
    char text[16], name[32];
    json_int_t sum = 0;
    double start = bench_cpu();
    for (int i = 0; i < l->ranks; i++) {
        int number = l->order[i];
        json_t *ranks = json_object_get(l->json, "RANK");
        json_t *rank = json_object_get(ranks, rank_text(text, number));
        json_t *files = json_object_get(rank, "FILE");
        json_t *file = json_object_get(files, file_name(name, number));
        sum += json_integer_value(json_object_get(file, "SIZE"));
    }
    double seconds = bench_cpu() - start;
    bench_require(l->b, sum == (json_int_t)FILE_SIZE * l->ranks, "JSON misses a rank");
    return seconds;
}

static double json_dump_text(void *arg)
{
    load *l = arg;
    double start = bench_cpu();
    l->text = json_dumps(l->json, JSON_COMPACT);
    double seconds = bench_cpu() - start;
    bench_require(l->b, l->text != NULL, "the JSON tree cannot be dumped");
    l->text_size = strlen(l->text);
    return seconds;
}

/* libkvtree refuses a repeated key, so jansson must, too. */
static double json_load_text(void *arg)
{
    load *l = arg;
    json_error_t error;
    join_memory();
    double start = bench_cpu();
    json_t *back = json_loadb(l->text, l->text_size, JSON_REJECT_DUPLICATES, &error);
    double seconds = bench_cpu() - start;
    size_t ranks = json_object_size(json_object_get(back, "RANK"));
    bench_require(l->b, ranks == (size_t)l->ranks, "the JSON text cannot be loaded");
    json_decref(back);
    free(l->text);
    return seconds;
}

static double json_delete_tree(void *arg)
{
    load *l = arg;
    double start = bench_cpu();
    json_decref(l->json);
    return bench_cpu() - start;
}

static double (*const theirs[OPERATIONS])(void *) = {
    [BUILD] = json_build,      [LOOK_UP] = json_look_up,    [PACK] = json_dump_text,
    [UNPACK] = json_load_text, [DELETE] = json_delete_tree,
};

#else
static double (*const theirs[OPERATIONS])(void *) = {NULL};
#endif

/* ---- one number of ranks ---- */

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

/* Prepares a load; l->tree is built later. */
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
    snprintf(l->path, sizeof l->path, "%s/tree", l->b->folder);
    snprintf(l->plain, sizeof l->plain, "%s/plain", l->b->folder);
}

static void end(load *l)
{
    unlink(l->path);
    unlink(l->plain);
    free(l->order);
    free(l->packed);
    free(l->copy);
}

/* Appends the existing operations to cases, with the place for each median. */
static int add_cases(load *l, double (*const run[])(void *), double medians[],
                     bench_case cases[], double *places[])
{
    int count = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        medians[i] = NAN;
        if (!run[i]) continue;
        cases[count] = (bench_case){run[i], l};
        places[count++] = &medians[i];
    }
    return count;
}

/* Returns more rounds if one takes a millisecond, fewer if it takes seconds. */
static int rounds_for(int ranks, int rounds)
{
    if (ranks > 100000) return (rounds + 1) / 2;
    int more = rounds * (100000 / ranks);
    return more < BENCH_ROUNDS ? more : BENCH_ROUNDS;
}

/* A round runs libkvtree from build to delete, then the references with the packed bytes,
 * then jansson from build to delete: the two trees are never in memory together. */
static void measure(bench *b, int ranks, result *r)
{
    load l = {.b = b, .ranks = ranks};
    bench_case cases[BENCH_CASES];
    double medians[BENCH_CASES], *places[BENCH_CASES];
    begin(&l);
    kvtree_delete(&l.tree);
    int count = add_cases(&l, ours, r->ours, cases, places);
    count += add_cases(&l, references, r->reference, cases + count, places + count);
    count += add_cases(&l, theirs, r->json, cases + count, places + count);
    bench_measure(b, count, cases, medians);
    for (int i = 0; i < count; i++)
        *places[i] = medians[i];
    r->ranks = ranks;
    r->elements = 1 + 7.0 * ranks;
    r->memory = (double)l.memory / r->elements;
    r->json_memory = theirs[BUILD] ? (double)l.json_memory / r->elements : NAN;
    bench_number(b, ranks);
    bench_number(b, r->elements);
    bench_number(b, r->memory);
    bench_number(b, r->json_memory);
    bench_number(b, (double)l.size / r->elements);
    bench_number(b, theirs[PACK] ? (double)l.text_size / r->elements : NAN);
    end(&l);
}

/* ---- tables ---- */

static void tell_times(bench *b, const result *r)
{
    double ns = 1e9 / r->elements;
    for (int i = 0; i < OPERATIONS; i++) {
        bench_number(b, r->ranks);
        bench_text(b, names[i]);
        bench_number(b, ns * r->ours[i]);
        bench_number(b, ns * r->json[i]);
        bench_number(b, r->json[i] / r->ours[i]);
        bench_number(b, ns * r->reference[i]);
        bench_number(b, r->ours[i] / r->reference[i]);
    }
}

/* Prints a target, and whether it was reached. */
static void tell_reach(bench *b, const char *what, double value, int at_most,
                       double bound)
{
    char text[32];
    snprintf(text, sizeof text, "at %s %g", at_most ? "most" : "least", bound);
    int reached = at_most ? value <= bound : value >= bound;
    bench_text(b, what);
    bench_number(b, value);
    bench_text(b, text);
    bench_text(b, isnan(value) ? "-" : reached ? "reached" : "missed");
}

/* Prints the worst result over all sizes. */
static void tell_jansson(bench *b, int count, const result r[], int operation,
                         double bound)
{
    char what[32];
    double least = r[0].json[operation] / r[0].ours[operation];
    for (int i = 1; i < count; i++)
        least = fmin(least, r[i].json[operation] / r[i].ours[operation]);
    snprintf(what, sizeof what, "%s, jansson/kvtree", names[operation]);
    tell_reach(b, what, least, 0, bound);
}

static void tell_reaches(bench *b, int count, const result r[])
{
    char what[32];
    double memory = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        snprintf(what, sizeof what, "%s, 1M/100k ranks", names[i]);
        tell_reach(b, what, r[count - 1].ours[i] / r[count - 2].ours[i], 1, 13);
    }
    tell_jansson(b, count, r, BUILD, 1);
    tell_jansson(b, count, r, LOOK_UP, 1);
    tell_jansson(b, count, r, PACK, 5);
    tell_jansson(b, count, r, UNPACK, 5);
    for (int i = 0; i < count; i++)
        memory = fmax(memory, r[i].memory);
    tell_reach(b, "memory per element [B]", memory, 1, 100);
}

static int once(bench *b, int ranks)
{
    load l = {.b = b, .ranks = ranks};
    bench_require(b, ranks > 0, "--once needs a number of ranks");
    begin(&l);
    for (int i = BUILD + 1; i < OPERATIONS; i++)
        ours[i](&l);
    printf("%d ranks, %.0f elements\n", ranks, 1 + 7.0 * ranks);
    end(&l);
    bench_remove(b->folder);
    return 0;
}

int main(int argc, char **argv)
{
    enum { SIZES = 4 };
    static const char *const memory[] = {
        "ranks",      "elements",      "memory [B]", "jansson memory [B]",
        "packed [B]", "JSON text [B]", NULL};
    static const char *const times[] = {
        "ranks",          "operation",      "kvtree [ns]",      "jansson [ns]",
        "jansson/kvtree", "reference [ns]", "kvtree/reference", NULL};
    static const char *const reaches[] = {"what", "measured", "to reach", "result", NULL};
    static const int ranks[SIZES] = {1000, 10000, 100000, 1000000};
    bench b;
    result r[SIZES];
    if (argc == 3 && strcmp(argv[1], "--once") == 0) {
        bench_begin(&b, 1, argv, memory);
        return once(&b, atoi(argv[2]));
    }
    bench_begin(&b, argc, argv, memory);
    keep_memory();
    const int rounds = b.rounds;
    for (int i = 0; i < SIZES; i++) {
        b.rounds = rounds_for(ranks[i], rounds);
        measure(&b, ranks[i], &r[i]);
    }
    b.rounds = rounds;
    bench_table(&b, times);
    for (int i = 0; i < SIZES; i++)
        tell_times(&b, &r[i]);
    bench_table(&b, reaches);
    tell_reaches(&b, SIZES, r);
    return bench_end(&b);
}
