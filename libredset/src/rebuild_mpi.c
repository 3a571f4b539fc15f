/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuild: what all schemes have in common. Every process verifies what it has, all sets
 * see what follows from their losses, and only when no set lost too much do those that
 * lost something restore it. New files get their names when all sets are done. */
#include "src/redset_private_mpi.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One call of redset_rebuild on one process. */
typedef struct rebuilding {
    const redset *set;
    char name[REDSET_NAME_SIZE]; /* of the redundancy file */
    int dir;
    redset_header *header; /* own; on a lost member made from those of its neighbours */
    char lost[ERRTEXT_SIZE];
    redset_plan plan;
    redset_manifest *manifest;
    redset_flows *flows;
    redset_streams streams;
    redset_store store;
} rebuilding;

static bool is_root(const rebuilding *r)
{
    return r->plan.kind == REDSET_PLAN_REBUILD &&
           r->plan.member == r->set->layout.place.member;
}

/* ---- what is there ---- */

static int check_own(rebuilding *r, char *why)
{
    int rc = redset_header_read(r->dir, r->name, &r->header, why);
    if (rc) return rc;
    if (r->header->current.rank != r->set->rank ||
        !redset_layout_equal(&r->header->layout, &r->set->layout))
        return err_set(why, -EBADMSG, "%s is of another set", r->name);
    return redset_verify(r->dir, r->name, r->header, why);
}

/* Fills state. A loss is no failure; it is explained in r->lost. */
static int inspect(rebuilding *r, const char *folder, redset_state *state, char *text)
{
    memset(state, 0, sizeof *state);
    int rc = beneath_open_folder(folder, &r->dir, text);
    if (!rc) rc = redset_file_name(&r->set->layout.place, r->name);
    if (rc) return rc;
    rc = check_own(r, r->lost);
    if (!rc) {
        rc = redset_header_state(r->header, state);
        return rc ? err_sys(text, rc, "checksums of the header") : 0;
    }
    r->header = redset_header_free(r->header);
    if (!redset_is_loss(rc)) return err_set(text, rc, "%s", r->lost);
    state->lost = 1;
    return 0;
}

/* ---- verdict ---- */

enum { NAMED = 8, EXPLAINED = 2, REASON_SIZE = 160 };

/* Appends to text, cut to fit. */
__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format,
                                                         ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, ERRTEXT_SIZE - used, format, args);
    va_end(args);
}

/* Collective over a set that lost too much: names the lost, and says of the first ones
 * what happened to them. */
static void explain_loss(const rebuilding *r, const redset_state states[], char *text)
{
    const redset_layout *layout = &r->set->layout;
    int named = 0, explained = 0;
    err_set(text, 0, "set %d (%s over %d ranks) lost", layout->place.id,
            redset_scheme_name(layout->place.scheme), layout->place.members);
    for (int i = 0; i < layout->place.members && named < NAMED; i++)
        if (states[i].lost)
            append(text, "%s %d (rank %d)", named++ ? "," : " members", i,
                   layout->members[i]);
    if (r->plan.lost > named) append(text, " and %d more", r->plan.lost - named);
    for (int i = 0; i < layout->place.members && explained < EXPLAINED; i++) {
        if (!states[i].lost) continue;
        char reason[REASON_SIZE] = "";
        snprintf(reason, sizeof reason, "%.*s", REASON_SIZE - 1, r->lost);
        MPI_Bcast(reason, REASON_SIZE, MPI_CHAR, i, r->set->set);
        append(text, "; rank %d: %s", layout->members[i], reason);
        explained++;
    }
}

/* Collective over the set: what follows from the states of its members. */
static int judge(rebuilding *r, const redset_state *own, redset_state *states, char *text)
{
    const redset_layout *layout = &r->set->layout;
    MPI_Allgather(own, (int)sizeof *own, MPI_BYTE, states, (int)sizeof *own, MPI_BYTE,
                  r->set->set);
    r->plan = redset_plan_make(layout->place.scheme, layout->place.members, states);
    if (r->plan.kind == REDSET_PLAN_HOPELESS) {
        explain_loss(r, states, text);
        return REDSET_UNRECOVERABLE;
    }
    if (r->plan.kind == REDSET_PLAN_MIXED)
        return err_set(text, REDSET_UNRECOVERABLE,
                       "set %d (%s over %d ranks) has redundancy files of different "
                       "encodes, at member %d (rank %d) and its right neighbours",
                       layout->place.id, redset_scheme_name(layout->place.scheme),
                       layout->place.members, r->plan.member,
                       layout->members[r->plan.member]);
    return 0;
}

