/* SPDX-License-Identifier: BSD-3-Clause */
/* heat: how an MPI program uses SCR, by the example of heat diffusion in a square plate.
 *
 *     mpiexec -n 8 ./heat [-n points per side] [-t time steps]
 *         [-c steps per checkpoint] [-o file]
 *
 * Each rank owns a block of the plate and a border of one point around it, which it
 * receives from its neighbors before each step (Jacobi's method). All code that concerns
 * SCR is marked "SCR:" - there are seven places. When the program is started again after
 * a failure, it continues from its newest checkpoint, and its result is the same to the
 * last bit. */
#include <mpi.h>
#include <scr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct plate {
    MPI_Comm grid;
    int rank, side;             /* points per side of the whole plate */
    int dims[2], at[2];         /* ranks per direction; position of this rank */
    int rows, cols, row0, col0; /* the block of this rank: its size, its first point */
    int north, south, west, east;
    double *now, *next; /* (rows + 2) x (cols + 2) points */
    MPI_Datatype column;
};

#define POINT(field, i, j) ((field)[(size_t)(i) * (size_t)(p->cols + 2) + (size_t)(j)])

/* ---- the simulation, without SCR ---- */

static void share(int points, int parts, int which, int *first, int *count)
{
    *first = (int)((long)points * which / parts);
    *count = (int)((long)points * (which + 1) / parts) - *first;
}

static void plate_init(struct plate *p, int side)
{
    int ranks, periods[2] = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memset(p, 0, sizeof *p);
    p->side = side;
    MPI_Dims_create(ranks, 2, p->dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, p->dims, periods, 0, &p->grid);
    MPI_Comm_rank(p->grid, &p->rank);
    MPI_Cart_coords(p->grid, p->rank, 2, p->at);
    MPI_Cart_shift(p->grid, 0, 1, &p->north, &p->south);
    MPI_Cart_shift(p->grid, 1, 1, &p->west, &p->east);
    share(side, p->dims[0], p->at[0], &p->row0, &p->rows);
    share(side, p->dims[1], p->at[1], &p->col0, &p->cols);
    size_t points = (size_t)(p->rows + 2) * (size_t)(p->cols + 2);
    p->now = calloc(points, sizeof *p->now);
    p->next = calloc(points, sizeof *p->next);
    if (!p->now || !p->next) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Type_vector(p->rows, 1, p->cols + 2, MPI_DOUBLE, &p->column);
    MPI_Type_commit(&p->column);
    if (p->at[0] == 0) /* the northern edge is kept hot */
        for (int j = 0; j < p->cols + 2; j++)
            POINT(p->now, 0, j) = POINT(p->next, 0, j) = 100.0;
}

static void plate_done(struct plate *p)
{
    free(p->now);
    free(p->next);
    MPI_Type_free(&p->column);
    MPI_Comm_free(&p->grid);
}

static void plate_step(struct plate *p)
{
    MPI_Status *ignore = MPI_STATUS_IGNORE;
    double *f = p->now;
    MPI_Sendrecv(&POINT(f, 1, 1), p->cols, MPI_DOUBLE, p->north, 0,
                 &POINT(f, p->rows + 1, 1), p->cols, MPI_DOUBLE, p->south, 0, p->grid,
                 ignore);
    MPI_Sendrecv(&POINT(f, p->rows, 1), p->cols, MPI_DOUBLE, p->south, 0, &POINT(f, 0, 1),
                 p->cols, MPI_DOUBLE, p->north, 0, p->grid, ignore);
    MPI_Sendrecv(&POINT(f, 1, 1), 1, p->column, p->west, 0, &POINT(f, 1, p->cols + 1), 1,
                 p->column, p->east, 0, p->grid, ignore);
    MPI_Sendrecv(&POINT(f, 1, p->cols), 1, p->column, p->east, 0, &POINT(f, 1, 0), 1,
                 p->column, p->west, 0, p->grid, ignore);
    for (int i = 1; i <= p->rows; i++)
        for (int j = 1; j <= p->cols; j++)
            POINT(p->next, i, j) = 0.25 * (POINT(f, i - 1, j) + POINT(f, i + 1, j) +
                                           POINT(f, i, j - 1) + POINT(f, i, j + 1));
    p->now = p->next;
    p->next = f;
}

