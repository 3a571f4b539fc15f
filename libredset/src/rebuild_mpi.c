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
#include <kvtree/kvtree_util.h>
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
    redset_shape shape;
    redset_plan plan;
    uint8_t *is_lost; /* one of each member, when there is a plan */
    redset_manifest *manifest;
    redset_flows *flows;
    redset_streams streams;
    redset_store store;
} rebuilding;

static bool is_lost(const rebuilding *r)
{
    return r->is_lost[r->set->layout.place.member];
}

/* ---- what is there ---- */

static int check_own(rebuilding *r, char *why)
{
    int rc = redset_header_read(r->dir, r->name, &r->header, why);
    if (rc) return rc;
    if (r->header->list[0].rank != r->set->rank ||
        !redset_layout_equal(&r->header->layout, &r->set->layout))
        return err_set(why, -EBADMSG, "%s is of another set", r->name);
    return redset_verify(r->dir, r->name, r->header, why);
}

/* Fills state. A loss is no failure; it is explained in r->lost. */
static int inspect(rebuilding *r, const char *folder, redset_state *state, char *text)
{
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
static void explain_loss(const rebuilding *r, char *text)
{
    const redset_layout *layout = &r->set->layout;
    int named = 0, explained = 0;
    err_set(text, 0, "set %d (%s over %d ranks) lost", layout->place.id,
            redset_scheme_name(layout->place.scheme), layout->place.members);
    for (int i = 0; i < layout->place.members && named < NAMED; i++)
        if (r->is_lost[i])
            append(text, "%s %d (rank %d)", named++ ? "," : " members", i,
                   layout->members[i]);
    if (r->plan.lost > named) append(text, " and %d more", r->plan.lost - named);
    for (int i = 0; i < layout->place.members && explained < EXPLAINED; i++) {
        if (!r->is_lost[i]) continue;
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
    int size = (int)redset_state_size(&r->shape);
    MPI_Allgather(own, size, MPI_BYTE, states, size, MPI_BYTE, r->set->set);
    r->plan = redset_plan_make(&r->shape, states, r->is_lost);
    if (r->plan.kind == REDSET_PLAN_HOPELESS) {
        explain_loss(r, text);
        return REDSET_UNRECOVERABLE;
    }
    if (r->plan.kind == REDSET_PLAN_MIXED)
        return err_set(text, REDSET_UNRECOVERABLE,
                       "set %d (%s over %d ranks) has redundancy files of different "
                       "encodes: they disagree on member %d (rank %d)",
                       layout->place.id, redset_scheme_name(layout->place.scheme),
                       layout->place.members, r->plan.member,
                       layout->members[r->plan.member]);
    return 0;
}

/* Collective: the same verdict on all ranks, before anything is changed. */
static int plan(rebuilding *r, const char *folder, char *text)
{
    size_t members = (size_t)r->shape.members, size = redset_state_size(&r->shape);
    redset_state *own = calloc(1, size), *states = calloc(members, size);
    r->is_lost = calloc(members, 1);
    int rc = own && states && r->is_lost ? inspect(r, folder, own, text)
                                         : err_sys(text, -ENOMEM, "states of members");
    rc = agree(r->set->comm, rc, text);
    if (!rc) rc = agree(r->set->comm, judge(r, own, states, text), text);
    free(own);
    free(states);
    return rc;
}

/* ---- the lost headers ---- */

/* Copies what a list's holder knows of it to the message for a lost member: the list
 * below its distance from there; with the member's own, all that headers have in common.
 */
static int add_list(const rebuilding *r, kvtree *message, int lost, int distance)
{
    char key[16];
    const kvtree *header = r->header->tree;
    int members = r->shape.members;
    int owner = (lost + members - distance) % members;
    int own = (r->set->layout.place.member + members - owner) % members;
    snprintf(key, sizeof key, "%d", distance);
    kvtree *list = kvtree_set(message, key, NULL), *about = NULL;
    if (!list || kvtree_merge(list, redset_header_list(header, own)) != 0) return -ENOMEM;
    if (distance > 0) return 0;
    about = kvtree_set(message, "DSET", NULL);
    if (!about || kvtree_merge(about, kvtree_get(header, "DSET")) != 0) return -ENOMEM;
    return kvtree_util_set_bytecount(message, "CHUNK", r->header->chunk);
}

/* Addresses the lists that this survivor is to give to a lost member. */
static int address_lists(const rebuilding *r, kvtree *send, int lost)
{
    char to[16];
    int members = r->shape.members, rc = 0;
    snprintf(to, sizeof to, "%d", lost);
    for (int d = 0; d <= r->shape.failures && !rc; d++) {
        int owner = (lost + members - d) % members;
        int holder = redset_list_holder(&r->shape, r->is_lost, owner);
        if (holder != r->set->layout.place.member) continue;
        kvtree *message = kvtree_get(send, to);
        if (!message) message = kvtree_set(send, to, NULL);
        rc = message ? add_list(r, message, lost, d) : -ENOMEM;
    }
    return rc;
}

/* Takes the lists out of the answers, and what came with the first one. */
static int make_tree(const rebuilding *r, kvtree *answers, kvtree **lists, kvtree **tree)
{
    unsigned long chunk = 0;
    const kvtree *about = NULL;
    for (kvtree_elem *e = kvtree_elem_first(answers); e; e = kvtree_elem_next(e)) {
        kvtree *answer = kvtree_elem_hash(e);
        for (int d = 0; d <= r->shape.failures; d++) {
            char key[16];
            snprintf(key, sizeof key, "%d", d);
            if (kvtree_get(answer, key)) lists[d] = kvtree_get(answer, key);
        }
        if (kvtree_util_get_bytecount(answer, "CHUNK", &chunk) == 0)
            about = kvtree_get(answer, "DSET");
    }
    *tree = redset_header_build(&r->set->layout, chunk, about, lists);
    return *tree ? 0 : -ENOMEM;
}

/* A lost member's header from the answers of survivors. */
static int make_header(rebuilding *r, kvtree *answers, char *text)
{
    kvtree *tree = NULL;
    kvtree **lists = calloc((size_t)r->shape.failures + 1, sizeof *lists);
    int rc = lists ? make_tree(r, answers, lists, &tree) : -ENOMEM;
    free(lists);
    if (rc) return err_sys(text, rc, "header");
    rc = redset_header_parse(tree, &r->header, text);
    if (rc) return err_wrap(text, rc, "header from the neighbours");
    if (r->header->list[0].rank == r->set->rank) return 0;
    return err_set(text, -EBADMSG, "neighbours kept the list of rank %d",
                   r->header->list[0].rank);
}

/* Collective over the set: survivors tell the lost members what they had. */
static int pass_headers(rebuilding *r, char *text)
{
    kvtree *send = kvtree_new(), *answers = kvtree_new();
    int addressed = send && answers ? 0 : -ENOMEM;
    for (int m = 0; m < r->shape.members && !addressed && !is_lost(r); m++)
        if (r->is_lost[m]) addressed = address_lists(r, send, m);
    int rc = kvtree_exchange(send, answers, r->set->set);
    if (!rc) rc = addressed;
    if (rc) err_sys(text, rc, "exchange headers");
    if (!rc && is_lost(r)) rc = make_header(r, answers, text);
    kvtree_delete(&send);
    kvtree_delete(&answers);
    return rc;
}

/* ---- the data ---- */

/* What a lost member writes to. */
static int begin_lost(rebuilding *r, char *text)
{
    const redset_header *h = r->header;
    redset_streams *s = &r->streams;
    int rc = redset_streams_init(h, s, text);
    if (!rc)
        rc = redset_output_create(r->dir, &h->list[0], s->data, s->chunk, &s->logical,
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
              : redset_logical_open(r->dir, &h->list[0], s->data, s->chunk, &s->logical,
                                    text);
}

static int begin(rebuilding *r, char *text)
{
    uint64_t *length = calloc((size_t)r->shape.members, sizeof *length);
    if (!length) return err_sys(text, -ENOMEM, "%d members", r->shape.members);
    redset_header_lengths(r->header, length);
    int rc = redset_flows_new(r->set, &r->shape, r->is_lost, length, &r->flows, text);
    free(length);
    if (rc) return rc;
    return is_lost(r) ? begin_lost(r, text) : begin_survivor(r, text);
}

/* A survivor: what was read on the way is still what was verified at the start, so that
 * the lost member's new parity, for which no checksum was kept, is right as well. */
static int complete_survivor(rebuilding *r, char *text)
{
    int rc = redset_streams_skim(&r->streams, r->set->piece, text);
    if (!rc) rc = redset_logical_verify(r->streams.logical, text);
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
    if (!is_lost(r)) return 0;
    int rc = redset_output_commit(r->streams.logical, text);
    return rc ? rc : redset_store_commit(&r->store, text);
}

/* Collective: executes the plan. Sets that lost nothing only agree with the others. */
static int run(rebuilding *r, char *text)
{
    const redset *set = r->set;
    bool busy = r->plan.kind == REDSET_PLAN_REBUILD;
    int rc = agree(set->comm, busy ? pass_headers(r, text) : 0, text);
    if (!rc) rc = agree(set->comm, busy ? begin(r, text) : 0, text);
    if (rc) return rc;
    if (busy) rc = redset_flows_run(r->flows, &r->streams, text);
    if (!rc && busy && !is_lost(r)) rc = complete_survivor(r, text);
    /* a failed survivor is the cause of wrong sums: its word comes before the root's */
    rc = agree(set->comm, rc, text);
    if (rc) return rc;
    if (is_lost(r)) rc = complete_root(r, text);
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
    free(r->is_lost);
    redset_manifest_free(r->manifest);
    io_close(&r->dir);
}

int redset_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                   int *rebuilt, char *err)
{
    char text[ERRTEXT_SIZE] = "";
    rebuilding r = {.set = set, .dir = -1, .streams = {.fd = -1}};
    r.shape = redset_shape_of(&set->layout.place);
    int rc = plan(&r, folder, text);
    if (!rc) rc = run(&r, text);
    if (!rc) {
        *manifest = r.manifest;
        *rebuilt = is_lost(&r);
        r.manifest = NULL;
    }
    finish(&r);
    return redset_report(err, text, rc);
}
