/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_TESTS_JOB_MPI_H
#define REDSET_TESTS_JOB_MPI_H

/* A job for tests: every rank has its own directory with files of very different kinds
 * (one large, none, nested, many, only empty ones), as if on its own node. */

#include "check.h"
#include "scratch.h"
#include <kvtree/kvtree_util.h>
#include <redset/redset_mpi.h>

enum { JOB_FILES = 40, JOB_PIECE = 4096 };

typedef struct job {
    MPI_Comm comm;
    int rank, ranks;
    redset_scheme scheme; /* XOR, unless the test wants another */
    int failures;
    int no_checksums, unsynced;
    size_t piece;              /* bytes of a message, JOB_PIECE at first */
    char root[64], folder[80]; /* directory of all ranks; of this rank */
    int count;
    redset_file files[JOB_FILES];
    char names[JOB_FILES][24];
    kvtree *meta; /* of the first file */
    kvtree *about;
} job;

static inline void job_add(job *j, const char *name, size_t size)
{
    snprintf(j->names[j->count], sizeof j->names[0], "%s", name);
    j->files[j->count] = (redset_file){.name = j->names[j->count], .size = size};
    j->count++;
}

/* Names and sizes of this rank's files. */
static inline void job_describe(job *j)
{
    char name[24];
    switch (j->rank % 5) {
    case 0:
        job_add(j, "rank.ckpt", 100001 + (size_t)j->rank);
        break;
    case 1: /* none */
        break;
    case 2:
        job_add(j, "a/b/c", 30000);
        job_add(j, "empty", 0);
        job_add(j, "a/x", 12345);
        break;
    case 3:
        for (int i = 0; i < JOB_FILES; i++) {
            snprintf(name, sizeof name, "many/f%d", i);
            job_add(j, name, (size_t)i * 7);
        }
        break;
    case 4:
        job_add(j, "e1", 0);
        job_add(j, "deep/e2", 0);
        break;
    }
    if (j->count) j->files[0].meta = j->meta;
}

static inline unsigned job_seed(const job *j, int i)
{
    return (unsigned)(1000 * j->rank + i);
}

/* The seeds of the files' bytes are those of job_seed plus salt. */
static inline void job_write(const job *j, unsigned salt)
{
    for (int i = 0; i < j->count; i++)
        scratch_write(j->folder, j->files[i].name, j->files[i].size,
                      job_seed(j, i) + salt);
}

static inline void job_begin(job *j, MPI_Comm comm)
{
    memset(j, 0, sizeof *j);
    j->comm = comm;
    j->scheme = REDSET_XOR;
    j->piece = JOB_PIECE;
    MPI_Comm_rank(comm, &j->rank);
    MPI_Comm_size(comm, &j->ranks);
    check_folder(j->root);
    snprintf(j->folder, sizeof j->folder, "%s/%d", j->root, check_rank);
    mkdir(j->folder, 0700);
    j->meta = kvtree_new();
    j->about = kvtree_new();
    kvtree_util_set_int(j->meta, "OWNER", j->rank);
    kvtree_util_set_str(j->about, "NAME", "ckpt.7");
    job_describe(j);
    job_write(j, 0);
}

static inline void job_end(job *j)
{
    kvtree_delete(&j->meta);
    kvtree_delete(&j->about);
    check_remove(j->root);
}

/* 1 when all files are there with their bytes. */
static inline int job_intact(const job *j)
{
    int intact = 1;
    for (int i = 0; i < j->count; i++)
        intact &=
            scratch_same(j->folder, j->files[i].name, j->files[i].size, job_seed(j, i));
    return intact;
}

/* Removes everything that this rank has, as if its node were lost. */
static inline void job_lose(const job *j)
{
    scratch_remove(j->folder);
    mkdir(j->folder, 0700);
}

