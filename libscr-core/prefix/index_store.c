/* SPDX-License-Identifier: BSD-3-Clause */
/* The index of a run, on rank 0.
 *
 * An SCR call reads the index when it first needs it, and keeps the result: the view. A
 * change is made in two passes. The first pass changes the view, and shows whether
 * anything changes. If so, the second pass locks the index, reads, changes and writes it,
 * because commands and other runs change the index as well; the result is the new view.
 * So a call reads the index once, and once more for each state that it makes durable,
 * which it writes once. */
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

/* ---- a lost index ---- */

/* Whether a run was here before, so that a missing index was lost. Each run writes an
 * index before the nodes file. */
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
        /* most likely there are no datasets: a first run begins */
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

/* Fills the empty index with the datasets that were found. */
static int store_fill(const scr_scan *scan, kvtree *index, kvtree_error *err)
{
    int added;
    return scr_index_enter(index, scan->found, scan->count, &added)
               ? err_set(err, -ENOMEM, "no memory for the index")
               : 0;
}

/* Fills the empty index and writes it. If writing fails, the index is valid for this run
 * only, and the next run makes it again. The same applies if a dataset could not be read
 * just now, because a written index would hide it. must: failing to write is an error. */
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

/* Fails if a dataset is of another version: it cannot be entered, but may be the
 * newest. */
static int store_refuse_other_version(const scr_scan *scan, kvtree_error *err)
{
    return scan->code == SCR_OTHER_VERSION
               ? err_set(err, scan->code, "%s", scan->why.text)
               : 0;
}

/* Fails if no complete dataset was found, but something could not be read just now: a run
 * that began from nothing would hide it. */
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

/* Rebuilds the index from a search. Only the search finds stages of flushes: unless must
 * is set, the index is not written before these are removed (scr_index_settle). */
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

/* Reads the index into the empty tree. must: the index will be changed, so it must be
 * written to the prefix directory. */
static int store_load(scr_prefix *prefix, bool must, kvtree *index, kvtree_error *err)
{
    char aside[SCR_INDEX_ASIDE_SIZE], lost[sizeof(kvtree_error) + 128];
    kvtree_error why = {""};
    int rc = scr_index_read(prefix->fd, index, &why);
    if (rc == -ENOENT)
        return store_rebuild(prefix, SCR_INDEX_NAME " is missing", must, index, err);
    if (rc != -EBADMSG) return rc ? err_set(err, rc, "%s", why.text) : 0;
    if ((rc = scr_index_set_aside(prefix->fd, aside, err)) != 0) return rc;
    /* another process set the index aside first */
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

/* The second pass, under the lock. An index that has just been lost is rebuilt first. */
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
    if (rc) scr_index_close(prefix); /* the view has changes that were not written */
    return rc;
}

/* A change of one entry. */
struct entry_change {
    const scr_dataset *dataset;
    scr_index_changer *change;
    bool missing; /* no such entry exists */
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
    /* otherwise the next start would enter the dataset again */
    if (!rc && scr_flush_file_has(prefix->flush_file, d->id, SCR_LOCATION_PFS))
        scr_location(prefix, d, SCR_LOCATION_PFS, 0);
    return rc;
}

/* ---- at start ---- */

/* Searches the prefix directory for datasets that are flushed according to the flush file
 * and missing in the index. */
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
            rc = scr_scan_one(scan, name, err); /* -ENOENT: the dataset was deleted */
    }
    free(ids);
    return rc == -ENOMEM ? rc : store_refuse_other_version(scan, err);
}

static int store_enter_scanned(kvtree *index, void *arg)
{
    const scr_scan *scan = arg;
    return scr_index_restore(index, scan->found, scan->count) ? -ENOMEM : 1;
}

/* Enters complete datasets that the flush file lists as flushed and the index lacks: such
 * an index is an earlier one that was put back. If the index cannot be written, only the
 * view is changed. */
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

/* Converts the index if it is one of SCR 3. Otherwise returns rc and leaves err
 * unchanged. */
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
    /* a first run leaves an index, so that later runs detect the loss of it */
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

/* Whether the index has a newer checkpoint that may still be used. A checkpoint that is
 * flushed late does not replace it as the current one. */
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
    bool over; /* the dataset replaced a newer one, which was complete */
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

/* Makes the directory of the dataset and that of its records. A flush syncs the directory
 * of its files, and with it the entry for the directory of the records. */
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
    scr_records_sweep(prefix, folder, d->name); /* left by a flush that was resumed */
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
