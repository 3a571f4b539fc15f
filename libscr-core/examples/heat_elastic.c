/* SPDX-License-Identifier: BSD-3-Clause */
/* heat_elastic: a program that restarts with any number of ranks.
 *
 *     mpiexec -n 8 ./heat_elastic [-n points per side] [-t steps]
 *         [-c steps per checkpoint] [-o file]
 *
 * It computes the same as heat.c, to the last bit, but each rank owns some rows of the
 * plate. When the program is started again with more or fewer ranks, each rank reads its
 * rows from the files of the ranks that had them. All code that concerns SCR is marked
 * "SCR:". Explanations of heat.c are not repeated. */
#include <mpi.h>
#include <scr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plate {
    MPI_Comm comm;
    int rank, ranks, side; /* points per side of the whole plate */
    int first, rows;       /* the rows of this rank */
    double *now, *next;    /* (rows + 2) x (side + 2) points */
};

/* Returns a row with its border points; row 0 is above the first row of this rank. */
static double *row(const struct plate *p, double *field, int i)
{
    return field + (size_t)i * (size_t)(p->side + 2);
}

/* Computes the rows of a rank in a run with that number of ranks. */
static void share(int side, int ranks, int rank, int *first, int *rows)
{
    *first = (int)((long)side * rank / ranks);
    *rows = (int)((long)side * (rank + 1) / ranks) - *first;
}

static void plate_init(struct plate *p, MPI_Comm comm, int side)
{
    p->comm = comm;
    MPI_Comm_rank(comm, &p->rank);
    MPI_Comm_size(comm, &p->ranks);
    p->side = side;
    share(side, p->ranks, p->rank, &p->first, &p->rows);
    size_t points = (size_t)(p->rows + 2) * (size_t)(side + 2);
    p->now = calloc(points, sizeof *p->now);
    p->next = calloc(points, sizeof *p->next);
    if (!p->now || !p->next) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int j = 0; p->rank == 0 && j < side + 2; j++)
        p->now[j] = p->next[j] = 100.0; /* the northern edge is kept hot */
}

static void plate_done(struct plate *p)
{
    free(p->now);
    free(p->next);
}

static void plate_step(struct plate *p)
{
    const int north = p->rank ? p->rank - 1 : MPI_PROC_NULL,
              south = p->rank + 1 < p->ranks ? p->rank + 1 : MPI_PROC_NULL,
              points = p->side + 2;
    double *f = p->now;
    MPI_Sendrecv(row(p, f, 1), points, MPI_DOUBLE, north, 0, row(p, f, p->rows + 1),
                 points, MPI_DOUBLE, south, 0, p->comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(row(p, f, p->rows), points, MPI_DOUBLE, south, 0, row(p, f, 0), points,
                 MPI_DOUBLE, north, 0, p->comm, MPI_STATUS_IGNORE);
    for (int i = 1; i <= p->rows; i++) {
        const double *above = row(p, f, i - 1), *here = row(p, f, i),
                     *below = row(p, f, i + 1);
        double *to = row(p, p->next, i);
        for (int j = 1; j <= p->side; j++)
            to[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1]);
    }
    p->now = p->next;
    p->next = f;
}

/* Each rank writes its rows into one file. */
static int plate_save(const struct plate *p, const char *path)
{
    MPI_File file;
    int ok = MPI_File_open(p->comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY,
                           MPI_INFO_NULL, &file) == MPI_SUCCESS;
    if (!ok) return 0;
    for (int i = 0; i < p->rows; i++) {
        const MPI_Offset at = (MPI_Offset)(p->first + i) * p->side;
        ok &= MPI_File_write_at(file, at * (MPI_Offset)sizeof(double),
                                row(p, p->now, i + 1) + 1, p->side, MPI_DOUBLE,
                                MPI_STATUS_IGNORE) == MPI_SUCCESS;
    }
    return MPI_File_close(&file) == MPI_SUCCESS && ok;
}

/* ---- checkpoint and restart ---- */

#ifndef HEAT_SHARED
/* Writes a checkpoint. Each file has the step and the rows of one rank. */
static int checkpoint(const struct plate *p, int step)
{
    char dataset[64], name[128], path[SCR_MAX_FILENAME];
    snprintf(dataset, sizeof dataset, "ckpt.%d", step);
    snprintf(name, sizeof name, "%s/rows_%d", dataset, p->rank);
    if (SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) return 0;
    const size_t points = (size_t)p->rows * (size_t)(p->side + 2);
    FILE *file = SCR_Route_file(name, path) == SCR_SUCCESS ? fopen(path, "wb") : NULL;
    int ok = file && fwrite(&step, sizeof step, 1, file) == 1 &&
             fwrite(row(p, p->now, 1), sizeof(double), points, file) == points;
    if (file && fclose(file) != 0) ok = 0;
    return SCR_Complete_output(ok) == SCR_SUCCESS;
}

