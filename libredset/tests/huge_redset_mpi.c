/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that is larger than what 32 bits count, on rank 0, and small ones on the others:
 * encoded, lost and rebuilt.
 *
 * usage: mpiexec -n RANKS huge_redset_mpi [BYTES [FOLDER]]
 *
 * The file has BYTES bytes, most of them a hole at first (1 MB as a test in every run).
 * In FOLDER (default: that of the tests) XOR takes room for BYTES * (1 + RANKS /
 * (RANKS-1)) bytes, PARTNER for twice as much as the file. */
#include "check.h"
#include "scratch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <redset/redset_mpi.h>
#include <sys/resource.h>

enum { BLOCK = 1 << 20 };

static uint64_t bytes = 1000000;
static char folder[600];

/* ---- the file: a hole with a few marks ---- */

/* Places around the limits of number types, and both ends. */
static uint64_t mark_at(int i)
{
    const uint64_t at[] = {0, bytes / 3, (1u << 31) - 4, (uint64_t)(1u << 31) * 2 - 4};
    return i < 4 ? at[i] : bytes - 8;
}

enum { MARKS = 5 };

static unsigned char mark_byte(int mark, uint64_t i)
{
    return (unsigned char)(17 * mark + 3 * i + 1);
}

static uint64_t own_size(void)
{
    return check_rank == 0 ? bytes : 1000 + (uint64_t)check_rank;
}

/* Fills a block with the bytes of the own file from an offset on. */
static void fill(unsigned char *block, uint64_t offset)
{
    memset(block, check_rank, BLOCK);
    for (int m = 0; m < MARKS && check_rank == 0; m++)
        for (uint64_t i = 0; i < 8; i++)
            if (mark_at(m) + i >= offset && mark_at(m) + i < offset + BLOCK)
                block[mark_at(m) + i - offset] = mark_byte(m, i);
}

static int is_right(void)
{
    static unsigned char got[BLOCK], expected[BLOCK];
    char path[1200];
    uint64_t done = 0;
    ssize_t n = 0;
    scratch_path(path, folder, "data");
    int fd = open(path, O_RDONLY), same = fd >= 0;
    while (same && (n = pread(fd, got, BLOCK, (off_t)done)) > 0) {
        fill(expected, done);
        same = memcmp(got, expected, (size_t)n) == 0;
        done += (uint64_t)n;
    }
    if (fd >= 0) close(fd);
    return same && done == own_size();
}

static void make_file(void)
{
    static unsigned char block[BLOCK];
    char path[1200];
    scratch_path(path, folder, "data");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600), good = fd >= 0;
    uint64_t size = own_size();
    for (int m = 0; m < MARKS && good; m++) {
        uint64_t at = check_rank == 0 ? mark_at(m) : 0;
        size_t n = check_rank == 0 ? 8 : (size_t)size;
        if (at + n > size) continue;
        fill(block, at);
        good = pwrite(fd, block, n, (off_t)at) == (ssize_t)n;
    }
    CHECK(good && ftruncate(fd, (off_t)size) == 0);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(is_right());
}

/* ---- */

static redset *encode(redset_scheme scheme, char name[REDSET_NAME_SIZE])
{
    char node[32];
    redset_error err = {""};
    redset *set = NULL;
    redset_file files[] = {{.name = "data"}};
    snprintf(node, sizeof node, "node%d", check_rank);
    const redset_config config = {
        .scheme = scheme, .set_size = check_ranks, .failure_group = node};
    CHECK_INT(redset_create(MPI_COMM_WORLD, &config, &set, &err), 0);
    CHECK_INT(redset_encode(set, folder, NULL, 1, files, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(redset_file_name(redset_get_place(set), name), 0);
    return set;
}

static void rebuild(redset *set, int lost)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    int rebuilt = -1;
    if (lost) scratch_remove(folder), mkdir(folder, 0700);
    CHECK_INT(redset_rebuild(set, folder, &m, &rebuilt, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(rebuilt, lost);
    CHECK(m && m->count == 1 && m->files[0].size == own_size());
    redset_manifest_free(m);
}

/* Rank 0 has the large file, and rank 1 most redundancy data. */
static void test_huge_file_is_rebuilt(redset_scheme scheme)
{
    char name[REDSET_NAME_SIZE], path[1200];
    redset_error err = {""};
    struct stat before, after;
    redset_manifest *m = NULL;
    mkdir(folder, 0700);
    make_file();
    redset *set = encode(scheme, name);
    scratch_path(path, folder, name);
    CHECK_INT(stat(path, &before), 0);
    CHECK_INT(redset_read_header(AT_FDCWD, folder, name, &m, &err), 0);
    for (int lost = 0; lost < 2 && lost < check_ranks; lost++) {
        rebuild(set, check_rank == lost);
        CHECK(is_right());
        CHECK_INT(stat(path, &after), 0);
        CHECK_INT(after.st_size, before.st_size);
    }
    rebuild(set, 0); /* all checksums are right */
    redset_manifest *again = NULL;
    CHECK_INT(redset_read_header(AT_FDCWD, folder, name, &again, &err), 0);
    CHECK(m && again && m->file_crc == again->file_crc);
    redset_manifest_free(m);
    redset_manifest_free(again);
    redset_free(set);
    scratch_remove(folder);
}

static void tell(const char *scheme, double seconds)
{
    struct rusage usage;
    long mine, most = 0;
    getrusage(RUSAGE_SELF, &usage);
    mine = usage.ru_maxrss / 1024;
    MPI_Reduce(&mine, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (check_rank == 0)
        printf("%s, %" PRIu64 " bytes on one of %d ranks: %.0f s, at most %ld MiB of "
               "memory on each rank\n",
               scheme, bytes, check_ranks, seconds, most);
}

int main(int argc, char **argv)
{
    char root[64];
    check_begin(&argc, &argv);
    check_folder(root);
    if (argc > 1) bytes = strtoull(argv[1], NULL, 10);
    snprintf(folder, sizeof folder, "%s/huge-redset-%d", argc > 2 ? argv[2] : root,
             check_rank);
    double start = MPI_Wtime();
    test_huge_file_is_rebuilt(REDSET_XOR);
    tell("XOR", MPI_Wtime() - start);
    start = MPI_Wtime();
    test_huge_file_is_rebuilt(REDSET_PARTNER);
    tell("PARTNER", MPI_Wtime() - start);
    check_remove(root);
    return check_end();
}
