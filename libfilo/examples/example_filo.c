/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rank writes a file of its own; all are flushed to a shared directory and fetched
 * back from there. */
#include <filo/filo_mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char local[64], name[64];
    filo_error err = {""};
    int rank, ranks, count = 0;
    filo_file *found = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    snprintf(local, sizeof local, "cache.rank_%d", rank);
    snprintf(name, sizeof name, "out/rank_%d.ckpt", rank);
    filo_file file = {.local = local, .name = name};
    FILE *f = fopen(local, "w");
    file.size = f ? (uint64_t)fprintf(f, "state of rank %d\n", rank) : 0;
    if (f) fclose(f);

    filo_options options = {.checksum = 1};
    const char *folder = argc > 1 ? argv[1] : "filo-example";
    int rc = filo_flush(MPI_COMM_WORLD, folder, NULL, 1, &file, &options, &err);
    if (rc == 0) {
        remove(local);
        rc = filo_read_map(MPI_COMM_WORLD, folder, NULL, &ranks, &count, &found, &options,
                           &err);
    }
    if (rc == 0) {
        found[0].local = strdup(local);
        rc = filo_fetch(MPI_COMM_WORLD, folder, count, found, &options, &err);
    }
    if (rank == 0 && rc == 0) printf("%d ranks have their files back\n", ranks);
    if (rank == 0 && rc != 0) fprintf(stderr, "example_filo: %s\n", err.text);
    filo_files_free(count, found);
    remove(local);
    MPI_Finalize();
    return rc != 0;
}
