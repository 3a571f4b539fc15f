/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control: never more ranks inside than its width, no rank waits forever, a failure
 * reaches waiting ranks before they start, and no rank sends or receives more messages
 * than the width. Ranks observe each other through shared memory. */
#include "count_mpi.h"
#include "src/filo_private_mpi.h"

#include <sched.h>
#include <stdatomic.h>

typedef struct board {
    atomic_int inside, most, entered, skipped;
} board;

static board *shared;
static MPI_Win window;

static void share(void)
{
    MPI_Aint size;
    int unit;
    CHECK(PMPI_Win_allocate_shared(check_rank == 0 ? sizeof *shared : 0, 1, MPI_INFO_NULL,
                                   MPI_COMM_WORLD, &shared, &window) == MPI_SUCCESS);
    CHECK(PMPI_Win_shared_query(window, 0, &size, &unit, &shared) == MPI_SUCCESS);
}

static void clear_board(void)
{
    PMPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        atomic_store(&shared->inside, 0);
        atomic_store(&shared->most, 0);
        atomic_store(&shared->entered, 0);
        atomic_store(&shared->skipped, 0);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static void go_in(void)
{
    int inside = atomic_fetch_add(&shared->inside, 1) + 1;
    int most = atomic_load(&shared->most);
    atomic_fetch_add(&shared->entered, 1);
    while (inside > most && !atomic_compare_exchange_weak(&shared->most, &most, inside)) {
    }
}

/* Waits until all ranks that may be inside at the start are inside, so that the width is
 * reached. */
static void stay_inside(int rank, int width)
{
    int expected = least(width, check_ranks);
    while (rank < width && atomic_load(&shared->entered) < expected)
        sched_yield();
    sched_yield();
    atomic_fetch_sub(&shared->inside, 1);
}

static void enter(filo_flow *flow, bool wait)
{
    filo_error err = {""};
    do {
        CHECK_INT(filo_flow_admit(flow, wait, &err), 0);
        if (!flow->admitted) sched_yield();
    } while (!flow->admitted);
}

static void settle(filo_flow *flow, bool wait)
{
    filo_error err = {""};
    bool settled = false;
    while (!settled)
        CHECK_INT(filo_flow_settle(flow, wait, &settled, &err), 0);
}

/* The position of this rank when even ranks come first. */
static int place_of_even(void)
{
    int even = (check_ranks + 1) / 2;
    return check_rank % 2 ? even + check_rank / 2 : check_rank / 2;
}

/* Goes once through flow control, waiting or polling. */
static void pass(int width, bool wait, bool ordered)
{
    filo_flow flow;
    filo_error err = {""};
    clear_board();
    begin_counting(MPI_COMM_WORLD);
    CHECK_INT(filo_flow_begin(&flow, MPI_COMM_WORLD, width, &err), 0);
    if (ordered) {
        CHECK_INT(filo_flow_order(&flow, check_rank % 2, &err), 0);
        CHECK_INT(flow.rank, width < check_ranks ? place_of_even() : check_rank);
        CHECK_INT(flow.admitted, flow.rank < width);
    }
    enter(&flow, wait);
    CHECK(!flow.failed);
    go_in();
    stay_inside(flow.rank, width);
    CHECK_INT(filo_flow_finish(&flow, false, &err), 0);
    settle(&flow, wait);
    filo_flow_end(&flow);
    tally t = end_counting(MPI_COMM_WORLD);
    CHECK_INT(atomic_load(&shared->entered), check_ranks);
    CHECK_INT(atomic_load(&shared->most), least(width, check_ranks));
    /* one FINISHED for each rank with a later wave, one GO for each rank of a later wave
     * except its keeper */
    int waves = (check_ranks - 1) / width + 1;
    int last = check_ranks - (waves - 1) * width;
    CHECK_INT(t.sum[SENDS],
              waves == 1 ? 0 : check_ranks - last + check_ranks - width - (waves - 1));
    CHECK(t.most[SENDS] <= width);
    CHECK(t.most[RECEIVES] <= width);
}

/* A rank fails while all other ranks of its wave are still inside: no rank of a later
 * wave may start. */
static void fail_in(int wave, int width, bool wait)
{
    filo_flow flow;
    filo_error err = {""};
    int culprit = wave * width + width / 2,
        start = least((wave + 1) * width, check_ranks);
    int someone = culprit < check_ranks &&
                  start < check_ranks; /* there are ranks that can learn of the failure */
    clear_board();
    CHECK_INT(filo_flow_begin(&flow, MPI_COMM_WORLD, width, &err), 0);
    enter(&flow, wait);
    bool skips = flow.failed;
    atomic_fetch_add(skips ? &shared->skipped : &shared->entered, 1);
    while (someone && !skips && check_rank / width == wave && check_rank != culprit &&
           atomic_load(&shared->skipped) == 0)
        sched_yield();
    CHECK_INT(filo_flow_finish(&flow, skips || check_rank == culprit, &err), 0);
    settle(&flow, wait);
    filo_flow_end(&flow);
    PMPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(atomic_load(&shared->entered), someone ? start : check_ranks);
    CHECK_INT(atomic_load(&shared->skipped), someone ? check_ranks - start : 0);
}

/* Rank 0 stays inside until all ranks that can enter have entered. Only the keepers of
 * full waves, and ranks behind a keeper that waits, must wait for rank 0. */
static void hold(int width, bool wait)
{
    const struct timespec nap = {0, 10000000};
    filo_flow flow;
    filo_error err = {""};
    int free = least(width, check_ranks);
    for (int start = width; start < check_ranks; start += width)
        free += least(width - 1, check_ranks - start);
    clear_board();
    CHECK_INT(filo_flow_begin(&flow, MPI_COMM_WORLD, width, &err), 0);
    enter(&flow, wait);
    atomic_fetch_add(&shared->entered, 1);
    while (check_rank == 0 && atomic_load(&shared->entered) < free)
        sched_yield();
    if (check_rank == 0) {
        nanosleep(&nap, NULL);
        CHECK_INT(atomic_load(&shared->entered), free);
    }
    CHECK_INT(filo_flow_finish(&flow, false, &err), 0);
    settle(&flow, wait);
    filo_flow_end(&flow);
    PMPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(atomic_load(&shared->entered), check_ranks);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    share();
    for (int width = 1; width <= check_ranks + 1; width++)
        for (int wait = 0; wait <= 1; wait++) {
            pass(width, wait, false);
            pass(width, wait, true);
            hold(width, wait);
            for (int wave = 0; wave * width < check_ranks; wave++)
                fail_in(wave, width, wait);
        }
    PMPI_Win_free(&window);
    return check_end();
}
