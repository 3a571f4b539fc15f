/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuilds redundancy sets; see rebuild.h. */
#include "scavenge/rebuild.h"

#include "common/beneath.h"
#include "lib/tool_progress.h"
#include "scavenge/parallel_for.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct rebuild_task {
    const scavenge_folder *folder;
    const scavenge_scan *scan;
    scavenge_rebuilt *list;
    int sets;                     /* number of sets in the list, of which ... */
    _Atomic int begun;            /* ... this number have begun, ... */
    _Atomic uint64_t done, total; /* ... with these bytes */
} rebuild_task;

/* ---- progress ---- */

/* The bytes of one set as last reported. */
typedef struct rebuild_share {
    rebuild_task *task;
    uint64_t done, total;
} rebuild_share;

/* Reports the progress; sets that have not begun count as the mean of the others. */
static void rebuild_report(void *arg, uint64_t done, uint64_t total)
{
    rebuild_share *s = arg;
    rebuild_task *t = s->task;
    t->done += done - s->done;
    t->total += total - s->total;
    s->done = done;
    s->total = total;
    tool_progress_set(t->done, t->total / (uint64_t)t->begun * (uint64_t)t->sets);
}

/* ---- filemaps ---- */

/* Adds the redundancy file of a manifest, which does not have the size of that file. */
static int rebuild_add_redundancy(const rebuild_task *t, const redset_manifest *m,
                                  scavenge_rank *rank, kvtree_error *err)
{
    char name[REDSET_NAME_SIZE + sizeof SCAVENGE_HIDDEN];
    struct stat st;
    snprintf(name, sizeof name, SCAVENGE_HIDDEN "/%s", m->file);
    int rc = beneath_stat(t->folder->dir, name, &st, err);
    if (rc) return rc;
    const scavenge_file f = {
        .name = m->file, .redundancy = true, .size = (uint64_t)st.st_size};
    return scavenge_rank_add(rank, &f);
}

/* Writes a filemap with the files that the manifest of the rank lists. */
static int rebuild_write_filemap(const rebuild_task *t, const redset_manifest *m,
                                 kvtree_error *err)
{
    scavenge_rank *rank = scavenge_rank_new(m->rank);
    int rc = rank ? 0 : -ENOMEM;
    for (int i = 0; i < m->count && !rc; i++) {
        const redset_file *from = &m->files[i];
        const scavenge_file f = {from->name,        false,     from->size, from->crc,
                                 m->checksums != 0, from->meta};
        rc = scavenge_check_name(f.name, err);
        if (!rc) rc = scavenge_rank_add(rank, &f);
    }
    if (!rc) rc = rebuild_add_redundancy(t, m, rank, err);
    if (rc == -ENOMEM) err_set(err, rc, "no memory");
    if (!rc) rc = scavenge_rank_write(t->folder->dir, rank, &t->scan->dataset, err);
    scavenge_rank_free(rank);
    return rc;
}

/* Writes filemaps for members that were incomplete; all members are complete now. The
 * text says why the last of the lost members was lost. */
static int rebuild_record(const rebuild_task *t, const redset_found_set *set,
                          scavenge_rebuilt *r)
{
    int rc = 0;
    for (int i = 0; i < set->place.members; i++)
        if (set->members[i].lost)
            snprintf(r->why.text, sizeof r->why.text, "rank %d: %.400s",
                     set->members[i].rank, set->members[i].reason);
    for (int i = 0; i < set->place.members && !rc; i++) {
        const redset_found_member *m = &set->members[i];
        if (scavenge_scan_has(t->scan, m->rank)) continue;
        rc = m->manifest ? rebuild_write_filemap(t, m->manifest, &r->why)
                         : err_set(&r->why, -EBADMSG,
                                   "no record lists the files of rank %d", m->rank);
        r->ranks++;
    }
    return rc;
}

/* ---- sets ---- */

static void rebuild_set(void *arg, int i)
{
    rebuild_task *t = arg;
    rebuild_share share = {.task = t};
    scavenge_rebuilt *r = &t->list[i];
    redset_found *found = NULL;
    t->begun++;
    r->failed =
        redset_rebuild_folder_with(t->folder->dir, t->folder->path, SCAVENGE_HIDDEN,
                                   r->id, rebuild_report, &share, &found, &r->why);
    for (int k = 0; found && k < found->count && !r->failed; k++)
        r->failed = rebuild_record(t, &found->sets[k], r);
    redset_found_free(found);
}

int scavenge_rebuild(const scavenge_folder *folder, const scavenge_scan *scan, int width,
                     scavenge_rebuilt **list, int *count)
{
    rebuild_task t = {.folder = folder, .scan = scan};
    t.list = calloc((size_t)scan->members + 1, sizeof *t.list);
    if (!t.list) return -ENOMEM;
    for (int i = 0, end; i < scan->members; i = end) {
        int id = scan->list[i].place.id;
        end = scavenge_set_end(scan->list, scan->members, i);
        /* a rebuild handles all sets with the id */
        if (scavenge_set_is_incomplete(scan, i, end) &&
            (!t.sets || t.list[t.sets - 1].id != id))
            t.list[t.sets++].id = id;
    }
    scavenge_parallel_for(t.sets, width, rebuild_set, &t);
    *list = t.list;
    *count = t.sets;
    return 0;
}
