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
#include <stdio.h>
#include <stdlib.h>

/* One call of redset_rebuild, redset_verify or redset_measure, on one process. */
typedef struct rebuilding {
    const redset *set;
    int dir;
    redset_shape shape;
    redset_salvage own;
    redset_state *states; /* of all members */
    redset_plan plan;
    uint8_t *is_lost; /* one of each member, when there is a plan */
    redset_manifest *manifest;
    redset_flows *flows;
} rebuilding;

static rebuilding rebuilding_of(const redset *set)
{
    const redset_layout *layout = &set->layout;
    return (rebuilding){
        .set = set,
        .dir = -1,
        .shape = redset_shape_of(&layout->place),
        .own = {.layout = layout, .member = layout->place.member, .streams = {.fd = -1}}};
}

static bool is_lost(const rebuilding *r)
{
    return r->is_lost[r->own.member];
}

/* Looks at what costs little. The bytes are read once, while they are used or, when
 * nothing is to be rebuilt from them, in their place. */
static int inspect(rebuilding *r, const char *folder, char *text)
{
    size_t members = (size_t)r->shape.members, size = redset_state_size(&r->shape);
    r->own.state = calloc(1, size);
    r->states = calloc(members, size);
    r->is_lost = calloc(members, 1);
    if (!r->own.state || !r->states || !r->is_lost)
        return err_sys(text, -ENOMEM, "states of members");
    int rc = beneath_open_folder(folder, &r->dir, text);
    if (!rc) rc = redset_file_name(&r->set->layout.place, r->own.name);
    if (rc) return rc;
    r->own.dir = r->dir;
    rc = redset_salvage_look(&r->own, text);
    if (!rc && !r->own.state->lost && r->set->lost) {
        err_set(r->own.lost, 0, "%s is given as lost", r->own.name);
        rc = redset_salvage_lose(&r->own, -EBADMSG, text);
    }
    return rc ? rc : redset_salvage_measure(&r->own, text);
}

/* Collective over a set: names the lost, and says what happened to the first ones. */
static int explain_loss(const rebuilding *r, char *text)
{
    const redset_layout *layout = &r->set->layout;
    redset_verdict_lost(layout, r->is_lost, text);
    for (int i = 0, told = 0; i < r->shape.members && told < REDSET_EXPLAINED; i++) {
        if (!r->is_lost[i]) continue;
        char reason[REDSET_REASON_SIZE] = "";
        snprintf(reason, sizeof reason, "%.*s", REDSET_REASON_SIZE - 1, r->own.lost);
        int rc = MPI_Bcast(reason, REDSET_REASON_SIZE, MPI_CHAR, i, r->set->set);
        if (rc != MPI_SUCCESS) return redset_mpi(rc, text);
        redset_verdict_reason(layout->members[i], reason, text);
        told++;
    }
    return 0;
}

/* Collective over the set: what follows from the states of its members. */
static int judge(rebuilding *r, char *text)
{
    int size = (int)redset_state_size(&r->shape);
    int rc = redset_mpi(MPI_Allgather(r->own.state, size, MPI_BYTE, r->states, size,
                                      MPI_BYTE, r->set->set),
                        text);
    if (rc) return rc;
    r->plan = redset_plan_make(&r->shape, r->states, r->is_lost);
    if (r->plan.kind == REDSET_PLAN_MIXED)
        return redset_verdict_mixed(&r->set->layout, &r->plan, text);
    int verdict = redset_plan_verdict(&r->plan);
    if (verdict == 0 || verdict == REDSET_RECOVERABLE) return 0;
    rc = explain_loss(r, text);
    return rc ? rc : verdict;
}

/* Collective: no set lost too much, and all are of one encode. */
static int judge_all(rebuilding *r, char *text)
{
    MPI_Comm comm = r->set->comm;
    uint32_t crc = 0;
    int rc = judge(r, text);
    bool survives = !rc && !is_lost(r);
    if (survives) rc = redset_tree_crc(kvtree_get(r->own.header->tree, "DSET"), &crc);
    if (survives && rc) err_sys(text, rc, "checksum of the description");
    const int64_t about[REDSET_VALUES] = {crc, r->set->layout.place.sets,
                                          survives ? (int64_t)r->own.header->encode : 0};
    bool equal = false;
    rc = redset_agree_equal(comm, rc, survives ? about : NULL, &equal, text);
    if (rc || equal) return rc;
    return err_set(text, REDSET_UNRECOVERABLE,
                   "redundancy files are of different encodes: descriptions of the whole "
                   "differ");
}