/* Reads the rows of this rank that the rank `writer` of `writers` had. Returns 1 on
 * success. */
static int read_rows(struct plate *p, const char *name, int writer, int writers,
                     int *step)
{
    char path[SCR_MAX_FILENAME];
    int first, rows;
    share(p->side, writers, writer, &first, &rows);
    const int from = first > p->first ? first : p->first,
              to = first + rows < p->first + p->rows ? first + rows : p->first + p->rows;
    const size_t width = (size_t)(p->side + 2), points = (size_t)(to - from) * width;
    const long skip =
        (long)(sizeof *step + (size_t)(from - first) * width * sizeof(double));
    FILE *file = SCR_Route_file(name, path) == SCR_SUCCESS ? fopen(path, "rb") : NULL;
    int ok = file && fread(step, sizeof *step, 1, file) == 1 &&
             fseek(file, skip, SEEK_SET) == 0 &&
             fread(row(p, p->now, from - p->first + 1), sizeof(double), points, file) ==
                 points;
    if (file) fclose(file);
    return ok;
}

/* Reads the rows of this rank from the files of the ranks that had them. */
static int read_state(struct plate *p, const char *dataset, int *step)
{
    int writers = 0, count = 0, ok = 1;
    /* SCR: how many ranks wrote the checkpoint? ... */
    if (SCR_Dataset_ranks(&writers) != SCR_SUCCESS) return 0;
    char(*names)[SCR_MAX_FILENAME] = calloc((size_t)writers, sizeof *names);
    const char **wanted = calloc((size_t)writers, sizeof *wanted);
    int *writer = calloc((size_t)writers, sizeof *writer);
    if (!names || !wanted || !writer) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int w = 0; w < writers; w++) {
        int first, rows;
        share(p->side, writers, w, &first, &rows);
        if (first >= p->first + p->rows || first + rows <= p->first) continue;
        /* SCR: ... which file did this rank write? ... */
        ok &= SCR_Dataset_file(w, 0, names[count], NULL) == SCR_SUCCESS;
        wanted[count] = names[count];
        writer[count++] = w;
    }
    /* SCR: ... Fetch the files that this rank needs to its node; all ranks call this. */
    ok &= SCR_Fetch_files(count, wanted) == SCR_SUCCESS;
    for (int i = 0; ok && i < count; i++)
        ok = read_rows(p, names[i], writer[i], writers, step);
    free(names);
    free(wanted);
    free(writer);
    if (!ok) fprintf(stderr, "heat: rank %d cannot read %s\n", p->rank, dataset);
    return ok;
}
#endif

/* Returns the step to continue from: that of the newest checkpoint that can be read, or
 * 0. */
static int restart(struct plate *p)
{
    for (;;) {
        int have = 0, step = 0;
        char dataset[SCR_MAX_FILENAME];
        SCR_Have_restart(&have, dataset);
        if (!have) return 0;
        SCR_Start_restart(dataset);
        int valid = read_state(p, dataset, &step);
        if (SCR_Complete_restart(valid) == SCR_SUCCESS) {
            /* a rank without rows has read nothing */
            MPI_Allreduce(MPI_IN_PLACE, &step, 1, MPI_INT, MPI_MAX, p->comm);
            if (p->rank == 0)
                printf("heat: restarted from %s, at step %d\n", dataset, step);
            return step;
        }
        plate_done(p); /* discard the data that was read */
        plate_init(p, p->comm, p->side);
    }
}

/* Computes until the step `until`, or until SCR requests the end of the run. */
static int advance(struct plate *p, int step, int until, int *stop)
{
    while (step < until && !*stop) {
        plate_step(p);
        step++;
        int need = 0;
        SCR_Need_checkpoint(&need);
        if (need) {
            int ok = checkpoint(p, step);
            if (p->rank == 0)
                printf("heat: step %d: checkpoint %s\n", step, ok ? "done" : "failed");
            SCR_Should_exit(stop);
        }
        fflush(stdout);
    }
    return step;
}

#ifndef HEAT_SURVIVOR
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
    SCR_Configf("SCR_CHECKPOINT_INTERVAL=%d", every);
    /* SCR: accept checkpoints of any number of ranks. */
    SCR_Config("SCR_RESTART_RANKS=any");
    SCR_Init();
    plate_init(&plate, MPI_COMM_WORLD, side);
    int step = restart(&plate);
    step = advance(&plate, step, steps, &stop);
    if (result && step >= steps) written = plate_save(&plate, result);
    if (plate.rank == 0) printf("heat: at step %d\n", step);
    plate_done(&plate);
    SCR_Finalize();
    MPI_Finalize();
    return written ? 0 : 1;
}
#endif
