/* SPDX-License-Identifier: BSD-3-Clause */
#include <scr.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank;
    char name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "hello/rank_%d.txt", rank);

    SCR_Init();
    SCR_Start_output("hello", SCR_FLAG_OUTPUT);
    SCR_Route_file(name, path);
    FILE *file = fopen(path, "w");
    int valid =
        file && fprintf(file, "hello from rank %d\n", rank) > 0 && fclose(file) == 0;
    int saved = SCR_Complete_output(valid);
    SCR_Finalize();

    MPI_Finalize();
    return saved != SCR_SUCCESS;
}
