/* SPDX-License-Identifier: BSD-3-Clause */
/* A run in which one rank has no memory, at any allocation of its life from SCR_Init to
 * SCR_Finalize: every call gives the same on all ranks, what is offered for a restart is
 * right, nothing is left in the process, and the run that follows is as if nothing had
 * been. Each run restarts, writes a checkpoint, and flushes it. */
#include "nth_each_mpi.h"
#include "scr.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char folder[64];

/* The same code on all ranks. */
static int agreed(int rc)
{
    int held = nth_hold(), first = rc;
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK_INT(rc, first);
    countdown = held;
    return rc;
}

/* The file of this rank in the dataset, opened where SCR says; -1: SCR has no memory. */
static int open_file(const char *dataset, int flags)
{
    char name[2 * SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    snprintf(name, sizeof name, "%s/prefix/%s/rank_%d", folder, dataset, check_rank);
    return SCR_Route_file(name, path) == SCR_SUCCESS ? open(path, flags, 0600) : -1;
}

/* *newest becomes 0 when the program has refused what it was offered. */
static int restart(int *number, int *newest)
{
    char name[SCR_MAX_FILENAME] = "", text[32] = "";
    int have = 0, rc = agreed(SCR_Have_restart(&have, name));
    if (rc || !have) return rc;
    rc = agreed(SCR_Start_restart(name));
    if (rc) return rc;
    int fd = open_file(name, O_RDONLY);
    int valid = fd >= 0 && read(fd, text, sizeof text - 1) > 0;
    if (fd >= 0) close(fd);
    if (valid) CHECK_STR(text, name);
    int held = nth_hold();
    if (nth_max(!valid)) *newest = 0;
    countdown = held;
    rc = agreed(SCR_Complete_restart(valid));
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
    return agreed(SCR_Complete_output(valid));
}

/* Whether some rank is about to have no memory. */
static int is_short(void)
{
    int held = nth_hold(), any = nth_max(held > 0);
    countdown = held;
    return any;
}

/* arg: the newest checkpoint of which all ranks know that it is complete. What cannot be
 * read for want of memory gives way to an older one, which is said. */
static int live_once(void *arg)
{
    int *newest = arg, number = 0, without = is_short();
    int rc = agreed(SCR_Init());
    if (!rc) {
        rc = restart(&number, newest);
        if (!rc && !without) CHECK(number >= *newest);
        if (!rc) rc = checkpoint(number + 1);
        if (!rc) *newest = number + 1;
        int end = agreed(SCR_Finalize());
        rc = rc ? rc : end;
    }
    return rc ? -ENOMEM : 0; /* SCR's codes tell what could not be done, texts tell why */
}

static void set(const char *name, const char *part)
{
    char text[200];
    snprintf(text, sizeof text, "%s/%s", folder, part);
    setenv(name, text, 1);
}

int main(int argc, char **argv)
{
    static const char *const methods[][2] = {{"SYNC", "0"}, {"PTHREAD", "1"}};
    char node[16];
    check_begin(&argc, &argv);
    snprintf(node, sizeof node, "n%d", check_rank);
    for (int m = 0; m < 2; m++) {
        int newest = 0;
        check_folder(folder);
        set("SCR_PREFIX", "prefix");
        set("SCR_CNTL_BASE", "cntl");
        set("SCR_CACHE_BASE", node);
        setenv("SCR_NODE_NAME", node, 1);
        setenv("SCR_JOB_ID", "1", 1);
        setenv("SCR_USER_NAME", "tester", 1);
        setenv("SCR_FLUSH", "1", 1);
        setenv("SCR_PREFIX_SIZE", "2", 1);
        setenv("SCR_FLUSH_TYPE", methods[m][0], 1);
        setenv("SCR_FLUSH_ASYNC", methods[m][1], 1);
        nth_each(methods[m][0], live_once, &newest, 12);
        check_remove(folder);
    }
    return check_end();
}
