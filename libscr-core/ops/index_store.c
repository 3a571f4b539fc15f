/* SPDX-License-Identifier: BSD-3-Clause */
/* The index as a run uses it: rank 0 reads, changes and writes it under its lock, so that
 * what commands change at the same time stays. */
#include "ops/context.h"
#include "report/wait.h"

#include "base/path.h"
#include "base/record_change.h"
#include "base/versions.h"
#include "common/batch.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "prefix/nodes.h"
#include "prefix/scan.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Clears the mark of what counts as flushed, but was not found again. */
static void forget_lost(struct scr *scr, const kvtree *index)
{
    int count, *ids, changed = 0;
    char err[SCR_ERR_TEXT] = "";
    if (scr_flush_file_list(scr->prefix.flush_file, &count, &ids) != 0) return;
    for (int i = 0; i < count; i++) {
        scr_dataset d = {.id = ids[i]};
        if (!scr_flush_file_has(scr->prefix.flush_file, d.id, SCR_LOCATION_PFS)) continue;
        scr_index_state state = {0, 0, 0, 0};
        const char *name = scr_flush_file_name(scr->prefix.flush_file, d.id);
        snprintf(d.name, sizeof d.name, "%s", name ? name : "");
        if (name && scr_index_look(index, &d, &state) == 0 && state.complete == 1)
            continue;
        scr_flush_file_set(scr->prefix.flush_file, d.id, d.name, SCR_LOCATION_PFS, 0);
        changed = 1;
    }
    free(ids);
    if (changed && scr_flush_file_write(scr->prefix.fd, scr->prefix.flush_file, err) != 0)
        scr_say(&scr->report, 0, "warning: the flush file could not be written: %s", err);
}

/* 1 when a run was here before: an index that is missing then was lost. Each run begins
 * with an index, before it writes the nodes file. */
