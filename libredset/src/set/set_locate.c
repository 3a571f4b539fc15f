/* SPDX-License-Identifier: BSD-3-Clause */
/* Locates the sets of an earlier encode. A rank with a valid header greets its right
 * neighbor, which the header names. A rank that was not greeted sends the layout to its
 * left neighbor. No rank proceeds before all ranks know their places without
 * contradiction. */
#include "src/set/plan.h"
#include "src/set/set.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>

/* The state of one process. */
typedef struct locate {
    redset *set;
    int rank;
    redset_header *header;  /* own; NULL if lost */
    enum redset_loss loss;  /* of the own header, ... */
    redset_error lost;      /* ... and its reason */
    redset_layout known;    /* from the own header or a neighbor; no members: unknown */
    uint32_t crc;           /* checksum of known */
    bool greeted, informed; /* the right neighbor was greeted, the left neighbor
                               informed */
    kvtree *greetings;      /* ranks that greeted this one, with their checksums */
} locate;

/* Reads the own header. A lost header is not an error. */
static int locate_read_header(locate *l, const char *folder, const char *file,
                              redset_error *err)
{
    if (!file) {
        err_set(&l->lost, 0, "it has no redundancy file");
        return 0;
    }
    int dir, rc = beneath_open_folder(folder, &dir, &l->lost);
    if (!rc) {
        rc = redset_header_read(dir, file, &l->header, &l->lost);
        io_close(&dir);
    }
    l->loss = redset_loss_of(rc);
    if (rc) return l->loss ? 0 : err_set(err, rc, "%s", l->lost.text);
    if (l->header->layout.ranks != l->set->layout.ranks)
        return err_set(err, REDSET_UNRECOVERABLE, "%s is of a run with %d ranks, not %d",
                       file, l->header->layout.ranks, l->set->layout.ranks);
    if (l->header->list[0].rank != l->rank) {
        err_set(&l->lost, 0, "%s belongs to rank %d", file, l->header->list[0].rank);
        l->header = redset_header_free(l->header);
    }
    return 0;
}

/* ---- messages ---- */

/* A checksum of a layout, the same for all its members. */
static int locate_checksum(const redset_layout *layout, uint32_t *crc)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? redset_layout_to_tree(layout, tree) : -ENOMEM;
    if (!rc) rc = redset_tree_crc(tree, crc);
    kvtree_delete(&tree);
    return rc;
}

static int locate_contradict(const locate *l, const char *from, redset_error *err)
{
    return err_set(
        err, REDSET_UNRECOVERABLE,
        "survivors contradict each other: rank %s describes another set than %d", from,
        l->known.place.id);
}

/* Sets the layout that this process knows. */
static int locate_learn(locate *l, const kvtree *tree, const char *from,
                        redset_error *err)
{
    int rc = redset_layout_from_tree(tree, &l->known, err);
    if (rc) return err_wrap(err, rc, "layout from %s", from);
    if (l->known.ranks != l->set->layout.ranks ||
        redset_layout_find(&l->known, l->rank) != 0)
        return err_set(err, REDSET_UNRECOVERABLE,
                       "survivors of set %d do not know it as a member",
                       l->known.place.id);
    rc = locate_checksum(&l->known, &l->crc);
    return rc ? err_sys(err, rc, "layout") : 0;
}

/* Whether this process has a message to send: first a greeting to the right neighbor,
 * then the layout to the left neighbor, unless that has greeted. */
static bool locate_is_pending(const locate *l)
{
    if (!l->known.members || !l->greeted) return l->known.members != NULL;
    return !l->informed && l->known.place.members > 1 &&
           !redset_tree_at(l->greetings, redset_layout_neighbor(&l->known, -1));
}

static int locate_send(locate *l, kvtree *out)
{
    if (!locate_is_pending(l)) return 0;
    bool greets = !l->greeted;
    int to = redset_layout_neighbor(&l->known, greets ? 1 : -1);
    l->greeted = true;
    l->informed = !greets;
    if (l->known.place.members == 1) return 0;
    kvtree *message = kvtree_setf(out, NULL, "%d", to);
    if (!message) return -ENOMEM;
    int rc = greets ? kvtree_util_set_crc32(message, "HELLO", l->crc)
                    : redset_layout_to_tree(&l->known, message);
    /* the receiver would take an incomplete message for damage */
    if (rc) kvtree_unset_all(out);
    return rc;
}

