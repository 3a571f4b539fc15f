/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuilding sets; see rebuild.h. */
#include "scavenge/rebuild.h"

#include "common/beneath.h"
#include "scavenge/side.h"
#include <errno.h>
#include <redset/redset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct task {
    const scavenge_folder *folder;
    const scavenge_scan *scan;
    const scavenge_set **sets;
    scavenge_rebuilt *list;
} task;

/* ---- filemaps ---- */

/* The manifest of a file that was rebuilt does not have its size. */
static int add_redundancy(const task *t, const redset_manifest *m, scavenge_rank *rank,
                          char *err)
{
    char name[REDSET_NAME_SIZE + sizeof SCAVENGE_HIDDEN];
    struct stat st;
    snprintf(name, sizeof name, SCAVENGE_HIDDEN "/%s", m->file);
    int rc = beneath_stat(t->folder->dir, name, &st, err);
    const scavenge_file f = {
        .name = m->file, .redundancy = 1, .size = rc ? 0 : (uint64_t)st.st_size};
    return rc ? rc : scavenge_rank_add(rank, &f);
}

/* What a rank protected, as its filemap tells it. */
static int write_filemap(const task *t, const redset_manifest *m, char *err)
{
    scavenge_rank *rank = scavenge_rank_new(m->rank);
    int rc = rank ? 0 : -ENOMEM;
    for (int i = 0; i < m->count && !rc; i++) {
        const redset_file *from = &m->files[i];
        const scavenge_file f = {.name = from->name,
                                 .size = from->size,
                                 .crc = from->crc,
                                 .has_crc = m->checksums,
                                 .meta = from->meta};
        rc = scavenge_check_name(f.name, err);
        if (rc) break;
        rc = scavenge_rank_add(rank, &f);
    }
    rc = rc ? rc : add_redundancy(t, m, rank, err);
    if (rc == -ENOMEM) err_set(err, rc, "no memory");
    rc = rc ? rc : scavenge_rank_write(t->folder->dir, rank, &t->scan->dataset, err);
    scavenge_rank_free(rank);
    return rc;
}

/* All members are whole now: those that were not before get a filemap. */
static int note_members(const task *t, const redset_found_set *set, scavenge_rebuilt *r)
{
    int rc = 0;
    for (int m = 0; m < set->place.members && !rc; m++) {
        const redset_found_member *member = &set->members[m];
        if (scavenge_scan_has(t->scan, member->rank)) continue;
        if (!member->manifest)
            rc = err_set(r->why, -EBADMSG, "nothing tells the files of rank %d",
                         member->rank);
        else
            rc = write_filemap(t, member->manifest, r->why);
        r->ranks++;
    }
    return rc;
}

/* ---- sets ---- */

/* Why files were lost, for people; the last one stands for all. */
static void note_losses(const redset_found_set *set, scavenge_rebuilt *r)
{
    for (int m = 0; m < set->place.members; m++)
        if (set->members[m].lost)
            snprintf(r->why, sizeof r->why, "rank %d: %.400s", set->members[m].rank,
                     set->members[m].reason);
}

static void rebuild_set(void *arg, int i)
{
    const task *t = arg;
    scavenge_rebuilt *r = &t->list[i];
    redset_found *found = NULL;
    r->id = t->sets[i]->id;
    r->failed =
        redset_rebuild_folder(t->folder->path, SCAVENGE_HIDDEN, r->id, &found, r->why);
    for (int k = 0; found && k < found->count && !r->failed; k++) {
        note_losses(&found->sets[k], r);
        r->failed = note_members(t, &found->sets[k], r);
    }
    redset_found_free(found);
}

/* The sets that lack something, each id once: a rebuild takes all of an id. */
static int choose(const scavenge_scan *scan, const scavenge_set **sets)
{
    int count = 0;
    for (int i = 0; i < scan->sets; i++)
        if (scavenge_set_lacks(scan, &scan->set[i]) &&
            (count == 0 || sets[count - 1]->id != scan->set[i].id))
            sets[count++] = &scan->set[i];
    return count;
}

int scavenge_rebuild(const scavenge_folder *folder, const scavenge_scan *scan, int most,
                     scavenge_rebuilt **list, int *count)
{
    size_t room = (size_t)scan->sets + 1;
    task t = {.folder = folder, .scan = scan};
    t.sets = calloc(room, sizeof(scavenge_set *));
    t.list = calloc(room, sizeof *t.list);
    if (!t.sets || !t.list) {
        free(t.sets);
        free(t.list);
        return -ENOMEM;
    }
    *count = choose(scan, t.sets);
    scavenge_side_by_side(*count, most, rebuild_set, &t);
    free(t.sets);
    *list = t.list;
    return 0;
}
