/* SPDX-License-Identifier: BSD-3-Clause */
/* What is told about a set that is not whole: which members are lost, and why. */
#include "src/redset_private.h"

#include "common/errtext.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Members named; of others only their number is told. */
enum { NAMED = 8 };

/* Appends to text, cut to fit. */
__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format,
                                                         ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, ERRTEXT_SIZE - used, format, args);
    va_end(args);
}

void redset_verdict_lost(const redset_layout *layout, const uint8_t lost[], char *text)
{
    int count = 0;
    err_set(text, 0, "set %d (%s over %d ranks) lost", layout->place.id,
            redset_scheme_name(layout->place.scheme), layout->place.members);
    for (int i = 0; i < layout->place.members; i++) {
        if (!lost[i]) continue;
        if (count++ < NAMED)
            append(text, "%s %d (rank %d)", count > 1 ? "," : " members", i,
                   layout->members[i]);
    }
    if (count > NAMED) append(text, " and %d more", count - NAMED);
}

void redset_verdict_reason(int rank, const char *reason, char *text)
{
    append(text, "; rank %d: %.*s", rank, REDSET_REASON_SIZE - 1, reason);
}

int redset_verdict_mixed(const redset_layout *layout, const redset_plan *plan, char *text)
{
    return err_set(text, REDSET_UNRECOVERABLE,
                   "set %d (%s over %d ranks) has redundancy files of different "
                   "encodes: they disagree on member %d (rank %d)",
                   layout->place.id, redset_scheme_name(layout->place.scheme),
                   layout->place.members, plan->member, layout->members[plan->member]);
}
