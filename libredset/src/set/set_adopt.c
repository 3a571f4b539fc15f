/* SPDX-License-Identifier: BSD-3-Clause */
/* Verifies and rebuilds ranks for which other processes act; see set_adopt.h. */
#include "src/set/set_adopt.h"

#include "common/errtext.h"
#include "common/io.h"
#include "src/set/adopt_rank.h"
#include "src/set/set_recovery.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A set that this process helps to rebuild. */
typedef struct adopt_set {
    redset set;
    int *actors;          /* process that acts for each member */
    void *meeting;        /* from prepare; NULL: not prepared */
    const kvtree *layout; /* in the tree of damaged sets */
} adopt_set;

typedef struct adopt {
    const redset_adopt_host *host;
    int dir, ranks, count;
    adopt_rank *list;
    kvtree *homes;   /* reports received as a home: RANK/<r>, SET/<id> */
    kvtree *damaged; /* reports of the sets that this process helps to rebuild, by id */
    adopt_set *sets; /* the same sets, in the order of ids */
    int set_count;
    int verdict; /* the first failure of a set, and its text */
    redset_error err;
} adopt;

/* ---- inspection ---- */

static int adopt_refuse_mixture(redset_error *err)
{
    return err_set(err, REDSET_UNRECOVERABLE,
                   "redundancy files are of different encodes: descriptions of the whole "
                   "differ");
}

/* Collects the numbers that must be the same for all survivors, and compares those of
 * this process. */
static int adopt_facts(const adopt *a, int64_t facts[REDSET_VALUES], bool *known,
                       redset_error *err)
{
    *known = false;
    for (int i = 0; i < a->count; i++) {
        const adopt_rank *r = &a->list[i];
        uint32_t crc = 0;
        if (r->lost) continue;
        const redset_header *header = r->member.header;
        int rc = redset_tree_crc(kvtree_get(header->tree, "DSET"), &crc);
        if (rc) return err_sys(err, rc, "checksum of the description");
        const int64_t own[] = {crc, r->layout.place.sets, (int64_t)header->encode};
        if (*known && memcmp(own, facts, sizeof own) != 0)
            return adopt_refuse_mixture(err);
        memcpy(facts, own, sizeof own);
        *known = true;
    }
    return 0;
}

/* Collective, agreed: inspects the ranks of this process, and checks that all survivors
 * are of one encode. */
static int adopt_inspect(adopt *a, redset_error *err)
{
    int64_t facts[REDSET_VALUES] = {0};
    bool known = false, equal = false;
    int rc = 0;
    for (int i = 0; i < a->count && !rc; i++)
        rc = adopt_rank_inspect(&a->list[i], a->dir, a->ranks, err);
    for (int i = 0; i < a->count && a->host->meter; i++)
        a->host->meter->least += adopt_rank_bytes(&a->list[i]);
    if (!rc) rc = adopt_facts(a, facts, &known, err);
    rc = redset_transport_compare(a->host->world, rc, known ? facts : NULL, &equal, err);
    return rc || equal ? rc : adopt_refuse_mixture(err);
}

/* ---- messages ---- */

/* Returns the part of a message for the home of a number. */
static kvtree *adopt_to_home(const adopt *a, kvtree *out, const char *kind, int number)
{
    char home[16];
    snprintf(home, sizeof home, "%d", number % a->host->world->size);
    if (!kvtree_set_kv(out, home, kind)) return NULL;
    return kvtree_set_kv_int(kvtree_get(out, home), kind, number);
}

static int adopt_add_member(kvtree *set, int member, int actor, bool lost)
{
    kvtree *entry = set ? kvtree_setf(set, NULL, "MEMBER %d", member) : NULL;
    int rc = entry ? kvtree_util_set_int(entry, "ACTOR", actor) : -ENOMEM;
    return rc || !lost ? rc : kvtree_util_set_int(entry, "LOST", 1);
}

/* Adds the messages of a rank that is not lost: its set, and the set of the other
 * members. */
