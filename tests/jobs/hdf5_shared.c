/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks write one file by parallel HDF5, or read it and compare every value.
 *
 *     hdf5_shared plain FILE      without SCR
 *     hdf5_shared write DATASET   in a checkpoint that bypasses the cache
 *     hdf5_shared read            that checkpoint
 *
 * The file does not depend on the number of ranks. Rank 0 prints the action. */
#include <hdf5.h>
#include <scr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 240, COLUMNS = 100 };

struct share {
    int rank, first, rows; /* of the matrix */
    double *values;
};

static double value(int row, int column)
{
    return row * 1000.0 + column / 7.0;
}

/* Transfers this rank's part of the matrix between file and memory; 1 on success. */
static int transfer(const struct share *s, hid_t data, int writing)
{
    const hsize_t start[] = {(hsize_t)s->first, 0}, count[] = {(hsize_t)s->rows, COLUMNS};
    hid_t all = H5Pcreate(H5P_DATASET_XFER), memory = H5Screate_simple(2, count, NULL),
          file = H5Dget_space(data);
    int ok = H5Pset_dxpl_mpio(all, H5FD_MPIO_COLLECTIVE) >= 0 &&
             H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0;
    herr_t done = writing
                      ? H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, file, all, s->values)
                      : H5Dread(data, H5T_NATIVE_DOUBLE, memory, file, all, s->values);
    H5Sclose(file);
    H5Sclose(memory);
    H5Pclose(all);
    return ok && done >= 0;
}

/* Opens the file collectively; writing creates it, without the times that HDF5 would
 * add. */
static int use_file(const struct share *s, const char *path, int writing)
{
    const hsize_t size[] = {ROWS, COLUMNS};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), plain = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_obj_track_times(plain, 0);
    hid_t file = writing ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                         : H5Fopen(path, H5F_ACC_RDONLY, access);
    hid_t space = H5Screate_simple(2, size, NULL);
    hid_t data = file < 0  ? -1
                 : writing ? H5Dcreate2(file, "matrix", H5T_IEEE_F64LE, space,
                                        H5P_DEFAULT, plain, H5P_DEFAULT)
                           : H5Dopen2(file, "matrix", H5P_DEFAULT);
    int ok = data >= 0 && transfer(s, data, writing);
    if (data >= 0) ok &= H5Dclose(data) >= 0;
    H5Sclose(space);
    H5Pclose(plain);
    H5Pclose(access);
    if (file >= 0) ok &= H5Fclose(file) >= 0;
    return ok;
}

static int write_file(const struct share *s, const char *path)
{
    for (int i = 0; i < s->rows * COLUMNS; i++)
        s->values[i] = value(s->first + i / COLUMNS, i % COLUMNS);
    return use_file(s, path, 1);
}

static int read_file(const struct share *s, const char *path)
{
    int ok = use_file(s, path, 0);
    for (int i = 0; i < s->rows * COLUMNS && ok; i++)
        ok = s->values[i] == value(s->first + i / COLUMNS, i % COLUMNS);
    return ok;
}

static int checkpoint(const struct share *s, const char *dataset)
{
    char name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    snprintf(name, sizeof name, "%s/state.h5", dataset);
    if (SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT | SCR_FLAG_BYPASS) != SCR_SUCCESS)
        return 0;
    int ok = SCR_Route_file(name, path) == SCR_SUCCESS && write_file(s, path);
    return SCR_Complete_output(ok) == SCR_SUCCESS;
}

static int restart(const struct share *s)
{
    int have;
    char path[SCR_MAX_FILENAME];
    SCR_Have_restart(&have, NULL);
    if (!have || SCR_Start_restart(NULL) != SCR_SUCCESS) return 0;
    int ok = SCR_Route_file("state.h5", path) == SCR_SUCCESS && read_file(s, path);
    return SCR_Complete_restart(ok) == SCR_SUCCESS;
}

int main(int argc, char **argv)
{
    struct share s;
    int ranks, ok = 0;
    MPI_Init(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "", *name = argc > 2 ? argv[2] : "";
    const int plain = strcmp(what, "plain") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    s.first = ROWS * s.rank / ranks;
    s.rows = ROWS * (s.rank + 1) / ranks - s.first;
    s.values = calloc((size_t)s.rows * COLUMNS + 1, sizeof *s.values);
    if (!s.values) MPI_Abort(MPI_COMM_WORLD, 1);
    if (!plain) SCR_Init();
    if (plain) ok = write_file(&s, name);
    if (strcmp(what, "write") == 0) ok = checkpoint(&s, name);
    if (strcmp(what, "read") == 0) ok = restart(&s);
    if (!plain) SCR_Finalize();
    free(s.values);
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (s.rank == 0) printf("%s by %d ranks: %s\n", what, ranks, ok ? "done" : "failed");
    MPI_Finalize();
    return !ok;
}
