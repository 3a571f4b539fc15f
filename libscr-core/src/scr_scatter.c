/* SPDX-License-Identifier: BSD-3-Clause */
/* Scattering filemaps: at start the leader of each node reads all filemaps of the control
 * folder and hands the entries to the processes that run there now (SCR Developer
 * Guide 1.2, section 2.26.4).
 *
 * A crash in between must not lose an entry. So the leader first writes all entries to
 * one file and lets the master file name only that; then every process writes its own;
 * only then does the master file name those, and the rest is removed. */
#include "scr_folders.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "records/scr_path.h"
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMBINED "filemap_all.scriinfo"

/* The master file names filemaps by full path; they must lie in the control folder. */
static int write_master(struct scr *scr, int combined, char *err)
{
    kvtree *master = kvtree_new();
    int rc = 0;
    for (int i = 0; i < (combined ? 1 : scr->node_ranks); i++) {
        char name[64];
        snprintf(name, sizeof name, "filemap_%d.scriinfo", i);
        char *path = scr_path_join(scr->control, combined ? COMBINED : name);
        if (!path || !kvtree_set_kv(master, "Filemap", path))
            rc = err_set(err, -ENOMEM, "no memory");
        free(path);
    }
    rc = rc ? rc : kvtree_file_write(scr->control_fd, SCR_FILEMAP_MASTER, master, err);
    kvtree_delete(&master);
    return rc;
}

/* A damaged file counts as lost, which is no failure: what it named is found again. One
 * that cannot be read just now does not: the run that counted it as lost would replace
 * it. */
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
    int found = names ? scr_filemap_names(scr->control_fd, 0, names, err)
                      : err_set(err, -ENOMEM, "no memory");
    int rc = judge(scr, found, err);
    if (!rc && found) rc = scr_filemap_names(scr->control_fd, 1, names, err);
    const kvtree_elem *e = kvtree_elem_first(names);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        const char *name = kvtree_elem_key(e);
        rc = judge(scr, scr_filemap_read(scr->control_fd, name, scr->owner, all, err),
                   err);
    }
    kvtree_delete(&names);
    return rc;
}

/* 1 when the store of a file is there, but the folder of its dataset is not. */
static int is_gone(const scr_filemap *map, const char *owner, int id, int rank)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(map, id, rank));
    const char *path = f ? kvtree_elem_key(f) : NULL;
    const char *name = path ? scr_filemap_name_of(path, owner, id) : NULL;
    char *folder = name ? strndup(path, (size_t)(name - path) - 1) : NULL;
    char *slash = folder ? strrchr(folder, '/') : NULL;
    int gone = slash && access(folder, F_OK) != 0 && errno == ENOENT;
    if (gone) *slash = 0;
    gone = gone && access(folder, F_OK) == 0;
    free(folder);
    return gone;
}

/* A dataset that leaves the cache loses its folder first (scr_removal.c), and filemaps
 * that do not list it are written later: what they say of it till then does not count. */
static int forget_gone(const struct scr *scr, scr_filemap *all)
{
    int count = 0, ranks = 0, *ids = NULL, *rank = NULL;
    int rc = scr_filemap_list_datasets(all, &count, &ids);
    for (int i = 0; i < count && !rc; i++) {
        rc = scr_filemap_list_ranks_of(all, ids[i], &ranks, &rank);
        for (int k = 0; k < ranks && !rc; k++)
            if (is_gone(all, scr->owner, ids[i], rank[k]))
                scr_filemap_remove_rank(all, ids[i], rank[k]);
        free(rank);
        rank = NULL;
    }
    free(ids);
    return rc;
}

/* Splits all into one tree per process of the node: a rank's own entries go to it, the
 * others in turn. */
static int deal(struct scr *scr, scr_filemap *all, kvtree *send)
{
    int count, *ranks, *here = calloc((size_t)scr->node_ranks, sizeof *here);
    int rc = scr_filemap_list_ranks(all, &count, &ranks);
    if (!here || rc) {
        free(here);
        return -ENOMEM;
    }
    for (int i = 0; i < scr->node_ranks; i++) {
        kvtree *given = kvtree_get_kv_int(send, "WORLD", i);
        here[i] = given ? kvtree_elem_key_int(kvtree_elem_first(given)) : -1;
    }
    kvtree_unset(send, "WORLD");
    for (int i = 0, turn = 0; !rc && i < count; i++) {
        int to = -1;
        for (int k = 0; k < scr->node_ranks; k++)
            if (here[k] == ranks[i]) to = k;
        if (to < 0) to = turn++ % scr->node_ranks;
        char key[16];
        snprintf(key, sizeof key, "%d", to);
        kvtree *target = kvtree_get(send, key);
        if (!target) target = kvtree_set(send, key, NULL);
        rc = target ? scr_filemap_move_rank(all, ranks[i], target) : -ENOMEM;
    }
    free(ranks);
    free(here);
    return rc;
}

