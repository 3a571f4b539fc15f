/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of other ranks, brought to this node for a restart; see ops/bring.h. */
#include "ops/bring.h"

#include "cache/brought.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "ops/fetch.h"
#include "ops/route.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* What a home knows of a file. For a file in the cache: the process that has it (AT), and
 * the first process of that process's store (STORE). For a file in a container: the rank
 * that owns it in the map (RANK). NUMBER distinguishes files with the same home. */
#define BRING_AT "AT"
#define BRING_STORE "STORE"
#define BRING_RANK "RANK"
#define BRING_NUMBER "NUMBER"
#define BRING_HOME "HOME"

/* The result for a file. */
#define BRING_PATH "PATH"
#define BRING_REASON "REASON"
#define BRING_DAMAGED "DAMAGED" /* set with REASON: the checkpoint is damaged */

/* One call. */
typedef struct bringing {
    struct scr *scr;
    const scr_dataset *d;
    scr_store_dir *store; /* has, or receives, the files */
    int leader;           /* first process of the store */
    kvtree *wants;        /* names that this process wants */
    kvtree *asked;        /* at a leader: <process of the store>/<wanted name> */
    kvtree *found; /* at a leader: <name>/{what its home knows, and PATH or REASON} */
} bringing;

void scr_bring_home(const scr_job *job, const char *name, char home[SCR_BRING_HOME_SIZE])
{
    const uLong hash = crc32(0, (const Bytef *)name, (uInt)strlen(name));
    snprintf(home, SCR_BRING_HOME_SIZE, "%d", (int)(hash % (uLong)job->ranks));
}

/* The entry of a name in the tree that is sent to homes; created if missing. */
static kvtree *bring_at_home(const bringing *b, kvtree *tree, const char *name)
{
    char home[SCR_BRING_HOME_SIZE];
    scr_bring_home(&b->scr->job, name, home);
    return kvtree_set_kv(tree, home, name);
}

/* ---- 1. the catalog ---- */

/* Local. Lists the files that this process has in the cache. */
static int bring_tell_cached(const bringing *b, kvtree *tell)
{
    const scr_job *job = &b->scr->job;
    scr_filemap_walk walk = {NULL, NULL};
    int rc = 0;
    while (!rc && scr_filemap_next(b->scr->cache.map, b->d->id, &walk)) {
        static const char *const facts[] = {SCR_META_SIZE, SCR_META_CRC};
        const kvtree *meta = kvtree_elem_hash(walk.file);
        const char *name =
            scr_filemap_name_of(kvtree_elem_key(walk.file), job->owner, b->d->id);
        kvtree *entry = name ? bring_at_home(b, tell, name) : NULL;
        rc = entry ? kvtree_util_set_int(entry, BRING_AT, job->rank) : -ENOMEM;
        rc = rc ? rc : kvtree_util_set_int(entry, BRING_STORE, b->leader);
        for (size_t i = 0; i < sizeof facts / sizeof *facts && !rc; i++) {
            const char *value = kvtree_get_val(meta, facts[i]);
            if (value) rc = kvtree_util_set_str(entry, facts[i], value);
        }
    }
    return rc;
}

/* Local. Lists the packed files in this process's share of the map. */
static int bring_tell_packed(const bringing *b, kvtree *tell)
{
    const scr_direct *direct = &b->scr->prefix.direct;
    int rc = 0;
    for (int i = 0; i < direct->count && !rc; i++) {
        char name[SCR_DIRECT_NAME_SIZE];
        const filo_file *f = &direct->list[i];
        if (!scr_direct_is_packed(f)) continue;
        scr_direct_name(&direct->dataset, f->name, name);
        kvtree *entry = bring_at_home(b, tell, name);
        rc = entry ? kvtree_util_set_int(entry, BRING_RANK, f->rank) : -ENOMEM;
        rc = rc ? rc : kvtree_util_set_bytecount(entry, SCR_META_SIZE, f->size);
    }
    return rc;
}

/* Local. At a home: enters the reports of all ranks into the catalog, and numbers its
 * entries. */
static int bring_enter(const bringing *b, kvtree *told)
{
    int number = 0, rc = 0;
    for (kvtree_elem *p = kvtree_elem_first(told); p && !rc; p = kvtree_elem_next(p))
        rc = kvtree_merge(b->scr->restart.catalog, kvtree_elem_hash(p));
    kvtree_elem *e = kvtree_elem_first(b->scr->restart.catalog);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        rc = kvtree_util_set_int(kvtree_elem_hash(e), BRING_NUMBER, number++);
        rc = rc ? rc
                : kvtree_util_set_int(kvtree_elem_hash(e), BRING_HOME, b->scr->job.rank);
    }
    return rc;
}