/* Collective: the same verdict on all ranks, before anything is changed. */
static int plan(rebuilding *r, const char *folder, char *text)
{
    redset_state own = {0};
    redset_state *states = calloc((size_t)r->set->layout.place.members, sizeof *states);
    int rc = states ? inspect(r, folder, &own, text)
                    : err_sys(text, -ENOMEM, "states of members");
    rc = agree(r->set->comm, rc, text);
    if (!rc) rc = agree(r->set->comm, judge(r, &own, states, text), text);
    free(states);
    return rc;
}

/* ---- the lost header ---- */

/* Puts the lost member's header together: all but the lists from the right neighbour's
 * header, whose PARTNER it once was; the left neighbour's list becomes its PARTNER. */
static int make_header(rebuilding *r, const kvtree *right, const kvtree *left, char *text)
{
    redset_header *theirs, *made;
    kvtree *copy = kvtree_new();
    if (!copy || kvtree_merge(copy, right) != 0) {
        kvtree_delete(&copy);
        return err_sys(text, -ENOMEM, "header");
    }
    int rc = redset_header_parse(copy, &theirs, text);
    if (rc) return err_wrap(text, rc, "header of the right neighbour");
    kvtree *tree =
        redset_header_build(&r->set->layout, theirs->chunk, kvtree_get(right, "DSET"),
                            kvtree_get(right, "PARTNER"), left);
    redset_header_free(theirs);
    if (!tree) return err_sys(text, -ENOMEM, "header");
    rc = redset_header_parse(tree, &made, text);
    if (rc) return err_wrap(text, rc, "header from the neighbours");
    r->header = made;
    if (made->current.rank == r->set->rank) return 0;
    return err_set(text, -EBADMSG, "neighbours kept the list of rank %d",
                   made->current.rank);
}

/* Between the lost member and its neighbours, which in a set of two are the same. */
static int pass_header(rebuilding *r, char *text)
{
    const redset_place *place = &r->set->layout.place;
    MPI_Comm comm = r->set->set;
    int root = r->plan.member, first = 0, second = 0;
    int right = (root + 1) % place->members;
    int left = (root + place->members - 1) % place->members;
    /* a failed send still tells the other side, which waits for both */
    if (place->member == right) first = kvtree_send(r->header->tree, root, comm);
    if (place->member == left)
        second = kvtree_send(kvtree_get(r->header->tree, "CURRENT"), root, comm);
    if (first || second) return err_sys(text, first ? first : second, "send header");
    if (place->member != root) return 0;
    kvtree *from_right = kvtree_new(), *from_left = kvtree_new();
    first = kvtree_recv(from_right, right, comm);
    second = kvtree_recv(from_left, left, comm);
    int rc = first ? first : second;
    rc = rc ? err_sys(text, rc, "receive header")
            : make_header(r, from_right, from_left, text);
    kvtree_delete(&from_right);
    kvtree_delete(&from_left);
    return rc;
}

/* ---- the data ---- */

/* What a lost member writes to. */
static int begin_lost(rebuilding *r, const redset_shape *shape, char *text)
{
    const redset_header *h = r->header;
    redset_streams *s = &r->streams;
    int rc = redset_streams_init(shape, h->chunk, s, text);
    if (!rc)
        rc = redset_output_create(r->dir, &h->current, s->data, h->chunk, &s->logical,
                                  text);
    if (!rc) rc = redset_store_begin(r->dir, r->name, h->tree, &r->store, text);
    s->store = &r->store;
    return rc;
}

