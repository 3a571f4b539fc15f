/* SPDX-License-Identifier: BSD-3-Clause */
/* The known batch systems; see tool_manager_table.h. */
#include "lib/tool_manager_table.h"

#include "common/errtext.h"
#include "lib/tool_run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const manager manager_table[] = {
    {.name = "slurm",
     .job = {"SLURM_JOB_ID", "SLURM_JOBID"},
     .nodes = {"SLURM_JOB_NODELIST", "SLURM_NODELIST"},
     .down = "sinfo --noheader --states=down,no_respond --format=%N --nodes {hostlist}",
     .drained = "sinfo --noheader --states=drain,fail --format=%N --nodes {hostlist}",
     .end = "squeue --noheader '--format=%A %e' --job {job}",
     .end_source = "squeue",
     .end_read = manager_read_squeue_end,
     .over = "squeue --noheader --states=all '--format=%A %T %e' --job {job}",
     .over_read = manager_read_squeue_over,
     .requeue = "scontrol requeue {job}",
     .steps = "squeue --noheader --steps --format=%i --job {job}",
     .step_is = manager_is_slurm_step,
     .step_has_job = true,
     .step_end = {"scancel {id}"},
     .lost = "ends the allocation, unless it was submitted with --no-kill"},
    {.name = "pbs",
     .job = {"PBS_JOBID"},
     .file = "PBS_NODEFILE",
     .end = "qstat -f {job}",
     .end_source = "qstat",
     .end_read = manager_read_qstat_end,
     .lost = "ends the allocation, unless it was submitted with "
             "-W tolerate_node_failures=all"},
    {.name = "lsf",
     .job = {"LSB_JOBID"},
     .nodes = {"LSB_HOSTS"},
     .counted = "LSB_MCPU_HOSTS",
     .file = "LSB_DJOB_HOSTFILE",
     .end = "bjobs -noheader -o time_left {job}",
     .end_source = "bjobs",
     .end_read = manager_read_bjobs_end,
     .lost = "may end the allocation: ask the administrators"},
    /* Each launch has its own FLUX_JOB_ID; before version 0.71 no variable has the id of
     * the instance. At the top level of "flux start" an instance has neither an id nor an
     * end. Since 0.72 "flux resource list" omits lost nodes: they are found when they do
     * not answer. */
    {.name = "flux",
     .job = {"FLUX_ENCLOSING_ID"},
     .within = "FLUX_URI",
     .ask_job = "flux getattr jobid",
     .ask_nodes = "flux getattr hostlist",
     .drained = "flux resource list -s down -no '{nodelist}'",
     .drained_waits = true,
     .end = "flux job timeleft",
     .end_source = "flux job timeleft",
     .end_read = manager_read_timeleft,
     .reserve = 120, /* at the limit, its brokers disappear within a second */
     .lost = "ends the allocation, unless it was submitted with -o exit-timeout=none"},
    {.name = "none"},
};

/* Returns the value of an environment variable; NULL if it is unset or empty. */
static const char *manager_variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

const char *manager_job_id(const manager *m)
{
    return manager_variable(m->job[0]) ? manager_variable(m->job[0])
                                       : manager_variable(m->job[1]);
}

const manager *manager_find(void)
{
    const manager *m = manager_table;
    while (m->job[0] && !manager_job_id(m) && !manager_variable(m->within))
        m++;
    return m;
}

/* ---- queries ---- */

enum { VALUES = 8, ANSWER = 30 /* timeout in seconds */ };

/* Runs a command of the batch system with times in the format of tool_time_parse,
 * whatever the user prefers. */
static int manager_run(const char *const argv[], double seconds, char **output,
                       kvtree_error *err)
{
    static const char format[] = "SLURM_TIME_FORMAT";
    const char *users = manager_variable(format);
    char *kept = users ? strdup(users) : NULL;
    int rc = (users && !kept) || setenv(format, "standard", 1) != 0
                 ? err_set(err, -ENOMEM, "no memory")
                 : tool_run(argv, seconds, output, err);
    if (kept)
        setenv(format, kept, 1);
    else if (!users)
        unsetenv(format);
    free(kept);
    return rc;
}

int manager_ask(const manager *m, const char *command, const tool_value *values,
                double seconds, char **output, kvtree_error *err)
{
    tool_value all[VALUES] = {{.name = NULL}};
    tool_words words = {0};
    int count = 0;
    while (count < VALUES - 2 && values && values->name)
        all[count++] = *values++;
    all[count] = (tool_value){.name = "job", .text = manager_job_id(m)};
    int rc = tool_template_expand(command, all, &words, err);
    if (!rc) rc = manager_run(tool_words_list(&words), seconds, output, err);
    tool_words_done(&words);
    return rc;
}

/* Asks the batch system for the id. Its standard error goes to the answer, not to the
 * user, since a missing id is no error. */
static int manager_ask_job(const manager *m, tool_answer *answer, kvtree_error *err)
{
    static const tool_limits limits = {.seconds = ANSWER, .bytes = 4096, .joined = true};
    static const tool_value none[] = {{.name = NULL}};
    tool_words words = {0};
    int rc = tool_template_expand(m->ask_job, none, &words, err);
    if (!rc) rc = tool_run_answer(tool_words_list(&words), &limits, answer, err);
    tool_words_done(&words);
    return rc;
}

/* If the batch system can list its nodes, it works and there is no id. */
static int manager_has_no_job(const manager *m, kvtree_error *err)
{
    char *nodes;
    int rc = manager_ask(m, m->ask_nodes, NULL, ANSWER, &nodes, err);
    if (!rc) free(nodes);
    return rc;
}

int manager_find_job(const manager *m, char job[SCR_JOB_ID_SIZE], kvtree_error *err)
{
    tool_answer answer;
    int rc = scr_identity_find_job(job, err);
    if (rc < 0 || !m->ask_job || (rc > 0 && manager_job_id(m))) return rc;
    rc = manager_ask_job(m, &answer, err);
    if (rc) return rc;
    answer.output[strcspn(answer.output, "\n")] = 0;
    if (answer.code)
        rc = manager_has_no_job(m, err);
    else if (scr_identity_flux(answer.output, job) != 0)
        rc = err_set(err, -EINVAL, "%s: \"%.60s\" is not a job id", m->ask_job,
                     answer.output);
    else
        rc = 1;
    free(answer.output);
    return rc;
}
