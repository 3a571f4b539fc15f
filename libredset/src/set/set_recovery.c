/* SPDX-License-Identifier: BSD-3-Clause */
/* Verification and rebuild of one set.
 *
 * All members contribute a state, and every process makes the same plan. Survivors send
 * the lost members their headers, the flows move the data, and survivors verify all their
 * checksums while they read. Files get their names when all sets are complete. */
#include "src/set/set_recovery.h"

#include "common/errtext.h"
#include "common/others.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>

/* Maximum number of open files of all local survivors, but at least one per survivor;
 * with their redundancy files 192 for 64 members. */
enum { RECOVERY_OPEN_FILES = 128 };

redset_member *redset_recovery_member(const redset_recovery *r, int member)
{
    int i = redset_transport_index(r->set->members, member);
    return i < 0 ? NULL : &r->member[i];
}

/* Calls step for all local members that are lost by the plan, or for all that survive. */
static int recovery_for_each(redset_recovery *r, bool lost,
                             int (*step)(redset_member *, redset_error *),
                             redset_error *err)
{
    int rc = 0;
    for (int i = 0; i < r->set->members->count && !rc; i++)
        if (r->lost[r->member[i].member] == lost) rc = step(&r->member[i], err);
    return rc;
}

/* ---- opening ---- */

static int recovery_inspect(redset_recovery *r, int i, int dir, const char *redundancy,
                            redset_error *err)
{
    redset_member *member = &r->member[i];
    const int m = r->set->members->local[i];
    redset_place place = r->set->layout.place;
    char name[REDSET_NAME_SIZE] = "";
    int share = RECOVERY_OPEN_FILES / r->set->members->count;
    place.member = m;
    *member = (redset_member){.layout = &r->set->layout,
                              .member = m,
                              .dir = dir,
                              .piece = r->set->piece,
                              .open_files = share ? share : 1,
                              .meter = r->set->meter,
                              .state = redset_state_at(&r->shape, r->states, m),
                              .streams = {.fd = -1}};
    redset_file_name(&place, name);
    int rc = redset_join(member->name, sizeof member->name, redundancy, name);
    if (rc) return err_sys(err, rc, "%s", redundancy);
    rc = redset_member_inspect(member, err);
    if (rc || member->state->lost || !r->set->is_lost) return rc;
    err_set(&member->reason, 0, "%s is given as lost", member->name);
    return redset_member_lose(member, -EBADMSG, err);
}

int redset_recovery_open(redset_recovery *r, const redset *set, int dir,
                         const char *redundancy, redset_error *err)
{
    size_t members = (size_t)set->layout.place.members;
    size_t local = (size_t)set->members->count;
    *r = (redset_recovery){.set = set, .shape = redset_place_shape(&set->layout.place)};
    r->states = calloc(members, redset_state_size(&r->shape));
    r->lost = calloc(members, 1);
    r->length = calloc(members, sizeof *r->length);
    r->member = calloc(local, sizeof *r->member);
    for (size_t i = 0; r->member && i < local; i++)
        r->member[i].streams.fd = -1;
    r->ports = calloc(local, sizeof *r->ports);
    r->messages = calloc(2 * local, sizeof(kvtree *));
    if (!r->states || !r->lost || !r->length || !r->member || !r->ports || !r->messages)
        return err_sys(err, -ENOMEM, "%zu members", members);
    int rc = 0;
    for (size_t i = 0; i < local && !rc; i++)
        rc = recovery_inspect(r, (int)i, dir, redundancy, err);
    return rc;
}

static void recovery_reset(redset_recovery *r)
{
    r->engine = redset_engine_free(r->engine);
    for (int i = 0; i < r->set->members->count; i++)
        redset_member_reset(&r->member[i]);
}

void redset_recovery_close(redset_recovery *r)
{
    redset_engine_free(r->engine);
    for (int i = 0; r->member && i < r->set->members->count; i++)
        redset_member_done(&r->member[i]);
    free(r->member);
    free(r->ports);
    free(r->messages);
    free(r->states);
    free(r->lost);
    free(r->length);
}

int redset_recovery_check_sizes(redset_recovery *r, redset_error *err)
{
    return recovery_for_each(r, false, redset_member_check_sizes, err);
}