static int adopt_add_set(const adopt *a, const adopt_rank *r, kvtree *out)
{
    uint32_t crc = 0;
    const redset_layout *layout = &r->layout;
    const redset_place *place = &layout->place;
    kvtree *set = adopt_to_home(a, out, "SET", place->id);
    kvtree *tree = set ? kvtree_set(set, "LAYOUT", NULL) : NULL;
    int rc = tree ? redset_layout_to_tree(layout, tree) : -ENOMEM;
    if (!rc) rc = redset_tree_crc(tree, &crc);
    if (!rc && !kvtree_setf(set, NULL, "CRC %lu", (unsigned long)crc)) rc = -ENOMEM;
    if (!rc) rc = adopt_add_member(set, place->member, a->host->world->local[0], false);
    for (int m = 0; m < place->members && !rc; m++) {
        kvtree *other = adopt_to_home(a, out, "RANK", layout->members[m]);
        if (!other || !kvtree_setf(other, NULL, "IN %d %d", place->id, m)) rc = -ENOMEM;
    }
    return rc;
}

static int adopt_add_rank(const adopt *a, const adopt_rank *r, kvtree *out,
                          redset_error *err)
{
    int rc = 0;
    kvtree *entry = adopt_to_home(a, out, "RANK", r->rank);
    if (entry && kvtree_get(entry, "ACTOR"))
        return err_set(err, -EINVAL, "rank %d is listed twice", r->rank);
    if (!entry || !kvtree_setf(entry, NULL, "ACTOR %d", a->host->world->local[0]))
        rc = -ENOMEM;
    if (!rc)
        rc = r->lost ? kvtree_util_set_int(entry, "LOST", 1) : adopt_add_set(a, r, out);
    return rc ? err_sys(err, rc, "place of rank %d", r->rank) : 0;
}

/* Collective, agreed. rc is the result of this process so far. If no process has failed,
 * exchanges the messages in out, and merges the received messages into target. */
static int adopt_exchange(const adopt *a, int rc, kvtree *out, kvtree *target,
                          redset_error *err)
{
    redset_transport *world = a->host->world;
    kvtree *in = kvtree_new();
    if (!rc && (!out || !in)) rc = err_sys(err, -ENOMEM, "places of ranks");
    rc = redset_transport_agree(world, rc, err);
    if (!rc) {
        rc = world->exchange(world, &out, &in);
        for (kvtree_elem *e = kvtree_elem_first(in); e && !rc; e = kvtree_elem_next(e))
            rc = kvtree_merge(target, kvtree_elem_hash(e));
        if (rc) err_sys(err, rc, "exchange of the places of ranks");
        rc = redset_transport_agree(world, rc, err);
    }
    kvtree_delete(&in);
    return rc;
}

/* Collective, agreed: round 1. */
static int adopt_tell_homes(adopt *a, redset_error *err)
{
    kvtree *out = kvtree_new();
    int rc = 0;
    for (int i = 0; i < a->count && !rc && out; i++)
        rc = adopt_add_rank(a, &a->list[i], out, err);
    kvtree_unset_all(a->homes);
    rc = adopt_exchange(a, rc, out, a->homes, err);
    kvtree_delete(&out);
    return rc;
}

/* ---- homes ---- */

/* Returns the only key of a tree, as a number; -1 if there is none, -2 for several. */
static int adopt_single(const kvtree *tree)
{
    if (kvtree_size(tree) != 1) return kvtree_size(tree) ? -2 : -1;
    return kvtree_elem_key_int(kvtree_elem_first(tree));
}

/* Checks that exactly one process acts for each rank that has its home here. */
static int adopt_check_actors(const adopt *a, redset_error *err)
{
    const redset_transport *world = a->host->world;
    const kvtree *ranks = kvtree_get(a->homes, "RANK");
    for (int rank = world->local[0]; rank < a->ranks; rank += world->size) {
        int actor = adopt_single(kvtree_get(redset_tree_at(ranks, rank), "ACTOR"));
        if (actor < 0)
            return err_set(err, -EINVAL, "%s for rank %d of the encode",
                           actor == -1 ? "no process acts" : "several processes act",
                           rank);
    }
    return 0;
}

