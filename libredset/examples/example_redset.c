/* SPDX-License-Identifier: BSD-3-Clause */
/* Every rank protects a file; one rank loses all it has, and gets it back. */
#include <redset/redset_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char folder[] = "/tmp/example-redset-XXXXXX", node[32];
    redset_error err = {""};
    redset *set = NULL, *found = NULL;
    redset_manifest *manifest = NULL;
    int rank, rebuilt = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    /* each rank plays a node with storage of its own, and writes a file there */
    if (!mkdtemp(folder) || chdir(folder) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    snprintf(node, sizeof node, "node%d", rank);
    FILE *out = fopen("ckpt", "w");
    fprintf(out, "state of rank %d\n", rank);
    fclose(out);

    redset_config config = {.scheme = REDSET_XOR, .set_size = 4, .failure_group = node};
    redset_file files[] = {{.name = "ckpt"}};
    char name[REDSET_NAME_SIZE] = "";
    int rc = redset_create(MPI_COMM_WORLD, &config, &set, &err);
    if (!rc) rc = redset_encode(set, folder, NULL, 1, files, &err);
    if (!rc) rc = redset_file_name(redset_get_place(set), name);
    redset_free(set);

    if (rank == 1) remove("ckpt"), remove(name); /* node 1 is replaced by a new one */
    if (!rc)
        rc =
            redset_recover(MPI_COMM_WORLD, folder, rank == 1 ? NULL : name, &found, &err);
    if (!rc) rc = redset_rebuild(found, folder, &manifest, &rebuilt, &err);
    if (rc && rank == 0) fprintf(stderr, "%s\n", err.text);
    if (rebuilt) printf("rank %d got %s back\n", rank, manifest->files[0].name);

    redset_manifest_free(manifest);
    redset_free(found);
    remove("ckpt"), remove(name), rmdir(folder);
    MPI_Finalize();
    return rc != 0;
}
