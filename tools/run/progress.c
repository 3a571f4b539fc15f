/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a run is; see progress.h. */
#include "run/progress.h"

#include "common/errtext.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* ---- the flush file ---- */

static void take(const kvtree *flush, int id, progress *p)
{
    if (scr_flush_file_has(flush, id, SCR_LOCATION_FLUSHING)) p->flushing = 1;
    if (id > p->latest) p->latest = id;
}

static int read_flush(int prefix, progress *p, char *err)
{
    int count = 0, *ids = NULL;
    kvtree *flush = kvtree_new();
    int rc = flush ? scr_flush_file_read(prefix, flush, err) : -ENOMEM;
    if (!rc) rc = scr_flush_file_list(flush, &count, &ids);
    if (rc == -ENOMEM) err_set(err, rc, "no memory");
    for (int i = 0; i < count && !rc; i++)
        take(flush, ids[i], p);
    free(ids);
    kvtree_delete(&flush);
    return rc == -ENOENT ? 0 : rc;
}

/* ---- the index ---- */

static int is_the_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int find_newest(const scr_index *index, int *complete, int *entered)
{
    scr_dataset *list = NULL;
    scr_index_state state;
    int count = 0, ckpt, rc = scr_index_list(index, &list, &count);
    *complete = 0;
    for (int i = count; i > 0 && !rc && !*complete; i--)
        if (scr_index_look(index, &list[i - 1], &state) == 0 && state.complete == 1)
            *complete = list[i - 1].id;
    free(list);
    scr_index_highest(index, entered, &ckpt);
    return rc;
}

/* One that is not there is about to be made again: what is known stays true. */
static int read_index(progress_source *s, char *err)
{
    struct stat st;
    int complete, entered;
    if (fstatat(s->prefix, SCR_INDEX_NAME, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "%s", SCR_INDEX_NAME);
    if (is_the_same(&st, &s->index)) return 0;
    kvtree *index = kvtree_new();
    int rc = scr_index_read(s->prefix, index, err);
    if (!rc && (rc = find_newest(index, &complete, &entered)) != 0)
        err_set(err, rc, "no memory");
    kvtree_delete(&index);
    if (rc) return rc == -ENOENT ? 0 : rc;
    s->indexed = complete;
    s->entered = entered;
    s->index = st;
    return 0;
}

/* ---- both ---- */

void progress_begin(progress_source *s, int prefix)
{
    *s = (progress_source){.prefix = prefix};
}

int progress_read(progress_source *s, progress *p, char *err)
{
    progress found = {.completed = s->last.completed};
    int rc = read_flush(s->prefix, &found, err);
    if (!rc) rc = read_index(s, err);
    if (rc) return rc;
    if (!s->begun) s->earlier = s->entered;
    if (s->earlier > found.latest) found.latest = s->earlier;
    if (s->indexed > found.latest) found.latest = s->indexed;
    found.writing = s->entered > found.latest;
    /* ids count all datasets; some may have left the cache before they were seen */
    if (s->begun && found.latest > s->last.latest)
        found.completed += found.latest - s->last.latest;
    s->begun = 1;
    s->last = found;
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
