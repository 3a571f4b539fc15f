/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of cached datasets is the same on every rank, even if one rank lacks memory
 * for an entry. */
#include "nth_each_mpi.h"

#include "cache/cache.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

/* A store with a directory whose redundancy files cannot be used. */
static void make_remains(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s/scr.dataset.7", folder);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/scr.dataset.7/1_of_2_in_0.xor", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(fd >= 0);
    close(fd);
}

/* Sums up ids and states. */
static int list_sum(const scr_cache *cache)
{
    int sum = 0;
    for (int i = 0; i < cache->count; i++)
        sum += 10 * cache->list[i].d.id + (int)cache->list[i].state;
    return sum;
}

static int sweep(void *arg)
{
    int held = nth_hold(), highest = 0;
    kvtree_error err = {""};
    scr_report quiet = {.rank = 1};
    scr_job job = {.report = &quiet,
                   .world = MPI_COMM_WORLD,
                   .rank = check_rank,
                   .ranks = check_ranks};
    scr_store_dir store = {
        .fd = open(folder, O_RDONLY), .comm = MPI_COMM_WORLD, .rank = check_rank};
    scr_cache cache = {.job = &job, .stores = &store, .store_count = 1};
    cache.map = kvtree_new();
    countdown = held;
    int rc = scr_cache_sweep(&cache, &highest, &err);
    held = nth_hold();
    int sum = list_sum(&cache), most = nth_max(sum);
    CHECK_INT(sum, most);
    if (rc == 0 && sum) CHECK_INT(highest, 7);
    kvtree_delete(&cache.map);
    free(cache.list);
    free(cache.rows);
    close(store.fd);
    countdown = held;
    return rc;
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    if (check_rank == 0) make_remains();
    MPI_Barrier(MPI_COMM_WORLD);
    nth_each("scr_cache_sweep", sweep, NULL, 40);
    check_remove(folder);
    return check_end();
}
