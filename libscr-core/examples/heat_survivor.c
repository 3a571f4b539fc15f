/* SPDX-License-Identifier: BSD-3-Clause */
/* heat_survivor: a program that loses ranks and continues without a new job.
 *
 *     mpiexec -n 8 ./heat_survivor [-n points per side] [-t steps]
 *         [-c steps per checkpoint] [-o file] [-l step at which ranks leave]
 *         [-k how many leave] [-d] [-s spare ranks]
 *
 * It computes like heat_elastic.c. At some step its last ranks leave, as if their nodes
 * failed. The other ranks, and up to the same number of waiting spare ranks, continue
 * from the newest checkpoint. In this example all ranks know which ranks leave. With an
 * MPI that reports failed ranks, MPIX_Comm_shrink replaces survive(). With -d the leaving
 * ranks kill themselves, which needs an MPI that keeps the other ranks alive (Open MPI
 * with mpiexec --enable-recovery). Code that concerns SCR is marked "SCR:". */
#define HEAT_SURVIVOR
#include "heat_elastic.c"
#include <signal.h>

struct job {
    int side, steps, every, leave, leavers, die, spares;
    const char *result;
};

/* Tag of a message from the working ranks to the waiting ranks: the list of the ranks
 * that continue; an empty list: the end. */
enum { CALL_TAG = 7, MOST = 4096 };

static void call_rank(int rank, const int list[], int count)
{
    MPI_Send(list, count, MPI_INT, rank, CALL_TAG, MPI_COMM_WORLD);
}

/* Returns the communicator of the ranks in the list. All of them call this. */
static MPI_Comm join(const int list[], int count)
{
    MPI_Group world, group;
    MPI_Comm comm;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, list, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, CALL_TAG, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return comm;
}

/* Waits until there is work. Returns MPI_COMM_NULL when there is none any more. */
static MPI_Comm wait_for_call(void)
{
    int list[MOST], count = 0;
    MPI_Status status;
    MPI_Recv(list, MOST, MPI_INT, 0, CALL_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    return count ? join(list, count) : MPI_COMM_NULL;
}

/* Removes the last ranks from comm, and replaces them by spare ranks as far as possible.
 * Returns the new communicator, or MPI_COMM_NULL on ranks that leave. */
static MPI_Comm survive(const struct job *job, MPI_Comm comm)
{
    int list[MOST], count, rank, world;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &count);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    const int stay = count - job->leavers;
    if (rank >= stay && job->die) raise(SIGKILL);
    /* SCR: ranks are lost, so do not wait for them. */
    SCR_Abandon();
    if (rank >= stay) return MPI_COMM_NULL;
    for (int i = 0; i < stay; i++) /* comm consists of the first ranks of the world */
        list[i] = i;
    for (count = stay; count < stay + job->leavers && count - stay < job->spares; count++)
        list[count] = world - job->spares + count - stay;
    for (int i = stay; i < count && rank == 0; i++)
        call_rank(list[i], list, count);
    return join(list, count);
}

/* Works as one of the ranks of comm, until the end (returns 1), or until ranks leave. */
static int work(const struct job *job, MPI_Comm comm, int may_leave)
{
    struct plate plate;
    int stop = 0;
    SCR_Configf("SCR_CHECKPOINT_INTERVAL=%d", job->every);
    SCR_Config("SCR_RESTART_RANKS=any");
    /* SCR: begin a run of the remaining ranks. */
    SCR_Init_comm(comm);
    plate_init(&plate, comm, job->side);
    int step = restart(&plate);
    const int until = may_leave && job->leave < job->steps ? job->leave : job->steps;
    step = advance(&plate, step, until, &stop);
    const int done = step >= job->steps || stop;
    if (done && job->result) plate_save(&plate, job->result);
    if (done && plate.rank == 0)
        printf("heat: at step %d with %d ranks\n", step, plate.ranks);
    plate_done(&plate);
    if (done) SCR_Finalize();
    return done;
}

int main(int argc, char **argv)
{
    struct job job = {
        .side = 1024, .steps = 200, .every = 20, .leave = 1 << 30, .leavers = 1};
    int option, rank, ranks, world;
    MPI_Init(&argc, &argv);
    while ((option = getopt(argc, argv, "n:t:c:o:l:k:ds:")) != -1) {
        if (option == 'n') job.side = atoi(optarg);
        if (option == 't') job.steps = atoi(optarg);
        if (option == 'c') job.every = atoi(optarg);
        if (option == 'o') job.result = optarg;
        if (option == 'l') job.leave = atoi(optarg);
        if (option == 'k') job.leavers = atoi(optarg);
        if (option == 'd') job.die = 1;
        if (option == 's') job.spares = atoi(optarg);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    ranks = world - job.spares;
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &comm);
    int may_leave = 1;
    if (comm == MPI_COMM_NULL) {
        comm = wait_for_call();
        may_leave = 0;
    }
    while (comm != MPI_COMM_NULL && !work(&job, comm, may_leave)) {
        comm = survive(&job, comm);
        may_leave = 0;
    }
    /* end spare ranks that were not needed */
    const int called = may_leave ? 0 : job.leavers;
    for (int i = ranks + called; rank == 0 && i < world; i++)
        call_rank(i, NULL, 0);
    fflush(stdout);
    if (job.die) _exit(0); /* MPI_Finalize would wait for dead ranks */
    MPI_Finalize();
    return 0;
}
