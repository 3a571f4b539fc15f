/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a run is; see progress.h. */
#include "run/progress.h"

#include "common/errtext.h"
#include "records/scr_flush_file.h"
#include <errno.h>
#include <stdlib.h>

static void take(const kvtree *flush, int id, progress *p)
{
    if (scr_flush_file_has(flush, id, SCR_LOCATION_FLUSHING)) p->flushing = 1;
    if (id > p->latest) p->latest = id;
}

int progress_read(int prefix, progress *p, char *err)
{
    progress found = {0};
    int count = 0, *ids = NULL;
    kvtree *flush = kvtree_new();
    int rc = flush ? scr_flush_file_read(prefix, flush, err) : -ENOMEM;
    if (!rc) rc = scr_flush_file_list(flush, &count, &ids);
    if (rc == -ENOMEM) err_set(err, rc, "no memory");
    for (int i = 0; i < count && !rc; i++)
        take(flush, ids[i], &found);
    free(ids);
    kvtree_delete(&flush);
    if (rc && rc != -ENOENT) return rc;
    *p = found;
    return 0;
}

int watchdog_look(watchdog *w, const progress *p, double now, double *seconds)
{
    if (p->latest != w->last.latest || p->flushing != w->last.flushing) {
        w->last = *p;
        w->since = now;
    }
    *seconds = now - w->since;
    return *seconds > (p->flushing ? w->timeout_pfs : w->timeout);
}
