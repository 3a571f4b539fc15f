/* SPDX-License-Identifier: BSD-3-Clause */
/* Flux: flux run within an instance. */
#include "run/launcher.h"

#include <stddef.h>

static void flux_build(const launch *l, tool_words *words)
{
    tool_words_add(words, "%s", l->program);
    tool_words_add(words, "run");
    if (!l->raw) {
        tool_words_add(words, "--nodes=%d", l->nodes->count);
        if (launcher_ranks(l) > 0)
            tool_words_add(words, "--ntasks=%d", launcher_ranks(l));
        launcher_add_list("--requires=host:", l->nodes, words);
    } else if (l->out->count > 0) {
        launcher_add_list("--requires=-host:", l->out, words);
    }
    tool_words_add_all(words, l->words);
}

/* flux run forwards SIGTERM, and the instance ends a job when its flux run is gone. */
const launcher launcher_flux = {"flux", {"flux", NULL}, "flux", flux_build, NULL};
