/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding files that no filemap names. Filemaps lie on the nodes beside the files, and
 * may be lost alone; files in a store that several nodes share outlive the node that had
 * their records. What lies in a store is told by the redundancy files: each has the
 * description of the dataset, and the names of its rank's files.
 *
 * The first process of each store lists the redundancy files that lie there, and every
 * process those that it has records of; both go to the process that is responsible for
 * the name. It answers to a process that listed what nobody has a record of; this one
 * reads the header. Nodes may share a folder without knowing, so names are compared among
 * all processes; a dataset has each name once. */
#include "scr_context.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "records/scr_path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* <how>/<cached name>/{ID, STORE} */
#define LISTED "LISTED"
#define RECORDED "RECORDED"

/* The tree of that rank in trees, made where it is missing. */
static kvtree *tree_for(kvtree *trees, int rank)
{
    char key[16];
    snprintf(key, sizeof key, "%d", rank);
    kvtree *tree = kvtree_get(trees, key);
    return tree ? tree : kvtree_set(trees, key, NULL);
}

/* A redundancy file, for the process that is responsible for its name. Other names are
 * passed over. */
struct item {
    const char *how;
    int id, store;
};

static int tell(const struct scr *scr, const struct item *item, const char *name,
                kvtree *send)
{
    char cached[SCR_CACHED_NAME_SIZE];
    redset_place place;
    if (redset_file_name_parse(name, &place) != 0) return 0;
    unsigned first = (unsigned)place.id * (unsigned)place.members + (unsigned)item->id;
    unsigned to = (first + (unsigned)place.member) % (unsigned)scr->ranks;
    scr_cached_name(item->id, name, cached);
    kvtree *tree = kvtree_set_kv(tree_for(send, (int)to), item->how, cached);
    int rc = tree ? kvtree_util_set_int(tree, "ID", item->id) : -ENOMEM;
    return rc ? rc : kvtree_util_set_int(tree, "STORE", item->store);
}

/* ---- what is there ---- */

static int tell_folder(const struct scr *scr, const struct item *item, kvtree *send,
                       char *err)
{
    char name[SCR_FOLDER_SIZE];
    const scr_cache *cache = &scr->caches[item->store];
    scr_dataset_folder_name(item->id, name);
    int fd = openat(cache->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    int rc = stream ? 0 : -errno;
    const struct dirent *file;
    if (!stream) io_close(&fd);
    while (!rc && (errno = 0, file = readdir(stream)) != NULL)
        rc = tell(scr, item, file->d_name, send);
    if (!rc) rc = -errno;
    if (stream) closedir(stream);
    return rc && scr_decide_may_pass(rc)
               ? err_sys(err, rc, "list %s/%s", cache->folder, name)
               : 0;
}

static int tell_listed(const struct scr *scr, kvtree *send, char *err)
{
    int rc = 0;
    for (int i = 0; i < scr->cache_count; i++) {
        const scr_cache *cache = &scr->caches[i];
        int id = cache->rank == 0 ? 0 : INT_MAX;
        while (!rc && id != INT_MAX && (id = scr_next_folder(cache, id)) != INT_MAX)
            rc = tell_folder(scr, &(struct item){LISTED, id, i}, send, err);
    }
    return rc;
}

/* ---- what is recorded ---- */

static int tell_of_rank(const struct scr *scr, int id, int rank, kvtree *send)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(scr->map, id, rank));
    int rc = 0;
    for (; f && !rc; f = kvtree_elem_next(f)) {
        const char *name = scr_filemap_name_of(kvtree_elem_key(f), scr->owner, id);
        if (name) rc = tell(scr, &(struct item){RECORDED, id, -1}, name, send);
    }
    return rc;
}

static int tell_recorded(const struct scr *scr, kvtree *send)
{
    int ids_count, *ids;
    int rc = scr_filemap_list_datasets(scr->map, &ids_count, &ids);
    if (rc) return rc;
    for (int i = 0; i < ids_count && !rc; i++) {
        int count, *ranks;
        rc = scr_filemap_list_ranks_of(scr->map, ids[i], &count, &ranks);
        if (rc) break;
        for (int k = 0; k < count && !rc; k++)
            rc = tell_of_rank(scr, ids[i], ranks[k], send);
        free(ranks);
    }
    free(ids);
    return rc;
}

