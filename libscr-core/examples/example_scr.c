/* SPDX-License-Identifier: BSD-3-Clause */
/* A first SCR program: counts to 10, and continues after an interruption. */
#include <scr.h>
#include <stdio.h>

static int rank, count;

/* Opens this rank's file of a dataset at the path that SCR chooses. */
static FILE *open_file(const char *dataset, const char *mode)
{
    char name[SCR_MAX_FILENAME + 32], path[SCR_MAX_FILENAME];
    snprintf(name, sizeof name, "%s/rank_%d.txt", dataset, rank);
    return SCR_Route_file(name, path) == SCR_SUCCESS ? fopen(path, mode) : NULL;
}

static void checkpoint(void)
{
    char name[SCR_MAX_FILENAME];
    snprintf(name, sizeof name, "ckpt.%d", count);
    SCR_Start_output(name, SCR_FLAG_CHECKPOINT);
    FILE *file = open_file(name, "w");
    int valid = file && fprintf(file, "%d\n", count) > 0;
    if (file && fclose(file) != 0) valid = 0;
    SCR_Complete_output(valid);
}

static int restart(char *name)
{
    SCR_Start_restart(name);
    FILE *file = open_file(name, "r");
    int valid = file && fscanf(file, "%d", &count) == 1;
    if (file) fclose(file);
    return SCR_Complete_restart(valid);
}

int main(int argc, char **argv)
{
    char name[SCR_MAX_FILENAME];
    int have, need, stop = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    SCR_Config("SCR_CHECKPOINT_INTERVAL=3");
    SCR_Init();

    do { /* the newest checkpoint; if it cannot be read, an older one */
        SCR_Have_restart(&have, name);
    } while (have && restart(name) != SCR_SUCCESS);
    if (rank == 0) printf("counting from %d\n", count);

    while (count < 10 && !stop) {
        count++; /* the work */
        SCR_Need_checkpoint(&need);
        if (need) checkpoint();
        SCR_Should_exit(&stop);
    }

    SCR_Finalize();
    MPI_Finalize();
    return 0;
}