/* ---- the lost headers ---- */

/* Copies what a list's holder knows of it to the message for a lost member: the list
 * below its distance from there; with the member's own, all that headers have in common.
 */
static int add_list(const rebuilding *r, kvtree *message, int lost, int distance)
{
    char key[16];
    const kvtree *header = r->own.header->tree;
    int members = r->shape.members;
    int owner = (lost + members - distance) % members;
    int own = (r->own.member + members - owner) % members;
    snprintf(key, sizeof key, "%d", distance);
    kvtree *list = kvtree_set(message, key, NULL), *about = NULL;
    if (!list || kvtree_merge(list, redset_header_list(header, own)) != 0) return -ENOMEM;
    if (distance > 0) return 0;
    about = kvtree_set(message, "DSET", NULL);
    if (!about || kvtree_merge(about, kvtree_get(header, "DSET")) != 0) return -ENOMEM;
    if (redset_encode_to_tree(r->own.header->encode, message) != 0) return -ENOMEM;
    return kvtree_util_set_bytecount(message, "CHUNK", r->own.header->chunk);
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
        if (holder != r->own.member) continue;
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
    uint64_t encode = 0;
    const kvtree *about = NULL;
    for (kvtree_elem *e = kvtree_elem_first(answers); e; e = kvtree_elem_next(e)) {
        kvtree *answer = kvtree_elem_hash(e);
        for (int d = 0; d <= r->shape.failures; d++) {
            char key[16];
            snprintf(key, sizeof key, "%d", d);
            if (kvtree_get(answer, key)) lists[d] = kvtree_get(answer, key);
        }
        if (kvtree_util_get_bytecount(answer, "CHUNK", &chunk) == 0) {
            about = kvtree_get(answer, "DSET");
            redset_encode_from_tree(answer, &encode, NULL);
        }
    }
    *tree = redset_header_build(&r->set->layout, chunk, encode, about, lists);
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
    return redset_header_inherit(tree, r->set->rank, &r->own.header, text);
}

/* Collective over the set: survivors tell the lost members what they had. An answer that
 * somebody had no memory for would look damaged where it arrives, so nobody takes one. */
static int pass_headers(rebuilding *r, char *text)
{
    kvtree *send = kvtree_new(), *answers = kvtree_new();
    int addressed = send && answers ? 0 : -ENOMEM, all = 0;
    for (int m = 0; m < r->shape.members && !addressed && !is_lost(r); m++)
        if (r->is_lost[m]) addressed = address_lists(r, send, m);
    int rc = kvtree_exchange(send, answers, r->set->set);
    int reduced = redset_mpi(
        MPI_Allreduce(&addressed, &all, 1, MPI_INT, MPI_MIN, r->set->set), text);
    if (!rc) rc = addressed;
    if (rc) err_sys(text, rc, "exchange headers");
    if (!rc) rc = reduced;
    if (!rc && !all && is_lost(r)) rc = make_header(r, answers, text);
    kvtree_delete(&send);
    kvtree_delete(&answers);
    return rc;
}

/* ---- the data ---- */

static int begin_flows(rebuilding *r, char *text)
{
    uint64_t *length = calloc((size_t)r->shape.members, sizeof *length);
    if (!length) return err_sys(text, -ENOMEM, "%d members", r->shape.members);
    redset_header_lengths(r->own.header, length);
    int rc = redset_flows_new(r->set, &r->shape, r->is_lost, length, &r->flows, text);
    free(length);
    return rc;
}

static int begin(rebuilding *r, char *text)
{
    int rc = r->plan.kind == REDSET_PLAN_REBUILD ? begin_flows(r, text) : 0;
    if (rc) return rc;
    return is_lost(r) ? redset_salvage_write(&r->own, text)
                      : redset_salvage_read(&r->own, text);
}

/* Collective over the set: what is lost flows from the survivors. These have all their
 * checksums compared; one that differs makes its member lost. */
static int move_data(rebuilding *r, char *text)
{
    bool survivor = !is_lost(r);
    char *why = survivor ? r->own.lost : text;
    int rc = r->flows ? redset_flows_run(r->flows, &r->own.streams, why) : 0;
    if (!survivor) return rc;
    r->flows = redset_flows_free(r->flows); /* what is read now takes a buffer, too */
    return rc ? redset_salvage_lose(&r->own, rc, text)
              : redset_salvage_verify(&r->own, r->set->piece, text);
}

