/* SPDX-License-Identifier: BSD-3-Clause */
/* A run in which one rank lacks memory, at any allocation from SCR_Init to SCR_Finalize:
 * every call returns the same on all ranks, the right checkpoint is offered for a
 * restart, nothing is leaked, and the next run is not affected. Each run restarts, writes
 * a checkpoint, and flushes it. */
#include "nth_each_mpi.h"
#include "scr.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char folder[64];
static int exhausted; /* messages that a call failed for lack of memory */

/* Common state of the runs of one variant. */
struct way {
    int newest;     /* newest checkpoint that all ranks know to be complete */
    int route_only; /* memory is short only within SCR_Route_file of a restart */
    int any_ranks;  /* each run restarts from a checkpoint that only rank 0 has written */
    int shared;     /* ranks also write a file together, and read all of it */
};

/* The same code on all ranks. */
static int agreed(int rc)
{
    int held = nth_hold(), first = rc;
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK_INT(rc, first);
    countdown = held;
    return rc;
}

/* Opens the file of this rank in the dataset at the path from SCR; -1: SCR lacks
 * memory. */
static int open_file(const char *dataset, int flags)
{
    char name[2 * SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    snprintf(name, sizeof name, "%s/prefix/%s/rank_%d", folder, dataset, check_rank);
    return SCR_Route_file(name, path) == SCR_SUCCESS ? open(path, flags, 0600) : -1;
}

/* ---- a file of all ranks ---- */

static int use_shared; /* copy of shared in struct way */

enum { PART = 100 }; /* bytes of each rank: the name, and zeros */

static void shared_name(const char *dataset, char name[2 * SCR_MAX_FILENAME])
{
    snprintf(name, 2 * SCR_MAX_FILENAME, "%s/prefix/%s/all", folder, dataset);
}

static int write_part(const char *dataset)
{
    char name[2 * SCR_MAX_FILENAME], path[SCR_MAX_FILENAME], text[PART] = "";
    uint64_t at = 0, from = (uint64_t)(PART * check_rank);
    if (!use_shared) return 1;
    shared_name(dataset, name);
    strcpy(text, dataset);
    if (SCR_Route_file_part(name, from, PART, path, &at) != SCR_SUCCESS) return 0;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    int good = fd >= 0 && pwrite(fd, text, PART, (off_t)at) == PART;
    if (fd >= 0) close(fd);
    return good;
}

/* Reads the part of this rank, and the whole file. */
static int read_parts(const char *dataset)
{
    char name[2 * SCR_MAX_FILENAME], path[SCR_MAX_FILENAME], text[PART] = "";
    const char *const names[] = {name};
    uint64_t at = 0, from = (uint64_t)(PART * check_rank), none = 0,
             all = (uint64_t)(PART * check_ranks);
    if (!use_shared) return 1;
    shared_name(dataset, name);
    if (agreed(SCR_Fetch_file_parts(1, names, &none, &all)) != SCR_SUCCESS) return 0;
    for (int whole = 0; whole < 2; whole++) {
        uint64_t offset = whole ? 0 : from, length = whole ? all : PART;
        if (SCR_Route_file_part(name, offset, length, path, &at) != SCR_SUCCESS) return 0;
        int fd = open(path, O_RDONLY);
        int good =
            fd >= 0 && pread(fd, text, PART, (off_t)(at + (whole ? from : 0))) == PART;
        if (fd >= 0) close(fd);
        if (!good) return 0;
        CHECK_STR(text, dataset);
    }
    return 1;
}

/* *held: allocations until one fails, counted only within SCR_Route_file; 0: counted
 * everywhere. */
static int restart(int *number, int *held)
{
    char name[SCR_MAX_FILENAME] = "", text[32] = "";
    int have = 0, rc = agreed(SCR_Have_restart(&have, name));
    if (rc || !have) return rc;
    rc = agreed(SCR_Start_restart(name));
    if (rc) return rc;
    if (*held) countdown = *held;
    int fd = open_file(name, O_RDONLY);
    if (*held) *held = nth_hold();
    int valid = fd >= 0 && read(fd, text, sizeof text - 1) > 0;
    if (fd >= 0) close(fd);
    if (valid) CHECK_STR(text, name);
    valid &= read_parts(name);
    rc = agreed(SCR_Complete_restart(valid));
    if (!rc) sscanf(name, "ckpt.%d", number);
    return rc;
}

/* Each rank reads the file of the only writer. */
static int read_of_writer(const char *dataset)
{
    char name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME], text[32] = "";
    const char *const names[] = {name};
    int ranks = 0, files = 0;
    if (SCR_Dataset_ranks(&ranks) == SCR_SUCCESS) CHECK_INT(ranks, 1);
    int listed = SCR_Dataset_files(0, &files) == SCR_SUCCESS &&
                 SCR_Dataset_file(0, 0, name, NULL) == SCR_SUCCESS;
    int fetched = agreed(SCR_Fetch_files(listed, names)) == SCR_SUCCESS;
    if (!listed || !fetched || SCR_Route_file(name, path) != SCR_SUCCESS) return 0;
    int fd = open(path, O_RDONLY), valid = fd >= 0 && read(fd, text, sizeof text - 1) > 0;
    if (fd >= 0) close(fd);
    if (valid) CHECK_STR(text, dataset);
    return valid;
}