/* Collective, agreed. */
static int bring_make_catalog(bringing *b, kvtree_error *err)
{
    kvtree *tell = kvtree_new(), *told = kvtree_new();
    b->scr->restart.catalog = kvtree_new();
    int rc = tell && told && b->scr->restart.catalog ? 0 : -ENOMEM;
    if (!rc && b->scr->prefix.direct.dataset.id == b->d->id)
        rc = bring_tell_packed(b, tell);
    else if (!rc)
        rc = bring_tell_cached(b, tell);
    int exchanged = kvtree_exchange(tell, told, b->scr->job.world);
    rc = rc ? rc : exchanged ? exchanged : bring_enter(b, told);
    kvtree_delete(&tell);
    kvtree_delete(&told);
    if (rc) err_sys(err, rc, "the catalog of files");
    rc = agree(b->scr->job.world, rc, err);
    if (rc) kvtree_delete(&b->scr->restart.catalog);
    return rc;
}

/* ---- 2. questions ---- */

/* Local. At a leader: addresses the names that its processes want to their homes. */
static int bring_ask(const bringing *b, kvtree *questions)
{
    for (kvtree_elem *p = kvtree_elem_first(b->asked); p; p = kvtree_elem_next(p)) {
        const kvtree_elem *n = kvtree_elem_first(kvtree_elem_hash(p));
        for (; n; n = kvtree_elem_next(n)) {
            const char *name = kvtree_elem_key(n);
            if (!kvtree_set(b->found, name, NULL) || !bring_at_home(b, questions, name))
                return -ENOMEM;
        }
    }
    return 0;
}

/* Local. At a home. */
static int bring_answer(const bringing *b, kvtree *asked, kvtree *answers)
{
    for (kvtree_elem *p = kvtree_elem_first(asked); p; p = kvtree_elem_next(p)) {
        kvtree *answer = kvtree_set(answers, kvtree_elem_key(p), NULL);
        const kvtree_elem *n = kvtree_elem_first(kvtree_elem_hash(p));
        for (; n; n = kvtree_elem_next(n)) {
            kvtree *entry = answer ? kvtree_set(answer, kvtree_elem_key(n), NULL) : NULL;
            const kvtree *known = kvtree_get(b->scr->restart.catalog, kvtree_elem_key(n));
            if (!entry || kvtree_merge(entry, known) != 0) return -ENOMEM;
        }
    }
    return 0;
}

/* Collective, agreed. Sets b->found to what the homes know. */
static int bring_inquire(bringing *b, kvtree_error *err)
{
    MPI_Comm world = b->scr->job.world;
    kvtree *to_leader = kvtree_new(), *questions = kvtree_new(), *asked = kvtree_new(),
           *answers = kvtree_new(), *replies = kvtree_new();
    kvtree *mine = kvtree_set(to_leader, "0", NULL);
    int rc = mine && questions && asked && answers && replies && b->asked && b->found
                 ? kvtree_merge(mine, b->wants)
                 : -ENOMEM;
    int sent = kvtree_exchange(to_leader, b->asked, b->store->comm);
    rc = rc ? rc : sent ? sent : bring_ask(b, questions);
    sent = kvtree_exchange(questions, asked, world);
    rc = rc ? rc : sent ? sent : bring_answer(b, asked, answers);
    sent = kvtree_exchange(answers, replies, world);
    rc = rc ? rc : sent;
    for (kvtree_elem *p = kvtree_elem_first(replies); p && !rc; p = kvtree_elem_next(p))
        rc = kvtree_merge(b->found, kvtree_elem_hash(p));
    kvtree_delete(&to_leader);
    kvtree_delete(&questions);
    kvtree_delete(&asked);
    kvtree_delete(&answers);
    kvtree_delete(&replies);
    if (rc) err_sys(err, rc, "find the files");
    return agree(world, rc, err);
}

/* ---- 3. files ---- */

static int bring_fail(kvtree *entry, const char *why)
{
    return kvtree_util_set_str(entry, BRING_REASON, why);
}

