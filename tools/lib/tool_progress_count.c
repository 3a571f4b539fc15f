/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of a progress, separate from the terminal: code that only counts needs no
 * terminal. */
#include "lib/tool_progress.h"

#include "report/alarm.h"
#include <stdatomic.h>
#include <stddef.h>

static _Atomic uint64_t count_done, count_total;
static const char *_Atomic count_what, *_Atomic count_unit;
static _Atomic double count_since;

void tool_progress_set(uint64_t done, uint64_t total)
{
    count_total = total;
    count_done = done;
}

void tool_progress_turn(const char *what, const char *unit)
{
    tool_progress_set(0, 0);
    count_unit = unit;
    count_since = scr_clock();
    count_what = what; /* last: a thread that sees it sees the rest, too */
}

const char *tool_progress_turned(const char **unit, double *since)
{
    const char *what = count_what;
    *unit = count_unit;
    *since = count_since;
    return what;
}

void tool_progress_get(uint64_t *done, uint64_t *total)
{
    *done = count_done;
    *total = count_total;
}
