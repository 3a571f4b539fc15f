/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the sets of an earlier encode: who has a good header tells the layout to all
 * members that it names, and nobody acts before all know a place and no two answers
 * differ. */
#include "src/redset_private_mpi.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdio.h>

/* What one process finds out. */
typedef struct search {
    redset *set;
    redset_header *header; /* its own; NULL when lost */
    redset_layout known;   /* what own header and answers say; no members: nothing yet */
    char lost[ERRTEXT_SIZE]; /* how the own header was lost */
} search;

/* Reads this process's header. That it is lost is no failure. */
static int find_header(search *s, const char *folder, const char *file, char *text)
{
    if (!file) {
        err_set(s->lost, 0, "it has no redundancy file");
        return 0;
    }
    int dir, rc = beneath_open_folder(folder, &dir, s->lost);
    if (!rc) {
        rc = redset_header_read(dir, file, &s->header, s->lost);
        io_close(&dir);
    }
    if (rc && !redset_is_loss(rc)) return err_set(text, rc, "%s", s->lost);
    if (rc) return 0;
    if (s->header->layout.ranks != s->set->layout.ranks)
        return err_set(text, REDSET_UNRECOVERABLE, "%s is of a run with %d ranks, not %d",
                       file, s->header->layout.ranks, s->set->layout.ranks);
    if (s->header->list[0].rank != s->set->rank) {
        err_set(s->lost, 0, "%s belongs to rank %d", file, s->header->list[0].rank);
        s->header = redset_header_free(s->header);
    }
    return 0;
}

/* Fills send with the layout for every other member. */
static int address_members(const search *s, kvtree *send)
{
    const redset_layout *layout = &s->header->layout;
    for (int i = 0; i < layout->place.members; i++) {
        char rank[16];
        if (layout->members[i] == s->set->rank) continue;
        snprintf(rank, sizeof rank, "%d", layout->members[i]);
        kvtree *message = kvtree_set(send, rank, NULL);
        if (!message || redset_layout_to_tree(layout, message) != 0) return -ENOMEM;
    }
    return 0;
}

/* Compares the answer of one rank with what is known so far, or begins with it. */
static int learn_from(search *s, const kvtree_elem *answer, char *text)
{
    redset_layout layout;
    const char *from = kvtree_elem_key(answer);
    int rc = redset_layout_from_tree(kvtree_elem_hash(answer), &layout, text);
    if (rc) return err_wrap(text, rc, "message of rank %s", from);
    if (!s->known.members) {
        s->known = layout;
        return 0;
    }
    bool equal = redset_layout_equal(&s->known, &layout);
    int id = layout.place.id;
    redset_layout_done(&layout);
    if (equal) return 0;
    return err_set(text, REDSET_UNRECOVERABLE,
                   "survivors contradict each other: set %d, but set %d after rank %s",
                   s->known.place.id, id, from);
}

static int learn(search *s, const kvtree *answers, char *text)
{
    int rc = 0;
    if (s->header) rc = redset_layout_from_tree(s->header->tree, &s->known, text);
    for (kvtree_elem *e = kvtree_elem_first(answers); e && !rc; e = kvtree_elem_next(e))
        rc = learn_from(s, e, text);
    if (rc) return rc;
    if (!s->known.members)
        return err_set(text, REDSET_UNRECOVERABLE, "no survivor knows its place, and %s",
                       s->lost);
    if (s->known.ranks != s->set->layout.ranks ||
        redset_layout_find(&s->known, s->set->rank) != 0)
        return err_set(text, REDSET_UNRECOVERABLE,
                       "survivors of set %d do not know it as a member",
                       s->known.place.id);
    return 0;
}

/* Collective: everyone tells, and learns, the layouts. */
static int exchange(search *s, char *text)
{
    MPI_Comm comm = s->set->comm;
    kvtree *send = kvtree_new(), *answers = kvtree_new();
    int rc = send && answers ? 0 : -ENOMEM;
    if (!rc && s->header) rc = address_members(s, send);
    rc = agree(comm, rc ? err_sys(text, rc, "message") : 0, text);
    if (!rc) {
        rc = kvtree_exchange(send, answers, comm);
        if (rc) err_sys(text, rc, "exchange layouts");
    }
    if (!rc) rc = agree(comm, learn(s, answers, text), text);
    kvtree_delete(&send);
    kvtree_delete(&answers);
    return rc;
}

/* Splits the sets apart. All members of a layout hold that layout by now, so a set that
 * came out with its number of members has exactly these; more are there when two layouts
 * claim one index. */
static int split_sets(redset *set, char *text)
{
    const redset_place *place = &set->layout.place;
    int size, member, rc = 0;
    MPI_Comm_split(set->comm, place->set, place->member, &set->set);
    MPI_Comm_size(set->set, &size);
    MPI_Comm_rank(set->set, &member);
    if (size != place->members || member != place->member)
        rc = err_set(text, REDSET_UNRECOVERABLE,
                     "survivors contradict each other: %d ranks claim a place among the "
                     "%d members of set %d",
                     size, place->members, place->id);
    return agree(set->comm, rc, text);
}

static int recover(redset *set, const char *folder, const char *file, char *text)
{
    search s = {.set = set};
    int rc = agree(set->comm, find_header(&s, folder, file, text), text);
    if (!rc) rc = exchange(&s, text);
    redset_header_free(s.header);
    if (rc) {
        redset_layout_done(&s.known);
        return rc;
    }
    set->layout = s.known;
    return split_sets(set, text);
}

int redset_recover(MPI_Comm comm, const char *folder, const char *file, redset **set,
                   char *err)
{
    char text[ERRTEXT_SIZE] = "";
    redset *s;
    int rc = redset_start(comm, &s, text);
    if (rc) return redset_report(err, text, rc);
    rc = recover(s, folder, file, text);
    if (rc) {
        redset_free(s);
        return redset_report(err, text, rc);
    }
    *set = s;
    return 0;
}
