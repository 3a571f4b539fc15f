/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of a run, on rank 0.
 *
 * An SCR call reads the index when it first needs it, and keeps what it has read: the
 * view. A change is made in two passes. The first one is on the view, and shows whether
 * anything changes. If so, the index is locked, read, changed and written, because
 * commands and other runs change it as well, and that is the view then. So a call reads
 * the index once, and again for each state that it makes durable, which it writes once.
 */
#include "prefix/prefix.h"

#include "base/record_change.h"
#include "base/versions.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "prefix/flush_file.h"
#include "prefix/nodes.h"
#include "prefix/scan.h"
#include "prefix/scr3.h"
#include "report/wait.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- an index that was lost ---- */

/* Whether a run was here before: an index that is missing then was lost. Each run begins
 * with an index, before it writes the nodes file. */
static bool store_had_runs(const scr_prefix *prefix)
{
    struct stat st;
    return fstatat(prefix->fd, SCR_NODES_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void store_report_rebuilt(const scr_prefix *prefix, const scr_scan *scan,
                                 const char *lost)
{
    char more[sizeof(kvtree_error) + 64] = "";
    if (!scan->count && !err_is_damage(scan->code) && !store_had_runs(prefix)) {
        /* most likely nothing is there: a first run begins */
        if (scan->stopped || scan->refused)
            scr_say(
                prefix->job->report, SCR_MSG_INDEX_NOT_SEARCHED,
                "%s has no index, and the search for datasets is incomplete: too many, "
                "too deep or unreadable directories; scr_index --add NAME adds datasets",
                prefix->path);
        return;
    }
    if (scan->refused)
        snprintf(more, sizeof more, "; %d are not usable, the first is %s", scan->refused,
                 scan->why.text);
    scr_say(prefix->job->report, SCR_MSG_INDEX_REBUILT,
            "%s; the index is rebuilt from %d datasets on the prefix directory%s%s", lost,
            scan->count, more,
            scan->stopped
                ? "; the search did not look into all directories: there may be more"
                : "");
}

/* Fills the empty index by what was found. */
static int store_fill(const scr_scan *scan, kvtree *index, kvtree_error *err)
{
    int added;
    return scr_index_enter(index, scan->found, scan->count, &added)
               ? err_set(err, -ENOMEM, "no memory for the index")
               : 0;
}

/* The same, and writes it. If that fails, it is right for this run only, and the next one
 * makes it again; likewise if a dataset could not be read just now, which a written index
 * would hide. must: an index that is not written is an error. */
static int store_make(const scr_prefix *prefix, const scr_scan *scan, bool must,
                      kvtree *index, kvtree_error *err)
{
    kvtree_error why = {""};
    int added;
    if (must && scan->unread)
        return err_set(err, -EIO, "the index cannot be made again now: %s",
                       scan->why.text);
    int rc = scan->unread ? err_set(&why, -EIO, "%s", scan->why.text)
                          : scr_index_make(prefix->fd, scan->found, scan->count, index,
                                           &added, &why);
    if (!rc) return 0;
    if (must) return err_set(err, rc, "%s", why.text);
    kvtree_unset_all(index);
    rc = store_fill(scan, index, err);
    if (!rc)
        scr_say(prefix->job->report, SCR_MSG_INDEX_NOT_WRITTEN,
                "the index could not be written: %s", why.text);
    return rc;
}

/* A dataset that cannot be entered may be the newest. */
static int store_refuse_other_version(const scr_scan *scan, kvtree_error *err)
{
    return scan->code == SCR_OTHER_VERSION
               ? err_set(err, scan->code, "%s", scan->why.text)
               : 0;
}

/* Nothing to restart from was found, but something could not be read just now: a run that
 * began anew would hide it. */
static int store_refuse_unread(const scr_scan *scan, kvtree_error *err)
{
    for (int i = 0; i < scan->count; i++)
        if (scan->found[i].complete) return 0;
    return scan->unread
               ? err_set(err, -EIO,
                         "the index is missing, and what is in the prefix directory "
                         "cannot be read now: %s",
                         scan->why.text)
               : 0;
}

static int store_search(const scr_prefix *prefix, scr_scan *scan, kvtree_error *err)
{
    int rc = scr_scan_open(scan, prefix->real, err);
    if (!rc) rc = scr_scan_all(scan, NULL, err);
    if (!rc) rc = store_refuse_other_version(scan, err);
    if (!rc) rc = store_refuse_unread(scan, err);
    return rc;
}

/* Stages of flushes are found by the search alone: unless it must be, the index is not
 * written before they are removed (scr_index_settle). */
static int store_rebuild(scr_prefix *prefix, const char *lost, bool must, kvtree *index,
                         kvtree_error *err)
{
    scr_scan *scan = malloc(sizeof *scan);
    if (!scan) return err_set(err, -ENOMEM, "no memory");
    int rc = store_search(prefix, scan, err);
    if (!rc) store_report_rebuilt(prefix, scan, lost);
    if (!rc)
        rc = !must && kvtree_size(scan->staged) > 0
                 ? store_fill(scan, index, err)
                 : store_make(prefix, scan, must, index, err);
    if (rc) {
        scr_scan_free(&scan);
        return rc;
    }
    io_close(&scan->dir);
    scr_scan_free(&prefix->search);
    prefix->search = scan;
    return 0;
}

/* ---- the view ---- */

/* Reads the index into the empty tree. must: to change it; then it has to be on the
 * prefix directory. */
static int store_load(scr_prefix *prefix, bool must, kvtree *index, kvtree_error *err)
{
    char aside[SCR_INDEX_ASIDE_SIZE], lost[sizeof(kvtree_error) + 128];
    kvtree_error why = {""};
    int rc = scr_index_read(prefix->fd, index, &why);
    if (rc == -ENOENT)
        return store_rebuild(prefix, SCR_INDEX_NAME " is missing", must, index, err);
    if (rc != -EBADMSG) return rc ? err_set(err, rc, "%s", why.text) : 0;
    if ((rc = scr_index_set_aside(prefix->fd, aside, err)) != 0) return rc;
    /* unless another process was faster */
    if (!aside[0]) return store_load(prefix, must, index, err);
    snprintf(lost, sizeof lost, "%s; it is set aside as %s", why.text, aside);
    return store_rebuild(prefix, lost, must, index, err);
}

static int store_open_view(scr_prefix *prefix, bool must, kvtree_error *err)
{
    if (prefix->index) return 0;
    kvtree *index = kvtree_new();
    int rc = store_load(prefix, must, index, err);
    if (rc) kvtree_delete(&index);
    prefix->index = index;
    return rc;
}

int scr_index_view(scr_prefix *prefix, const kvtree **index, kvtree_error *err)
{
    int rc = store_open_view(prefix, false, err);
    *index = prefix->index;
    return rc;
}

void scr_index_close(scr_prefix *prefix)
{
    kvtree_delete(&prefix->index);
}

void scr_index_settle(scr_prefix *prefix)
{
    kvtree_error err = {""};
    if (!prefix->index || !prefix->search || kvtree_size(prefix->search->staged) == 0)
        return;
    kvtree_unset_all(prefix->index);
    if (store_make(prefix, prefix->search, false, prefix->index, &err) != 0)
        scr_index_close(prefix);
    scr_scan_free(&prefix->search);
}

/* ---- changes ---- */

/* The second pass: under the lock. An index that is lost just now is made again first. */
static int store_write(scr_prefix *prefix, scr_changer *change, void *arg,
                       kvtree_error *err)
{
    scr_wait wait;
    scr_wait_begin(prefix->job->report, &wait, SCR_MSG_INDEX_LOCK_WAIT,
                   "waits to change %.400s/" SCR_INDEX_NAME
                   ": another process has " SCR_LOCK_NAME ", or the file system is slow",
                   prefix->path);
    int rc = scr_index_update(prefix->fd, change, arg, prefix->index, err);
    if (rc == -ENOENT || rc == -EBADMSG) {
        kvtree_unset_all(prefix->index);
        rc = store_load(prefix, true, prefix->index, err);
        if (!rc) rc = scr_index_update(prefix->fd, change, arg, prefix->index, err);
    }
    scr_wait_end(&wait);
    return rc;
}

int scr_index_rewrite(scr_prefix *prefix, scr_changer *change, void *arg,
                      kvtree_error *err)
{
    int rc = store_open_view(prefix, true, err);
    if (rc) return rc;
    rc = change(prefix->index, arg);
    if (rc < 0) err_sys(err, rc, "change %s", SCR_INDEX_NAME);
    if (rc > 0) rc = store_write(prefix, change, arg, err);
    if (rc) scr_index_close(prefix); /* it has what was not written */
    return rc;
}

/* A change of one entry. */
struct entry_change {
    const scr_dataset *dataset;
    scr_index_changer *change;
    bool missing; /* there is no such entry */
};

static int store_change_entry(kvtree *index, void *arg)
{
    struct entry_change *c = arg;
    scr_index_state state;
    c->missing = scr_index_look(index, c->dataset, &state) != 0;
    if (c->missing) return 0;
    int rc = c->change(index, c->dataset);
    return rc ? rc : 1;
}

int scr_index_change(scr_prefix *prefix, const scr_dataset *d, scr_index_changer *change,
                     kvtree_error *err)
{
    struct entry_change c = {d, change, false};
    int rc = scr_index_rewrite(prefix, store_change_entry, &c, err);
    if (!rc && c.missing)
        rc = err_set(err, -ENOENT, "dataset %d is not in the index as %.200s", d->id,
                     d->name);
    return rc;
}

static int store_replace_entry(kvtree *index, void *arg)
{
    const scr_dataset *d = arg;
    int rc = scr_index_remove(index, d);
    if (!rc || rc == -ENOENT) rc = scr_index_add(index, d, 1);
    return rc ? rc : 1;
}

int scr_index_correct(scr_prefix *prefix, const scr_dataset *d, kvtree_error *err)
{
    scr_dataset entry = *d;
    return scr_index_rewrite(prefix, store_replace_entry, &entry, err);
}

int scr_index_drop(scr_prefix *prefix, const scr_dataset *d, kvtree_error *err)
{
    int rc = scr_index_change(prefix, d, scr_index_remove, err);
    /* or the next start would enter it again */
    if (!rc && scr_flush_file_has(prefix->flush_file, d->id, SCR_LOCATION_PFS))
        scr_location(prefix, d, SCR_LOCATION_PFS, 0);
    return rc;
}

/* ---- at start ---- */

/* Searches the prefix directory for what the flush file calls flushed and the index does
 * not have. */
static int store_scan_flushed(const scr_prefix *prefix, scr_scan *scan, kvtree_error *err)
{
    const kvtree *flush = prefix->flush_file;
    int count = 0, rc = 0, *ids = NULL;
    scr_dataset known;
    if (scr_flush_file_list(flush, &count, &ids) != 0) return 0;
    for (int i = 0; i < count && rc != -ENOMEM; i++) {
        const char *name = scr_flush_file_name(flush, ids[i]);
        if (name && scr_flush_file_has(flush, ids[i], SCR_LOCATION_PFS) &&
            scr_index_get(prefix->index, name, &known) != 0)
            rc = scr_scan_one(scan, name, err); /* -ENOENT: it was deleted */
    }
    free(ids);
    return rc == -ENOMEM ? rc : store_refuse_other_version(scan, err);
}

static int store_enter_scanned(kvtree *index, void *arg)
{
    const scr_scan *scan = arg;
    return scr_index_restore(index, scan->found, scan->count) ? -ENOMEM : 1;
}

/* An index that lacks what was flushed is an earlier one that was put in its place. What
 * is complete on the prefix directory is entered again; if that cannot be written, in the
 * view alone. */
static int store_enter_flushed(scr_prefix *prefix, kvtree_error *err)
{
    kvtree_error why = {""};
    scr_scan scan;
    int rc = scr_scan_open(&scan, prefix->real, err);
    if (rc) return rc;
    rc = store_scan_flushed(prefix, &scan, err);
    if (!rc && scan.count) {
        scr_say(prefix->job->report, SCR_MSG_INDEX_OUTDATED,
                SCR_INDEX_NAME " is outdated: it lacks %s%s of " SCR_FLUSH_FILE_NAME
                               "; they are added again",
                scan.found[0].name, scan.count > 1 ? " and others" : "");
        if (scr_index_rewrite(prefix, store_enter_scanned, &scan, &why) != 0) {
            scr_say(prefix->job->report, SCR_MSG_INDEX_NOT_WRITTEN,
                    "the index could not be written: %s", why.text);
            rc = store_open_view(prefix, false, err);
            if (!rc && store_enter_scanned(prefix->index, &scan) < 0)
                rc = err_set(err, -ENOMEM, "no memory for the index");
        }
    }
    scr_scan_close(&scan);
    return rc;
}

/* The index may be one of SCR 3. Otherwise the result is rc, and err stays. */
static int store_convert(const scr_prefix *prefix, int rc, kvtree_error *err)
{
    kvtree_error why = {""};
    scr3_result result;
    int failed = scr3_convert(prefix->fd, prefix->real, &result, &why);
    if (failed) return err_set(err, failed, "%s", why.text);
    if (!result.converted) return rc;
    scr_say(
        prefix->job->report, SCR_MSG_PREFIX_CONVERTED,
        "the index of SCR 3 in %s was converted, and has %d datasets now; it was kept "
        "as %s",
        prefix->path, result.datasets, result.aside);
    if (result.refused)
        scr_say(prefix->job->report, SCR_MSG_PREFIX_CONVERTED_IN_PART,
                "%d datasets of SCR 3 were not converted; the first: %s", result.refused,
                result.why.text);
    return scr_versions_check(prefix->fd, err);
}

int scr_index_begin(scr_prefix *prefix, scr_counters *highest, kvtree_error *err)
{
    int rc = scr_versions_check(prefix->fd, err);
    if (rc) rc = store_convert(prefix, rc, err);
    if (rc) return rc;
    scr_records_sweep(prefix, prefix->fd, prefix->path);
    /* a first run leaves an index, which shows later runs that it was here */
    rc = store_open_view(prefix, !store_had_runs(prefix), err);
    if (rc) return rc;
    scr_locations_read(prefix);
    if (!prefix->search) rc = store_enter_flushed(prefix, err);
    if (rc) return rc;
    *highest = scr_index_highest(prefix->index);
    scr_locations_correct(prefix, prefix->index);
    return 0;
}

/* ---- a flush ---- */

/* Whether the index has a newer checkpoint that is still wanted: one that is flushed late
 * does not take its place. */
static bool store_is_overtaken(const kvtree *index, const scr_dataset *d, scr_age below)
{
    scr_dataset next;
    return scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &next) == 0 &&
           scr_dataset_is_newer(&next, d) && scr_dataset_is_older(&next, below);
}

/* A dataset that becomes an entry. */
struct entry {
    const scr_dataset *dataset;
    scr_age below;
    bool complete;
    bool over; /* it took the place of a newer one, which was complete */
};

static int store_enter_dataset(kvtree *index, void *arg)
{
    struct entry *e = arg;
    const scr_dataset *d = e->dataset;
    scr_dataset known;
    scr_index_state state = {.complete = 0};
    e->over = e->complete && scr_index_get(index, d->name, &known) == 0 &&
              scr_dataset_is_newer(&known, d) &&
              scr_index_look(index, &known, &state) == 0 && state.complete == 1;
    if (scr_index_add(index, d, e->complete) != 0 ||
        scr_index_look(index, d, &state) != 0)
        return -ENOMEM;
    if (e->complete && d->ckpt && !state.refused &&
        !store_is_overtaken(index, d, e->below) && scr_index_set_current(index, d) != 0)
        return -ENOMEM;
    return 1;
}

/* Makes the directory of the dataset and that of its records. A flush syncs the one that
 * its files are in, and with it the name of the other. */
static int store_make_folders(const scr_prefix *prefix, const scr_dataset *d,
                              kvtree_error *err)
{
    char hidden[SCR_NAME_SIZE + 8];
    const bool later = !d->bypass && !d->scattered;
    snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
    int rc = later ? beneath_mkdirs(prefix->fd, hidden, 0777, err) : 0;
    return rc ? rc
              : beneath_make_durable(prefix->fd, later ? d->name : hidden, 0777, err);
}

int scr_index_flush_begins(scr_prefix *prefix, const scr_dataset *d, kvtree_error *err)
{
    struct entry e = {.dataset = d};
    if (prefix->job->rank != 0) return 0;
    int rc = scr_index_rewrite(prefix, store_enter_dataset, &e, err);
    return rc ? rc : store_make_folders(prefix, d, err);
}

int scr_index_flush_ends(scr_prefix *prefix, const scr_dataset *d, scr_age below,
                         kvtree_error *err)
{
    int folder;
    struct entry e = {.dataset = d, .below = below, .complete = true};
    if (prefix->job->rank != 0) return 0;
    int rc = scr_place_open(prefix, d->name, &folder, err);
    if (rc) return rc;
    scr_records_sweep(prefix, folder, d->name); /* of a flush that was resumed */
    rc = scr_summary_write(folder, d, err);
    close(folder);
    rc = rc ? rc : scr_index_rewrite(prefix, store_enter_dataset, &e, err);
    if (!rc && e.over)
        scr_say(prefix->job->report, SCR_MSG_FLUSH_OVERWRITTEN,
                "%s was written over a newer dataset of that name, which another job "
                "flushed meanwhile; use one prefix directory per job",
                d->name);
    return rc;
}
