/* SPDX-License-Identifier: BSD-3-Clause */
/* A run in which MPI fails to create the first, second, ... communicator on one rank:
 * every call returns the same on all ranks, no rank blocks, and the next run succeeds.
 * Each run restarts, writes a checkpoint, and flushes it into containers of nodes. */
#include "check.h"
#include "scr.h"

static char folder[64];

/* ---- between SCR and MPI ---- */

static int left; /* number of the communicator, from now on, that fails; 0: none */

/* Other ranks wait for this one, so the MPI call is executed first. */
static int result(int rc, MPI_Comm *made)
{
    if (rc != MPI_SUCCESS || left == 0 || --left > 0) return rc;
    if (*made != MPI_COMM_NULL) PMPI_Comm_free(made);
    return MPI_ERR_INTERN;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    return result(PMPI_Comm_dup(comm, made), made);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    return result(PMPI_Comm_split(comm, color, key, made), made);
}

/* ---- a run ---- */

/* The same code on all ranks. */
static int agreed(int rc)
{
    int first = rc;
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK_INT(rc, first);
    return rc;
}

static int write_file(const char *dataset)
{
    char name[2 * SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    snprintf(name, sizeof name, "%s/%s/rank_%d", folder, dataset, check_rank);
    if (SCR_Route_file(name, path) != SCR_SUCCESS) return 0;
    FILE *file = fopen(path, "w");
    return file && fputs(dataset, file) >= 0 && fclose(file) == 0;
}

/* Returns how many calls failed. */
static int run(int number)
{
    char dataset[32], offered[SCR_MAX_FILENAME];
    int flag = 0, failed = 0;
    if (agreed(SCR_Init()) != SCR_SUCCESS) return 1;
    failed += agreed(SCR_Have_restart(&flag, offered)) != SCR_SUCCESS;
    if (flag) {
        failed += agreed(SCR_Start_restart(offered)) != SCR_SUCCESS;
        failed += agreed(SCR_Complete_restart(1)) != SCR_SUCCESS;
    }
    snprintf(dataset, sizeof dataset, "ckpt.%d", number);
    failed += agreed(SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT)) != SCR_SUCCESS;
    const int valid = write_file(dataset);
    failed += agreed(SCR_Complete_output(valid)) != SCR_SUCCESS;
    failed += agreed(SCR_Finalize()) != SCR_SUCCESS;
    return failed;
}

/* Runs with a failure of the n-th communicator of rank one. Returns whether there was an
 * n-th one. */
static int run_without(int one, int n, int number)
{
    left = check_rank == one ? n : 0;
    int fired = left;
    int failed = run(number);
    fired = fired && !left;
    left = 0;
    MPI_Allreduce(MPI_IN_PLACE, &fired, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (!fired) CHECK_INT(failed, 0);
    return fired;
}

static void set(const char *name, const char *below)
{
    char path[128];
    snprintf(path, sizeof path, "%s%s", folder, below);
    setenv(name, path, 1);
}

/* Two nodes, which form a group, share a store. */
static void configure(void)
{
    char node[32], path[128];
    snprintf(node, sizeof node, "n%d", check_rank % 2);
    setenv("SCR_NODE_NAME", node, 1);
    setenv("SCR_JOB_ID", "split", 1);
    setenv("SCR_FLUSH", "1", 1);
    setenv("SCR_FLUSH_FORM", "containers", 1);
    setenv("SCR_COPY_TYPE", "FILE", 1);
    set("SCR_PREFIX", "");
    set("SCR_CNTL_BASE", "/control");
    set("SCR_CONF_FILE", "/conf");
    snprintf(path, sizeof path, "%s/conf", folder);
    if (check_rank == 0) {
        FILE *file = fopen(path, "w");
        CHECK(file &&
              fprintf(file,
                      "GROUPS=n0 RACK=r0\nGROUPS=n1 RACK=r0\n"
                      "STORE=%s/cache GROUP=RACK\n"
                      "CKPT=0 INTERVAL=1 GROUP=NODE STORE=%s/cache TYPE=XOR SET_SIZE=2\n",
                      folder, folder) > 0 &&
              fclose(file) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int number = 0, most = 0;
    check_begin(&argc, &argv);
    check_folder(folder);
    configure();
    for (int one = 0; one < check_ranks; one += check_ranks - 1) {
        CHECK_INT(run(number++), 0);
        for (int n = 1; run_without(one, n, number++); n++) {
            most = n;
            CHECK_INT(run(number++), 0);
        }
    }
    if (check_rank == 0) printf("%d communicators in a run\n", most);
    CHECK(most > 10);
    check_remove(folder);
    return check_end();
}