int redset_recovery_verify(redset_recovery *r, redset_error *err)
{
    return recovery_for_each(r, false, redset_member_verify, err);
}

/* ---- the plan ---- */

/* Collective over the set: writes a text with the lost members, and the reasons of the
 * first ones. */
static int recovery_explain(redset_recovery *r, redset_error *err)
{
    const redset_layout *layout = &r->set->layout;
    redset_transport *t = r->set->members;
    redset_plan_describe_lost(layout, r->lost, &r->err);
    for (int m = 0, explained = 0; m < r->shape.members; m++) {
        char reason[REDSET_REASON_SIZE] = "";
        if (!r->lost[m] || explained++ == REDSET_EXPLAINED) continue;
        const redset_member *local = redset_recovery_member(r, m);
        if (local)
            snprintf(reason, sizeof reason, "%.*s", REDSET_REASON_SIZE - 1,
                     local->reason.text);
        int rc = t->broadcast(t, m, reason, sizeof reason, err);
        if (rc) return rc;
        redset_plan_add_reason(layout->members[m], reason, &r->err);
    }
    return 0;
}

int redset_recovery_judge(redset_recovery *r, redset_error *err)
{
    redset_transport *t = r->set->members;
    int rc = t->gather(t, r->states, redset_state_size(&r->shape), err);
    if (rc) return rc;
    r->plan = redset_plan_make(&r->shape, r->states, r->lost);
    r->verdict = redset_plan_verdict(&r->plan);
    if (r->plan.kind == REDSET_PLAN_MIXED)
        redset_plan_describe_mixed(&r->set->layout, &r->plan, &r->err);
    else if (r->verdict && (r->explains || r->verdict != REDSET_RECOVERABLE))
        return recovery_explain(r, err);
    return 0;
}

/* Returns a local member that survives; NULL: none. */
static const redset_member *recovery_survivor(const redset_recovery *r)
{
    for (int i = 0; i < r->set->members->count; i++)
        if (!r->lost[r->member[i].member]) return &r->member[i];
    return NULL;
}

int redset_recovery_agree(redset_recovery *r, redset_error *err)
{
    uint32_t crc = 0;
    bool equal = false;
    int64_t facts[REDSET_VALUES] = {0};
    int rc = redset_recovery_judge(r, err);
    if (!rc && r->verdict != REDSET_RECOVERABLE)
        rc = r->verdict ? err_set(err, r->verdict, "%s", r->err.text) : 0;
    const redset_member *survivor = rc ? NULL : recovery_survivor(r);
    if (survivor) {
        rc = redset_tree_crc(kvtree_get(survivor->header->tree, "DSET"), &crc);
        if (rc) err_sys(err, rc, "checksum of the description");
        facts[0] = crc;
        facts[1] = r->set->layout.place.sets;
        facts[2] = (int64_t)survivor->header->encode;
    }
    rc =
        redset_transport_compare(r->set->world, rc, survivor ? facts : NULL, &equal, err);
    if (rc || equal) return rc;
    return err_set(err, REDSET_UNRECOVERABLE,
                   "redundancy files are of different encodes: descriptions of the whole "
                   "differ");
}

/* ---- the lost headers ---- */

/* Adds the list of the left neighbor of a lost member, at a distance, to the message for
 * the lost member. The list of the member itself (distance 0) comes with the keys that
 * all headers have in common. */
static int recovery_add_list(const redset_recovery *r, const redset_member *holder,
                             kvtree *message, int owner, int distance)
{
    const redset_header *header = holder->header;
    int kept = redset_shape_member(&r->shape, holder->member, -owner);
    kvtree *list = kvtree_setf(message, NULL, "%d", distance);
    if (!list || kvtree_merge(list, redset_header_list(header->tree, kept)) != 0)
        return -ENOMEM;
    if (distance > 0) return 0;
    kvtree *about = kvtree_set(message, "DSET", NULL);
    if (!about || kvtree_merge(about, kvtree_get(header->tree, "DSET")) != 0)
        return -ENOMEM;
    int rc = redset_encode_to_tree(header->encode, message);
    return rc ? rc : kvtree_util_set_bytecount(message, "CHUNK", header->chunk);
}