/* Tells the leader which world rank runs as which process of the node, in send's
 * WORLD/<process>. */
static int gather_ranks(struct scr *scr, kvtree *send)
{
    int rc = 0, *ranks = NULL;
    if (scr->node_rank == 0) ranks = malloc((size_t)scr->node_ranks * sizeof *ranks);
    int ready = scr->node_rank != 0 || ranks != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, scr->node);
    if (!ready) return -ENOMEM;
    MPI_Gather(&scr->rank, 1, MPI_INT, ranks, 1, MPI_INT, 0, scr->node);
    for (int i = 0; scr->node_rank == 0 && i < scr->node_ranks; i++) {
        kvtree *slot = kvtree_set_kv_int(send, "WORLD", i);
        char key[16];
        snprintf(key, sizeof key, "%d", ranks[i]);
        if (!slot || !kvtree_set(slot, key, NULL)) rc = -ENOMEM;
    }
    free(ranks);
    return rc;
}

/* Removes filemaps of more processes than there are now, the combined one, and unfinished
 * files. */
static void remove_if_old(const struct scr *scr, const char *name)
{
    int i;
    size_t n = strlen(name);
    int old = sscanf(name, "filemap_%d.scriinfo", &i) == 1 && i >= scr->node_ranks;
    int temporary = name[0] == '.' && n > 4 && strcmp(name + n - 4, ".tmp") == 0;
    if (old || temporary || strcmp(name, COMBINED) == 0)
        unlinkat(scr->control_fd, name, 0);
}

static void remove_old(const struct scr *scr)
{
    DIR *stream = beneath_list(scr->control_fd);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL)
        remove_if_old(scr, item->d_name);
    if (stream) closedir(stream);
}

static int collect(struct scr *scr, kvtree *send, char *err)
{
    scr_filemap *all = kvtree_new();
    int rc = all ? 0 : err_set(err, -ENOMEM, "no memory");
    rc = rc ? rc : read_maps(scr, all, err);
    if (!rc && forget_gone(scr, all) != 0) rc = err_set(err, -ENOMEM, "no memory");
    if (!rc) {
        rc = scr_filemap_write(scr->control_fd, COMBINED, all, err);
        rc = rc ? rc : write_master(scr, 1, err);
    }
    if (!rc && deal(scr, all, send) != 0) rc = err_set(err, -ENOMEM, "no memory");
    kvtree_delete(&all);
    return rc;
}

int scr_scatter_maps(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    kvtree *send = kvtree_new(), *recv = kvtree_new();
    int rc = gather_ranks(scr, send);
    if (rc) err_set(err, rc, "no memory");
    if (!rc && scr->node_rank == 0) rc = collect(scr, send, err);
    if (rc) err_wrap(err, rc, "node %s: %s", scr->node_name, scr->control);
    rc = agree(scr->world, rc, err);
    if (!rc) {
        rc = kvtree_exchange(send, recv, scr->node);
        if (rc)
            err_set(err, rc, "filemaps could not be handed out on node %s",
                    scr->node_name);
        if (!rc && kvtree_merge(scr->map, kvtree_get(recv, "0")) != 0)
            rc = err_set(err, -ENOMEM, "no memory for the filemap");
        rc = rc ? rc : scr_map_write(scr, err);
        rc = agree(scr->world, rc, err);
    }
    if (!rc) {
        if (scr->node_rank == 0) rc = write_master(scr, 0, err);
        if (!rc && scr->node_rank == 0) remove_old(scr);
        rc = agree(scr->world, rc, err);
    }
    kvtree_delete(&send);
    kvtree_delete(&recv);
    return rc ? scr_fail(scr, SCR_ERR_CACHE, "%s", err) : SCR_SUCCESS;
}
