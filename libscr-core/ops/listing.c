/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files the ranks of a checkpoint wrote; see ops/listing.h. */
#include "ops/listing.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "ops/route.h"
#include "plan/part_name.h"
#include "prefix/dataset_records.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTING_FOLDER ".scr/restart."
/* No other record has this name: colleagues may have moved a directory of the user, with
 * records of a dataset in it, to this place. */
#define LISTING_NAME "restart"

enum { LISTING_SIZE = sizeof LISTING_FOLDER + SCR_OWNER_SIZE + sizeof LISTING_NAME + 8 };

/* The directory of this job's map. Jobs that use the prefix directory at the same time
 * have different ones: ".scr/restart.<user>+scr.<job id>". */
static void listing_name_folder(const struct scr *scr, char name[LISTING_SIZE])
{
    snprintf(name, LISTING_SIZE, LISTING_FOLDER "%s", scr->job.owner);
    for (char *c = name + strlen(LISTING_FOLDER); *c; c++)
        if (*c == '/') *c = '+';
}

static void listing_name_map(const struct scr *scr, char name[LISTING_SIZE])
{
    listing_name_folder(scr, name);
    const size_t n = strlen(name);
    snprintf(name + n, LISTING_SIZE - n, "/" LISTING_NAME ".scr");
}

struct scr_listed {
    bool written; /* the map of this restart exists */
    int rank;     /* owner of the files; -1: none */
    int count;
    filo_file *files;
    char prefix[SCR_NAME_SIZE + 2]; /* of the names of the files */
};

/* ---- the map ---- */

/* Collective, agreed. */
static int listing_write(struct scr *scr, kvtree_error *err)
{
    const scr_dataset *d = &scr->lifecycle.open;
    const scr_place place = {.cache_prefix = ""}; /* names below the prefix directory */
    const filo_options options = {.ranks = d->ranks == scr->job.ranks ? 0 : d->ranks,
                                  .base = scr->prefix.real};
    filo_file *files = NULL;
    char map[LISTING_SIZE];
    int count = 0;
    listing_name_map(scr, map);
    int rc = scr_flush_list(scr, d, &place, &count, &files, err);
    rc = agree(scr->job.world, rc, err);
    rc = rc ? rc
            : filo_write_map(scr->job.world, scr->prefix.real, map, count, files,
                             &options, err);
    filo_files_free(count, files);
    return rc;
}

static bool listing_is_ours(const char *name)
{
    int level, rank, end = 0;
    return strcmp(name, LISTING_NAME ".scr") == 0 || beneath_is_temporary(name) ||
           (sscanf(name, LISTING_NAME ".%d.%d.scr%n", &level, &rank, &end) == 2 && end &&
            !name[end]);
}

/* Local. Removes the map. If that fails, the next map replaces it. */
static void listing_remove(const struct scr *scr)
{
    kvtree_error err = {""};
    char folder[LISTING_SIZE];
    listing_name_folder(scr, folder);
    if (scr->job.rank == 0 &&
        scr_records_remove_files(scr->prefix.fd, folder, listing_is_ours, &err) != 0)
        scr_say(&scr->report, SCR_MSG_RESTART_LIST_KEPT,
                "what is in place of the list of files of a restart stays: %s", err.text);
}

/* Removes the map of a killed run, even if this run writes none. */
void scr_listing_sweep(const struct scr *scr)
{
    listing_remove(scr);
}

void scr_listing_begin(struct scr *scr)
{
    kvtree_error err = {""};
    struct scr_listed *listed = calloc(1, sizeof *listed);
    scr->restart.listed = listed;
    if (listed) listed->rank = -1;
    if (!scr->set.any_ranks || scr->prefix.direct.dataset.id == scr->lifecycle.open.id)
        return;
    int rc = listed ? 0 : err_sys(&err, -ENOMEM, "a list");
    rc = agree(scr->job.world, rc, &err);
    rc = rc ? rc : listing_write(scr, &err);
    if (listed) listed->written = rc == 0;
    if (rc)
        scr_say(&scr->report, SCR_MSG_RESTART_LIST_NOT_WRITTEN,
                "the list of files of dataset %d (%s) could not be written: %s",
                scr->lifecycle.open.id, scr->lifecycle.open.name, err.text);
}

void scr_listing_free(struct scr *scr)
{
    struct scr_listed *listed = scr->restart.listed;
    if (listed) filo_files_free(listed->count, listed->files);
    free(listed);
    scr->restart.listed = NULL;
}

void scr_listing_end(struct scr *scr)
{
    struct scr_listed *listed = scr->restart.listed;
    if (!listed) return;
    if (listed->written) MPI_Barrier(scr->job.world); /* no rank reads the map now */
    if (listed->written) listing_remove(scr);
    scr_listing_free(scr);
}