static int had_runs(const struct scr *scr)
{
    struct stat st;
    return fstatat(scr->prefix.fd, SCR_NODES_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Nothing was found, and most likely nothing is there: a first run begins. */
static void tell_first(const struct scr *scr, const scr_scan *scan)
{
    if (scan->stopped || scan->refused)
        scr_say(&scr->report, 0,
                "warning: %s has no index, and was not searched for datasets to its end: "
                "it has too many or too deep folders, or some that cannot be read. If it "
                "has datasets, scr_index --add NAME enters them",
                scr->prefix.path);
}

static void tell_rebuilt(const struct scr *scr, const scr_scan *scan, const char *lost)
{
    char more[SCR_ERR_TEXT + 64] = "";
    if (!scan->count && !err_is_damage(scan->code) && !had_runs(scr)) {
        tell_first(scr, scan);
        return;
    }
    if (scan->refused)
        snprintf(more, sizeof more, "; %d cannot be restarted from, the first is %s",
                 scan->refused, scan->why);
    scr_say(&scr->report, 0,
            "warning: %s; the index is made again from what %d datasets on the prefix "
            "folder say of themselves%s%s",
            lost, scan->count, more,
            scan->stopped
                ? "; the search did not look into all folders: there may be more"
                : "");
}

/* Fills the empty index by what was found, and writes it. Where that fails, it is right
 * for this run only, and the next one makes it again; so it is where a dataset could not
 * be read just now, which a written index would hide. must: an index that is not written
 * is an error. */
static int make(struct scr *scr, const scr_scan *scan, int must, kvtree *index, char *err)
{
    char why[SCR_ERR_TEXT] = "";
    int added;
    if (must && scan->unread)
        return err_set(err, -EIO, "the index cannot be made again now: %s", scan->why);
    int rc = scan->unread ? err_set(why, -EIO, "%s", scan->why)
                          : scr_index_make(scr->prefix.fd, scan->found, scan->count,
                                           index, &added, why);
    if (!rc) return 0;
    if (must) return err_set(err, rc, "%s", why);
    kvtree_unset_all(index);
    if (scr_index_enter(index, scan->found, scan->count, &added) != 0)
        return err_set(err, -ENOMEM, "no memory for the index");
    scr_say(&scr->report, 0, "warning: the index could not be written: %s", why);
    return 0;
}

/* A dataset that cannot be entered may be the newest. */
static int refuse_other_version(const scr_scan *scan, char *err)
{
    return scan->code == SCR_OTHER_VERSION ? err_set(err, scan->code, "%s", scan->why)
                                           : 0;
}

/* Nothing that a run can restart from was found, but something could not be read just
 * now: a run that began anew would hide it. */
static int refuse_unread(const scr_scan *scan, char *err)
{
    for (int i = 0; i < scan->count; i++)
        if (scan->found[i].complete) return 0;
    return scan->unread
               ? err_set(err, -EIO,
                         "the index is missing, and what is in the prefix folder "
                         "cannot be read now: %s",
                         scan->why)
               : 0;
}

static int rebuild(struct scr *scr, const char *lost, int must, kvtree *index, char *err)
{
    scr_scan scan;
    int rc = scr_scan_open(&scan, scr->prefix.real, err);
    if (rc) return rc;
    rc = scr_scan_all(&scan, NULL, err);
    if (!rc) rc = refuse_other_version(&scan, err);
    if (!rc) rc = refuse_unread(&scan, err);
    if (!rc) tell_rebuilt(scr, &scan, lost);
    if (!rc) rc = make(scr, &scan, must, index, err);
    if (!rc) {
        kvtree_delete(&scr->prefix.staged);
        scr->prefix.staged = scan.staged;
        scan.staged = NULL;
    }
    scr_scan_close(&scan);
    return rc;
}

/* must: to change it; then it has to be on the prefix folder. */
static int load(struct scr *scr, int must, kvtree *index, char *err)
{
    char why[SCR_ERR_TEXT] = "", aside[SCR_INDEX_ASIDE_SIZE], lost[SCR_ERR_TEXT + 128];
    int rc = scr_index_read(scr->prefix.fd, index, why);
    if (rc == -ENOENT)
        return rebuild(scr, SCR_INDEX_NAME " is missing", must, index, err);
    if (rc != -EBADMSG) return rc ? err_set(err, rc, "%s", why) : 0;
    if ((rc = scr_index_set_aside(scr->prefix.fd, aside, err)) != 0) return rc;
    if (!aside[0]) return load(scr, must, index, err); /* somebody else was faster */
    snprintf(lost, sizeof lost, "%s; it is set aside as %s", why, aside);
    return rebuild(scr, lost, must, index, err);
}

int scr_index_load(struct scr *scr, kvtree *index, char *err)
{
    return load(scr, 0, index, err);
}

/* One that is missing or damaged is made again first. */
static int update(struct scr *scr, scr_changer *change, void *arg, char *err)
{
    scr_wait wait;
    kvtree *index = kvtree_new();
    scr_wait_begin(&scr->report, &wait,
                   "waits to change %.400s/" SCR_INDEX_NAME ": another process has its "
                   "lock, or the file system is slow",
                   scr->prefix.path);
    int rc = index ? scr_index_update(scr->prefix.fd, change, arg, index, err)
                   : err_set(err, -ENOMEM, "no memory for the index");
    if (rc == -ENOENT || rc == -EBADMSG) {
        kvtree_unset_all(index);
        rc = load(scr, 1, index, err);
        rc = rc ? rc : scr_index_update(scr->prefix.fd, change, arg, index, err);
    }
    scr_wait_end(&wait);
    kvtree_delete(&index);
    return rc;
}

int scr_index_rewrite(struct scr *scr, scr_changer *change, void *arg, char *err)
{
    return update(scr, change, arg, err);
}

static int enter_found(kvtree *index, void *arg)
{
    const scr_scan *scan = arg;
    return scr_index_restore(index, scan->found, scan->count) ? -ENOMEM : 1;
}

/* Looks on the prefix folder for what the flush file calls flushed and the index does not
 * have. */
static int scan_flushed(struct scr *scr, const kvtree *index, scr_scan *scan, char *err)
{
    const kvtree *flush = scr->prefix.flush_file;
    int count = 0, rc = 0, *ids = NULL;
    scr_dataset known;
    if (scr_flush_file_list(flush, &count, &ids) != 0) return 0;
    for (int i = 0; i < count && rc != -ENOMEM; i++) {
        const char *name = scr_flush_file_name(flush, ids[i]);
        if (name && scr_flush_file_has(flush, ids[i], SCR_LOCATION_PFS) &&
            scr_index_get(index, name, &known) != 0)
            rc = scr_scan_one(scan, name, err); /* -ENOENT: it was deleted */
    }
    free(ids);
    return rc == -ENOMEM ? rc : refuse_other_version(scan, err);
}

/* An index that lacks what was flushed is an earlier one that was put in its place. What
 * is complete on the prefix folder is entered again. */
static int enter_unknown(struct scr *scr, kvtree *index, char *err)
{
    char why[SCR_ERR_TEXT] = "";
    scr_scan scan;
    int rc = scr_scan_open(&scan, scr->prefix.real, err);
    if (rc) return rc;
    rc = scan_flushed(scr, index, &scan, err);
    if (!rc && scan.count && enter_found(index, &scan) < 0)
        rc = err_set(err, -ENOMEM, "no memory for the index");
    if (!rc && scan.count) {
        scr_say(&scr->report, 0,
                "warning: " SCR_INDEX_NAME " is an earlier one: it does not have %s%s "
                "that " SCR_FLUSH_FILE_NAME
                " names; what is on the prefix folder is entered again",
                scan.found[0].name, scan.count > 1 ? " and others" : "");
        if (update(scr, enter_found, &scan, why) != 0)
            scr_say(&scr->report, 0, "warning: the index could not be written: %s", why);
    }
    scr_scan_close(&scan);
    return rc;
}

void scr_records_sweep(const struct scr *scr, int folder, const char *name)
{
    char err[SCR_ERR_TEXT] = "";
    int fd = openat(folder, ".scr", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && batch_sweep(fd, err) != 0)
        scr_say(&scr->report, 0, "warning: %s/.scr: %s", name, err);
    io_close(&fd);
}

static void read_flush_file(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    int rc = scr_flush_file_read(scr->prefix.fd, scr->prefix.flush_file, err);
    if (rc && rc != -ENOENT)
        scr_say(&scr->report, 0,
                "warning: %s; it counts as empty, so datasets may be flushed again", err);
}

/* What the index does not have is not found again, so it does not count as flushed. */
static void correct_flush_file(struct scr *scr, const kvtree *index)
{
    /* its numbers are those of other datasets where it is that of another job */
    const char *owner = scr_flush_file_owner(scr->prefix.flush_file);
    if (owner && strcmp(owner, scr->job.owner) != 0)
        scr_flush_file_keep(scr->prefix.flush_file, NULL, 0);
    /* without it scr_prerun takes the datasets for those of an earlier allocation */
    scr_flush_file_set_owner(scr->prefix.flush_file, scr->job.owner);
    forget_lost(scr, index);
}

int scr_index_begin(struct scr *scr, char *err)
{
    int rc = scr_versions_check(scr->prefix.fd, err);
    if (rc) return rc;
    scr_records_sweep(scr, scr->prefix.fd, scr->prefix.path);
    kvtree *index = kvtree_new();
    /* what begins with nothing leaves an index, which tells later runs that it was here
     */
    rc = load(scr, !had_runs(scr), index, err);
    if (!rc) read_flush_file(scr);
    if (!rc && !scr->prefix.staged) rc = enter_unknown(scr, index, err);
    if (!rc)
        scr_index_highest(index, &scr->lifecycle.dataset_id, &scr->lifecycle.ckpt_id);
    if (!rc) correct_flush_file(scr, index);
    kvtree_delete(&index);
    return rc;
}

/* A change of one entry. */
struct entry_change {
    const scr_dataset *dataset;
    scr_index_changer *change;
    int missing; /* there is no such entry */
};

static int change_entry(kvtree *index, void *arg)
{
    struct entry_change *c = arg;
    scr_index_state state;
    c->missing = scr_index_look(index, c->dataset, &state) != 0;
    if (c->missing) return 0;
    int rc = c->change(index, c->dataset);
    return rc ? rc : 1;
}

int scr_index_change(struct scr *scr, const scr_dataset *d, scr_index_changer *change,
                     char *err)
{
    struct entry_change c = {d, change, 0};
    int rc = update(scr, change_entry, &c, err);
    if (!rc && c.missing)
        rc = err_set(err, -ENOENT, "dataset %d is not in the index as %.200s", d->id,
                     d->name);
    return rc;
}

static int replace_entry(kvtree *index, void *arg)
{
    const scr_dataset *d = arg;
    int rc = scr_index_remove(index, d);
    if (!rc || rc == -ENOENT) rc = scr_index_add(index, d, 1);
    return rc ? rc : 1;
}

int scr_index_correct(struct scr *scr, const scr_dataset *d, char *err)
{
    scr_dataset entry = *d;
    return update(scr, replace_entry, &entry, err);
}

int scr_index_drop(struct scr *scr, const scr_dataset *d, char *err)
{
    int rc = scr_index_change(scr, d, scr_index_remove, err);
    /* or the next start would enter it again */
    if (!rc && scr_flush_file_has(scr->prefix.flush_file, d->id, SCR_LOCATION_PFS))
        scr_location(scr, d, SCR_LOCATION_PFS, 0);
    return rc;
}

/* 1 when the index has a newer checkpoint that is still wanted: one that is flushed late
 * does not take its place. */
static int is_overtaken(const struct scr *scr, const kvtree *index, const scr_dataset *d)
{
    scr_dataset next;
    return scr_index_next_fetch(index, SCR_AGE_ANY, NULL, &next) == 0 &&
           scr_dataset_is_newer(&next, d) &&
           scr_dataset_is_older(&next, scr->restart.below);
}

/* A dataset that becomes an entry. */
struct entry {
    struct scr *scr;
    const scr_dataset *dataset;
    int complete;
    int over; /* it took the place of a newer one, which was complete */
};

static int enter_dataset(kvtree *index, void *arg)
{
    struct entry *e = arg;
    const scr_dataset *d = e->dataset;
    scr_dataset known;
    scr_index_state state;
    int has = scr_index_get(index, d->name, &known) == 0;
    e->over = e->complete && has && scr_dataset_is_newer(&known, d) &&
              scr_index_look(index, &known, &state) == 0 && state.complete == 1;
    if (scr_index_add(index, d, e->complete) != 0) return -ENOMEM;
    if (e->complete && d->ckpt && !is_overtaken(e->scr, index, d) &&
        scr_index_set_current(index, d) != 0)
        return -ENOMEM;
    return 1;
}

int scr_index_flush_begins(struct scr *scr, const scr_dataset *d, char *err)
{
    char hidden[SCR_NAME_SIZE + 8];
    struct entry e = {scr, d, 0, 0};
    if (scr->job.rank != 0) return 0;
    int rc = update(scr, enter_dataset, &e, err);
    snprintf(hidden, sizeof hidden, "%s/.scr", d->name);
    return rc ? rc : beneath_make_durable(scr->prefix.fd, hidden, 0777, err);
}

int scr_index_flush_ends(struct scr *scr, const scr_dataset *d, char *err)
{
    if (scr->job.rank != 0) return 0;
    int folder;
    struct entry e = {scr, d, 1, 0};
    int rc = scr_place_open(scr, d->name, &folder, err);
    if (rc) return rc;
    scr_records_sweep(scr, folder, d->name); /* a flush that was resumed */
    rc = scr_summary_write(folder, d, err);
    close(folder);
    rc = rc ? rc : update(scr, enter_dataset, &e, err);
    if (!rc && e.over)
        scr_say(
            &scr->report, 0,
            "warning: while %s was flushed, another job flushed a newer dataset of that "
            "name, whose files are written over; give each job a prefix folder of its "
            "own",
            d->name);
    return rc;
}
