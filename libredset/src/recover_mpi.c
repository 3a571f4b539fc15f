/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the sets of an earlier encode: who has a good header greets the right neighbour
 * that it names; who was not greeted tells the layout to the left one. Nobody acts before
 * all know a place and no two differ. */
#include "src/redset_private_mpi.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>

/* What one process finds out. */
typedef struct search {
    redset *set;
    redset_header *header; /* its own; NULL when lost */
    redset_layout
        known;          /* what own header or a neighbour says; no members: nothing yet */
    uint32_t crc;       /* checksum of it */
    bool greeted, told; /* the right neighbour was greeted, the left one was told */
    kvtree *heard;      /* ranks that greeted, with their checksums */
    enum redset_loss loss;   /* of the own header, ... */
    char lost[ERRTEXT_SIZE]; /* ... and how */
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
    s->loss = redset_loss_of(rc);
    if (rc) return s->loss ? 0 : err_set(text, rc, "%s", s->lost);
    if (s->header->layout.ranks != s->set->layout.ranks)
        return err_set(text, REDSET_UNRECOVERABLE, "%s is of a run with %d ranks, not %d",
                       file, s->header->layout.ranks, s->set->layout.ranks);
    if (s->header->list[0].rank != s->set->rank) {
        err_set(s->lost, 0, "%s belongs to rank %d", file, s->header->list[0].rank);
        s->header = redset_header_free(s->header);
    }
    return 0;
}

/* ---- who is where ---- */

/* A checksum over a layout, the same for all its members. */
static int checksum(const redset_layout *layout, uint32_t *crc)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? redset_layout_to_tree(layout, tree) : -ENOMEM;
    if (!rc) rc = redset_tree_crc(tree, crc);
    kvtree_delete(&tree);
    return rc;
}

static int contradict(const search *s, const char *from, char *text)
{
    return err_set(
        text, REDSET_UNRECOVERABLE,
        "survivors contradict each other: rank %s tells of another set than %d", from,
        s->known.place.id);
}

/* This process knows its set now. */
static int know(search *s, const kvtree *tree, const char *from, char *text)
{
    int rc = redset_layout_from_tree(tree, &s->known, text);
    if (rc) return err_wrap(text, rc, "layout from %s", from);
    if (s->known.ranks != s->set->layout.ranks ||
        redset_layout_find(&s->known, s->set->rank) != 0)
        return err_set(text, REDSET_UNRECOVERABLE,
                       "survivors of set %d do not know it as a member",
                       s->known.place.id);
    rc = checksum(&s->known, &s->crc);
    return rc ? err_sys(text, rc, "layout") : 0;
}

static bool has_heard(const search *s)
{
    char left[16];
    snprintf(left, sizeof left, "%d", redset_layout_neighbour(&s->known, -1));
    return s->known.place.members == 1 || kvtree_get(s->heard, left);
}

/* There is something to say: first to the right neighbour, then, when the left one was
 * silent, to that. */
static bool is_pending(const search *s)
{
    return s->known.members && (!s->greeted || (!s->told && !has_heard(s)));
}

static int say(search *s, kvtree *send)
{
    char to[16];
    if (!is_pending(s)) return 0;
    bool first = !s->greeted;
    snprintf(to, sizeof to, "%d", redset_layout_neighbour(&s->known, first ? 1 : -1));
    s->greeted = true;
    s->told = !first;
    if (s->known.place.members == 1) return 0;
    kvtree *message = kvtree_set(send, to, NULL);
    if (!message) return -ENOMEM;
    int rc = first ? kvtree_util_set_crc32(message, "HELLO", s->crc)
                   : redset_layout_to_tree(&s->known, message);
    if (rc) kvtree_unset(send, to); /* a part of it would count as damage there */
    return rc;
}

/* Takes one message: a layout, or a greeting, which is kept. */
static int hear(search *s, const kvtree_elem *message, char *text)
{
    unsigned long crc;
    char *from = kvtree_elem_key(message);
    const kvtree *tree = kvtree_elem_hash(message);
    if (kvtree_util_get_crc32(tree, "HELLO", &crc) == 0)
        return kvtree_util_set_crc32(s->heard, from, crc) == 0
                   ? 0
                   : err_sys(text, -ENOMEM, "message of rank %s", from);
    if (!s->known.members) return know(s, tree, from, text);
    redset_layout other;
    int rc = redset_layout_from_tree(tree, &other, text);
    if (rc) return err_wrap(text, rc, "message of rank %s", from);
    bool equal = redset_layout_equal(&s->known, &other);
    redset_layout_done(&other);
    return equal ? 0 : contradict(s, from, text);
}

/* All who greeted mean the same set. */
static int compare(const search *s, char *text)
{
    unsigned long crc;
    for (kvtree_elem *e = kvtree_elem_first(s->heard); e; e = kvtree_elem_next(e)) {
        const char *from = kvtree_elem_key(e);
        if (kvtree_util_get_crc32(s->heard, from, &crc) != 0 || crc != s->crc)
            return contradict(s, from, text);
    }
    return 0;
}

/* Collective: everyone says what it has to say, and hears the others. *pending becomes
 * the number of those that have more to say. */
static int speak(search *s, int64_t *pending, char *text)
{
    kvtree *send = kvtree_new(), *heard = kvtree_new();
    int said = send && heard ? say(s, send) : -ENOMEM;
    int rc = kvtree_exchange(send, heard, s->set->comm);
    if (!rc) rc = said;
    if (rc) err_sys(text, rc, "exchange layouts");
    for (kvtree_elem *e = kvtree_elem_first(heard); e && !rc; e = kvtree_elem_next(e))
        rc = hear(s, e, text);
    if (!rc && s->known.members) rc = compare(s, text);
    kvtree_delete(&send);
    kvtree_delete(&heard);
    *pending = is_pending(s);
    return agree_sum(s->set->comm, rc, text, 1, pending);
}

/* Collective: layouts reach the members that lost theirs, from right to left, one member
 * in two rounds. Where nothing was lost one round is enough. */
static int exchange(search *s, char *text)
{
    int64_t pending = 0;
    int rc = s->heard ? 0 : err_sys(text, -ENOMEM, "messages");
    if (!rc && s->header) rc = know(s, s->header->tree, "its own file", text);
    rc = agree(s->set->comm, rc, text);
    if (rc) return rc;
    do
        rc = speak(s, &pending, text);
    while (!rc && pending);
    if (rc) return rc;
    if (!s->known.members)
        rc = err_set(text, s->loss == REDSET_UNREAD ? -EIO : REDSET_UNRECOVERABLE,
                     "no survivor knows its place, and %s", s->lost);
    return agree(s->set->comm, rc, text);
}

/* Splits the sets apart. All members of a layout hold that layout by now, so a set that
 * came out with its number of members has exactly these; more are there when two layouts
 * claim one index. */
static int split_sets(redset *set, char *text)
{
    const redset_place *place = &set->layout.place;
    int size, member;
    int rc =
        redset_mpi(MPI_Comm_split(set->comm, place->set, place->member, &set->set), text);
    if (rc) return rc;
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
    search s = {.set = set, .heard = kvtree_new()};
    int rc = agree(set->comm, find_header(&s, folder, file, text), text);
    set->lost = !s.header && !s.loss;
    if (!rc) rc = exchange(&s, text);
    redset_header_free(s.header);
    kvtree_delete(&s.heard);
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
