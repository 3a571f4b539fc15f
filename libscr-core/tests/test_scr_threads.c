/* SPDX-License-Identifier: BSD-3-Clause */
/* An application with MPI_THREAD_MULTIPLE: one thread computes and communicates without a
 * pause, another calls SCR, which checkpoints, flushes in the background and restarts. */
#include "check.h"
#include "scr.h"
#include <pthread.h>
#include <stdatomic.h>

enum { CHECKPOINTS = 6, NUMBERS = 5000 };

struct worker {
    MPI_Comm comm;
    atomic_int stop;
    atomic_long rounds;
    int wrong;
};

/* A ring and a sum in each round, until all ranks want to stop. */
static void *work(void *arg)
{
    struct worker *w = arg;
    int to = (check_rank + 1) % check_ranks,
        from = (check_rank + check_ranks - 1) % check_ranks;
    for (int stop = 0; !stop; atomic_fetch_add(&w->rounds, 1)) {
        long round = atomic_load(&w->rounds), got = -1;
        long mine = round * check_ranks + check_rank, sum = 0;
        MPI_Sendrecv(&mine, 1, MPI_LONG, to, 0, &got, 1, MPI_LONG, from, 0, w->comm,
                     MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, w->comm);
        if (got != round * check_ranks + from) w->wrong++;
        if (sum != check_ranks * (round * check_ranks) +
                       (long)check_ranks * (check_ranks - 1) / 2)
            w->wrong++;
        stop = atomic_load(&w->stop);
        MPI_Allreduce(MPI_IN_PLACE, &stop, 1, MPI_INT, MPI_MIN, w->comm);
    }
    return NULL;
}

static const char *prefix;

static void use_folder(const char *folder)
{
    char node[16];
    prefix = folder;
    snprintf(node, sizeof node, "n%d", check_rank);
    setenv("SCR_PREFIX", folder, 1);
    setenv("SCR_CNTL_BASE", folder, 1);
    setenv("SCR_CACHE_BASE", folder, 1);
    setenv("SCR_NODE_NAME", node, 1);
    setenv("SCR_JOB_ID", "1", 1);
    setenv("SCR_USER_NAME", "tester", 1);
    setenv("SCR_FLUSH", "1", 1);
    setenv("SCR_FLUSH_ASYNC", "1", 1);
}

static int route(const char *dataset, char path[SCR_MAX_FILENAME])
{
    char name[SCR_MAX_FILENAME + 96];
    snprintf(name, sizeof name, "%s/%s/rank_%d", prefix, dataset, check_rank);
    return SCR_Route_file(name, path);
}

static void fill(int number, int numbers[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = number * 1000003 + check_rank * 10007 + i;
}

static void checkpoint(int number)
{
    static int numbers[NUMBERS];
    char dataset[32], path[SCR_MAX_FILENAME];
    int flag = 7;
    snprintf(dataset, sizeof dataset, "ckpt.%d", number);
    fill(number, numbers);
    CHECK_INT(SCR_Need_checkpoint(&flag), SCR_SUCCESS);
    CHECK_INT(SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT), SCR_SUCCESS);
    CHECK_INT(route(dataset, path), SCR_SUCCESS);
    FILE *file = fopen(path, "wb");
    int valid = file && fwrite(numbers, sizeof numbers, 1, file) == 1;
    if (file && fclose(file) != 0) valid = 0;
    CHECK(valid);
    CHECK_INT(SCR_Complete_output(valid), SCR_SUCCESS);
    CHECK_INT(SCR_Should_exit(&flag), SCR_SUCCESS);
}

/* The newest checkpoint is restored. */
static void restart(void)
{
    static int numbers[NUMBERS], wanted[NUMBERS];
    char dataset[SCR_MAX_FILENAME], newest[32], path[SCR_MAX_FILENAME];
    int have = 0;
    snprintf(newest, sizeof newest, "ckpt.%d", CHECKPOINTS);
    CHECK_INT(SCR_Have_restart(&have, dataset), SCR_SUCCESS);
    CHECK_INT(have, 1);
    CHECK_STR(dataset, newest);
    CHECK_INT(SCR_Start_restart(dataset), SCR_SUCCESS);
    CHECK_INT(route(dataset, path), SCR_SUCCESS);
    fill(CHECKPOINTS, wanted);
    memset(numbers, 0, sizeof numbers);
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(numbers, sizeof numbers, 1, file) == 1);
    if (file) fclose(file);
    CHECK(memcmp(numbers, wanted, sizeof wanted) == 0);
    CHECK_INT(SCR_Complete_restart(1), SCR_SUCCESS);
}

static void use_scr(void)
{
    char command[128];
    CHECK_INT(SCR_Init(), SCR_SUCCESS);
    for (int i = 1; i <= CHECKPOINTS; i++)
        checkpoint(i);
    CHECK_INT(SCR_Finalize(), SCR_SUCCESS);
    CHECK_INT(SCR_Init(), SCR_SUCCESS); /* from the cache */
    restart();
    CHECK_INT(SCR_Finalize(), SCR_SUCCESS);
    snprintf(command, sizeof command, "rm -rf %s/tester", prefix);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) CHECK_INT(system(command), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(SCR_Init(), SCR_SUCCESS); /* from the prefix directory */
    restart();
    CHECK_INT(SCR_Finalize(), SCR_SUCCESS);
}

int main(int argc, char **argv)
{
    struct worker w = {.wrong = 0};
    char folder[64];
    pthread_t thread;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_ranks);
    CHECK_INT(provided, MPI_THREAD_MULTIPLE);
    check_folder(folder);
    use_folder(folder);
    MPI_Comm_dup(MPI_COMM_WORLD, &w.comm);
    CHECK_INT(pthread_create(&thread, NULL, work, &w), 0);
    use_scr();
    CHECK(atomic_load(&w.rounds) > 1); /* both threads made progress at the same time */
    atomic_store(&w.stop, 1);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(w.wrong, 0);
    if (check_rank == 0)
        printf("%ld rounds of the other thread\n", atomic_load(&w.rounds));
    MPI_Comm_free(&w.comm);
    check_remove(folder);
    return check_end();
}