/* What a survivor reads from. */
static int begin_survivor(rebuilding *r, char *text)
{
    const redset_header *h = r->header;
    redset_streams *s = &r->streams;
    int rc = redset_streams_open(r->dir, r->name, h, s, text);
    return rc ? rc
              : redset_logical_open(r->dir, &h->current, s->data, h->chunk, &s->logical,
                                    text);
}

static int begin(rebuilding *r, char *text)
{
    redset_shape shape = redset_shape_of(&r->set->layout.place);
    uint8_t *lost = calloc((size_t)shape.members, 1);
    uint64_t *length = calloc((size_t)shape.members, sizeof *length);
    int rc = lost && length ? 0 : err_sys(text, -ENOMEM, "%d members", shape.members);
    for (int i = 0; !rc && i < shape.members; i++) {
        lost[i] = i == r->plan.member;
        length[i] = r->header->chunk;
    }
    if (!rc) rc = redset_flows_new(r->set, &shape, lost, length, &r->flows, text);
    free(lost);
    free(length);
    if (rc) return rc;
    return is_root(r) ? begin_lost(r, &shape, text) : begin_survivor(r, text);
}

/* A survivor: what was read on the way is still what was verified at the start, so that
 * the lost member's new parity, for which no checksum was kept, is right as well. */
static int complete_survivor(const rebuilding *r, char *text)
{
    int rc = redset_logical_verify(r->streams.logical, text);
    if (rc || redset_streams_crc(&r->streams) == r->header->crc) return rc;
    return err_set(text, -EBADMSG, "%s changed while it was read", r->name);
}

/* The lost member: its files are what they were; they still have temporary names. */
static int complete_root(rebuilding *r, char *text)
{
    redset_header *h = r->header;
    int rc = redset_output_complete(r->streams.logical, text);
    h->crc = redset_streams_crc(&r->streams);
    if (!rc) rc = redset_store_complete(&r->store, h->tree, h->crc, text);
    if (rc) return rc;
    h->size = r->store.header;
    return 0;
}

static int make_manifest(rebuilding *r, char *text)
{
    r->manifest = redset_manifest_new(r->header);
    return r->manifest ? 0 : err_sys(text, -ENOMEM, "manifest");
}

/* The redundancy file comes last: while it is missing, the member counts as lost. */
static int commit(rebuilding *r, char *text)
{
    if (!is_root(r)) return 0;
    int rc = redset_output_commit(r->streams.logical, text);
    return rc ? rc : redset_store_commit(&r->store, text);
}

/* Collective: executes the plan. Sets that lost nothing only agree with the others. */
static int run(rebuilding *r, char *text)
{
    const redset *set = r->set;
    bool busy = r->plan.kind == REDSET_PLAN_REBUILD;
    int rc = agree(set->comm, busy ? pass_header(r, text) : 0, text);
    if (!rc) rc = agree(set->comm, busy ? begin(r, text) : 0, text);
    if (rc) return rc;
    if (busy) rc = redset_flows_run(r->flows, &r->streams, text);
    if (!rc && busy && !is_root(r)) rc = complete_survivor(r, text);
    /* a failed survivor is the cause of wrong sums: its word comes before the root's */
    rc = agree(set->comm, rc, text);
    if (rc) return rc;
    if (is_root(r)) rc = complete_root(r, text);
    if (!rc) rc = make_manifest(r, text);
    rc = agree(set->comm, rc, text);
    return rc ? rc : agree(set->comm, commit(r, text), text);
}

static void finish(rebuilding *r)
{
    redset_store_abort(&r->store);
    redset_flows_free(r->flows);
    redset_streams_done(&r->streams);
    redset_header_free(r->header);
    redset_manifest_free(r->manifest);
    io_close(&r->dir);
}

int redset_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                   int *rebuilt, char *err)
{
    char text[ERRTEXT_SIZE] = "";
    rebuilding r = {.set = set, .dir = -1, .streams = {.fd = -1}};
    int rc = plan(&r, folder, text);
    if (!rc) rc = run(&r, text);
    if (!rc) {
        *manifest = r.manifest;
        *rebuilt = is_root(&r);
        r.manifest = NULL;
    }
    finish(&r);
    return redset_report(err, text, rc);
}