/* Round 2, for one rank. */
static int adopt_tell_set(const adopt *a, const kvtree_elem *e, kvtree *out,
                          redset_error *err)
{
    const kvtree *rank = kvtree_elem_hash(e), *sets = kvtree_get(rank, "IN");
    if (!kvtree_get(rank, "LOST")) return 0;
    const int id = adopt_single(sets);
    const int member = id < 0 ? id : adopt_single(redset_tree_at(sets, id));
    if (member < 0)
        return err_set(err, REDSET_UNRECOVERABLE, "rank %s is lost, and %s",
                       kvtree_elem_key(e),
                       member == -1 ? "no survivor knows its place"
                                    : "survivors contradict each other about its place");
    return adopt_add_member(adopt_to_home(a, out, "SET", id), member,
                            adopt_single(kvtree_get(rank, "ACTOR")), true);
}

/* Collective, agreed. */
static int adopt_tell_sets(adopt *a, redset_error *err)
{
    kvtree *out = kvtree_new();
    int rc = 0;
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(a->homes, "RANK"));
    for (; e && !rc && out; e = kvtree_elem_next(e))
        rc = adopt_tell_set(a, e, out, err);
    rc = adopt_exchange(a, rc, out, a->homes, err);
    kvtree_delete(&out);
    return rc;
}

static bool adopt_has_losses(const kvtree *members)
{
    for (const kvtree_elem *e = kvtree_elem_first(members); e; e = kvtree_elem_next(e))
        if (kvtree_get(kvtree_elem_hash(e), "LOST")) return true;
    return false;
}

/* Round 3, for one set. */
static int adopt_tell_actors(const kvtree_elem *e, kvtree *out, redset_error *err)
{
    const kvtree *set = kvtree_elem_hash(e), *members = kvtree_get(set, "MEMBER");
    if (kvtree_size(kvtree_get(set, "CRC")) != 1)
        return err_set(err, REDSET_UNRECOVERABLE,
                       "survivors contradict each other about the members of set %s",
                       kvtree_elem_key(e));
    if (!adopt_has_losses(members)) return 0;
    for (const kvtree_elem *m = kvtree_elem_first(members); m; m = kvtree_elem_next(m)) {
        int actor = adopt_single(kvtree_get(kvtree_elem_hash(m), "ACTOR"));
        if (actor < 0)
            return err_set(err, REDSET_UNRECOVERABLE,
                           "several ranks claim to be member %s of set %s",
                           kvtree_elem_key(m), kvtree_elem_key(e));
        char key[16];
        snprintf(key, sizeof key, "%d", actor);
        kvtree *to = kvtree_set_kv(out, key, kvtree_elem_key(e));
        if (!to || (kvtree_size(to) == 0 && kvtree_merge(to, set) != 0))
            return err_sys(err, -ENOMEM, "places of ranks");
    }
    return 0;
}

/* ---- damaged sets ---- */

static int adopt_read_actors(const kvtree *set, const redset_layout *layout, int actors[],
                             redset_error *err)
{
    const kvtree *members = kvtree_get(set, "MEMBER");
    int rc = kvtree_size(members) == layout->place.members ? 0 : -EBADMSG;
    for (int m = 0; m < layout->place.members && !rc; m++) {
        actors[m] = adopt_single(kvtree_get(redset_tree_at(members, m), "ACTOR"));
        if (actors[m] < 0) rc = -EBADMSG;
    }
    return rc ? err_set(err, REDSET_UNRECOVERABLE,
                        "survivors contradict each other about the members of set %d",
                        layout->place.id)
              : 0;
}

static int adopt_read_set(const adopt *a, const kvtree *told, adopt_set *s,
                          redset_error *err)
{
    s->set =
        (redset){.piece = REDSET_PIECE, .memory = REDSET_MEMORY, .meter = a->host->meter};
    s->layout = kvtree_get(told, "LAYOUT");
    int rc = redset_layout_from_tree(s->layout, &s->set.layout, err);
    if (rc) return rc;
    s->set.layout.place.member = -1;
    const int members = s->set.layout.place.members;
    s->actors = calloc((size_t)members, sizeof *s->actors);
    if (!s->actors) return err_sys(err, -ENOMEM, "members of a set");
    rc = adopt_read_actors(told, &s->set.layout, s->actors, err);
    return rc ? rc : a->host->prepare(a->host->arg, members, s->actors, &s->meeting, err);
}