/* Adds the lists that this survivor must send to lost members. */
static int recovery_address(const redset_recovery *r, const redset_member *holder,
                            kvtree *out)
{
    int rc = out ? 0 : -ENOMEM;
    for (int m = 0; m < r->shape.members && !r->lost[holder->member]; m++)
        for (int d = 0; r->lost[m] && d <= r->shape.failures && !rc; d++) {
            int owner = redset_shape_member(&r->shape, m, -d);
            if (redset_shape_holder(&r->shape, r->lost, owner) != holder->member)
                continue;
            kvtree *message = redset_tree_at(out, m);
            if (!message) message = kvtree_setf(out, NULL, "%d", m);
            rc = message ? recovery_add_list(r, holder, message, owner, d) : -ENOMEM;
        }
    return rc;
}

/* Sets the lists of a header from the answers of survivors. Returns the answer with the
 * keys that all headers have in common. */
static const kvtree *recovery_find_lists(const redset_recovery *r, kvtree *answers,
                                         kvtree *lists[])
{
    const kvtree *common = NULL;
    for (kvtree_elem *e = kvtree_elem_first(answers); e; e = kvtree_elem_next(e)) {
        kvtree *answer = kvtree_elem_hash(e);
        for (int d = 0; d <= r->shape.failures; d++)
            if (redset_tree_at(answer, d)) lists[d] = redset_tree_at(answer, d);
        if (kvtree_get(answer, "CHUNK")) common = answer;
    }
    return common;
}

static int recovery_make_header(const redset_recovery *r, redset_member *member,
                                kvtree *answers, redset_error *err)
{
    unsigned long chunk = 0;
    uint64_t encode = 0;
    kvtree **lists = calloc((size_t)r->shape.failures + 1, sizeof *lists);
    if (!lists) return err_sys(err, -ENOMEM, "header");
    const kvtree *common = recovery_find_lists(r, answers, lists);
    kvtree_util_get_bytecount(common, "CHUNK", &chunk);
    redset_encode_from_tree(common, &encode, NULL);
    kvtree *tree = redset_header_build(&r->set->layout, chunk, encode,
                                       kvtree_get(common, "DSET"), lists);
    free(lists);
    if (!tree) return err_sys(err, -ENOMEM, "header");
    int rc = redset_header_parse(tree, &member->header, err);
    if (rc) return err_wrap(err, rc, "header from the neighbors");
    int rank = r->set->layout.members[member->member];
    if (member->header->list[0].rank == rank) return 0;
    return err_set(err, -EBADMSG, "neighbors of rank %d kept the list of rank %d", rank,
                   member->header->list[0].rank);
}

/* A message that is incomplete because of missing memory would look damaged to its
 * receiver. So if any process lacks memory, no process uses any message. */
static int recovery_exchange(redset_recovery *r, kvtree *out[], kvtree *in[],
                             redset_error *err)
{
    redset_transport *t = r->set->members;
    int addressed = 0;
    for (int i = 0; i < t->count; i++) {
        out[i] = kvtree_new();
        in[i] = kvtree_new();
        if (!addressed) addressed = recovery_address(r, &r->member[i], out[i]);
        if (!in[i]) addressed = -ENOMEM;
    }
    int64_t failed = addressed != 0;
    int rc = t->exchange(t, out, in);
    int reduced = t->greatest(t, 1, &failed, err);
    if (!rc) rc = addressed;
    if (rc) return err_sys(err, rc, "exchange headers");
    for (int i = 0; i < t->count && !failed && !reduced; i++)
        if (r->lost[r->member[i].member])
            reduced = recovery_make_header(r, &r->member[i], in[i], err);
    return reduced;
}

int redset_recovery_pass_headers(redset_recovery *r, redset_error *err)
{
    int count = r->set->members->count;
    int rc = recovery_exchange(r, r->messages, r->messages + count, err);
    for (int i = 0; i < 2 * count; i++)
        kvtree_delete(&r->messages[i]);
    return rc;
}

/* ---- the data ---- */

/* Finds the others who can change the headers from which the names of a lost local member
 * come. A survivor that cannot be inspected counts as lost. */