/* Notes the path of a file in the directory of the dataset, or of a copy. */
static int bring_note_path(const bringing *b, const kvtree_elem *e, bool is_copy)
{
    const char *name = kvtree_elem_key(e);
    char *folder = is_copy ? NULL : scr_dataset_folder(&b->scr->cache, b->d->id), *path;
    if (is_copy)
        path = scr_brought_path(b->store, b->d->id, name);
    else if (!folder || asprintf(&path, "%s/%s", folder, name) < 0)
        path = NULL;
    int rc = path ? kvtree_util_set_str(kvtree_elem_hash(e), BRING_PATH, path) : -ENOMEM;
    free(folder);
    free(path);
    return rc;
}

/* Whether the store has a complete copy from an earlier call. */
static bool bring_has_copy(const bringing *b, const kvtree_elem *e)
{
    char path[SCR_BROUGHT_NAME_SIZE];
    struct stat st;
    unsigned long size;
    scr_brought_name(b->d->id, kvtree_elem_key(e), path);
    return beneath_stat(b->store->fd, path, &st, NULL) == 0 &&
           (kvtree_util_get_bytecount(kvtree_elem_hash(e), SCR_META_SIZE, &size) != 0 ||
            (unsigned long)st.st_size == size);
}

/* Local. At a leader: lists the files that must be sent here. by becomes
 * <number>/<name>. */
static int bring_list_travels(bringing *b, kvtree *by, int *count, scr_bring_want **wants)
{
    int rc = 0;
    *wants = calloc((size_t)kvtree_size(b->found) + 1, sizeof **wants);
    if (!*wants) return -ENOMEM;
    for (kvtree_elem *e = kvtree_elem_first(b->found); e && !rc;
         e = kvtree_elem_next(e)) {
        kvtree *entry = kvtree_elem_hash(e);
        int at, store, home, number;
        char key[24];
        if (kvtree_util_get_int(entry, BRING_AT, &at) != 0 ||
            kvtree_util_get_int(entry, BRING_STORE, &store) != 0 ||
            kvtree_util_get_int(entry, BRING_HOME, &home) != 0 ||
            kvtree_util_get_int(entry, BRING_NUMBER, &number) != 0)
            continue; /* in a container, or unknown */
        const bool copy = store != b->leader;
        rc = bring_note_path(b, e, copy);
        if (rc || !copy || bring_has_copy(b, e)) continue;
        scr_bring_want *w = &(*wants)[(*count)++];
        *w = (scr_bring_want){.file = (uint64_t)home << 32 | (uint32_t)number,
                              .holder = at,
                              .to = b->scr->job.rank};
        snprintf(key, sizeof key, "%" PRIu64, w->file);
        kvtree *known = kvtree_set_kv(by, key, kvtree_elem_key(e));
        rc = known ? kvtree_merge(known, entry) : -ENOMEM;
    }
    return rc;
}

/* Local. Notes the reasons for copies that did not arrive, and removes their paths. */
static int bring_note_failures(const bringing *b, const kvtree *failed)
{
    int rc = 0;
    const kvtree_elem *e = kvtree_elem_first(failed);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        kvtree *entry = kvtree_get(b->found, kvtree_elem_key(e));
        kvtree_unset(entry, BRING_PATH);
        rc = bring_fail(entry, kvtree_elem_get_first_val(failed, kvtree_elem_key(e)));
    }
    return rc;
}

/* Collective, agreed. Copies files between caches. */
static int bring_travel(bringing *b, kvtree_error *err)
{
    const scr_job *job = &b->scr->job;
    scr_bring_want *own = NULL, *all = NULL;
    void *list = NULL;
    kvtree *by = kvtree_new(), *failed = kvtree_new();
    int count = 0, total = 0, rc = by && failed ? 0 : -ENOMEM;
    rc = rc ? rc : bring_list_travels(b, by, &count, &own);
    if (rc) err_sys(err, rc, "list the files");
    rc = agree(job->world, rc, err);
    if (!rc) {
        rc = scr_job_collect(job, sizeof *own, count, own, &total, &list);
        all = list;
        rc = rc ? rc : scr_plan_bring(job->ranks, total, all);
        if (rc) err_sys(err, rc, "a plan");
        rc = agree(job->world, rc, err);
    }
    if (!rc) {
        scr_bringing work = {.cache = &b->scr->cache,
                             .store = b->store,
                             .id = b->d->id,
                             .plan = all,
                             .count = total,
                             .files = by,
                             .failed = failed};
        rc = scr_brought_execute(&work);
        rc = rc ? rc : bring_note_failures(b, failed);
        if (rc) err_sys(err, rc, "the files");
        rc = agree(job->world, rc, err);
    }
    free(own);
    free(all);
    kvtree_delete(&by);
    kvtree_delete(&failed);
    return rc;
}

