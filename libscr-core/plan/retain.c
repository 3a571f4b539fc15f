/* SPDX-License-Identifier: BSD-3-Clause */
/* Which datasets retention deletes; see plan/retain.h. */
#include "plan/retain.h"

void scr_plan_retain(scr_retain_row *rows, int count, int keep)
{
    int newer = 0; /* usable checkpoints */
    for (int i = count - 1; i >= 0; i--) {
        scr_retain_row *row = &rows[i];
        bool old = keep > 0 && newer >= keep;
        row->leaves =
            row->deleting || (old && row->checkpoint && row->complete && !row->pinned);
        newer += row->checkpoint && row->usable;
    }
}
