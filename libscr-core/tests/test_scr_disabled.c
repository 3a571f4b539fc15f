/* SPDX-License-Identifier: BSD-3-Clause */
/* With SCR_ENABLE=0 the calls cost nothing: after SCR_Init no call reaches MPI or the
 * system. */
#include "count_mpi.h"
#include "nth_syscall.h"
#include "scr.h"

enum { ROUNDS = 100, CALLS_PER_ROUND = 21 };

/* MPI calls that count_mpi.h does not count, but that libscr makes. */
static long others;

int MPI_Initialized(int *flag)
{
    others++;
    return PMPI_Initialized(flag);
}

int MPI_Finalized(int *flag)
{
    others++;
    return PMPI_Finalized(flag);
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    others++;
    return PMPI_Comm_rank(comm, rank);
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    others++;
    return PMPI_Comm_size(comm, size);
}

double MPI_Wtime(void)
{
    others++;
    return PMPI_Wtime();
}

static int is_refused(int code)
{
    return code == SCR_ERR_DISABLED;
}

/* The calls of an application that ignores the codes. Returns the number of wrong
 * results. */
static int one_round(void)
{
    int need = 7, have = 7, stop = 7, ranks = 7, files = 7, right = 0;
    uint64_t size = 7;
    char name[SCR_MAX_FILENAME] = "x", path[SCR_MAX_FILENAME];
    const char *const names[] = {"a/all"};
    const uint64_t offset = UINT64_C(1) << 40, length = 5;
    right += is_refused(SCR_Have_restart(&have, name)) && have == 0 && !name[0];
    right += is_refused(SCR_Start_restart(name));
    right += is_refused(SCR_Dataset_ranks(&ranks)) && ranks == 0;
    right += is_refused(SCR_Dataset_files(0, &files)) && files == 0;
    right += is_refused(SCR_Dataset_file(0, 0, path, &size)) && !path[0] && size == 0;
    right += is_refused(SCR_Fetch_files(1, names));
    right += is_refused(SCR_Fetch_file_parts(1, names, &offset, &length));
    right += is_refused(SCR_Complete_restart(1));
    right += is_refused(SCR_Need_checkpoint(&need)) && need == 0;
    right += is_refused(SCR_Start_output("a", SCR_FLAG_CHECKPOINT));
    right += is_refused(SCR_Route_file("a/file", path)) && strcmp(path, "a/file") == 0;
    right += is_refused(SCR_Route_file_part("a/all", offset, length, path, &size)) &&
             strcmp(path, "a/all") == 0 && size == offset;
    right += is_refused(SCR_Complete_output(1));
    right += is_refused(SCR_Start_checkpoint());
    right += is_refused(SCR_Complete_checkpoint(1));
    right += is_refused(SCR_Should_exit(&stop)) && stop == 0;
    right += is_refused(SCR_Current("a"));
    right += is_refused(SCR_Delete("a"));
    right += is_refused(SCR_Drop("a"));
    right += is_refused(SCR_Finalize());
    right += is_refused(SCR_Abandon());
    return CALLS_PER_ROUND - right;
}

static int rounds(void *arg)
{
    int wrong = 0;
    for (int i = 0; i < ROUNDS; i++)
        wrong += one_round();
    return wrong != 0;
}

static int nothing(void *arg)
{
    return 0;
}

static int let_happen(void *arg, unsigned n, const nth_call *call)
{
    return NTH_GO;
}

/* The test would be wrong if it counted no call at all. */
static int one_call(void *arg)
{
    return getppid() < 0;
}

static unsigned system_calls(int (*function)(void *))
{
    static nth_result result;
    int rc = nth_run(function, NULL, let_happen, NULL, &result);
    if (rc) {
        if (check_rank == 0)
            printf("system calls are not counted here: %s\n", strerror(rc));
        return 0;
    }
    CHECK_INT(result.status, 0);
    return result.count;
}

static void test_no_system_calls(void)
{
    unsigned none = system_calls(nothing), one = system_calls(one_call);
    CHECK(one == none + 1 || one == 0);
    CHECK_INT(system_calls(rounds), none);
}

static void test_no_mpi(void)
{
    others = 0;
    begin_counting(MPI_COMM_WORLD);
    CHECK_INT(rounds(NULL), 0);
    tally t = end_counting(MPI_COMM_WORLD);
    CHECK_INT(t.own[SENDS] + t.own[RECEIVES] + t.own[COLLECTIVES] + t.own[DUPLICATES], 0);
    CHECK_INT(others, 0);
}

/* SCR_Init itself must find out, on all ranks together. */
static void test_init(void)
{
    setenv("SCR_ENABLE", "0", 1);
    begin_counting(MPI_COMM_WORLD);
    CHECK_INT(SCR_Init(), SCR_ERR_DISABLED);
    tally t = end_counting(MPI_COMM_WORLD);
    CHECK(t.own[COLLECTIVES] + t.own[DUPLICATES] > 0); /* calls are counted */
    CHECK(others > 0);
    if (check_rank == 0)
        printf("SCR_Init with SCR_ENABLE=0: %ld collective calls\n",
               t.own[COLLECTIVES] + t.own[DUPLICATES]);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    test_init();
    test_no_mpi();
    test_no_system_calls();
    return check_end();
}
