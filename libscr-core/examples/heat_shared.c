/* SPDX-License-Identifier: BSD-3-Clause */
/* heat_shared: a program whose ranks write one checkpoint file together.
 *
 *     mpiexec -n 8 ./heat_shared [-n points per side] [-t steps]
 *         [-c steps per checkpoint] [-o file]
 *
 * It computes like heat_elastic.c, and restarts with any number of ranks. A checkpoint is
 * one file with the step and all rows of the plate; its content does not depend on the
 * ranks. Each rank writes its rows at their offset in the file, and reads the rows that
 * it needs. In the cache the file is stored in parts, which are as fast and as safe as a
 * file per rank; on the prefix directory it is one file. Code that concerns SCR is marked
 * "SCR:". */
#define HEAT_SHARED
struct plate;
static int checkpoint(const struct plate *p, int step);
static int read_state(struct plate *p, const char *dataset, int *step);
#include "heat_elastic.c"
#include <fcntl.h>

/* Returns the offset of the rows of this rank in the file, after the step. */
static uint64_t rows_offset(const struct plate *p)
{
    return sizeof(int) + (uint64_t)p->first * (uint64_t)(p->side + 2) * sizeof(double);
}

static uint64_t rows_length(const struct plate *p)
{
    return (uint64_t)p->rows * (uint64_t)(p->side + 2) * sizeof(double);
}

/* Opens the file that has these bytes at *at. */
static int open_part(const char *name, uint64_t offset, uint64_t length, int flags,
                     uint64_t *at)
{
    char path[SCR_MAX_FILENAME];
    /* SCR: where must these bytes be written, or where are they? Other ranks may write to
     * the same file, so it is not truncated. */
    if (SCR_Route_file_part(name, offset, length, path, at) != SCR_SUCCESS) return -1;
    return open(path, flags, 0666);
}

/* Returns 1 on success. */
static int write_part(const char *name, uint64_t offset, uint64_t length,
                      const void *bytes)
{
    uint64_t at;
    int fd = open_part(name, offset, length, O_WRONLY | O_CREAT, &at);
    if (fd < 0) return 0;
    int ok = pwrite(fd, bytes, length, (off_t)at) == (ssize_t)length;
    return close(fd) == 0 && ok;
}

static int read_part(const char *name, uint64_t offset, uint64_t length, void *bytes)
{
    uint64_t at;
    int fd = open_part(name, offset, length, O_RDONLY, &at);
    if (fd < 0) return 0;
    int ok = pread(fd, bytes, length, (off_t)at) == (ssize_t)length;
    close(fd);
    return ok;
}

static int checkpoint(const struct plate *p, int step)
{
    char dataset[64], name[128];
    snprintf(dataset, sizeof dataset, "ckpt.%d", step);
    snprintf(name, sizeof name, "%s/plate", dataset);
    if (SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) return 0;
    int ok = write_part(name, rows_offset(p), rows_length(p), row(p, p->now, 1));
    if (p->rank == 0) ok &= write_part(name, 0, sizeof step, &step);
    return SCR_Complete_output(ok) == SCR_SUCCESS;
}

static int read_state(struct plate *p, const char *dataset, int *step)
{
    char name[SCR_MAX_FILENAME + 8];
    snprintf(name, sizeof name, "%s/plate", dataset);
    const char *const names[] = {name, name};
    const uint64_t offsets[] = {0, rows_offset(p)},
                   lengths[] = {sizeof *step, rows_length(p)};
    /* SCR: fetch the bytes that this rank needs, whichever rank wrote them; all ranks
     * call this. */
    return SCR_Fetch_file_parts(2, names, offsets, lengths) == SCR_SUCCESS &&
           read_part(name, offsets[0], lengths[0], step) &&
           read_part(name, offsets[1], lengths[1], row(p, p->now, 1));
}