static int restart_any(int *number)
{
    char name[SCR_MAX_FILENAME] = "";
    int have = 0, rc = agreed(SCR_Have_restart(&have, name));
    if (rc || !have) return rc;
    rc = agreed(SCR_Start_restart(name));
    if (rc) return rc;
    rc = agreed(SCR_Complete_restart(read_of_writer(name)));
    if (!rc) sscanf(name, "ckpt.%d", number);
    return rc;
}

static int checkpoint(int number)
{
    char name[32];
    snprintf(name, sizeof name, "ckpt.%d", number);
    int rc = agreed(SCR_Start_output(name, SCR_FLAG_CHECKPOINT));
    if (rc) return rc;
    int fd = open_file(name, O_WRONLY | O_CREAT | O_TRUNC);
    ssize_t size = (ssize_t)strlen(name);
    int valid = fd >= 0 && write(fd, name, (size_t)size) == size;
    if (fd >= 0) close(fd);
    valid &= write_part(name);
    return agreed(SCR_Complete_output(valid));
}

/* Whether an allocation is about to fail on some rank. */
static int is_short(void)
{
    int held = nth_hold(), any = nth_max(held > 0);
    countdown = held;
    return any;
}

/* A run with a restart, in which some rank may lack memory; an older checkpoint may
 * exist. No checkpoint is marked as failed. */
static int run(struct way *way)
{
    int number = 0, without = is_short(), held = way->route_only ? nth_hold() : 0;
    use_shared = way->shared;
    int rc = agreed(SCR_Init());
    if (!rc) {
        rc = restart(&number, &held);
        if (!rc && !without) CHECK(number >= way->newest);
        if (!rc) rc = checkpoint(number + 1);
        if (!rc) way->newest = number + 1;
        int end = agreed(SCR_Finalize());
        rc = rc ? rc : end;
    }
    if (way->route_only) countdown = held;
    return rc ? -ENOMEM : 0; /* the reason is in the messages */
}

