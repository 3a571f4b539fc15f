/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers; see launcher.h. */
#include "run/launcher.h"

#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_run.h"
#include <stdlib.h>
#include <string.h>

/* In the order in which they are tried. */
static const launcher *const launchers[] = {&launcher_slurm, &launcher_flux,
                                            &launcher_hydra, &launcher_simulate};

/* The first of them that is in PATH, or NULL. */
static const char *launcher_program(const char *const programs[])
{
    for (; *programs; programs++)
        if (tool_run_is_there(*programs)) return *programs;
    return NULL;
}

const launcher *launcher_find(const char *name, const char **program)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher *l = launchers[i];
        if (name && strcmp(l->name, name) != 0) continue;
        if (!name && l->manager && strcmp(l->manager, tool_manager_name()) != 0) continue;
        *program = launcher_program(l->programs);
        return *program ? l : NULL;
    }
    return NULL;
}

int launcher_report_missing(const char *name)
{
    for (size_t i = 0; name && i < sizeof launchers / sizeof *launchers; i++)
        if (strcmp(launchers[i]->name, name) == 0)
            return tool_say(LAUNCHER_MISSING, "%s: no %s in PATH", name,
                            launchers[i]->programs[0]);
    return name ? tool_say(LAUNCHER_MISSING, "%s: not slurm, flux or hydra", name)
                : tool_say(LAUNCHER_MISSING, "no srun, flux or mpiexec in PATH");
}

int launcher_ranks(const launch *l)
{
    int ranks = 0;
    for (int i = 0; i < l->nodes->count && l->ranks; i++)
        ranks += l->ranks[i];
    return ranks;
}

void launcher_add_list(const char *option, const hostlist *list, tool_words *words)
{
    char *text = hostlist_compress(list);
    if (text)
        tool_words_add(words, "%s%s", option, text);
    else
        words->failed = 1;
    free(text);
}