/* ---- files in containers ---- */

/* An extraction of files of one rank. */
typedef struct bring_extraction {
    bringing *b;
    const kvtree *names; /* below the prefix directory */
    const char *cache_prefix;
    int folder; /* open directory of the dataset */
} bring_extraction;

static int bring_extract_file(const bring_extraction *x, const filo_file *f)
{
    char name[2 * SCR_NAME_SIZE];
    kvtree_error why = {""};
    snprintf(name, sizeof name, "%s%s", x->cache_prefix, f->name);
    if (!kvtree_get(x->names, name)) return 0;
    kvtree *entry = kvtree_get(x->b->found, name);
    int failed = scr_bypass_extract(&x->b->scr->cache.meter, x->b->store, x->b->d->id,
                                    x->folder, f, name, &why);
    if (failed == FILO_DAMAGED && kvtree_util_set_int(entry, BRING_DAMAGED, 1) != 0)
        return -ENOMEM;
    if (failed) return bring_fail(entry, why.text);
    char *full = scr_brought_path(x->b->store, x->b->d->id, name);
    int rc = full ? kvtree_util_set_str(entry, BRING_PATH, full) : -ENOMEM;
    free(full);
    return rc;
}

/* For filo_map_read_rank. */
static int bring_extract_files(void *arg, int rank, int count, const filo_file files[],
                               kvtree_error *err)
{
    int rc = 0;
    (void)rank;
    for (int i = 0; i < count && !rc; i++)
        rc = bring_extract_file(arg, &files[i]);
    return rc ? err_sys(err, rc, "extract files") : 0;
}

/* Local. At a leader: lists the packed files without a copy, as <rank>/<name>. */
static int bring_list_packed(const bringing *b, kvtree *ranks)
{
    int rc = 0;
    for (kvtree_elem *e = kvtree_elem_first(b->found); e && !rc;
         e = kvtree_elem_next(e)) {
        const char *rank = kvtree_elem_get_first_val(kvtree_elem_hash(e), BRING_RANK);
        if (!rank) continue;
        if (bring_has_copy(b, e))
            rc = bring_note_path(b, e, true);
        else if (!kvtree_set_kv(ranks, rank, kvtree_elem_key(e)))
            rc = -ENOMEM;
        else
            b->scr->cache.meter.total += scr_brought_size(e);
    }
    return rc;
}

/* Local. */
static int bring_unpack(bringing *b, kvtree_error *err)
{
    kvtree *ranks = kvtree_new();
    scr_place place = {.folder = NULL};
    bring_extraction x = {.b = b, .folder = -1};
    int rc = ranks ? bring_list_packed(b, ranks) : -ENOMEM;
    if (!rc && kvtree_size(ranks)) rc = scr_place_of(&b->scr->prefix, b->d, &place);
    if (rc) err_sys(err, rc, "list files in containers");
    if (!rc && kvtree_size(ranks)) rc = beneath_open_folder(place.folder, &x.folder, err);
    const filo_place from = {
        .folder = place.folder, .map = place.map, .dataset = place.dataset};
    x.cache_prefix = place.cache_prefix;
    for (kvtree_elem *e = kvtree_elem_first(ranks); e && !rc; e = kvtree_elem_next(e)) {
        x.names = kvtree_elem_hash(e);
        rc = filo_map_read_rank(&from, kvtree_elem_key_int(e), NULL, bring_extract_files,
                                &x, err);
        if (rc > 0) rc = -EIO;
    }
    io_close(&x.folder);
    free(place.folder);
    kvtree_delete(&ranks);
    return rc && rc != -ENOMEM ? -EIO : rc;
}

/* ---- 4. results ---- */

/* Local. At a leader: lists, for each of its processes, the results for the names that
 * the process wants. */