/* ---- queries ---- */

/* For filo_map_read_rank: keeps names and sizes. Parts are skipped: their names are
 * internal to SCR, and SCR_Fetch_file_parts reads the files that they belong to. */
static int listing_keep(void *arg, int rank, int count, const filo_file files[],
                        kvtree_error *err)
{
    struct scr_listed *listed = arg;
    listed->rank = -1;
    listed->files = filo_files_free(listed->count, listed->files);
    listed->count = 0;
    listed->files = calloc((size_t)count + 1, sizeof *listed->files);
    if (!listed->files) return err_sys(err, -ENOMEM, "the files of rank %d", rank);
    for (int i = 0; i < count; i++) {
        filo_file *f = &listed->files[listed->count];
        if (files[i].shared || scr_part_is(&files[i])) continue;
        f->size = files[i].size;
        f->name = strdup(files[i].name);
        if (!f->name) return err_sys(err, -ENOMEM, "the files of rank %d", rank);
        listed->count++;
    }
    listed->rank = rank;
    return 0;
}

static int listing_read(struct scr *scr, struct scr_listed *listed, int rank,
                        kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    char map[LISTING_SIZE];
    filo_place from = {.folder = scr->prefix.real, .map = map};
    int rc = 0;
    listing_name_map(scr, map);
    listed->prefix[0] = 0;
    if (!listed->written) {
        rc = scr_place_of(&scr->prefix, &scr->lifecycle.open, &place);
        if (rc) return err_sys(err, rc, "the map");
        from = (filo_place){
            .folder = place.folder, .map = place.map, .dataset = place.dataset};
        snprintf(listed->prefix, sizeof listed->prefix, "%s", place.cache_prefix);
    }
    rc = filo_map_read_rank(&from, rank, NULL, listing_keep, listed, err);
    free(place.folder);
    return rc;
}

static int listing_refuse(struct scr *scr, scr_call call, int code, const char *why)
{
    scr_route_failed(scr, -EIO, why); /* not a fault of the checkpoint */
    return scr_fail_local(&scr->report, SCR_MSG_RESTART_LIST_REFUSED, code,
                          "%s: rank %d: %s", scr_call_name(call), scr->job.rank, why);
}

/* Loads the files of a rank into scr->restart.listed. An SCR code. */
static int listing_find(struct scr *scr, scr_call call, int rank)
{
    kvtree_error err = {""};
    struct scr_listed *listed = scr->restart.listed;
    if (rank < 0 || rank >= scr->lifecycle.open.ranks) {
        err_set(&err, -EINVAL, "the dataset has no rank %d; %d ranks wrote it", rank,
                scr->lifecycle.open.ranks);
        return listing_refuse(scr, call, SCR_ERR_ARGUMENT, err.text);
    }
    if (!listed) return listing_refuse(scr, call, SCR_FAILURE, "no memory");
    if (!listed->written && !scr->restart.in_prefix)
        return listing_refuse(
            scr, call, SCR_FAILURE,
            scr->set.any_ranks ? "the list of files was not written"
                               : "it needs SCR_RESTART_RANKS=any for a checkpoint that "
                                 "is in the cache only");
    int rc = listed->rank == rank ? 0 : listing_read(scr, listed, rank, &err);
    return rc ? listing_refuse(scr, call, SCR_FAILURE, err.text) : SCR_SUCCESS;
}

int scr_listing_count(struct scr *scr, int rank, int *count)
{
    int rc = listing_find(scr, SCR_CALL_DATASET_FILES, rank);
    if (!rc) *count = scr->restart.listed->count;
    return rc;
}

int scr_listing_file(struct scr *scr, int rank, int number, char *name, uint64_t *size)
{
    kvtree_error err = {""};
    int rc = listing_find(scr, SCR_CALL_DATASET_FILE, rank);
    if (rc) return rc;
    const struct scr_listed *listed = scr->restart.listed;
    if (number < 0 || number >= listed->count) {
        err_set(&err, -EINVAL,
                "there is no file number %d of rank %d, whose number of "
                "files is %d",
                number, rank, listed->count);
        return listing_refuse(scr, SCR_CALL_DATASET_FILE, SCR_ERR_ARGUMENT, err.text);
    }
    const filo_file *f = &listed->files[number];
    if (snprintf(name, SCR_MAX_FILENAME, "%s/%s%s", scr->prefix.path, listed->prefix,
                 f->name) >= SCR_MAX_FILENAME)
        return listing_refuse(scr, SCR_CALL_DATASET_FILE, SCR_FAILURE,
                              "the path of the file is too long");
    *size = f->size;
    return SCR_SUCCESS;
}
