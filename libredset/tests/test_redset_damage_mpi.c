/* SPDX-License-Identifier: BSD-3-Clause */
/* One member is damaged in each way, short of a lost directory. Together with as many
 * other losses as the scheme can bear it is rebuilt, bit for bit; with one more the
 * verdict names set, member and reason, and nothing is changed. */
#include "snapshot_mpi.h"

enum { VICTIM = 1, SIZE = 30001 };

/* ---- damage ---- */

/* Changes what is at path, of size bytes. */
typedef void change(const char *path, size_t size);

static void flip(const char *path, size_t offset)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    if (pread(fd, &byte, 1, (off_t)offset) != 1) abort();
    byte ^= 0x80;
    if (pwrite(fd, &byte, 1, (off_t)offset) != 1 || close(fd) != 0) abort();
}

static void flip_first(const char *path, size_t size)
{
    flip(path, 0);
}

static void flip_middle(const char *path, size_t size)
{
    flip(path, size / 2);
}

static void flip_last(const char *path, size_t size)
{
    flip(path, size - 1);
}

/* In a redundancy file: its header. */
static void flip_near_start(const char *path, size_t size)
{
    flip(path, 100);
}

static void cut_off(const char *path, size_t size)
{
    if (truncate(path, (off_t)size - 1) != 0) abort();
}

static void empty(const char *path, size_t size)
{
    if (truncate(path, 0) != 0) abort();
}

static void extend(const char *path, size_t size)
{
    if (truncate(path, (off_t)size + 1) != 0) abort();
}

static void take_away(const char *path, size_t size)
{
    if (unlink(path) != 0) abort();
}

static void replace_by_folder(const char *path, size_t size)
{
    if (unlink(path) != 0 || mkdir(path, 0700) != 0) abort();
    scratch_write(path, "in/it", 5, 1);
}

/* A path outside of all directories of ranks. */
static char elsewhere[100];

/* Replaces the file by a link to a file with the right bytes. */
static void replace_by_link(const char *path, size_t size)
{
    scratch_remove(elsewhere);
    if (rename(path, elsewhere) != 0 || symlink(elsewhere, path) != 0) abort();
}

/* Replaces the directory of the file by a link. */
static void replace_folder_by_link(const char *path, size_t size)
{
    char folder[1200];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    replace_by_link(folder, 0);
}

static void replace_folder_by_file(const char *path, size_t size)
{
    char folder[1200];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (unlink(path) != 0 || rmdir(folder) != 0) abort();
    scratch_put(folder, "x", 1);
}

static const struct {
    const char *name; /* of the file; NULL: the redundancy file */
    change *change;
    const char *reason; /* in the verdict, after the rank, ... */
    const char *detail; /* and further on */
    int aside;          /* the earlier entry stays under another name */
} kinds[] = {
    {"data", flip_first, "data has checksum", "", 0},
    {"data", flip_middle, "data has checksum", "", 0},
    {"sub/more", flip_last, "sub/more has checksum", "", 0},
    {"data", cut_off, "data is not a file of", "", 0},
    {"sub/more", empty, "sub/more is not a file of", "", 0},
    {"data", extend, "data is not a file of", "", 0},
    {"data", take_away, "data is missing", "", 0},
    {"data", replace_by_folder, "data is not a file of", "", 1},
    {"data", replace_by_link, "data is not a file of", "", 0},
    {"sub/more", replace_by_link, "sub/more is not a file of", "", 0},
    {"sub/more", replace_folder_by_link, "open directory sub", "", 1},
    {"sub/more", replace_folder_by_file, "open directory sub", "", 1},
    {NULL, flip_near_start, "read 2_of_", "damaged: checksum", 0},
    {NULL, flip_last, "data of 2_of_", "has checksum", 0},
    {NULL, cut_off, "read 2_of_", "bytes where", 0},
    {NULL, empty, "read 2_of_", "cut off", 0},
    {NULL, extend, "read 2_of_", "bytes where", 0},
    {NULL, take_away, "2_of_", "is missing", 0},
    {NULL, replace_by_folder, "2_of_", "is not a regular file", 1},
    {NULL, replace_by_link, "open 2_of_", "a symbolic link", 0},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void damage(const job *j, const snapshot *s, int kind)
{
    const char *name = kinds[kind].name ? kinds[kind].name : s->name;
    char path[1200];
    struct stat st;
    scratch_path(path, j->folder, name);
    if (stat(path, &st) != 0) abort();
    kinds[kind].change(path, (size_t)st.st_size);
}

/* ---- with other losses ---- */

/* Whether the rank is one of `count` ranks that lose their directories, too: ranks to the
 * right of the victim, who have copies of its files. */
static int loses_folder(const job *j, int count)
{
    int distance = (j->rank - VICTIM + j->ranks) % j->ranks;
    return distance > 0 && distance <= count;
}

static void test_damage_within_limit_is_rebuilt(job *j, snapshot *s, int kind)
{
    int entries = scratch_count(j->folder), lost = loses_folder(j, j->failures - 1);
    if (lost) job_lose(j);
    if (j->rank == VICTIM) {
        damage(j, s, kind);
        entries += kinds[kind].aside;
    }
    recover_again(j, s);
    expect_rebuilt(j, s, lost || j->rank == VICTIM, entries);
}

static void test_damage_beyond_limit_is_named(job *j, snapshot *s, int kind)
{
    char text[100], path[1200];
    int lost = loses_folder(j, j->failures);
    if (lost) job_lose(j);
    if (j->rank == VICTIM) damage(j, s, kind);
    recover_again(j, s);
    snprintf(text, sizeof text, "set 0 (%s over %d ranks) lost members 1 (rank 1), 2",
             redset_scheme_name(j->scheme), j->ranks);
    expect_hopeless(j, s, text);
    snprintf(text, sizeof text, "; rank 1: %s", kinds[kind].reason);
    expect_hopeless(j, s, text);
    expect_hopeless(j, s, kinds[kind].detail);
    if (!lost && j->rank != VICTIM) return;
    job_lose(j);
    job_write(j, 0);
    scratch_path(path, j->folder, s->name);
    scratch_put(path, s->file, s->size);
}

static void with_scheme(job *j, redset_scheme scheme, int failures)
{
    snapshot s;
    j->scheme = scheme;
    j->failures = failures;
    encode(j, &s, j->ranks, 1);
    for (int kind = 0; kind < KINDS; kind++) {
        int before = check_failures;
        test_damage_within_limit_is_rebuilt(j, &s, kind);
        test_damage_beyond_limit_is_named(j, &s, kind);
        if (check_failures > before)
            fprintf(stderr, "rank %d: with damage number %d to member %d of a %s\n",
                    j->rank, kind, VICTIM, s.name);
    }
    forget(j, &s);
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", j.root);
    job_lose(&j);
    j.count = 0;
    job_add(&j, "data", SIZE + (size_t)j.rank);
    job_add(&j, "sub/more", 100);
    j.files[0].meta = j.meta;
    job_write(&j, 0);
    with_scheme(&j, REDSET_XOR, 1);
    with_scheme(&j, REDSET_PARTNER, 1);
    with_scheme(&j, REDSET_PARTNER, 2);
    with_scheme(&j, REDSET_RS, 2);
    job_end(&j);
    return check_end();
}