static int bring_conclude(const bringing *b, kvtree *results)
{
    for (kvtree_elem *p = kvtree_elem_first(b->asked); p; p = kvtree_elem_next(p)) {
        kvtree *result = kvtree_set(results, kvtree_elem_key(p), NULL);
        const kvtree_elem *n = kvtree_elem_first(kvtree_elem_hash(p));
        for (; n; n = kvtree_elem_next(n)) {
            const kvtree *entry = kvtree_get(b->found, kvtree_elem_key(n));
            kvtree *told = result ? kvtree_set(result, kvtree_elem_key(n), NULL) : NULL;
            const char *path = kvtree_elem_get_first_val(entry, BRING_PATH),
                       *reason = kvtree_elem_get_first_val(entry, BRING_REASON);
            int rc = told ? 0 : -ENOMEM;
            if (!rc && path) rc = kvtree_util_set_str(told, BRING_PATH, path);
            if (!rc && reason) rc = kvtree_util_set_str(told, BRING_REASON, reason);
            if (!rc && kvtree_get(entry, BRING_DAMAGED))
                rc = kvtree_util_set_int(told, BRING_DAMAGED, 1);
            if (rc) return rc;
        }
    }
    return 0;
}

/* Local. Takes the result for one name, and notes its path. -EBADMSG: the file is
 * damaged; -EIO: another failure; -ENOENT: no rank wrote it. */
static int bring_take_result(struct scr *scr, const kvtree_elem *n, kvtree_error *err)
{
    const kvtree *told = kvtree_elem_hash(n);
    const char *name = kvtree_elem_key(n),
               *path = kvtree_elem_get_first_val(told, BRING_PATH),
               *reason = kvtree_elem_get_first_val(told, BRING_REASON);
    if (path && strlen(path) >= SCR_MAX_FILENAME)
        return err_sys(err, -ENAMETOOLONG, "\"%.200s\"", name);
    if (path)
        return kvtree_util_set_str(scr->restart.brought, name, path) == 0
                   ? 0
                   : err_sys(err, -ENOMEM, "\"%.200s\"", name);
    if (reason)
        return err_set(err, kvtree_get(told, BRING_DAMAGED) ? -EBADMSG : -EIO,
                       "\"%.150s\": %s", name, reason);
    scr_route_refused(scr, name, "no rank wrote it");
    return err_set(err, -ENOENT, "no rank wrote \"%.200s\" in this checkpoint", name);
}

/* Collective, agreed. */
static int bring_tell_results(bringing *b, kvtree_error *err)
{
    kvtree *results = kvtree_new(), *came = kvtree_new();
    int rc = results && came ? bring_conclude(b, results) : -ENOMEM;
    int sent = kvtree_exchange(results, came, b->store->comm);
    if (!rc) rc = sent;
    if (rc) err_sys(err, rc, "the paths of files");
    const kvtree *mine = kvtree_elem_hash(kvtree_elem_first(came));
    const kvtree_elem *n = kvtree_elem_first(mine);
    for (; n; n = kvtree_elem_next(n)) {
        int one = bring_take_result(b->scr, n, rc ? NULL : err);
        if (!rc) rc = one;
    }
    kvtree_delete(&results);
    kvtree_delete(&came);
    return agree(b->scr->job.world, rc, err);
}

/* ---- the call ---- */

int scr_bring_clear(const struct scr *scr, const scr_store_dir *store, kvtree_error *err)
{
    if (scr->restart.catalog || scr->restart.parts || scr->prefix.direct.extracts)
        return 0;
    int rc = store->rank == 0 ? scr_brought_clear(store, err) : 0;
    return agree(scr->job.world, rc, err);
}

/* Whether this process has the file in the cache, or received its path earlier: 1, 0 or
 * -ENOMEM. */
static int bring_is_here(struct scr *scr, const char *name)
{
    const int id = scr->lifecycle.open.id;
    if (kvtree_get(scr->restart.brought, name)) return 1;
    /* if the dataset is read on the prefix directory, the cache may have remains of it */
    return scr->prefix.direct.dataset.id == id ? 0 : scr_route_has(scr, id, name);
}

/* Local. Lists the names that this process cannot read yet. */
static int bring_list(struct scr *scr, int count, const char *const names[],
                      kvtree *wants, kvtree_error *err)
{
    int rc = count < 0 ? err_set(err, -EINVAL, "%d names", count) : 0;
    for (int i = 0; i < count && !rc; i++) {
        char *path = NULL;
        const char *below = NULL;
        if (!names || !names[i] || !names[i][0])
            return err_set(err, -EINVAL, "name %d is missing", i);
        rc = scr_route_place(scr, names[i], &path, &below, err);
        const int here = rc ? rc : bring_is_here(scr, below);
        if (!rc && (here < 0 || (!here && !kvtree_set(wants, below, NULL))))
            rc = err_sys(err, -ENOMEM, "\"%.200s\"", names[i]);
        free(path);
    }
    return rc;
}