static void adopt_drop_sets(adopt *a)
{
    for (int i = 0; i < a->set_count; i++) {
        if (a->sets[i].set.members) a->host->release(a->sets[i].set.members);
        redset_layout_done(&a->sets[i].set.layout);
        if (a->sets[i].meeting) a->host->leave(a->sets[i].meeting);
        free(a->sets[i].actors);
    }
    free(a->sets);
    a->sets = NULL;
    a->set_count = 0;
    kvtree_unset_all(a->damaged);
}

static int adopt_read_sets(adopt *a, redset_error *err)
{
    int rc = kvtree_sort_int(a->damaged, KVTREE_SORT_ASCENDING);
    a->sets = calloc((size_t)kvtree_size(a->damaged) + 1, sizeof *a->sets);
    if (rc || !a->sets) return err_sys(err, -ENOMEM, "sets");
    for (kvtree_elem *e = kvtree_elem_first(a->damaged); e && !rc;
         e = kvtree_elem_next(e))
        rc = adopt_read_set(a, kvtree_elem_hash(e), &a->sets[a->set_count++], err);
    return rc;
}

/* Collective, agreed: round 3; sets a->damaged and a->sets. */
static int adopt_find_damaged(adopt *a, redset_error *err)
{
    kvtree *out = kvtree_new();
    int rc = 0;
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(a->homes, "SET"));
    for (; e && !rc && out; e = kvtree_elem_next(e))
        rc = adopt_tell_actors(e, out, err);
    adopt_drop_sets(a);
    rc = adopt_exchange(a, rc, out, a->damaged, err);
    kvtree_delete(&out);
    if (rc) return rc;
    return redset_transport_agree(a->host->world, adopt_read_sets(a, err), err);
}

/* ---- one set ---- */

static adopt_rank *adopt_find_rank(const adopt *a, int rank)
{
    for (int i = 0; i < a->count; i++)
        if (a->list[i].rank == rank) return &a->list[i];
    return NULL;
}

/* A rank that its process counts as lost stays lost, even if files with its names exist.
 */
static int adopt_lose_members(const adopt *a, redset_recovery *r, redset_error *err)
{
    int rc = 0;
    for (int i = 0; i < r->set->members->count && !rc; i++) {
        redset_member *m = &r->member[i];
        const adopt_rank *own = adopt_find_rank(a, r->set->layout.members[m->member]);
        if (!own)
            return err_set(err, REDSET_UNRECOVERABLE, "no part in set %d",
                           r->set->layout.place.id);
        if (!own->lost || m->state->lost) continue;
        m->reason = own->member.reason;
        rc = redset_member_lose(m, -EBADMSG, err);
    }
    return rc;
}

/* Finishes the members of this process. */
static int adopt_finish_members(const adopt *a, const redset_recovery *r,
                                const kvtree *layout, redset_error *err)
{
    int rc = 0;
    for (int i = 0; i < r->set->members->count && !rc; i++) {
        const redset_member *m = &r->member[i];
        adopt_rank *own = adopt_find_rank(a, r->set->layout.members[m->member]);
        if (!own->done || own->lost)
            rc = adopt_rank_finish(own, layout, m->header, r->lost[m->member], err);
    }
    return rc;
}

/* Collective over the set, agreed among its processes. */
static int adopt_rebuild(adopt *a, redset *set, const kvtree *layout, redset_error *err)
{
    redset_recovery r;
    redset_transport *t = set->members;
    int rc = redset_recovery_open(&r, set, a->dir, NULL, err);
    if (!rc) rc = adopt_lose_members(a, &r, err);
    if (!rc) rc = redset_recovery_check_sizes(&r, err);
    r.explains = true;
    rc = redset_transport_agree(t, rc, err);
    if (!rc) rc = redset_recovery_rebuild(&r, err);
    if (!rc) rc = redset_transport_agree(t, redset_recovery_complete(&r, err), err);
    if (!rc) rc = redset_recovery_commit(&r, err);
    if (!rc)
        rc = redset_transport_agree(t, adopt_finish_members(a, &r, layout, err), err);
    redset_recovery_close(&r);
    return rc;
}

