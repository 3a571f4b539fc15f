/* SPDX-License-Identifier: BSD-3-Clause */
/* What all calls share: checked arguments, a private communicator, a directory that is
 * opened and closed, the text of a failure; and the stage of a flush. */
#include "src/filo_private_mpi.h"

#include "common/agree_mpi.h"
#include "common/batch.h"
#include "common/folder.h"
#include "common/io.h"
#include "common/split_mpi.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { IDENTITY_MAX = 511 };

static int job_duplicate(filo_job *job)
{
    int rc = agree_possible(job->comm, &job->err);
    if (rc) return rc;
    job->over = job->comm;
    if (MPI_Comm_dup(job->comm, &job->own) != MPI_SUCCESS) {
        job->own = MPI_COMM_NULL;
        return err_set(&job->err, -EIO, "duplicate the communicator: MPI failed");
    }
    MPI_Comm_set_errhandler(job->own, MPI_ERRORS_RETURN);
    MPI_Comm_rank(job->own, &job->rank);
    MPI_Comm_size(job->own, &job->size);
    return 0;
}

static int job_check_options(filo_job *job)
{
    const filo_options *o = &job->options;
    if (o->width < 0) return err_set(&job->err, -EINVAL, "a width of %d ranks", o->width);
    if (o->ranks < 0) return err_set(&job->err, -EINVAL, "files of %d ranks", o->ranks);
    if (o->container > INT64_MAX)
        return err_set(&job->err, -EINVAL, "containers of %llu bytes",
                       (unsigned long long)o->container);
    if (o->align > INT64_MAX || (o->align && o->container) || o->nodes < 0)
        return err_set(&job->err, -EINVAL,
                       "containers of %d nodes, aligned to %llu bytes%s", o->nodes,
                       (unsigned long long)o->align,
                       o->container ? " and cut to a size" : "");
    if (o->identity && strlen(o->identity) > IDENTITY_MAX)
        return err_set(&job->err, -EINVAL, "an identity of %zu bytes",
                       strlen(o->identity));
    if (o->node && strlen(o->node) >= SPLIT_STRING_SIZE)
        return err_set(&job->err, -EINVAL, "name of a node of %zu bytes",
                       strlen(o->node));
    return 0;
}

/* The default stage is "stage" beside the map. */
static int job_name_stage(filo_job *job)
{
    const char *given = job->options.stage;
    int n = snprintf(job->stage, sizeof job->stage, "%.*s%s",
                     given ? 0 : (int)beneath_folder_length(job->map), job->map,
                     given ? given : "stage");
    int rc = n < (int)sizeof job->stage
                 ? beneath_check_name(job->stage, &job->err)
                 : err_sys(&job->err, -ENAMETOOLONG, "%.60s", given);
    return rc ? err_wrap(&job->err, rc, "name of the stage") : 0;
}

int filo_job_begin(filo_job *job, MPI_Comm comm, const char *folder, const char *map,
                   const filo_options *options)
{
    memset(job, 0, sizeof *job);
    job->comm = comm;
    job->own = job->over = MPI_COMM_NULL;
    job->folder = folder;
    job->map = map ? map : FILO_MAP;
    if (options) job->options = *options;
    if (job->options.nodes == 0) job->options.nodes = 1;
    job->dir = job->stage_dir = -1;
    job->lead.node = job->lead.leaders = job->lead.group = MPI_COMM_NULL;
    int rc = job_duplicate(job);
    if (rc) return rc;
    if (!folder || !*folder) return err_set(&job->err, -EINVAL, "no directory");
    rc = beneath_check_name(job->map, &job->err);
    if (rc) return err_wrap(&job->err, rc, "name of the map");
    rc = job_name_stage(job);
    return rc ? rc : job_check_options(job);
}

int filo_job_open(filo_job *job)
{
    if (job->dir >= 0) return 0;
    return folder_make_below(job->options.base, job->folder, 0, &job->dir, &job->err);
}

/* If the first agreement fails, the duplicate is not used, because some ranks may not
 * have one. */
int filo_job_agree_sum(filo_job *job, int rc, int count, int64_t numbers[])
{
    const MPI_Comm over = job->over;
    if (over == MPI_COMM_NULL) return rc;
    rc = agree_sum(over, rc, &job->err, count, numbers);
    if (rc && over != job->own && job->own != MPI_COMM_NULL) MPI_Comm_free(&job->own);
    job->over = job->own;
    return rc;
}

int filo_job_agree(filo_job *job, int rc)
{
    return filo_job_agree_sum(job, rc, 0, NULL);
}