/* Collective, agreed. */
static int bring_begin(bringing *b, kvtree_error *err)
{
    struct scr *scr = b->scr;
    int rc = 0;
    b->store = scr_cache_of(&scr->cache, b->d->id);
    if (scr->prefix.direct.dataset.id == b->d->id) {
        int number = scr_fetch_open_store(scr, b->d, err);
        b->store = number < 0 ? NULL : &scr->cache.stores[number];
        rc = number < 0 ? number : 0;
    }
    if (rc) return rc;
    b->leader = scr->job.rank;
    MPI_Bcast(&b->leader, 1, MPI_INT, 0, b->store->comm);
    b->asked = kvtree_new();
    b->found = kvtree_new();
    if (scr->restart.catalog) return 0;
    rc = scr_bring_clear(scr, b->store, err);
    return rc ? rc : bring_make_catalog(b, err);
}

/* Collective, agreed. */
static int bring_all(bringing *b, kvtree_error *err)
{
    int rc = bring_begin(b, err);
    rc = rc ? rc : bring_inquire(b, err);
    rc = rc ? rc : bring_travel(b, err);
    rc = rc ? rc : agree(b->scr->job.world, bring_unpack(b, err), err);
    rc = rc ? rc : bring_tell_results(b, err);
    kvtree_delete(&b->asked);
    kvtree_delete(&b->found);
    return rc;
}

/* Collective. Whether any rank needs files brought. Files on the prefix directory are
 * read there, unless they are in containers. */
static bool bring_is_needed(const struct scr *scr, const kvtree *wants)
{
    const scr_direct *direct = &scr->prefix.direct;
    return scr_job_max(&scr->job, kvtree_size(wants)) > 0 &&
           (direct->extracts || direct->dataset.id != scr->lifecycle.open.id);
}

int scr_bring_names(struct scr *scr, int count, const char *const names[],
                    kvtree_error *err)
{
    scr_progress progress;
    bringing b = {.scr = scr, .d = &scr->lifecycle.open, .wants = kvtree_new()};
    int rc = b.wants ? 0 : err_sys(err, -ENOMEM, "list the files");
    if (!rc && !scr->restart.brought) rc = err_sys(err, -ENOMEM, "list the files");
    rc = rc ? rc : bring_list(scr, count, names, b.wants, err);
    rc = agree(scr->job.world, rc, err);
    if (!rc && bring_is_needed(scr, b.wants)) {
        scr_show_progress(scr, &progress, SCR_MSG_FETCH_PROGRESS, "fetch of files", b.d);
        rc = bring_all(&b, err);
        scr_progress_end(&progress);
    }
    kvtree_delete(&b.wants);
    return rc;
}

int scr_bring_report(struct scr *scr, scr_call call, int rc, const kvtree_error *err)
{
    if (!rc) return SCR_SUCCESS;
    if (rc == -ENOMEM)
        scr->restart.no_memory = 1;
    else if (rc != -EBADMSG)
        scr_route_failed(scr, rc, err->text); /* not a fault of the checkpoint */
    const bool of_names = rc == -ENOENT || rc == -EINVAL || rc == -EXDEV;
    return scr_fail(&scr->report, SCR_MSG_FETCH_FILES_FAILED,
                    of_names ? SCR_ERR_ARGUMENT : SCR_FAILURE, "%s: %s",
                    scr_call_name(call), err->text);
}

int scr_bring(struct scr *scr, int count, const char *const names[])
{
    kvtree_error err = {""};
    int rc = scr_bring_names(scr, count, names, &err);
    return scr_bring_report(scr, SCR_CALL_FETCH_FILES, rc, &err);
}

const char *scr_bring_find(const struct scr *scr, const char *name)
{
    return kvtree_elem_get_first_val(scr->restart.brought, name);
}

void scr_bring_end(struct scr *scr)
{
    /* the same on every rank */
    const bool used =
        scr->restart.catalog || scr->restart.parts || scr->prefix.direct.extracts;
    kvtree_unset_all(scr->restart.brought);
    kvtree_delete(&scr->restart.catalog);
    kvtree_delete(&scr->restart.parts);
    kvtree_delete(&scr->restart.asked);
    scr_part_memo_forget(&scr->restart.asked_parts);
    scr->prefix.direct.extracts = false;
    if (!used) return;
    MPI_Barrier(scr->job.world); /* no rank reads the copies any more */
    scr_brought_remove(&scr->cache);
}
