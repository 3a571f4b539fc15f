/* SPDX-License-Identifier: BSD-3-Clause */
/* Filemaps at start: the leader of each node reads all filemaps of the control folder and
 * hands the entries to the processes that run there now (SCR Developer Guide 1.2, section
 * 2.26.4). They are hints only: of files whose redundancy file is lost, and of stores
 * that this run does not use otherwise. What is in the cache is told by the headers of
 * redundancy files (ops/catalog.c). */
#include "ops/folders.h"

#include "ops/catalog.h"

#include "base/path.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading ---- */

/* A damaged file counts as lost, which is no failure. One that cannot be read just now
 * is. */
static int judge(const struct scr *scr, int rc, const char *err)
{
    if (rc && scr_decide_may_pass(rc)) return rc;
    if (rc && rc != -ENOENT) scr_control_warn(scr, err);
    return 0;
}

/* Without a usable master file all filemaps in the folder are read. */
static int read_maps(struct scr *scr, scr_filemap *all, char *err)
{
    kvtree *names = kvtree_new();
    int found = names ? scr_filemap_names(scr->cache.control_fd, 0, names, err)
                      : err_set(err, -ENOMEM, "no memory");
    int rc = judge(scr, found, err);
    if (!rc && found) rc = scr_filemap_names(scr->cache.control_fd, 1, names, err);
    const kvtree_elem *e = kvtree_elem_first(names);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e);
        rc = judge(
            scr, scr_filemap_read(scr->cache.control_fd, name, scr->job.owner, all, err),
            err);
    }
    kvtree_delete(&names);
    return rc;
}

/* Moves the entries of the ranks that run on this node into one tree per process. The
 * others stay with the leader. */
static int deal(const struct scr *scr, const int *ranks, scr_filemap *all, kvtree *send)
{
    int rc = 0;
    for (int i = 1; i < scr->job.node_ranks && !rc; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        kvtree *to = kvtree_set(send, key, kvtree_new());
        rc = to ? scr_filemap_move_rank(all, ranks[i], to) : -ENOMEM;
    }
    return rc;
}

int scr_hints_read(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = 0;
    if (scr->job.node_rank == 0) rc = read_maps(scr, scr->cache.hints, err);
    if (rc) err_wrap(err, rc, "node %s: %s", scr->job.node_name, scr->cache.control);
    rc = agree(scr->job.world, rc, err);
    return rc ? scr_fail(&scr->report, SCR_ERR_CACHE, "%s", err) : SCR_SUCCESS;
}

/* 1 when some rank has it there, complete. */
static int is_checkpoint(const scr_filemap *map, int id)
{
    scr_dataset d;
    int count, *ranks, is = 0;
    if (scr_filemap_list_ranks_of(map, id, &count, &ranks) != 0) return 0;
    for (int i = 0; i < count && !is; i++)
        is = scr_dataset_from_tree(scr_filemap_get_dataset(map, id, ranks[i]), &d,
                                   NULL) == 0 &&
             d.ckpt && d.complete;
    free(ranks);
    return is;
}

int scr_hints_newest(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int count, *ids, newest = 0;
    scr_filemap *map = kvtree_new();
    if (map && read_maps(scr, map, err) == 0 &&
        scr_filemap_list_datasets(map, &count, &ids) == 0) {
        while (count > 0 && !is_checkpoint(map, ids[count - 1]))
            count--;
        newest = count > 0 ? ids[count - 1] : 0;
        free(ids);
    }
    kvtree_delete(&map);
    return newest;
}

/* Collective over the node. */
static int hand_out(struct scr *scr)
{
    kvtree *send = kvtree_new(), *received = kvtree_new();
    int *ranks = malloc((size_t)scr->job.node_ranks * sizeof *ranks);
    int rc = send && received && ranks ? 0 : -ENOMEM, ready = !rc;
    MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, scr->job.node);
    if (ready) {
        MPI_Gather(&scr->job.rank, 1, MPI_INT, ranks, 1, MPI_INT, 0, scr->job.node);
        if (scr->job.node_rank == 0) rc = deal(scr, ranks, scr->cache.hints, send);
        int sent = kvtree_exchange(send, received, scr->job.node);
        rc = rc ? rc : sent;
        if (!rc) rc = kvtree_merge(scr->cache.hints, kvtree_get(received, "0"));
    }
    free(ranks);
    kvtree_delete(&send);
    kvtree_delete(&received);
    return ready ? rc : -ENOMEM;
}

int scr_hints_scatter(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = hand_out(scr);
    if (rc)
        err_set(err, rc, "node %s: filemaps could not be handed out", scr->job.node_name);
    return agree(scr->job.world, rc, err)
               ? scr_fail(&scr->report, SCR_ERR_CACHE, "%s", err)
               : SCR_SUCCESS;
}

/* ---- writing ---- */

/* The master file names filemaps by full path. */
static int write_master(const struct scr *scr, char *err)
{
    kvtree *master = kvtree_new();
    int rc = 0;
    for (int i = 0; i < scr->job.node_ranks; i++) {
        char name[64];
        snprintf(name, sizeof name, "filemap_%d.scriinfo", i);
        char *path = scr_path_join(scr->cache.control, name);
        if (!path || !kvtree_set_kv(master, "Filemap", path))
            rc = err_set(err, -ENOMEM, "no memory");
        free(path);
    }
    rc = rc ? rc
            : kvtree_file_write(scr->cache.control_fd, SCR_FILEMAP_MASTER, master, err);
    kvtree_delete(&master);
    return rc;
}

/* Removes filemaps of more processes than there are now, and unfinished files. */
static void remove_if_old(const struct scr *scr, const char *name)
{
    int i;
    size_t n = strlen(name);
    int old = sscanf(name, "filemap_%d.scriinfo", &i) == 1 && i >= scr->job.node_ranks;
    int temporary = name[0] == '.' && n > 4 && strcmp(name + n - 4, ".tmp") == 0;
    if (old || temporary) unlinkat(scr->cache.control_fd, name, 0);
}

static void remove_old(const struct scr *scr)
{
    DIR *stream = beneath_list(scr->cache.control_fd);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL)
        remove_if_old(scr, item->d_name);
    if (stream) closedir(stream);
}

void scr_maps_begin(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = scr_map_write(scr, err);
    if (rc == 0 && scr->job.node_rank == 0) {
        rc = write_master(scr, err);
        if (rc) err_wrap(err, rc, "node %s: %s", scr->job.node_name, scr->cache.control);
    }
    if (agree(scr->job.world, rc, err) != 0) {
        scr_say(&scr->report, 0,
                "warning: filemaps could not be written, so commands may not find all "
                "that is in the cache: %s",
                err);
        return;
    }
    if (scr->job.node_rank == 0) remove_old(scr);
}