/* Processes one message: a layout, or a greeting, which is stored. */
static int locate_receive(locate *l, const kvtree_elem *message, redset_error *err)
{
    unsigned long crc;
    char *from = kvtree_elem_key(message);
    const kvtree *tree = kvtree_elem_hash(message);
    if (kvtree_util_get_crc32(tree, "HELLO", &crc) == 0)
        return kvtree_util_set_crc32(l->greetings, from, crc) == 0
                   ? 0
                   : err_sys(err, -ENOMEM, "message of rank %s", from);
    if (!l->known.members) return locate_learn(l, tree, from, err);
    redset_layout other;
    int rc = redset_layout_from_tree(tree, &other, err);
    if (rc) return err_wrap(err, rc, "message of rank %s", from);
    bool equal = redset_layout_is_equal(&l->known, &other);
    redset_layout_done(&other);
    return equal ? 0 : locate_contradict(l, from, err);
}

/* Checks that all greetings are of the same set. */
static int locate_compare(const locate *l, redset_error *err)
{
    unsigned long crc;
    for (kvtree_elem *e = kvtree_elem_first(l->greetings); e; e = kvtree_elem_next(e)) {
        const char *from = kvtree_elem_key(e);
        if (kvtree_util_get_crc32(l->greetings, from, &crc) != 0 || crc != l->crc)
            return locate_contradict(l, from, err);
    }
    return 0;
}

/* Collective: all processes send pending messages, and receive. *pending becomes the
 * number of processes with more to send. */
static int locate_exchange(locate *l, int64_t *pending, redset_error *err)
{
    redset_transport *world = l->set->world;
    kvtree *out = kvtree_new(), *in = kvtree_new();
    int sent = out && in ? locate_send(l, out) : -ENOMEM;
    int rc = world->exchange(world, &out, &in);
    if (!rc) rc = sent;
    if (rc) err_sys(err, rc, "exchange layouts");
    for (kvtree_elem *e = kvtree_elem_first(in); e && !rc; e = kvtree_elem_next(e))
        rc = locate_receive(l, e, err);
    if (!rc && l->known.members) rc = locate_compare(l, err);
    kvtree_delete(&out);
    kvtree_delete(&in);
    *pending = locate_is_pending(l);
    return world->agree_result(world, rc, 1, pending, err);
}

/* Collective: passes layouts to the members that lost theirs, from right to left, one
 * member in two rounds. If nothing is lost, one round is enough. */
static int locate_layout(locate *l, redset_error *err)
{
    redset_transport *world = l->set->world;
    int64_t pending = 0;
    int rc = l->greetings ? 0 : err_sys(err, -ENOMEM, "messages");
    if (!rc && l->header) rc = locate_learn(l, l->header->tree, "its own file", err);
    rc = redset_transport_agree(world, rc, err);
    if (rc) return rc;
    do
        rc = locate_exchange(l, &pending, err);
    while (!rc && pending);
    if (rc) return rc;
    if (!l->known.members)
        rc = err_set(err, l->loss == REDSET_UNREAD ? -EIO : REDSET_UNRECOVERABLE,
                     "no survivor knows its place, and %s", l->lost.text);
    return redset_transport_agree(world, rc, err);
}

int redset_set_locate(redset *set, const char *folder, const char *file,
                      redset_error *err)
{
    redset_transport *world = set->world;
    locate l = {.set = set, .rank = world->local[0], .greetings = kvtree_new()};
    int rc = locate_read_header(&l, folder, file, err);
    rc = redset_transport_agree(world, rc, err);
    set->is_lost = !l.header && !l.loss;
    if (!rc) rc = locate_layout(&l, err);
    redset_header_free(l.header);
    kvtree_delete(&l.greetings);
    if (rc)
        redset_layout_done(&l.known);
    else
        set->layout = l.known;
    return rc;
}
