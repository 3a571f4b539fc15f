/* SPDX-License-Identifier: BSD-3-Clause */
/* Simulated nodes: one mpiexec on this machine, in which the ranks of each node have its
 * name and directories of their own. */
#include "run/launcher.h"

#include <stddef.h>

static void simulated_add_variable(tool_words *words, const char *name, const launch *l,
                                   int node, const char *folder)
{
    tool_words_add(words, "-env");
    tool_words_add(words, "%s", name);
    tool_words_add(words, "%s/%s/%s", l->simulated, l->nodes->names[node], folder);
}

static void simulated_build(const launch *l, tool_words *words)
{
    int sections = 0;
    tool_words_add(words, "%s", l->program);
    /* not on the nodes of a batch system */
    tool_words_add(words, "-launcher");
    tool_words_add(words, "fork");
    for (int i = 0; i < l->nodes->count; i++) {
        if (l->ranks[i] == 0) continue;
        if (sections++) tool_words_add(words, ":");
        tool_words_add(words, "-n");
        tool_words_add(words, "%d", l->ranks[i]);
        tool_words_add(words, "-env");
        tool_words_add(words, "SCR_NODE_NAME");
        tool_words_add(words, "%s", l->nodes->names[i]);
        simulated_add_variable(words, "SCR_CACHE_BASE", l, i, "cache");
        simulated_add_variable(words, "SCR_CNTL_BASE", l, i, "cntl");
        tool_words_add_all(words, l->words);
    }
}

/* Chosen by scr_run --simulate only. */
const launcher launcher_simulate = {"simulate",
                                    {"mpiexec.mpich", "mpiexec.hydra", "mpiexec", NULL},
                                    "",
                                    simulated_build,
                                    NULL};
