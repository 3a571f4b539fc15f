/* SPDX-License-Identifier: BSD-3-Clause */
/* The batch systems that are known; see tool_manager_table.h. */
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
    /* an instance has no id in its environment */
    {.name = "flux",
     .job = {"FLUX_JOB_ID"},
     .within = "FLUX_URI",
     .ask_nodes = "flux getattr hostlist"},
    {.name = "none"},
};

/* A variable of the environment that has a value. */
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

/* ---- questions ---- */

enum { VALUES = 8 };

/* Times come in the format of tool_time_parse, whatever users prefer. */
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
