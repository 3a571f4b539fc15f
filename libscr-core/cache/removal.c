/* SPDX-License-Identifier: BSD-3-Clause */
/* Removal of a dataset from the cache while the application continues. The directory is
 * renamed first, so that its remains do not count as a dataset if the run is killed; the
 * next run removes them. There is one removal at a time. Its thread makes no MPI calls
 * and handles no signals. */
#include "cache/removal.h"
#include "report/wait.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/thread.h"
#include <dirent.h>
#include <fcntl.h>
#include <redset/redset.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAVING "leaving."

struct scr_removal {
    pthread_t thread;
    int dir;                    /* of the store */
    char name[SCR_FOLDER_SIZE]; /* of the directory */
    atomic_bool is_done;        /* the thread has nothing left to do */
};

static void removal_name(int id, char name[SCR_FOLDER_SIZE])
{
    snprintf(name, SCR_FOLDER_SIZE, LEAVING "%d", id);
}

/* Sets name to the new name, or to the old one if the directory cannot be renamed. */
static void removal_rename_folder(int dir, int id, char name[SCR_FOLDER_SIZE])
{
    char leaving[SCR_FOLDER_SIZE];
    scr_dataset_folder_name(id, name);
    removal_name(id, leaving);
    if (renameat(dir, name, dir, leaving) == 0) strcpy(name, leaving);
}

/* Removes all files except redundancy files. The end of the removal repeats what fails
 * here, and reports it. */
static void *removal_run(void *arg)
{
    struct scr_removal *r = arg;
    redset_place place;
    int folder =
        io_open(r->dir, r->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    DIR *stream = folder < 0 ? NULL : fdopendir(folder);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL)
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0 &&
            redset_file_name_parse(item->d_name, &place) != 0 &&
            unlinkat(folder, item->d_name, 0) != 0)
            beneath_remove_tree(folder, item->d_name, NULL);
    if (stream)
        closedir(stream);
    else
        io_close(&folder);
    r->is_done = true;
    return NULL;
}

void scr_removal_report(const scr_cache *cache, const scr_store_dir *store,
                        const char *name, const kvtree_error *err)
{
    scr_fail_local(cache->job->report, SCR_MSG_CACHE_REMOVAL_FAILED, 0,
                   "node %s: %s/%s: %s", cache->job->node_name, store->folder, name,
                   err->text);
}

void scr_removal_begin(scr_cache *cache, int store, int id)
{
    char name[SCR_FOLDER_SIZE];
    kvtree_error err = {""};
    const scr_store_dir *c = &cache->stores[store];
    scr_removal_settle(cache);
    cache->leaving = id;
    cache->leaving_from = store;
    if (c->rank != 0) return;
    removal_rename_folder(c->fd, id, name);
    struct scr_removal *r = calloc(1, sizeof *r);
    if (r) {
        r->dir = c->fd;
        strcpy(r->name, name);
        cache->removing = r;
        if (thread_start(&r->thread, removal_run, r) == 0) return;
        cache->removing = NULL;
        free(r);
    }
    /* without a thread, removes it at once */
    if (beneath_remove_tree(c->fd, name, &err) != 0)
        scr_removal_report(cache, c, name, &err);
}

char *scr_removal_spare(const scr_cache *cache, int id)
{
    char name[SCR_FOLDER_SIZE];
    const scr_cached *cached = scr_cached_find(cache, id);
    if (!cache->leaving || !cached || cached->store != cache->leaving_from) return NULL;
    removal_name(cache->leaving, name);
    return scr_path_join(cache->stores[cache->leaving_from].folder, name);
}

void scr_removal_settle(scr_cache *cache)
{
    kvtree_error err = {""};
    struct scr_removal *r = cache->removing;
    const int id = cache->leaving;
    scr_wait wait = {.start = 0};
    cache->leaving = 0;
    if (!r) return;
    if (!r->is_done)
        scr_wait_begin(cache->job->report, &wait, SCR_MSG_CACHE_REMOVAL_WAIT,
                       "waits for the removal of dataset %d from %.400s", id,
                       cache->stores[cache->leaving_from].path);
    pthread_join(r->thread, NULL);
    scr_wait_end(&wait);
    if (beneath_remove_tree(r->dir, r->name, &err) != 0)
        scr_removal_report(cache, &cache->stores[cache->leaving_from], r->name, &err);
    cache->removing = NULL;
    free(r);
}

void scr_removal_sweep(const scr_cache *cache, const scr_store_dir *store)
{
    kvtree_error err = {""};
    DIR *stream = beneath_list(store->fd);
    const struct dirent *item;
    if (!stream) return;
    while ((item = readdir(stream)) != NULL)
        if (strncmp(item->d_name, LEAVING, strlen(LEAVING)) == 0 &&
            beneath_remove_tree(store->fd, item->d_name, &err) != 0)
            scr_removal_report(cache, store, item->d_name, &err);
    closedir(stream);
}
