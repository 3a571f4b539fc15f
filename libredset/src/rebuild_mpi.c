/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuild: what all schemes have in common. Every process looks at what it has, all sets
 * see what follows from their losses, and only when no set lost too much do those that
 * lost something restore it. While survivors are read, their checksums are compared; who
 * is damaged counts as lost, too, and all begin again. New files get their names when all
 * sets are done. */
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
    redset_shape shape;
    redset_state *own, *states; /* of this member, of all */
    char lost[ERRTEXT_SIZE];    /* why own says so */
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
    return redset_sizes_check(r->dir, &r->header->list[0], why);
}

/* This member counts as lost, for the reason in r->lost, if rc says that: no failure. */
static int lose(rebuilding *r, int rc, char *text)
{
    if (!redset_is_loss(rc)) return err_set(text, rc, "%s", r->lost);
    r->header = redset_header_free(r->header);
    memset(r->own, 0, redset_state_size(&r->shape));
    r->own->lost = 1;
    return 0;
}

/* Fills r->own by what costs little: header and sizes. The bytes are read once, while
 * they are used or, when nothing is to be rebuilt from them, in their place. */
static int inspect(rebuilding *r, const char *folder, char *text)
{
    size_t members = (size_t)r->shape.members, size = redset_state_size(&r->shape);
    r->own = calloc(1, size);
    r->states = calloc(members, size);
    r->is_lost = calloc(members, 1);
    if (!r->own || !r->states || !r->is_lost)
        return err_sys(text, -ENOMEM, "states of members");
    int rc = beneath_open_folder(folder, &r->dir, text);
    if (!rc) rc = redset_file_name(&r->set->layout.place, r->name);
    if (rc) return rc;
    rc = check_own(r, r->lost);
    if (rc) return lose(r, rc, text);
    rc = redset_header_state(r->header, r->own);
    return rc ? err_sys(text, rc, "checksums of the header") : 0;
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
static int judge(rebuilding *r, char *text)
{
    const redset_layout *layout = &r->set->layout;
    int size = (int)redset_state_size(&r->shape);
    MPI_Allgather(r->own, size, MPI_BYTE, r->states, size, MPI_BYTE, r->set->set);
    r->plan = redset_plan_make(&r->shape, r->states, r->is_lost);
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

static int begin_flows(rebuilding *r, char *text)
{
    uint64_t *length = calloc((size_t)r->shape.members, sizeof *length);
    if (!length) return err_sys(text, -ENOMEM, "%d members", r->shape.members);
    redset_header_lengths(r->header, length);
    int rc = redset_flows_new(r->set, &r->shape, r->is_lost, length, &r->flows, text);
    free(length);
    return rc;
}

static int begin(rebuilding *r, char *text)
{
    int rc = r->plan.kind == REDSET_PLAN_REBUILD ? begin_flows(r, text) : 0;
    if (rc) return rc;
    return is_lost(r)
               ? begin_lost(r, text)
               : redset_streams_open(r->dir, r->name, r->header, &r->streams, text);
}

/* Collective over the set: what is lost flows from the survivors. These have all their
 * checksums compared; one that differs makes its member lost. */
static int move_data(rebuilding *r, char *text)
{
    bool survivor = !is_lost(r);
    char *why = survivor ? r->lost : text;
    int rc = r->flows ? redset_flows_run(r->flows, &r->streams, why) : 0;
    if (!survivor) return rc;
    r->flows = redset_flows_free(r->flows); /* what is read now takes a buffer, too */
    if (!rc)
        rc = redset_streams_verify(&r->streams, r->name, r->header, r->set->piece, why);
    return rc ? lose(r, rc, text) : 0;
}

static void drop(rebuilding *r)
{
    redset_store_abort(&r->store);
    r->flows = redset_flows_free(r->flows);
    redset_streams_done(&r->streams);
    if (r->own && r->own->lost) r->header = redset_header_free(r->header);
}

/* Collective: what lost members get has temporary names so far. *damaged is the number of
 * survivors, in any set, that turned out to be none. */
static int attempt(rebuilding *r, int64_t *damaged, char *text)
{
    MPI_Comm comm = r->set->comm;
    int rc = agree(comm, judge(r, text), text);
    if (rc) return rc;
    bool busy = r->plan.kind == REDSET_PLAN_REBUILD;
    rc = agree(comm, busy ? pass_headers(r, text) : 0, text);
    if (!rc) rc = agree(comm, begin(r, text), text);
    if (rc) return rc;
    rc = move_data(r, text);
    *damaged = r->own->lost && !is_lost(r);
    return agree_sum(comm, rc, text, 1, damaged);
}

/* Collective: an attempt that met damage is dropped, and the next one knows of it. There
 * are no more attempts than members that may be lost, and one. */
static int rebuild(rebuilding *r, const char *folder, char *text)
{
    int64_t damaged = 0;
    int rc = agree(r->set->comm, inspect(r, folder, text), text);
    do {
        if (damaged) drop(r);
        if (!rc) rc = attempt(r, &damaged, text);
    } while (!rc && damaged);
    return rc;
}

/* The lost member: its files are what they were; they still have temporary names. */
static int complete_lost(rebuilding *r, char *text)
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

/* Collective: all is there and right; now it gets its names. */
static int conclude(rebuilding *r, char *text)
{
    int rc = is_lost(r) ? complete_lost(r, text) : 0;
    if (!rc) rc = make_manifest(r, text);
    rc = agree(r->set->comm, rc, text);
    return rc ? rc : agree(r->set->comm, commit(r, text), text);
}

static void finish(rebuilding *r)
{
    drop(r);
    redset_header_free(r->header);
    free(r->own);
    free(r->states);
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
    int rc = rebuild(&r, folder, text);
    if (!rc) rc = conclude(&r, text);
    if (!rc) {
        *manifest = r.manifest;
        *rebuilt = is_lost(&r);
        r.manifest = NULL;
    }
    finish(&r);
    return redset_report(err, text, rc);
}
