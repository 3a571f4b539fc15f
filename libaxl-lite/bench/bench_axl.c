/* SPDX-License-Identifier: BSD-3-Clause */
/* One large file, some middling ones, many small ones, copied from memory to memory: a
 * transfer with and without checksums, beside `cp -r` of the same folder. */
#include "bench.h"

#include <axl/axl.h>
#include <spawn.h>
#include <sys/wait.h>

typedef struct load {
    const bench *b;
    int files;
    size_t size; /* of each file */
    unsigned flags;
    char source[128], destination[128];
} load;

static void count_one(const load *l, const char *folder)
{
    char path[160];
    struct stat st;
    for (int i = 0; i < l->files; i++) {
        snprintf(path, sizeof path, "%s/f%d", folder, i);
        bench_require(l->b, stat(path, &st) == 0 && (size_t)st.st_size == l->size, path);
    }
}

/* What the transfer made is there; the next one begins anew. */
static void check(const load *l)
{
    count_one(l, l->destination);
    bench_remove(l->destination);
}

static int add_all(const load *l, axl_transfer *transfer, char *err)
{
    char from[160], to[160];
    int rc = 0;
    for (int i = 0; i < l->files && rc == 0; i++) {
        snprintf(from, sizeof from, "%s/f%d", l->source, i);
        snprintf(to, sizeof to, "%s/f%d", l->destination, i);
        rc = axl_add(transfer, from, to, err);
    }
    return rc;
}

static double run_axl(void *arg)
{
    const load *l = arg;
    axl_transfer *transfer = NULL;
    char err[AXL_ERROR_SIZE] = "";
    double start = bench_now();
    int rc = axl_create("sync", l->flags, &transfer, err);
    if (rc == 0) rc = add_all(l, transfer, err);
    if (rc == 0) rc = axl_dispatch(transfer, err);
    if (rc == 0) rc = axl_wait(transfer, err);
    axl_free(transfer);
    double seconds = bench_now() - start;
    bench_require(l->b, rc == 0, err);
    check(l);
    return seconds;
}

static double run_cp(void *arg)
{
    load *l = arg;
    char cp[] = "cp", recursive[] = "-r";
    char *command[] = {cp, recursive, l->source, l->destination, NULL};
    pid_t child;
    int status = 0;
    double start = bench_now();
    int ok = posix_spawnp(&child, cp, NULL, NULL, command, environ) == 0 &&
             waitpid(child, &status, 0) == child && status == 0;
    double seconds = bench_now() - start;
    bench_require(l->b, ok, "cp failed");
    check(l);
    return seconds;
}

static void measure(bench *b, const char *name, int files, size_t size)
{
    enum { CP, PLAIN, CHECKSUM, CASES };
    load plain = {.b = b, .files = files, .size = size}, checksum;
    char path[160];
    double t[CASES], megabytes = 1e-6 * (double)size * files;
    snprintf(plain.source, sizeof plain.source, "%s/from", b->folder);
    snprintf(plain.destination, sizeof plain.destination, "%s/to", b->folder);
    bench_require(b, mkdir(plain.source, 0700) == 0, plain.source);
    for (int i = 0; i < files; i++) {
        snprintf(path, sizeof path, "%s/f%d", plain.source, i);
        bench_make_file(b, path, size);
    }
    checksum = plain;
    checksum.flags = AXL_CHECKSUM;
    bench_measure(b, CASES,
                  (const bench_case[CASES]){
                      {run_cp, &plain}, {run_axl, &plain}, {run_axl, &checksum}},
                  t);
    bench_remove(plain.source);
    bench_text(b, name);
    for (int i = 0; i < CASES; i++)
        bench_number(b, megabytes / t[i]);
    bench_number(b, t[PLAIN] / t[CP]);
    bench_number(b, t[CHECKSUM] / t[CP]);
}

int main(int argc, char **argv)
{
    static const char *const columns[] = {
        "files",   "cp -r [MB/s]",      "axl [MB/s]", "axl, checksum [MB/s]",
        "time/cp", "time/cp, checksum", NULL};
    bench b;
    bench_begin(&b, argc, argv, columns);
    measure(&b, "1 x 256 MiB", 1, 256 * (size_t)MiB);
    measure(&b, "16 x 16 MiB", 16, 16 * (size_t)MiB);
    measure(&b, "500 x 64 KiB", 500, 64 * (size_t)KiB);
    return bench_end(&b);
}
