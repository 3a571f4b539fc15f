/* SPDX-License-Identifier: BSD-3-Clause */
/* Leftovers of an interrupted flush; see flush_leftovers.h. */
#include "scavenge/flush_leftovers.h"

#include <filo/filo.h>
#include <inttypes.h>
#include <stdio.h>

/* The identity of a flush begins with the id and the time of its dataset
 * (docs/formats/scr.md). */
static int leftovers_keep_other(void *arg, const filo_begun *flush)
{
    const scr_dataset *d = arg;
    int64_t created;
    int id;
    return sscanf(flush->identity, "%d %" SCNd64 " ", &id, &created) != 2 ||
           id != d->id || created != d->created;
}

void scavenge_leftovers_remove(int prefix, const scr_dataset *d)
{
    char stage[SCR_NAME_SIZE + 16];
    snprintf(stage, sizeof stage, "%s/" FILO_STAGE, d->name);
    filo_begun_sweep(prefix, stage, leftovers_keep_other, (void *)(uintptr_t)d, NULL);
}