/* 20 bits that depend on the arguments that must be the same on all ranks. */
static int64_t job_fingerprint(const filo_job *job)
{
    const filo_options *o = &job->options;
    char numbers[192];
    snprintf(numbers, sizeof numbers, "%d %" PRIu64 " %zu %d %d %d %" PRIu64 " %d",
             o->width, o->container, o->map_limit, o->node != NULL, o->ranks,
             o->slots != NULL, o->align, o->nodes);
    unsigned h = filo_name_hash(job->folder);
    h = 31 * h + filo_name_hash(job->map);
    h = 31 * h + filo_name_hash(job->stage);
    h = 31 * h + filo_name_hash(o->identity ? o->identity : "");
    h = 31 * h + filo_name_hash(o->dataset ? o->dataset : "");
    h = 31 * h + filo_name_hash(numbers);
    return h & 0xfffff;
}

/* The key is the same on all ranks and in every run with equal arguments. FNV-1a, 64 bits
 * (http://www.isthe.com/chongo/tech/comp/fnv/). */
static uint64_t job_identity_key(const filo_options *o, int ranks)
{
    const uint64_t numbers[] = {o->container, (uint64_t)ranks, o->align,
                                (uint64_t)o->nodes};
    const size_t size = o->align ? sizeof numbers : 2 * sizeof *numbers;
    const unsigned char *byte = (const unsigned char *)numbers;
    uint64_t h = 14695981039346656037u;
    for (const char *c = o->identity; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ byte[i]) * 1099511628211u;
    return h;
}

/* For n numbers, n times the sum of squares equals the square of the sum only if all
 * numbers are equal. So two sums show every rank whether all ranks have the same
 * fingerprint. */
int filo_job_agree_key(filo_job *job, int rc)
{
    enum { KEY, SUM, SQUARES, SHARES, NUMBERS };
    int64_t n[NUMBERS] = {0};
    if (!rc && job->rank == 0 && (rc = batch_draw(&job->key)) != 0)
        err_sys(&job->err, rc, "random names");
    if (!rc && job->rank == 0) n[KEY] = (int64_t)(job->key >> 1);
    if (!rc) n[SUM] = job_fingerprint(job);
    n[SQUARES] = n[SUM] * n[SUM];
    n[SHARES] = job->shares;
    rc = filo_job_agree_sum(job, rc, NUMBERS, n); /* the other ranks add 0 to KEY */
    job->shares = n[SHARES] > 0;
    job->key = job->options.identity ? job_identity_key(&job->options, job->size)
                                     : (uint64_t)n[KEY];
    if (rc ||
        (uint64_t)n[SUM] * (uint64_t)n[SUM] == (uint64_t)job->size * (uint64_t)n[SQUARES])
        return rc;
    return err_set(&job->err, -EINVAL,
                   "directory, map or options are not the same on all ranks");
}

/* ---- the stage ---- */

static int job_make_folder(filo_job *job, const char *name, mode_t mode)
{
    const char *last;
    int parent, rc = beneath_open_parent(job->dir, name, 0, &parent, &last, &job->err);
    if (rc) return rc;
    if (mkdirat(parent, last, mode) != 0 && errno != EEXIST)
        rc = err_sys(&job->err, -errno, "make directory %s/%s", job->folder, name);
    io_close(&parent);
    return rc;
}

static int job_open_private(filo_job *job, const char *name, int *fd)
{
    int rc = beneath_open_private(job->dir, name, fd, &job->err);
    return rc ? err_wrap(&job->err, rc, "stage in %s", job->folder) : 0;
}

/* Creates the directory of the flush and the stage above it, and opens the directory. An
 * entry of the same name that is not private, such as one of another user, is removed if
 * possible. */
static int job_make_folders(filo_job *job, int *fd)
{
    char *slash = strrchr(job->stage, '/');
    *slash = 0;
    int rc = job_make_folder(job, job->stage, 0777);
    *slash = '/';
    if (!rc) rc = job_make_folder(job, job->stage, 0700);
    if (!rc) rc = job_open_private(job, job->stage, fd);
    if (rc == -EPERM && filo_begun_remove(job->dir, job->stage, NULL) == 0) rc = -ENOENT;
    return rc;
}

/* Runs on rank 0. The record is written before any file. */
static int job_make_record(filo_job *job)
{
    const filo_options *o = &job->options;
    const filo_begun flush = {
        o->identity ? o->identity : "",
        {o->container, o->align, o->align ? (unsigned)o->nodes : 0}};
    int fd, rc = filo_job_open(job);
    if (rc) return rc;
    rc = -ENOENT;
    /* another flush may remove the empty stage in between */
    for (int tries = 0; tries < 3 && rc == -ENOENT; tries++)
        rc = job_make_folders(job, &fd);
    if (rc) return rc;
    rc = filo_begun_write(fd, &flush, &job->err);
    io_close(&fd);
    return rc ? err_wrap(&job->err, rc, "%s/%s", job->folder, job->stage) : 0;
}