/* Collective, agreed: connects all sets of all processes. */
static int adopt_connect_sets(adopt *a, redset_error *err)
{
    int rc = 0;
    for (int i = 0; i < a->set_count; i++) {
        adopt_set *s = &a->sets[i];
        const redset_place *place = &s->set.layout.place;
        redset_error other;
        int failed = a->host->connect(a->host->arg, place->id, place->members, s->actors,
                                      s->meeting, &s->set.members, rc ? &other : err);
        s->set.world = s->set.members;
        if (!rc) rc = failed;
    }
    return redset_transport_agree(a->host->world, rc, err);
}

/* A set that fails does not stop the other sets. */
static void adopt_rebuild_sets(adopt *a)
{
    for (int i = 0; i < a->set_count; i++) {
        adopt_set *s = &a->sets[i];
        redset_error err = {""};
        int rc = adopt_rebuild(a, &s->set, s->layout, &err);
        if (rc && !a->verdict) a->verdict = err_set(&a->err, rc, "%s", err.text);
    }
}

/* ---- the whole call ---- */

/* Verifies the ranks that are not done: they are in no damaged set. */
static int adopt_verify(adopt *a, int64_t *lost, redset_error *err)
{
    int rc = 0;
    *lost = 0;
    for (int i = 0; i < a->count && !rc; i++) {
        adopt_rank *r = &a->list[i];
        if (!r->done) rc = adopt_rank_verify(r, err);
        *lost += r->lost;
    }
    return rc;
}

/* Collective, agreed. Sets that turn out to be damaged are rebuilt in a further round.
 * The number of rounds is at most the number of members that may be lost, plus one. */
static int adopt_run(adopt *a, redset_error *err)
{
    redset_transport *world = a->host->world;
    int64_t lost = 0;
    int rc = adopt_inspect(a, err);
    while (!rc) {
        rc = adopt_tell_homes(a, err);
        if (!rc) rc = redset_transport_agree(world, adopt_check_actors(a, err), err);
        if (!rc) rc = adopt_tell_sets(a, err);
        if (!rc) rc = adopt_find_damaged(a, err);
        if (!rc) rc = adopt_connect_sets(a, err);
        if (rc) break;
        adopt_rebuild_sets(a);
        rc = a->verdict ? err_set(err, a->verdict, "%s", a->err.text)
                        : adopt_verify(a, &lost, err);
        rc = world->agree_result(world, rc, 1, &lost, err);
        if (rc || !lost) break;
    }
    return rc;
}

static void adopt_give(const adopt *a, redset_acted list[])
{
    for (int i = 0; i < a->count; i++) {
        list[i].manifest = a->list[i].manifest;
        list[i].rebuilt = a->list[i].rebuilt;
        a->list[i].manifest = NULL;
    }
}

static int adopt_begin(adopt *a, const char *folder, const redset_acted list[],
                       redset_error *err)
{
    a->homes = kvtree_new();
    a->damaged = kvtree_new();
    a->list = calloc((size_t)a->count + 1, sizeof *a->list);
    for (int i = 0; i < a->count && a->list; i++) {
        a->list[i] = (adopt_rank){.rank = list[i].rank, .file = list[i].file};
        a->list[i].member.streams.fd = -1;
        a->list[i].member.meter = a->host->meter;
    }
    if (!a->homes || !a->damaged || !a->list)
        return err_sys(err, -ENOMEM, "%d ranks", a->count);
    return beneath_open_folder(folder, &a->dir, err);
}

int redset_set_adopt(const redset_adopt_host *host, const char *folder, int ranks,
                     int count, redset_acted list[], redset_error *err)
{
    adopt a = {.host = host, .dir = -1, .ranks = ranks, .count = count};
    int rc = adopt_begin(&a, folder, list, err);
    rc = redset_transport_agree(host->world, rc, err);
    if (!rc) rc = adopt_run(&a, err);
    if (!rc) adopt_give(&a, list);
    for (int i = 0; a.list && i < count; i++)
        adopt_rank_free(&a.list[i]);
    free(a.list);
    adopt_drop_sets(&a);
    kvtree_delete(&a.homes);
    kvtree_delete(&a.damaged);
    io_close(&a.dir);
    return rc;
}
