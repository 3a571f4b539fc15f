/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of a run; see run_progress.h. */
#include "run/run_progress.h"

#include "common/errtext.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* ---- the flush file ---- */

static int progress_read_flush(int prefix, run_progress *p, kvtree_error *err)
{
    int count = 0, *ids = NULL;
    kvtree *flush = kvtree_new();
    int rc = flush ? scr_flush_file_read(prefix, flush, err) : -ENOMEM;
    if (!rc) rc = scr_flush_file_list(flush, &count, &ids);
    if (rc == -ENOMEM) err_set(err, rc, "no memory");
    for (int i = 0; i < count && !rc; i++) {
        p->flushing |= scr_flush_file_has(flush, ids[i], SCR_LOCATION_FLUSHING) != 0;
        if (ids[i] > p->latest) p->latest = ids[i];
    }
    free(ids);
    kvtree_delete(&flush);
    return rc == -ENOENT ? 0 : rc;
}

/* ---- the index ---- */

static bool progress_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int progress_find_newest(const scr_index *index, int *complete, int *entered)
{
    scr_dataset *list = NULL;
    scr_index_state state;
    int count = 0, rc = scr_index_list(index, &list, &count);
    *complete = 0;
    for (int i = count; i > 0 && !rc && !*complete; i--)
        if (scr_index_look(index, &list[i - 1], &state) == 0 && state.complete == 1)
            *complete = list[i - 1].id;
    free(list);
    *entered = scr_index_highest(index).id;
    return rc;
}

/* Reads the index if it has changed. A missing index is about to be rebuilt, so the known
 * values stay valid. */
static int progress_read_index(progress_reader *s, kvtree_error *err)
{
    struct stat st;
    int complete, entered;
    if (fstatat(s->prefix, SCR_INDEX_NAME, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "%s", SCR_INDEX_NAME);
    if (progress_is_same(&st, &s->index)) return 0;
    kvtree *index = kvtree_new();
    int rc = scr_index_read(s->prefix, index, err);
    if (!rc && (rc = progress_find_newest(index, &complete, &entered)) != 0)
        err_set(err, rc, "no memory");
    kvtree_delete(&index);
    if (rc) return rc == -ENOENT ? 0 : rc;
    s->indexed = complete;
    s->entered = entered;
    s->index = st;
    return 0;
}

/* ---- flush file and index ---- */

void run_progress_begin(progress_reader *s, int prefix)
{
    *s = (progress_reader){.prefix = prefix};
}

int run_progress_read(progress_reader *s, run_progress *p, kvtree_error *err)
{
    run_progress found = {.completed = s->last.completed};
    int rc = progress_read_flush(s->prefix, &found, err);
    if (!rc) rc = progress_read_index(s, err);
    if (rc) return rc;
    if (!s->begun) s->earlier = s->entered;
    if (s->earlier > found.latest) found.latest = s->earlier;
    if (s->indexed > found.latest) found.latest = s->indexed;
    found.writing = s->entered > found.latest;
    /* ids count all datasets, including those that left the cache before they were
     * seen */
    if (s->begun && found.latest > s->last.latest)
        found.completed += found.latest - s->last.latest;
    s->begun = true;
    s->last = found;
    *p = found;
    return 0;
}

bool watchdog_has_expired(watchdog *w, const run_progress *p, double now, double *seconds)
{
    if (p->latest != w->last.latest || p->flushing != w->last.flushing) {
        w->last = *p;
        w->since = now;
    }
    *seconds = now - w->since;
    return *seconds > (p->flushing ? w->timeout_pfs : w->timeout);
}
