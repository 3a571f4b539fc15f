/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm: srun within an allocation; a job step per launch. */
#include "run/launcher.h"

#include "common/errtext.h"
#include "lib/tool_jobstep.h"
#include "lib/tool_run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER = 30 /* seconds for squeue and scancel */ };

/* A killed rank ends the step: the others would wait for it. --immediate limits the time
 * that a step waits for its nodes. */
static void slurm_build(const launch *l, tool_words *words)
{
    tool_words_add(words, "%s", l->program);
    tool_words_add(words, "--job-name=%s", l->name);
    tool_words_add(words, "--kill-on-bad-exit=1");
    if (l->patience > 0) tool_words_add(words, "--immediate=%.0f", l->patience);
    if (!l->raw) {
        tool_words_add(words, "--nodes=%d", l->nodes->count);
        if (launcher_ranks(l) > 0)
            tool_words_add(words, "--ntasks=%d", launcher_ranks(l));
        launcher_add_list("--nodelist=", l->nodes, words);
        /* on fewer nodes than before there may be more ranks than processors */
        if (l->out->count > 0) tool_words_add(words, "--overcommit");
    } else if (l->out->count > 0) {
        /* options of the user follow and override these */
        tool_words_add(words, "--nodes=%d", l->nodes->count);
        launcher_add_list("--exclude=", l->out, words);
    }
    tool_words_add_all(words, l->words);
}

/* A killed srun leaves its step behind. Other steps may be newer, and another job of the
 * user may have a step of that name, which contains the id of a process. */
static int slurm_end(const launch *l, kvtree_error *err)
{
    const char *job = getenv("SLURM_JOB_ID");
    const char *const question[] = {
        "squeue", "--noheader", "--steps", "--format=%i %j", job && *job ? "--job" : NULL,
        job,      NULL};
    char *output, *line, *rest;
    int rc = tool_run(question, ANSWER, &output, err);
    if (rc) return rc;
    rest = output;
    while ((line = strsep(&rest, "\n")) != NULL && !rc) {
        char *step = strsep(&line, " ");
        if (!line || strcmp(line, l->name) != 0 || tool_jobstep_check(step) != 0)
            continue;
        rc = tool_jobstep_kill(step, 0, err);
        if (rc == -ESRCH) rc = 0;
    }
    free(output);
    return rc;
}

const launcher launcher_slurm = {
    "slurm", {"srun", NULL}, "slurm", slurm_build, slurm_end};
