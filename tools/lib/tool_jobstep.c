/* SPDX-License-Identifier: BSD-3-Clause */
/* Job steps; see tool_jobstep.h. */
#include "lib/tool_jobstep.h"

#include "common/errtext.h"
#include "common/number.h"
#include "lib/processes.h"
#include "lib/tool_manager_table.h"
#include "lib/tool_process.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ANSWER = 30 }; /* timeout of the batch system in seconds */

/* ---- processes ---- */

static void jobstep_print_process(char step[TOOL_JOBSTEP_SIZE], pid_t pid, uint64_t start)
{
    snprintf(step, TOOL_JOBSTEP_SIZE, "pid:%ld:%" PRIu64, (long)pid, start);
}

/* Parses "pid:1234:56789", exactly as jobstep_print_process prints it. Process 1 is init;
 * smaller numbers are not processes. */
static int jobstep_parse_process(const char *step, pid_t *pid, uint64_t *start)
{
    char printed[TOOL_JOBSTEP_SIZE];
    if (sscanf(step, "pid:%d:%" SCNu64, pid, start) != 2 || *pid < 2) return -EINVAL;
    jobstep_print_process(printed, *pid, *start);
    return strcmp(step, printed) == 0 ? 0 : -EINVAL;
}

static bool jobstep_is_there(pid_t pid, uint64_t start)
{
    uint64_t now;
    return processes_start_time(pid, &now) == 0 && now == start;
}

/* Whether the process ends within that time. */
static bool jobstep_wait_for_end(pid_t pid, uint64_t start, double seconds)
{
    static const struct timespec moment = {.tv_nsec = 10000000};
    for (double end = tool_now() + seconds; jobstep_is_there(pid, start);
         nanosleep(&moment, NULL))
        if (tool_now() > end) return false;
    return true;
}

static int jobstep_kill_process(pid_t pid, uint64_t start, double seconds,
                                kvtree_error *err)
{
    if (!jobstep_is_there(pid, start))
        return err_set(err, -ESRCH, "process %ld has ended already", (long)pid);
    if (kill(pid, SIGTERM) != 0 && errno != ESRCH)
        return err_sys(err, -errno, "end process %ld", (long)pid);
    if (jobstep_wait_for_end(pid, start, seconds)) return 0;
    if (kill(pid, SIGKILL) != 0 && errno != ESRCH)
        return err_sys(err, -errno, "kill process %ld", (long)pid);
    if (jobstep_wait_for_end(pid, start, ANSWER)) return 0;
    return err_set(err, -ETIMEDOUT, "process %ld does not end", (long)pid);
}

/* ---- batch systems ---- */

/* Returns the batch system to which the step id belongs; NULL: none. */
static const manager *jobstep_manager(const char *step)
{
    const manager *m = manager_find();
    if (m->step_is && m->step_is(step)) return m;
    for (m = manager_table; m->job[0]; m++)
        if (m->step_has_job && m->step_is(step)) return m;
    return NULL;
}

/* Finds the newest step, the line with the highest number. Other lines, such as 17.batch,
 * are not runs. */
static int jobstep_newest(const manager *m, char *lines, char step[TOOL_JOBSTEP_SIZE])
{
    char *line;
    int64_t number, best = -1;
    while ((line = strsep(&lines, " \n")) != NULL) {
        const char *dot = strchr(line, '.');
        if (!m->step_is(line) || strlen(line) >= TOOL_JOBSTEP_SIZE ||
            number_int64(dot ? dot + 1 : line, &number) != 0 || number <= best)
            continue;
        best = number;
        strcpy(step, line);
    }
    return best < 0 ? -ESRCH : 0;
}

/* Gets the steps of a job; the output is to be freed. */
static int jobstep_list(const manager *m, const char *job, char **output,
                        kvtree_error *err)
{
    const tool_value values[] = {{.name = "job", .text = job}, {.name = NULL}};
    return manager_ask(m, m->steps, values, ANSWER, output, err);
}

static int jobstep_find(const manager *m, char step[TOOL_JOBSTEP_SIZE], kvtree_error *err)
{
    const char *job = manager_job_id(m);
    char *output;
    int rc = jobstep_list(m, job, &output, err);
    if (rc) return rc;
    rc = jobstep_newest(m, output, step);
    free(output);
    return rc ? err_set(err, rc, "job %.60s has no step", job ? job : "?") : 0;
}

/* False if the batch system does not answer, as the step may still run. */
static bool jobstep_has_ended(const manager *m, const char *step)
{
    char job[TOOL_JOBSTEP_SIZE], *output, *rest, *line;
    snprintf(job, sizeof job, "%.*s", (int)strcspn(step, "."), step);
    if (jobstep_list(m, job, &output, NULL) != 0) return false;
    int there = 0;
    for (rest = output; (line = strsep(&rest, " \n")) != NULL;)
        there |= strcmp(line, step) == 0;
    free(output);
    return !there;
}

/* Tries all commands, since the last one may succeed where another fails. */
static int jobstep_kill(const manager *m, const char *step, kvtree_error *err)
{
    const tool_value values[] = {{.name = "id", .text = step}, {.name = NULL}};
    int rc = 0;
    for (int i = 0; i < MANAGER_ENDS && m->step_end[i]; i++) {
        char *output = NULL;
        rc = manager_ask(m, m->step_end[i], values, ANSWER, &output, err);
        free(output);
    }
    /* commands report in several ways that a step has ended */
    if (rc && jobstep_has_ended(m, step))
        return err_set(err, -ESRCH, "job step %s has ended already", step);
    return rc;
}

/* ---- processes and batch systems ---- */

int tool_jobstep_find(pid_t pid, char step[TOOL_JOBSTEP_SIZE], kvtree_error *err)
{
    uint64_t start;
    int rc = processes_start_time(pid, &start);
    if (rc) return err_set(err, rc, "there is no process %ld", (long)pid);
    if (manager_find()->steps) return jobstep_find(manager_find(), step, err);
    jobstep_print_process(step, pid, start);
    return 0;
}

int tool_jobstep_check(const char *step)
{
    pid_t pid;
    uint64_t start;
    if (strlen(step) >= TOOL_JOBSTEP_SIZE) return -EINVAL;
    return jobstep_manager(step) || jobstep_parse_process(step, &pid, &start) == 0
               ? 0
               : -EINVAL;
}

bool tool_jobstep_has_ended(const char *step, int ask)
{
    pid_t pid;
    uint64_t start;
    if (jobstep_parse_process(step, &pid, &start) == 0)
        return !jobstep_is_there(pid, start);
    const manager *m = jobstep_manager(step);
    return ask && m && jobstep_has_ended(m, step);
}

int tool_jobstep_kill(const char *step, double seconds, kvtree_error *err)
{
    pid_t pid;
    uint64_t start;
    if (jobstep_parse_process(step, &pid, &start) == 0)
        return jobstep_kill_process(pid, start, seconds, err);
    const manager *m = jobstep_manager(step);
    return m ? jobstep_kill(m, step, err)
             : err_set(err, -EINVAL, "no job step: %.60s", step);
}
