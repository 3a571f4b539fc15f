/* SPDX-License-Identifier: BSD-3-Clause */
/* Hydra: mpiexec of MPICH. */
#include "run/launcher.h"

#include <stdio.h>
#include <stdlib.h>

/* n1:2,n2:2; without a number the other arguments decide. */
static char *hydra_hosts(const launch *l)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    for (int i = 0; i < l->nodes->count; i++) {
        fprintf(out, "%s%s", i ? "," : "", l->nodes->names[i]);
        if (!l->raw && l->ranks) fprintf(out, ":%d", l->ranks[i]);
    }
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

static void hydra_build(const launch *l, tool_words *words)
{
    char *list = hydra_hosts(l);
    tool_words_add(words, "%s", l->program);
    tool_words_add(words, "-hosts");
    if (list)
        tool_words_add(words, "%s", list);
    else
        words->failed = 1;
    free(list);
    if (!l->raw && launcher_ranks(l) > 0) {
        tool_words_add(words, "-n");
        tool_words_add(words, "%d", launcher_ranks(l));
    }
    tool_words_add_all(words, l->words);
}

const launcher launcher_hydra = {"hydra",
                                 {"mpiexec.mpich", "mpiexec.hydra", "mpiexec", NULL},
                                 NULL,
                                 hydra_build,
                                 NULL};