/* Sets of set_size, with each `together` consecutive ranks in one failure group. */
static inline int job_create(const job *j, redset_scheme scheme, int set_size,
                             int together, redset **set, redset_error *err)
{
    char node[32];
    snprintf(node, sizeof node, "node%d", j->rank / together);
    redset_config config = {.scheme = scheme,
                            .set_size = set_size,
                            .failure_group = node,
                            .piece = j->piece,
                            .failures = j->failures,
                            .no_checksums = j->no_checksums,
                            .unsynced = j->unsynced};
    return redset_create(j->comm, &config, set, err);
}

static inline int job_encode(job *j, redset *set, redset_error *err)
{
    return redset_encode(set, j->folder, j->about, j->count, j->files, err);
}

/* The name of this rank's redundancy file. */
static inline const char *job_name(const redset *set, char name[REDSET_NAME_SIZE])
{
    if (redset_file_name(redset_get_place(set), name) != 0) strcpy(name, "?");
    return name;
}

static inline int job_has(const job *j, const char *name)
{
    char path[1200];
    scratch_path(path, j->folder, name);
    return access(path, F_OK) == 0;
}

/* A checksum over names and inodes of everything below this rank's directory, and over
 * sizes, times and bytes of its files. (The time of a directory changes when temporary
 * files come and go.) */
static uint64_t job_sum;

static inline void job_sum_add(const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        job_sum = (job_sum ^ ((const unsigned char *)data)[i]) * 1099511628211u;
}

static inline int job_sum_one(const char *path, const struct stat *st, int type,
                              struct FTW *walk)
{
    (void)type, (void)walk;
    uint64_t sum = job_sum;
    job_sum = 14695981039346656037u;
    job_sum_add(path, strlen(path));
    job_sum_add(&st->st_ino, sizeof st->st_ino);
    if (S_ISREG(st->st_mode)) {
        job_sum_add(&st->st_size, sizeof st->st_size);
        job_sum_add(&st->st_mtim, sizeof st->st_mtim);
        size_t size;
        unsigned char *data = scratch_read("", path, &size);
        job_sum_add(data, size);
        free(data);
    }
    job_sum += sum; /* in any order */
    return 0;
}

static inline uint64_t job_fingerprint(const job *j)
{
    job_sum = 0;
    nftw(j->folder, job_sum_one, 16, FTW_PHYS);
    return job_sum;
}

/* Whether the value is the same on all ranks. */
static inline int job_agreed(const job *j, int value)
{
    int both[2] = {value, -value}, most[2];
    MPI_Allreduce(both, most, 2, MPI_INT, MPI_MAX, j->comm);
    return most[0] == -most[1];
}

static inline int job_any(const job *j, int value)
{
    int most;
    MPI_Allreduce(&value, &most, 1, MPI_INT, MPI_MAX, j->comm);
    return most;
}

/* Swaps two members in a forged header. */
static inline void job_swap_members(kvtree *group)
{
    kvtree *ranks = kvtree_get(group, "RANK");
    kvtree *first = kvtree_extract(ranks, "0"), *second = kvtree_extract(ranks, "1");
    kvtree_set(ranks, "0", second);
    kvtree_set(ranks, "1", first);
}

/* Forges GROUP in the header of this rank's redundancy file, with a valid checksum. */
static inline void job_forge(const job *j, const char *name,
                             void (*change)(kvtree *group))
{
    char path[1200];
    redset_error err;
    size_t size;
    unsigned char *bytes = scratch_read(j->folder, name, &size);
    scratch_path(path, j->folder, name);
    kvtree *tree = kvtree_new();
    int fd = open(path, O_RDONLY);
    ssize_t header = kvtree_fd_read(fd, KVTREE_ANY_SIZE, tree, &err);
    close(fd);
    change(kvtree_get(tree, "GROUP"));
    fd = open(path, O_WRONLY | O_TRUNC);
    CHECK(kvtree_fd_write(fd, KVTREE_ANY_SIZE, tree, &err) > 0);
    CHECK_INT(write(fd, bytes + header, size - (size_t)header), size - (size_t)header);
    close(fd);
    kvtree_delete(&tree);
    free(bytes);
}

#endif
