/* SPDX-License-Identifier: BSD-3-Clause */
/* A dataset that leaves the cache while the application goes on. First of all its folder
 * gets a name that no dataset has, so that nobody takes a part of it for one, whatever
 * filemaps list: what is left of it when the run is killed is removed by the next one.
 * One at a time; the thread makes no call of MPI and takes no signals. */
#include "scr_removal.h"

#include "common/beneath.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAVING "leaving."

struct scr_removal {
    pthread_t thread;
    int dir;                    /* of the store */
    char name[SCR_FOLDER_SIZE]; /* of the folder */
    int rc;
    char err[SCR_ERR_TEXT];
};

/* The name under which it leaves; its own, if it cannot have another one. */
static void rename_folder(int dir, int id, char name[SCR_FOLDER_SIZE])
{
    char leaving[SCR_FOLDER_SIZE];
    scr_dataset_folder_name(id, name);
    snprintf(leaving, sizeof leaving, LEAVING "%d", id);
    if (renameat(dir, name, dir, leaving) == 0) strcpy(name, leaving);
}

static void *run(void *arg)
{
    struct scr_removal *r = arg;
    r->rc = beneath_remove_tree(r->dir, r->name, r->err);
    return NULL;
}

/* Signals are for the threads of the application. */
static int start_thread(struct scr_removal *r)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return -1;
    int rc = pthread_create(&r->thread, NULL, run, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

void scr_removal_begin(struct scr *scr, int cache, int id)
{
    char err[SCR_ERR_TEXT] = "", name[SCR_FOLDER_SIZE];
    const scr_cache *c = &scr->caches[cache];
    scr_removal_settle(scr);
    if (c->rank != 0) return;
    rename_folder(c->fd, id, name);
    struct scr_removal *r = calloc(1, sizeof *r);
    if (r) {
        r->dir = c->fd;
        strcpy(r->name, name);
        scr->removing = r;
        if (start_thread(r) == 0) return;
        scr->removing = NULL;
        free(r);
    }
    /* without a thread, at once */
    if (beneath_remove_tree(c->fd, name, err) != 0) scr_event_local(scr, 0, err);
}

void scr_removal_settle(struct scr *scr)
{
    struct scr_removal *r = scr->removing;
    if (!r) return;
    pthread_join(r->thread, NULL);
    if (r->rc) scr_event_local(scr, 0, r->err);
    scr->removing = NULL;
    free(r);
}

void scr_removal_sweep(const struct scr *scr, const scr_cache *cache)
{
    char err[SCR_ERR_TEXT] = "";
    DIR *stream = beneath_list(cache->fd);
    const struct dirent *item;
    if (!stream) return;
    while ((item = readdir(stream)) != NULL)
        if (strncmp(item->d_name, LEAVING, strlen(LEAVING)) == 0 &&
            beneath_remove_tree(cache->fd, item->d_name, err) != 0)
            scr_event_local(scr, 0, err);
    closedir(stream);
}
