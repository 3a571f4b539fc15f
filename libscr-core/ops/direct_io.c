/* SPDX-License-Identifier: BSD-3-Clause */
/* Output directly to the prefix directory, as an operation of the run. prefix/direct_io.c
 * handles the files and records. */
#include "ops/route.h"

#include "cache/brought.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "ops/bring.h"
#include "ops/fetch.h"
#include <errno.h>
#include <filo/filo.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <string.h>

int scr_bypass_start(struct scr *scr, kvtree_error *err)
{
    scr_flush_wait_for(scr, scr->lifecycle.open.name);
    return scr_direct_begin(&scr->prefix, &scr->lifecycle.open, err);
}

int scr_bypass_complete(struct scr *scr, int valid, kvtree_error *err)
{
    bool mapped = false;
    int64_t parts = 0, sums[2] = {kvtree_size(scr->output.routed), 0};
    int rc = scr_routed_check(scr, valid, err);
    rc = rc ? rc : scr_routed_check_ends(scr, &parts, err);
    sums[1] = parts;
    rc = agree_sum(scr->job.world, rc, err, 2, sums);
    rc = rc ? rc : scr_routed_any(sums[0] > 0, err);
    if (!rc && sums[1] > 0) rc = scr_routed_check_parts(scr, (int)parts, err);
    if (!rc)
        rc = scr_direct_complete(&scr->prefix, &scr->lifecycle.open, scr->output.routed,
                                 scr->restart.below, &mapped, err);
    if (!rc) return SCR_SUCCESS;
    return mapped ? SCR_ERR_PREFIX : SCR_ERR_INVALID;
}

/* ---- files in containers ---- */

static void bypass_report(void *arg, uint64_t done, uint64_t total)
{
    const scr_cache_meter *meter = arg;
    (void)total;
    if (meter->report) meter->report(meter->arg, meter->done + done, meter->total);
}

int scr_bypass_extract(scr_cache_meter *meter, const scr_store_dir *store, int id,
                       int folder, const filo_file *file, const char *name,
                       kvtree_error *err)
{
    char path[SCR_BROUGHT_NAME_SIZE];
    scr_brought_name(id, name, path);
    const filo_target to = {.dir = store->fd, .name = path, .replace = 1};
    int rc = filo_extract_with(folder, file, &to, bypass_report, meter, err);
    scr_brought_count(meter, file->size);
    return rc == FILO_THERE ? 0 : rc;
}

static int bypass_extract_own(struct scr *scr, const filo_file *file, const char *name,
                              kvtree_error *err)
{
    scr_place place = {.folder = NULL};
    const scr_dataset *d = &scr->prefix.direct.dataset;
    const int number = scr_fetch_open_store(scr, d, err); /* the store is open already */
    const scr_store_dir *store = number < 0 ? NULL : &scr->cache.stores[number];
    int folder = -1, rc = store ? scr_place_of(&scr->prefix, d, &place) : number;
    if (rc) return err_sys(err, rc, "\"%.200s\"", name);
    rc = beneath_open_folder(place.folder, &folder, err);
    free(place.folder);
    if (rc) return rc;
    rc = scr_bypass_extract(&scr->cache.meter, store, d->id, folder, file, name, err);
    io_close(&folder);
    if (rc) return err_wrap(err, rc > 0 ? -EBADMSG : rc, "file \"%.200s\"", name);
    char *full = scr_brought_path(store, d->id, name);
    rc = full && kvtree_util_set_str(scr->restart.brought, name, full) == 0 ? 0 : -ENOMEM;
    free(full);
    return rc ? err_sys(err, rc, "\"%.200s\"", name) : 0;
}

int scr_bypass_find_packed(struct scr *scr, scr_file_match *match,
                           char path[SCR_MAX_FILENAME], kvtree_error *err)
{
    char name[SCR_DIRECT_NAME_SIZE] = "";
    const filo_file *file = scr_direct_find_packed(&scr->prefix, match, name);
    int rc = file ? 0 : -ENOENT;
    if (!rc && match->files == 1 && !scr_bring_find(scr, name)) {
        rc = bypass_extract_own(scr, file, name, err);
        if (rc && rc != -EBADMSG)
            scr_route_failed(scr, rc, err->text); /* not a fault of the checkpoint */
    }
    const char *found = rc ? NULL : scr_bring_find(scr, name);
    if (found && strlen(found) >= SCR_MAX_FILENAME) rc = -ENAMETOOLONG;
    if (found && !rc) strcpy(path, found);
    return rc;
}

void scr_bypass_forget(struct scr *scr)
{
    if (scr->prefix.direct.extracts) scr_bring_end(scr);
}