static bool job_packs(const filo_job *job)
{
    return job->options.container || job->options.align;
}

void filo_job_name_part(const filo_job *job, char name[FILO_PART_SIZE])
{
    if (job_packs(job) || job->shares)
        strcpy(name, job->stage);
    else
        snprintf(name, FILO_PART_SIZE, "%s/%d", job->stage,
                 job->rank / FILO_STAGE_SPREAD);
}

int filo_job_enter(filo_job *job)
{
    char name[FILO_PART_SIZE];
    int rc = filo_job_open(job);
    if (rc || job->stage_dir >= 0) return rc;
    filo_job_name_part(job, name);
    return job_open_private(job, name, &job->stage_dir);
}

/* The first rank that writes to a subdirectory creates it. */
static int job_make_part(filo_job *job)
{
    char name[FILO_PART_SIZE];
    if (job->rank % FILO_STAGE_SPREAD != 0) return 0;
    snprintf(name, sizeof name, "%s/%d", job->stage, job->rank / FILO_STAGE_SPREAD);
    int rc = filo_job_open(job);
    return rc ? rc : job_make_folder(job, name, 0700);
}

int filo_job_make_stage(filo_job *job, int rc)
{
    size_t length = strlen(job->stage);
    snprintf(job->stage + length, sizeof job->stage - length, "/%016" PRIx64, job->key);
    job->staged = true;
    if (!rc && job->rank == 0) rc = job_make_record(job);
    rc = filo_job_agree(job, rc);
    return rc || job_packs(job) ? rc : filo_job_agree(job, job_make_part(job));
}

/* The stage itself stays only if another flush is in it. */
void filo_job_remove_stage(filo_job *job)
{
    bool mine = job->staged && job->dir >= 0 && job->rank == 0;
    job->staged = false;
    if (!mine) return;
    int rc = filo_begun_remove(job->dir, job->stage, &job->left);
    *strrchr(job->stage, '/') = 0;
    if (!rc) {
        rc = beneath_rmdir(job->dir, job->stage, &job->left);
        if (rc == -ENOTEMPTY || rc == -EEXIST) rc = 0; /* another flush is in it */
    }
    if (!rc || rc == -ENOENT) job->left.text[0] = 0;
}

/* Called by libkvtree on ranks that read or write a map file and have not opened the
 * directory yet. */
static int job_give_folder(void *arg, int *dir, kvtree_error *err)
{
    filo_job *job = arg;
    int rc = filo_job_open(job);
    if (rc) return err_set(err, rc, "%s", job->err.text);
    *dir = job->dir;
    return 0;
}

kvtree_gather filo_map_place(filo_job *job)
{
    return (kvtree_gather){.comm = job->comm,
                           .dir = job->dir,
                           .open = job_give_folder,
                           .arg = job,
                           .name = job->map,
                           .top = "RANK2FILE",
                           .limit = job->options.map_limit,
                           .fresh = job->unmapped};
}

int filo_list_check(filo_job *job, int count, filo_file files[],
                    int (*check)(filo_job *, filo_file *))
{
    if (count < 0 || (count > 0 && !files))
        return err_set(&job->err, -EINVAL, "no list of %d files", count);
    for (int i = 0; i < count; i++) {
        int rc = check(job, &files[i]);
        if (rc) return rc;
        if (job->options.ranks &&
            (files[i].rank < 0 || files[i].rank >= job->options.ranks))
            return err_set(&job->err, -EINVAL, "file \"%.200s\" of rank %d of %d",
                           files[i].name, files[i].rank, job->options.ranks);
    }
    return 0;
}

void filo_job_meet(const filo_job *job)
{
    if (job->own != MPI_COMM_NULL) MPI_Barrier(job->own);
}

void filo_job_rest(const filo_job *job)
{
    enum { SHORTEST = 50000, LONGEST = 2000000, PART = 32 }; /* ns */
    MPI_Request request;
    int64_t slept = 0;
    int done = 0;
    int rc = MPI_Ibarrier(job->own, &request);
    if (!rc) rc = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    while (!rc && !done) {
        int64_t nap = slept / PART;
        nap = nap < SHORTEST ? SHORTEST : nap > LONGEST ? LONGEST : nap;
        nanosleep(&(struct timespec){.tv_nsec = (long)nap}, NULL);
        slept += nap;
        rc = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
}

int filo_job_end(filo_job *job, int rc, filo_error *err)
{
    if (rc) filo_job_meet(job);
    io_close(&job->stage_dir);
    io_close(&job->dir);
    filo_lead_end(&job->lead);
    if (job->own != MPI_COMM_NULL) MPI_Comm_free(&job->own);
    return rc ? err_set(err, rc, "%s", job->err.text) : 0;
}