/* Writes the plate into one file; all ranks take part. */
static int plate_save(const struct plate *p, const char *path)
{
    MPI_File file;
    MPI_Datatype part, block;
    int whole[2] = {p->side, p->side}, mine[2] = {p->rows, p->cols},
        start[2] = {p->row0, p->col0};
    int padded[2] = {p->rows + 2, p->cols + 2}, one[2] = {1, 1};
    MPI_Type_create_subarray(2, whole, mine, start, MPI_ORDER_C, MPI_DOUBLE, &part);
    MPI_Type_create_subarray(2, padded, mine, one, MPI_ORDER_C, MPI_DOUBLE, &block);
    MPI_Type_commit(&part);
    MPI_Type_commit(&block);
    int rc = MPI_File_open(p->grid, path, MPI_MODE_CREATE | MPI_MODE_WRONLY,
                           MPI_INFO_NULL, &file);
    if (rc == MPI_SUCCESS) {
        MPI_File_set_view(file, 0, MPI_DOUBLE, part, "native", MPI_INFO_NULL);
        rc = MPI_File_write_all(file, p->now, 1, block, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
    MPI_Type_free(&part);
    MPI_Type_free(&block);
    return rc == MPI_SUCCESS;
}

/* Writes (reads) the step and the block to (from) one file per rank. Returns 1 on
 * success. */
static int transfer_state(const char *path, const char *mode, struct plate *p, int *step)
{
    size_t points = (size_t)(p->rows + 2) * (size_t)(p->cols + 2);
    int writing = mode[0] == 'w';
    FILE *file = fopen(path, mode);
    if (!file) return 0;
    int ok = writing ? fwrite(step, sizeof *step, 1, file) == 1 &&
                           fwrite(p->now, sizeof *p->now, points, file) == points
                     : fread(step, sizeof *step, 1, file) == 1 &&
                           fread(p->now, sizeof *p->now, points, file) == points;
    return fclose(file) == 0 && ok;
}

/* ---- checkpoint and restart ---- */

static int checkpoint(struct plate *p, int step)
{
    char dataset[64], name[128], path[SCR_MAX_FILENAME];
    snprintf(dataset, sizeof dataset, "ckpt.%d", step);
    /* SCR: open a dataset, ... */
    if (SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) return 0;
    /* SCR: ... ask where to write the file "ckpt.<step>/rank_<rank>", ... */
    snprintf(name, sizeof name, "%s/rank_%d", dataset, p->rank);
    int valid =
        SCR_Route_file(name, path) == SCR_SUCCESS && transfer_state(path, "wb", p, &step);
    /* SCR: ... and report success. The checkpoint is safe when all ranks get
     * SCR_SUCCESS. */
    return SCR_Complete_output(valid) == SCR_SUCCESS;
}

/* Returns the step to continue from: that of the newest checkpoint that can be read, or
 * 0. */
static int restart(struct plate *p)
{
    for (;;) {
        int have = 0, step = 0;
        char dataset[SCR_MAX_FILENAME], name[SCR_MAX_FILENAME + 32],
            path[SCR_MAX_FILENAME];
        /* SCR: is there a checkpoint? If one cannot be read, SCR offers older ones. */
        SCR_Have_restart(&have, dataset);
        if (!have) return 0;
        SCR_Start_restart(dataset);
        snprintf(name, sizeof name, "%s/rank_%d", dataset, p->rank);
        int valid = SCR_Route_file(name, path) == SCR_SUCCESS &&
                    transfer_state(path, "rb", p, &step);
        if (SCR_Complete_restart(valid) == SCR_SUCCESS) {
            if (p->rank == 0)
                printf("heat: restarted from %s, at step %d\n", dataset, step);
            return step;
        }
        plate_done(p); /* discard the data that was read */
        plate_init(p, p->side);
    }
}

int main(int argc, char **argv)
{
    struct plate plate;
    int side = 1024, steps = 200, every = 20, option, stop = 0, written = 1;
    const char *result = NULL;
    MPI_Init(&argc, &argv);
    while ((option = getopt(argc, argv, "n:t:c:o:")) != -1) {
        if (option == 'n') side = atoi(optarg);
        if (option == 't') steps = atoi(optarg);
        if (option == 'c') every = atoi(optarg);
        if (option == 'o') result = optarg;
    }
    /* SCR: SCR_Need_checkpoint below sets the flag at every "every"-th call. Then
     * begin. */
    SCR_Configf("SCR_CHECKPOINT_INTERVAL=%d", every);
    SCR_Init();
    plate_init(&plate, side);
    double start = MPI_Wtime();
    int step = restart(&plate);
    while (step < steps && !stop) {
        plate_step(&plate);
        step++;
        int need = 0;
        /* SCR: time for a checkpoint? Should the run end early? */
        SCR_Need_checkpoint(&need);
        if (need) {
            int ok = checkpoint(&plate, step);
            if (plate.rank == 0)
                printf("heat: step %d: checkpoint %s\n", step, ok ? "done" : "failed");
            SCR_Should_exit(&stop);
        }
        fflush(stdout);
    }
    if (result && step >= steps) written = plate_save(&plate, result);
    if (plate.rank == 0)
        printf("heat: at step %d after %.3f s\n", step, MPI_Wtime() - start);
    plate_done(&plate);
    /* SCR: end. Copies the newest checkpoint to the prefix directory if it is not there
     * yet. */
    SCR_Finalize();
    MPI_Finalize();
    return written ? 0 : 1;
}
