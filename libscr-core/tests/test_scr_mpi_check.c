/* SPDX-License-Identifier: BSD-3-Clause */
/* Another MPI than ours, and a launcher of another MPI: the messages of SCR_Init, and
 * that it makes no calls that it must not make. This program simulates the other MPI. */
#include "check.h"
#include "scr.h"

#include "ops/mpi_check.h"
#include <fcntl.h>

static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "FLUX_JOB_SIZE",        "JSM_NAMESPACE_SIZE",
                                        "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};

static const char *other_version; /* NULL: ours */
static int handles_seen;          /* calls with a communicator */

int MPI_Get_library_version(char *version, int *length)
{
    if (!other_version) return PMPI_Get_library_version(version, length);
    *length = (int)strlen(strcpy(version, other_version));
    return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    handles_seen++;
    return PMPI_Comm_rank(comm, rank);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    handles_seen++;
    return PMPI_Comm_dup(comm, made);
}

/* The output since the last call. */
static const char *printed(int end, char text[4000])
{
    ssize_t n = read(end, text, 3999);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static void set_only(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    if (name) setenv(name, value, 1);
}

static void test_other_mpi(int end)
{
    int flag;
    char text[4000];
    other_version = strcmp(SCR_MPI, "MPICH") == 0
                        ? "Open MPI v9.8.7, package: none"
                        : "MPICH Version:      9.8.7\nMPICH Device: none";
    handles_seen = 0;
    CHECK_INT(SCR_Need_checkpoint(&flag), SCR_ERR_STATE);
    CHECK(strstr(printed(end, text), "[CALL_OUT_OF_ORDER]") != NULL);
    CHECK_INT(SCR_Init(), SCR_FAILURE);
    CHECK(strstr(printed(end, text), "[MPI_DIFFERS]") && strstr(text, "9.8.7") &&
          strstr(text, "built with (" SCR_MPI ")"));
    CHECK_INT(SCR_Need_checkpoint(&flag), SCR_ERR_DISABLED);
    CHECK_INT(SCR_Start_output("a", SCR_FLAG_CHECKPOINT), SCR_ERR_DISABLED);
    CHECK_INT(SCR_Finalize(), SCR_ERR_DISABLED);
    CHECK_STR(printed(end, text), "");
    /* one process prints the message for all */
    set_only("PMI_SIZE", "4");
    setenv("PMI_RANK", "1", 1);
    CHECK_INT(SCR_Init(), SCR_FAILURE);
    CHECK_STR(printed(end, text), "");
    CHECK_INT(handles_seen, 0);
    other_version = NULL;
}

static void expect_alone(int ranks, const char *name, const char *value, int wanted)
{
    kvtree_error err = {""};
    set_only(name, value);
    CHECK_INT(scr_mpi_check_size(ranks, &err) != 0, wanted);
    CHECK(!wanted || strstr(err.text, name));
}

static void test_sizes(void)
{
    kvtree_error err;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        int counts = strcmp(variables[i], "SLURM_NTASKS") != 0;
        expect_alone(1, variables[i], "4", counts);
        expect_alone(1, variables[i], "1", 0);
        expect_alone(1, variables[i], "many", 0);
        expect_alone(2, variables[i], "4", 0);
    }
    expect_alone(1, NULL, NULL, 0);
    CHECK_INT(scr_mpi_launched_rank(), 0);
    /* a launcher of one rank under a launcher of four */
    set_only("SLURM_STEP_NUM_TASKS", "4");
    setenv("PMI_SIZE", "1", 1);
    CHECK_INT(scr_mpi_check_size(1, &err), 0);
}

/* The message of SCR_Init, which succeeds nevertheless. */
static void test_alone(int end, const char *rank, int wanted)
{
    char text[4000];
    set_only("OMPI_COMM_WORLD_SIZE", "4");
    setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    CHECK_INT(SCR_Init(), SCR_SUCCESS);
    CHECK_INT(strstr(printed(end, text), "OMPI_COMM_WORLD_SIZE=4") &&
                  strstr(text, "[MPI_ALONE]"),
              wanted);
    CHECK_INT(SCR_Finalize(), SCR_SUCCESS);
    printed(end, text);
}

int main(int argc, char **argv)
{
    char folder[64];
    int ends[2], before;
    check_begin(&argc, &argv);
    check_folder(folder);
    setenv("SCR_PREFIX", folder, 1);
    setenv("SCR_CNTL_BASE", folder, 1);
    setenv("SCR_CACHE_BASE", folder, 1);
    CHECK((before = dup(STDERR_FILENO)) >= 0 && pipe2(ends, O_NONBLOCK) == 0);
    dup2(ends[1], STDERR_FILENO);
    if (check_ranks == 1) test_other_mpi(ends[0]);
    test_sizes();
    test_alone(ends[0], "0", check_ranks == 1);
    test_alone(ends[0], "3", 0);
    CHECK(handles_seen > 0); /* calls with a communicator are counted */
    dup2(before, STDERR_FILENO);
    if (check_failures) puts("see the checks above, which went to a pipe");
    check_remove(folder);
    return check_end();
}
