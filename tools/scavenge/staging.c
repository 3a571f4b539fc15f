/* SPDX-License-Identifier: BSD-3-Clause */
/* Staging directories; see staging.h. */
#include "scavenge/staging.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include "prefix/dataset_records.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_NAME SCR_STAGING "%d.%" PRId64

/* ---- names ---- */

scavenge_key scavenge_key_of(const scr_dataset *dataset)
{
    scavenge_key key = {.id = dataset->id, .created = dataset->created};
    strcpy(key.name, dataset->name);
    return key;
}

void scavenge_folder_of(const scavenge_key *key, char folder[SCAVENGE_FOLDER_SIZE])
{
    snprintf(folder, SCAVENGE_FOLDER_SIZE, "%s/" SCAVENGE_HIDDEN "/" STAGING_NAME,
             key->name, key->id, key->created);
}

bool scavenge_key_parse(const char *name, scavenge_key *key)
{
    char again[64];
    if (sscanf(name, SCR_STAGING "%9d.%18" SCNd64, &key->id, &key->created) != 2)
        return false;
    snprintf(again, sizeof again, STAGING_NAME, key->id, key->created);
    return key->id > 0 && strcmp(name, again) == 0;
}

int scavenge_find(int prefix, const char *name, scavenge_key *key, kvtree_error *err)
{
    char below[SCAVENGE_FOLDER_SIZE];
    int hidden;
    scavenge_key one, best = {.id = 0};
    snprintf(below, sizeof below, "%s/" SCAVENGE_HIDDEN, name);
    int rc = beneath_open_below(prefix, below, &hidden, err);
    if (rc) return rc == -ENOTDIR || rc == -ELOOP ? -ENOENT : rc;
    DIR *stream = beneath_list(hidden);
    if (!stream) rc = err_sys(err, -errno, "list %s", below);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL)
        if (scavenge_key_parse(item->d_name, &one) &&
            (one.id > best.id || (one.id == best.id && one.created > best.created)))
            best = one;
    if (stream) closedir(stream);
    io_close(&hidden);
    if (rc) return rc;
    if (!best.id) return err_set(err, -ENOENT, "nothing was saved of %s", name);
    *key = best;
    snprintf(key->name, sizeof key->name, "%s", name);
    return 0;
}

/* ---- content ---- */

static int staging_scan(const scavenge_prefix *prefix, scavenge_saved *saved,
                        kvtree_error *err)
{
    struct stat st;
    scavenge_folder *f = &saved->folder;
    scavenge_scan_done(&saved->scan);
    f->final = -1;
    int rc = scavenge_scan_read(f, &saved->scan, err);
    if (rc || beneath_stat(f->dir, SCAVENGE_WHOLE, &st, NULL) != 0) return rc;
    f->final = prefix->dir;
    scavenge_scan_done(&saved->scan);
    return scavenge_scan_read(f, &saved->scan, err);
}

/* Checks that the description agrees with the name of the directory. */
static int staging_check(const scavenge_saved *saved, kvtree_error *err)
{
    const scavenge_key *key = &saved->key;
    const scr_dataset *d = &saved->scan.dataset;
    if (d->id == key->id && d->created == key->created && strcmp(d->name, key->name) == 0)
        return 0;
    return err_set(err, -EBADMSG, "%s has files of dataset %d (%.200s)",
                   saved->folder.path, d->id, d->name);
}

int scavenge_rescan(const scavenge_prefix *prefix, scavenge_saved *saved,
                    kvtree_error *err)
{
    int rc = staging_scan(prefix, saved, err);
    return rc ? rc : staging_check(saved, err);
}

int scavenge_open(const scavenge_prefix *prefix, const scavenge_key *key,
                  scavenge_saved *saved, kvtree_error *err)
{
    char below[SCAVENGE_FOLDER_SIZE];
    memset(saved, 0, sizeof *saved);
    saved->key = *key;
    saved->folder.dir = saved->folder.final = -1;
    scavenge_folder_of(key, below);
    saved->folder.path = scr_path_join(prefix->path, below);
    if (!saved->folder.path) return err_set(err, -ENOMEM, "no memory");
    int rc = beneath_open_below(prefix->dir, below, &saved->folder.dir, err);
    if (!rc) rc = scavenge_rescan(prefix, saved, err);
    if (rc) scavenge_close(saved);
    return rc;
}

void scavenge_close(scavenge_saved *saved)
{
    scavenge_scan_done(&saved->scan);
    io_close(&saved->folder.dir);
    free(saved->folder.path);
}
