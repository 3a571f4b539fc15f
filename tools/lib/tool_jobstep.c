/* SPDX-License-Identifier: BSD-3-Clause */
/* Job steps; see tool_jobstep.h. */
#include "lib/tool_jobstep.h"

#include "common/errtext.h"
#include "common/io.h"
#include "common/number.h"
#include "lib/tool_manager.h"
#include "lib/tool_run.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ANSWER = 30 }; /* seconds that the batch system has for an answer */

static const char digits[] = "0123456789";

/* ---- processes ---- */

/* When it started, in clock ticks since the machine did. 0 or -ESRCH; one that has ended
 * and waits for its parent is not there any more. */
static int start_of(pid_t pid, uint64_t *start)
{
    char name[64], text[1024], *word, *rest;
    snprintf(name, sizeof name, "/proc/%ld/stat", (long)pid);
    int fd = io_open(AT_FDCWD, name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return -ESRCH;
    ssize_t size = io_read(fd, text, sizeof text - 1);
    io_close(&fd);
    if (size <= 0) return -ESRCH;
    text[size] = 0;
    /* the name of the program, in brackets, may have anything in it */
    rest = strrchr(text, ')');
    if (!rest || rest[1] != ' ' || rest[2] == 'Z' || rest[2] == 'X') return -ESRCH;
    rest += 2;
    for (int i = 3; (word = strsep(&rest, " ")) != NULL; i++)
        if (i == 22) return number_uint64(word, start) == 0 ? 0 : -ESRCH;
    return -ESRCH;
}

/* "pid:1234:56789" */
static int parse_process(const char *step, pid_t *pid, uint64_t *start)
{
    char number[24];
    int64_t value;
    if (strncmp(step, "pid:", 4) != 0) return -EINVAL;
    size_t n = strspn(step + 4, digits);
    const char *second = step + 4 + n + 1;
    if (n == 0 || n >= sizeof number || second[-1] != ':' || !*second ||
        strspn(second, digits) != strlen(second))
        return -EINVAL;
    memcpy(number, step + 4, n);
    number[n] = 0;
    /* 1 is init, and 0 and what is below 0 are no processes */
    if (number_int64(number, &value) != 0 || value < 2 || value > INT_MAX) return -EINVAL;
    *pid = (pid_t)value;
    return number_uint64(second, start);
}

static int is_there(pid_t pid, uint64_t start)
{
    uint64_t now;
    return start_of(pid, &now) == 0 && now == start;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* 1 when it ended within that time. */
static int ends(pid_t pid, uint64_t start, double seconds)
{
    static const struct timespec moment = {.tv_nsec = 10000000};
    for (double end = now() + seconds; is_there(pid, start); nanosleep(&moment, NULL))
        if (now() > end) return 0;
    return 1;
}

static int kill_process(pid_t pid, uint64_t start, double seconds, char *err)
{
    if (!is_there(pid, start))
        return err_set(err, -ESRCH, "process %ld has ended already", (long)pid);
    if (kill(pid, SIGTERM) != 0 && errno != ESRCH)
        return err_sys(err, -errno, "end process %ld", (long)pid);
    if (ends(pid, start, seconds)) return 0;
    if (kill(pid, SIGKILL) != 0 && errno != ESRCH)
        return err_sys(err, -errno, "kill process %ld", (long)pid);
    if (ends(pid, start, ANSWER)) return 0;
    return err_set(err, -ETIMEDOUT, "process %ld does not end", (long)pid);
}

/* ---- Slurm ---- */

/* "17.3", "17_2.3", "17+1.0"; never the job as a whole. */
static int is_slurm_step(const char *step)
{
    size_t n = strspn(step, digits);
    if (n == 0) return 0;
    step += n;
    if (*step == '_' || *step == '+') {
        n = strspn(step + 1, digits);
        if (n == 0) return 0;
        step += n + 1;
    }
    return *step == '.' && step[1] && strspn(step + 1, digits) == strlen(step + 1);
}

/* Of the steps, one per line, the one with the highest number: the newest. Others, such
 * as 17.batch, are no runs. */
static int newest_step(char *lines, char step[TOOL_JOBSTEP_SIZE])
{
    char *line;
    int64_t number, best = -1;
    while ((line = strsep(&lines, " \n")) != NULL) {
        if (!is_slurm_step(line) || strlen(line) >= TOOL_JOBSTEP_SIZE ||
            number_int64(strchr(line, '.') + 1, &number) != 0 || number <= best)
            continue;
        best = number;
        strcpy(step, line);
    }
    return best < 0 ? -ESRCH : 0;
}

/* The steps of a job, to be freed. */
static int list_slurm(const char *job, char **output, char *err)
{
    const char *const command[] = {"squeue", "--noheader", "--steps", "--format=%i",
                                   "--job",  job,          NULL};
    return tool_run(command, ANSWER, output, err);
}

static int find_slurm(char step[TOOL_JOBSTEP_SIZE], char *err)
{
    const char *job = getenv("SLURM_JOB_ID");
    if (!job || !*job) job = getenv("SLURM_JOBID");
    char *output;
    int rc = list_slurm(job, &output, err);
    if (rc) return rc;
    rc = newest_step(output, step);
    free(output);
    return rc ? err_set(err, rc, "job %.60s has no step", job) : 0;
}

/* Where Slurm has no answer, it may be there. */
static int has_ended_slurm(const char *step)
{
    char job[TOOL_JOBSTEP_SIZE], *output, *rest, *line;
    snprintf(job, sizeof job, "%.*s", (int)strcspn(step, "."), step);
    if (list_slurm(job, &output, NULL) != 0) return 0;
    int there = 0;
    for (rest = output; (line = strsep(&rest, " \n")) != NULL;)
        there |= strcmp(line, step) == 0;
    free(output);
    return !there;
}

static int kill_slurm(const char *step, char *err)
{
    const char *const command[] = {"scancel", step, NULL};
    char *output;
    int rc = tool_run(command, ANSWER, &output, err);
    if (!rc) free(output);
    /* scancel has many words for that */
    if (rc && has_ended_slurm(step))
        return err_set(err, -ESRCH, "job step %s has ended already", step);
    return rc;
}

/* ---- both ---- */

int tool_jobstep_find(pid_t pid, char step[TOOL_JOBSTEP_SIZE], char *err)
{
    uint64_t start;
    int rc = start_of(pid, &start);
    if (rc) return err_set(err, rc, "there is no process %ld", (long)pid);
    if (strcmp(tool_manager_name(), "slurm") == 0) return find_slurm(step, err);
    snprintf(step, TOOL_JOBSTEP_SIZE, "pid:%ld:%" PRIu64, (long)pid, start);
    return 0;
}

int tool_jobstep_check(const char *step)
{
    pid_t pid;
    uint64_t start;
    if (strlen(step) >= TOOL_JOBSTEP_SIZE) return -EINVAL;
    return is_slurm_step(step) || parse_process(step, &pid, &start) == 0 ? 0 : -EINVAL;
}

int tool_jobstep_has_ended(const char *step, int ask)
{
    pid_t pid;
    uint64_t start;
    if (parse_process(step, &pid, &start) == 0) return !is_there(pid, start);
    return ask && is_slurm_step(step) && has_ended_slurm(step);
}

int tool_jobstep_kill(const char *step, double seconds, char *err)
{
    pid_t pid;
    uint64_t start;
    if (parse_process(step, &pid, &start) == 0)
        return kill_process(pid, start, seconds, err);
    return is_slurm_step(step) ? kill_slurm(step, err)
                               : err_set(err, -EINVAL, "no job step: %.60s", step);
}