/* What was listed and not recorded, to one of those that listed it. */
static int make_answers(const kvtree *received, kvtree *answers)
{
    kvtree *known = kvtree_new();
    int rc = known ? 0 : -ENOMEM;
    const kvtree_elem *from, *f;
    for (from = kvtree_elem_first(received); from && !rc; from = kvtree_elem_next(from))
        rc = kvtree_merge(known, kvtree_get(kvtree_elem_hash(from), RECORDED));
    for (from = kvtree_elem_first(received); from && !rc; from = kvtree_elem_next(from)) {
        f = kvtree_elem_first(kvtree_get(kvtree_elem_hash(from), LISTED));
        for (; f && !rc; f = kvtree_elem_next(f)) {
            const char *name = kvtree_elem_key(f);
            if (kvtree_get(known, name)) continue;
            kvtree *to = tree_for(answers, kvtree_elem_key_int(from));
            kvtree *answer = to ? kvtree_set(to, name, NULL) : NULL;
            rc = answer && kvtree_set(known, name, NULL)
                     ? kvtree_merge(answer, kvtree_elem_hash(f))
                     : -ENOMEM;
        }
    }
    kvtree_delete(&known);
    return rc;
}

/* ---- what is not ---- */

/* Takes what the header tells into this process's map; whose files they are is sorted out
 * when the dataset is distributed. Returns 1 if it did, 0 where it tells nothing to be
 * believed, -errno with a text where it could not be read now. */
static int take_header(struct scr *scr, const struct item *item, const char *folder,
                       const char *cached, char *err)
{
    scr_dataset d;
    struct stat st;
    redset_manifest *m = NULL;
    int rc = redset_read_header(folder, scr_path_basename_str(cached), &m, err);
    if (rc) return scr_decide_may_pass(rc) ? rc : 0;
    int good = scr_dataset_from_tree(m->about, &d, NULL) == 0 && d.id == item->id &&
               d.complete && d.ranks == m->ranks &&
               !scr_filemap_get_dataset(scr->map, d.id, m->rank);
    if (good) rc = beneath_stat(scr->caches[item->store].fd, cached, &st, err);
    if (good && !rc) {
        m->file_size = (uint64_t)st.st_size;
        rc = scr_map_record_found(scr, &d, folder, m);
        if (rc) err_set(err, rc, "no memory for the filemap");
    }
    redset_manifest_free(m);
    return rc ? rc : good;
}

/* Returns how many records were made, or -errno with a text. */
static int take_unrecorded(struct scr *scr, const kvtree_elem *answer, char *err)
{
    struct item item = {LISTED, 0, 0};
    char name[SCR_FOLDER_SIZE];
    if (kvtree_util_get_int(kvtree_elem_hash(answer), "ID", &item.id) != 0 ||
        kvtree_util_get_int(kvtree_elem_hash(answer), "STORE", &item.store) != 0)
        return 0;
    scr_dataset_folder_name(item.id, name);
    char *folder = scr_path_join(scr->caches[item.store].folder, name);
    if (!folder) return err_set(err, -ENOMEM, "no memory");
    int rc = take_header(scr, &item, folder, kvtree_elem_key(answer), err);
    free(folder);
    return rc;
}

/* Collective. Brings together what is listed and what is recorded; what is only listed is
 * in answers, <rank that answers>/<cached name>/{ID, STORE}. Not agreed. */
static int ask(const struct scr *scr, kvtree *answers, char *err)
{
    kvtree *send = kvtree_new(), *received = kvtree_new(), *answer = kvtree_new();
    int rc = send && received && answer && answers ? tell_recorded(scr, send) : -ENOMEM;
    if (rc) err_set(err, rc, "no memory");
    if (!rc) rc = tell_listed(scr, send, err);
    int sent = kvtree_exchange(send, received, scr->world);
    if (!rc && !sent) sent = make_answers(received, answer);
    int any = kvtree_size(answer);
    MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, scr->world);
    int answered = any ? kvtree_exchange(answer, answers, scr->world) : 0;
    if (!rc && (sent || answered))
        rc = err_set(err, sent ? sent : answered, "names of files did not arrive");
    kvtree_delete(&send);
    kvtree_delete(&received);
    kvtree_delete(&answer);
    return rc;
}

/* A process that could not tell what it has records of lets others record that again, but
 * then the run does not begin, and nothing of it is written. */
int scr_find_unrecorded(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int64_t found = 0;
    kvtree *answers = kvtree_new();
    int rc = ask(scr, answers, err);
    const kvtree_elem *from = kvtree_elem_first(answers), *f;
    for (; from && rc >= 0; from = kvtree_elem_next(from)) {
        f = kvtree_elem_first(kvtree_elem_hash(from));
        for (; f && rc >= 0; f = kvtree_elem_next(f)) {
            rc = take_unrecorded(scr, f, err);
            if (rc > 0) found += rc;
        }
    }
    kvtree_delete(&answers);
    rc = rc < 0 ? err_wrap(err, rc, "node %s", scr->node_name) : 0;
    rc = agree_sum(scr->world, rc, err, 1, &found);
    if (rc) return scr_fail(scr, SCR_ERR_CACHE, "%s", err);
    if (found)
        scr_say(scr, 0,
                "the cache has files of %lld ranks that no filemap names; their "
                "redundancy files tell what they are",
                (long long)found);
    return SCR_SUCCESS;
}
