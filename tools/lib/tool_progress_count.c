/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbers of a progress, apart from the terminal: who counts needs none. */
#include "lib/tool_progress.h"

#include <stdatomic.h>

static _Atomic uint64_t count_done, count_total;

void tool_progress_set(uint64_t done, uint64_t total)
{
    count_total = total;
    count_done = done;
}

void tool_progress_get(uint64_t *done, uint64_t *total)
{
    *done = count_done;
    *total = count_total;
}