static void drop(rebuilding *r)
{
    r->flows = redset_flows_free(r->flows);
    redset_salvage_drop(&r->own);
}

/* Collective: *damaged becomes the number of survivors, in any set, that turned out to be
 * none, if rc is 0 on all ranks. */
static int count_damaged(const rebuilding *r, int rc, int64_t *damaged, char *text)
{
    *damaged = r->own.state->lost && !is_lost(r);
    return agree_sum(r->set->comm, rc, text, 1, damaged);
}

/* Collective: what lost members get has temporary names so far. */
static int attempt(rebuilding *r, int64_t *damaged, char *text)
{
    MPI_Comm comm = r->set->comm;
    int rc = judge_all(r, text);
    if (rc) return rc;
    bool busy = r->plan.kind == REDSET_PLAN_REBUILD;
    rc = agree(comm, busy ? pass_headers(r, text) : 0, text);
    if (!rc) rc = count_damaged(r, begin(r, text), damaged, text);
    if (rc || *damaged) return rc;
    return count_damaged(r, move_data(r, text), damaged, text);
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

static int make_manifest(rebuilding *r, char *text)
{
    r->manifest = redset_manifest_new(r->own.header);
    return r->manifest ? 0 : err_sys(text, -ENOMEM, "manifest");
}

/* Collective: all is there and right; now it gets its names. */
static int conclude(rebuilding *r, char *text)
{
    int rc = is_lost(r) ? redset_salvage_complete(&r->own, text) : 0;
    if (!rc) rc = make_manifest(r, text);
    rc = agree(r->set->comm, rc, text);
    if (rc) return rc;
    /* for all before any file gets its name: ranks may share a folder */
    rc = is_lost(r) ? redset_salvage_clear_way(&r->own, text) : 0;
    rc = agree(r->set->comm, rc, text);
    if (rc) return rc;
    rc = is_lost(r) ? redset_salvage_commit(&r->own, text) : 0;
    return agree(r->set->comm, rc, text);
}

static void finish(rebuilding *r)
{
    redset_flows_free(r->flows);
    redset_salvage_done(&r->own);
    free(r->own.state);
    free(r->states);
    free(r->is_lost);
    redset_manifest_free(r->manifest);
    io_close(&r->dir);
}

int redset_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                   int *rebuilt, char *err)
{
    char text[ERRTEXT_SIZE] = "";
    rebuilding r = rebuilding_of(set);
    int rc = rebuild(&r, folder, text);
    if (!rc) rc = conclude(&r, text);
    if (!rc) {
        *manifest = r.manifest;
        *rebuilt = is_lost(&r);
        r.manifest = NULL;
        set->lost = false;
    }
    finish(&r);
    return redset_report(err, text, rc);
}

/* ---- only looking ---- */

/* Reads all that this member has. */
static int read_all(rebuilding *r, char *text)
{
    if (r->own.state->lost) return 0;
    int rc = redset_salvage_read(&r->own, text);
    if (rc || r->own.state->lost) return rc;
    return redset_salvage_verify(&r->own, r->set->piece, text);
}

/* Collective; rc is what this process has found out so far. A set that is lost counts for
 * more than one that can be rebuilt. */
static int tell_state(rebuilding *r, int rc, char *text)
{
    MPI_Comm comm = r->set->comm;
    rc = agree(comm, rc, text);
    if (!rc) rc = judge_all(r, text);
    if (rc) return rc;
    if (r->plan.kind == REDSET_PLAN_REBUILD) {
        rc = explain_loss(r, text);
        if (!rc) rc = REDSET_RECOVERABLE;
    }
    return agree(comm, rc, text);
}

int redset_verify(redset *set, const char *folder, int *lost, char *err)
{
    char text[ERRTEXT_SIZE] = "";
    rebuilding r = rebuilding_of(set);
    int rc = inspect(&r, folder, text);
    if (!rc) rc = read_all(&r, text);
    rc = tell_state(&r, rc, text);
    if (rc >= 0) *lost = r.own.state->lost != 0;
    finish(&r);
    return redset_report(err, text, rc);
}

int redset_measure(redset *set, const char *folder, redset_manifest **manifest, char *err)
{
    char text[ERRTEXT_SIZE] = "";
    rebuilding r = rebuilding_of(set);
    int rc = tell_state(&r, inspect(&r, folder, text), text);
    if (!rc) rc = agree(set->comm, make_manifest(&r, text), text);
    if (!rc) {
        *manifest = r.manifest;
        r.manifest = NULL;
    }
    finish(&r);
    return redset_report(err, text, rc);
}