static int recovery_find_others(redset_recovery *r, redset_error *err)
{
    const int count = r->set->members->count;
    int64_t all = 0;
    int rc = 0, lost = 0;
    for (int i = 0; i < count; i++)
        lost += r->lost[r->member[i].member];
    for (int i = 0; i < count && lost > 0 && !rc; i++) {
        redset_member *m = &r->member[i];
        const bool is_lost = r->lost[m->member];
        int64_t some = others_put_below(m->dir, m->name, is_lost ? err : &m->reason);
        if (some < 0)
            rc = is_lost ? (int)some : redset_member_lose(m, (int)some, err);
        else
            all = others_join(all, some);
    }
    for (int i = 0; i < count; i++)
        r->member[i].shared = all;
    return rc;
}

/* For a set that is rebuilt: does everything that can fail before data flows. */
static int recovery_begin(redset_recovery *r, redset_error *err)
{
    for (int i = 0; i < r->set->members->count; i++)
        redset_header_lengths(r->member[i].header, r->length);
    int rc = redset_engine_new(r->set, r->lost, r->length, &r->engine, err);
    if (!rc) rc = recovery_find_others(r, err);
    if (!rc) rc = recovery_for_each(r, true, redset_member_create, err);
    return rc ? rc : recovery_for_each(r, false, redset_member_open, err);
}

/* Runs the flows. Survivors that cannot be read count as lost afterwards. */
static int recovery_run_flows(redset_recovery *r, redset_error *err)
{
    int rc = 0, count = r->set->members->count;
    for (int i = 0; i < count; i++) {
        redset_member *m = &r->member[i];
        bool is_lost = r->lost[m->member];
        r->ports[i] = (redset_port){&m->streams, 0, is_lost ? err : &m->reason};
    }
    redset_engine_run(r->engine, r->ports);
    for (int i = 0; i < count && !rc; i++) {
        rc = r->ports[i].rc;
        if (rc && !r->lost[r->member[i].member])
            rc = redset_member_lose(&r->member[i], rc, err);
    }
    return rc;
}

/* Collective: moves the data, and verifies the survivors. */
static int recovery_move(redset_recovery *r, redset_error *err)
{
    int rc = r->engine ? recovery_run_flows(r, err) : 0;
    r->engine = redset_engine_free(r->engine); /* verification has its own buffers */
    return rc ? rc : redset_recovery_verify(r, err);
}

/* Collective: agrees on rc, and sets *damaged to the number of survivors in all sets that
 * have turned out to be lost. */
static int recovery_count_damaged(const redset_recovery *r, int rc, int64_t *damaged,
                                  redset_error *err)
{
    *damaged = 0;
    for (int i = 0; i < r->set->members->count; i++)
        *damaged += r->member[i].state->lost && !r->lost[r->member[i].member];
    return r->set->world->agree_result(r->set->world, rc, 1, damaged, err);
}

static int recovery_attempt(redset_recovery *r, int64_t *damaged, redset_error *err)
{
    redset_transport *world = r->set->world;
    int rc = redset_recovery_agree(r, err);
    if (rc) return rc;
    bool busy = r->plan.kind == REDSET_PLAN_REBUILD;
    rc = busy ? redset_recovery_pass_headers(r, err) : 0;
    rc = redset_transport_agree(world, rc, err);
    if (!rc)
        rc = recovery_count_damaged(r, busy ? recovery_begin(r, err) : 0, damaged, err);
    if (rc || *damaged) return rc;
    return recovery_count_damaged(r, recovery_move(r, err), damaged, err);
}

int redset_recovery_rebuild(redset_recovery *r, redset_error *err)
{
    int64_t damaged = 0;
    int rc = 0;
    do { /* the number of attempts is at most the number of members that may be lost, plus
            one */
        if (damaged) recovery_reset(r);
        rc = recovery_attempt(r, &damaged, err);
    } while (!rc && damaged);
    return rc;
}

int redset_recovery_complete(redset_recovery *r, redset_error *err)
{
    return recovery_for_each(r, true, redset_member_complete, err);
}

int redset_recovery_commit(redset_recovery *r, redset_error *err)
{
    redset_transport *world = r->set->world;
    int rc = recovery_for_each(r, true, redset_member_clear_way, err);
    rc = redset_transport_agree(world, rc, err);
    if (rc)
        return rc; /* ranks may share a directory: all clear the way before any
                      commits */
    rc = recovery_for_each(r, true, redset_member_commit, err);
    rc = redset_transport_agree(world, rc, err);
    if (!rc) r->verdict = 0;
    return rc;
}
