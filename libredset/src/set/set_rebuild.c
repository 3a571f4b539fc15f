/* SPDX-License-Identifier: BSD-3-Clause */
/* Rebuild and verification of all sets; each process is one member of one set. */
#include "src/set/set_recovery.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>

/* Inspects the files of this member, without reading the data. */
static int rebuild_open(redset_recovery *r, const redset *set, const char *folder,
                        int *dir, redset_error *err)
{
    *r = (redset_recovery){.set = set};
    if (set->meter) set->meter->done = set->meter->total = 0;
    int rc = beneath_open_folder(folder, dir, err);
    if (!rc) rc = redset_recovery_open(r, set, *dir, NULL, err);
    return rc ? rc : redset_recovery_check_sizes(r, err);
}

static void rebuild_close(redset_recovery *r, int *dir)
{
    redset_recovery_close(r);
    io_close(dir);
}

static int rebuild_make_manifest(const redset_recovery *r, redset_manifest **manifest,
                                 redset_error *err)
{
    *manifest = redset_manifest_new(r->member[0].header);
    return *manifest ? 0 : err_sys(err, -ENOMEM, "manifest");
}

int redset_set_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                       int *rebuilt, redset_error *err)
{
    redset_transport *world = set->world;
    redset_recovery r;
    redset_manifest *made = NULL;
    int dir = -1, rc = rebuild_open(&r, set, folder, &dir, err);
    rc = redset_transport_agree(world, rc, err);
    if (!rc) rc = redset_recovery_rebuild(&r, err);
    if (!rc) {
        rc = redset_recovery_complete(&r, err);
        if (!rc) rc = rebuild_make_manifest(&r, &made, err);
        rc = redset_transport_agree(world, rc, err);
    }
    if (!rc) rc = redset_recovery_commit(&r, err);
    if (rc) {
        redset_manifest_free(made);
    } else {
        *manifest = made;
        *rebuilt = r.lost[r.member[0].member];
        set->is_lost = false;
    }
    rebuild_close(&r, &dir);
    return rc;
}

/* Collective: agrees on rc, the result of this process's inspection, and on the worst
 * state of all sets. */
static int rebuild_agree_state(redset_recovery *r, int rc, redset_error *err)
{
    redset_transport *world = r->set->world;
    r->explains = true;
    rc = redset_transport_agree(world, rc, err);
    if (!rc) rc = redset_recovery_agree(r, err);
    if (rc) return rc;
    if (r->verdict) rc = err_set(err, r->verdict, "%s", r->err.text);
    return redset_transport_agree(world, rc, err);
}

int redset_set_verify(redset *set, const char *folder, int *lost, redset_error *err)
{
    redset_recovery r;
    int dir = -1, rc = rebuild_open(&r, set, folder, &dir, err);
    if (!rc) rc = redset_recovery_verify(&r, err);
    rc = rebuild_agree_state(&r, rc, err);
    if (rc >= 0) *lost = r.member[0].state->lost != 0;
    rebuild_close(&r, &dir);
    return rc;
}

int redset_set_measure(redset *set, const char *folder, redset_manifest **manifest,
                       redset_error *err)
{
    redset_recovery r;
    redset_manifest *made = NULL;
    int dir = -1, rc = rebuild_open(&r, set, folder, &dir, err);
    rc = rebuild_agree_state(&r, rc, err);
    if (!rc)
        rc = redset_transport_agree(set->world, rebuild_make_manifest(&r, &made, err),
                                    err);
    if (rc)
        redset_manifest_free(made);
    else
        *manifest = made;
    rebuild_close(&r, &dir);
    return rc;
}