/* A run of rank 0 alone, with sufficient memory on all ranks. */
static void write_alone(int number)
{
    int held = nth_hold();
    char name[32];
    MPI_Comm alone;
    snprintf(name, sizeof name, "ckpt.%d", number);
    MPI_Comm_split(MPI_COMM_WORLD, check_rank ? MPI_UNDEFINED : 0, 0, &alone);
    if (check_rank == 0) {
        CHECK_INT(SCR_Init_comm(alone), SCR_SUCCESS);
        CHECK_INT(SCR_Start_output(name, SCR_FLAG_CHECKPOINT), SCR_SUCCESS);
        int fd = open_file(name, O_WRONLY | O_CREAT | O_TRUNC);
        CHECK(write(fd, name, strlen(name)) == (ssize_t)strlen(name));
        close(fd);
        CHECK_INT(SCR_Complete_output(1), SCR_SUCCESS);
        CHECK_INT(SCR_Finalize(), SCR_SUCCESS);
        MPI_Comm_free(&alone);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    countdown = held;
}

/* All ranks restart from the checkpoint that rank 0 has written; it is not marked as
 * failed. */
static int run_any(struct way *way)
{
    int number = 0, without = is_short();
    write_alone(++way->newest);
    int rc = agreed(SCR_Init());
    if (rc) return -ENOMEM;
    rc = restart_any(&number);
    if (!rc && !without) CHECK_INT(number, way->newest);
    int end = agreed(SCR_Finalize());
    return rc || end ? -ENOMEM : 0;
}

/* Checks that each message gives a reason. */
static void check_said(FILE *said)
{
    char line[1024];
    rewind(said);
    while (fgets(line, sizeof line, said)) {
        size_t n = strcspn(line, "\n");
        CHECK(n < 2 || strncmp(line + n - 2, ": ", 2) != 0);
        exhausted += strstr(line, " [MEMORY_EXHAUSTED]\n") != NULL;
        fputs(line, stderr);
    }
}

static int live_once(void *arg)
{
    int held = nth_hold(), before = dup(STDERR_FILENO);
    FILE *said = tmpfile();
    CHECK(said && before >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0);
    countdown = held;
    struct way *way = arg;
    int rc = way->any_ranks ? run_any(way) : run(way);
    held = nth_hold();
    dup2(before, STDERR_FILENO);
    close(before);
    check_said(said);
    fclose(said);
    countdown = held;
    return rc;
}

static void set(const char *name, const char *part)
{
    char text[200];
    snprintf(text, sizeof text, "%s/%s", folder, part);
    setenv(name, text, 1);
}

static void begin_job(const char *node, const char *const method[2])
{
    set("SCR_PREFIX", "prefix");
    set("SCR_CNTL_BASE", "cntl");
    set("SCR_CACHE_BASE", node);
    setenv("SCR_NODE_NAME", node, 1);
    setenv("SCR_JOB_ID", "1", 1);
    setenv("SCR_USER_NAME", "tester", 1);
    setenv("SCR_FLUSH", "1", 1);
    setenv("SCR_PREFIX_SIZE", "2", 1);
    setenv("SCR_FLUSH_TYPE", method[0], 1);
    setenv("SCR_FLUSH_ASYNC", method[1], 1);
}

int main(int argc, char **argv)
{
    static const char *const methods[][2] = {{"SYNC", "0"}, {"PTHREAD", "1"}};
    char node[16];
    check_begin(&argc, &argv);
    snprintf(node, sizeof node, "n%d", check_rank);
    for (int m = 0; m < 2; m++) {
        struct way way = {0, 0, 0, 0};
        check_folder(folder);
        begin_job(node, methods[m]);
        nth_each(methods[m][0], live_once, &way, 12);
        way.route_only = 1;
        nth_each("SCR_Route_file", live_once, &way, 12);
        check_remove(folder);
    }
    struct way shared = {.shared = 1};
    check_folder(folder);
    begin_job(node, methods[0]);
    nth_each("SCR_Route_file_part", live_once, &shared, 24);
    check_remove(folder);
    use_shared = 0;
    struct way way = {.any_ranks = 1};
    check_folder(folder);
    begin_job(node, methods[0]);
    setenv("SCR_FLUSH", "0", 1);
    setenv("SCR_CACHE_KEEP", "1", 1);
    setenv("SCR_RESTART_RANKS", "any", 1);
    nth_each("SCR_RESTART_RANKS", live_once, &way, 12);
    check_remove(folder);
    CHECK(nth_max(exhausted) > 0);
    return check_end();
}
