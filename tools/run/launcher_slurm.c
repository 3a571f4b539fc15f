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

/* A rank that is killed ends the step, or the others would wait for it. A step that does
 * not get its nodes waits for them, and that for ever, if nobody says for how long. */
static void build(const launch *l, tool_words *words)
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
        /* what the user says comes later, and is stronger */
        tool_words_add(words, "--nodes=%d", l->nodes->count);
        launcher_add_list("--exclude=", l->out, words);
    }
    tool_words_add_all(words, l->words);
}

/* srun that is killed leaves its step behind; another step may be newer than it, and
 * another job of this user may have one of that name, as it has the number of a process.
 */
static int end(const launch *l, char *err)
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

const launcher launcher_slurm = {"slurm", {"srun", NULL}, "slurm", build, end};
