/* SPDX-License-Identifier: BSD-3-Clause */
/* From what was saved to a dataset of the prefix folder; see settle.h. */
#include "scavenge/settle.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/io.h"
#include "common/replace.h"
#include "scavenge/enter.h"
#include "scavenge/pack.h"
#include "scavenge/place.h"
#include "scavenge/remains.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BEFORE_ID "scavenge."

/* Below what was saved: all of it is there, and files are getting their names. */
#define WHOLE_NAME SCAVENGE_HIDDEN "/whole"

/* How long another process may need; it may be one that dies just now. */
enum { PATIENCE = 10 }; /* seconds */

/* ---- where ---- */

scavenge_key scavenge_key_of(const scr_dataset *dataset)
{
    scavenge_key key = {.id = dataset->id, .created = dataset->created};
    strcpy(key.name, dataset->name);
    return key;
}

/* "scavenge.<id>.<created>" */
static void last_name(const scavenge_key *key, char name[64])
{
    snprintf(name, 64, BEFORE_ID "%d.%" PRId64, key->id, key->created);
}

void scavenge_folder_of(const scavenge_key *key, char folder[SCAVENGE_FOLDER_SIZE])
{
    char name[64];
    last_name(key, name);
    snprintf(folder, SCAVENGE_FOLDER_SIZE, "%s/" SCAVENGE_HIDDEN "/%s", key->name, name);
}

/* 1 and the numbers in such a name; 0: another name. */
static int parse_name(const char *name, scavenge_key *key)
{
    char again[64];
    if (sscanf(name, BEFORE_ID "%9d.%18" SCNd64, &key->id, &key->created) != 2) return 0;
    last_name(key, again);
    return key->id > 0 && strcmp(name, again) == 0;
}

/* Opens <name>/.scr. */
static int open_hidden(int prefix, const char *name, int *hidden, char *err)
{
    char inside[SCAVENGE_FOLDER_SIZE];
    const char *last;
    snprintf(inside, sizeof inside, "%s/" SCAVENGE_HIDDEN "/x", name);
    int rc = beneath_open_parent(prefix, inside, 0, hidden, &last, err);
    return rc == -ENOTDIR || rc == -ELOOP ? -ENOENT : rc;
}

static int is_newer(const scavenge_key *a, const scavenge_key *b)
{
    return a->id != b->id ? a->id > b->id : a->created > b->created;
}

int scavenge_find(int prefix, const char *name, scavenge_key *key, char *err)
{
    int hidden;
    scavenge_key one, best = {.id = 0};
    int rc = open_hidden(prefix, name, &hidden, err);
    if (rc) return rc;
    DIR *stream = beneath_list(hidden);
    rc = stream ? 0 : err_sys(err, -errno, "list %s", name);
    const struct dirent *item;
    while (stream && (item = readdir(stream)) != NULL)
        if (parse_name(item->d_name, &one) && is_newer(&one, &best)) best = one;
    if (stream) closedir(stream);
    io_close(&hidden);
    if (!rc && !best.id) rc = err_set(err, -ENOENT, "nothing was saved of %s", name);
    if (rc) return rc;
    *key = best;
    snprintf(key->name, sizeof key->name, "%s", name);
    return 0;
}

/* ---- what was saved ---- */

static int is_there(int dir, const char *name)
{
    struct stat st;
    return beneath_stat(dir, name, &st, NULL) == 0;
}

/* The description must be that of the folder in which it lies. */
static int check(const scavenge_saved *saved, const scavenge_key *key, char *err)
{
    const scr_dataset *d = &saved->scan.dataset;
    if (d->id == key->id && d->created == key->created && strcmp(d->name, key->name) == 0)
        return 0;
    return err_set(err, -EBADMSG, "%s has files of dataset %d (%.200s)", saved->path,
                   d->id, d->name);
}

static int scan(const scavenge_prefix *prefix, scavenge_saved *saved, char *err)
{
    const char *last;
    char inside[SCR_NAME_SIZE + 2];
    const scr_dataset *d = &saved->scan.dataset;
    io_close(&saved->folder.final);
    int rc = scavenge_scan_read(&saved->folder, &saved->scan, err);
    if (rc || !is_there(saved->folder.dir, WHOLE_NAME)) return rc;
    snprintf(inside, sizeof inside, "%s%sx", d->named ? "" : d->name,
             d->named ? "" : "/");
    rc = beneath_open_parent(prefix->dir, inside, 0, &saved->folder.final, &last, err);
    scavenge_scan_done(&saved->scan);
    return rc ? rc : scavenge_scan_read(&saved->folder, &saved->scan, err);
}

int scavenge_open(const scavenge_prefix *prefix, const scavenge_key *key,
                  scavenge_saved *saved, char *err)
{
    char below[SCAVENGE_FOLDER_SIZE], inside[SCAVENGE_FOLDER_SIZE + 2];
    const char *last;
    memset(saved, 0, sizeof *saved);
    saved->folder.dir = saved->folder.final = -1;
    scavenge_folder_of(key, below);
    snprintf(inside, sizeof inside, "%s/x", below);
    saved->path = scr_path_join(prefix->path, below);
    saved->folder.path = saved->path;
    int rc = saved->path ? beneath_open_parent(prefix->dir, inside, 0, &saved->folder.dir,
                                               &last, err)
                         : err_set(err, -ENOMEM, "no memory");
    if (!rc) rc = scan(prefix, saved, err);
    if (!rc && (rc = check(saved, key, err)) != 0) scavenge_scan_done(&saved->scan);
    if (!rc) return 0;
    io_close(&saved->folder.dir);
    io_close(&saved->folder.final);
    free(saved->path);
    return rc;
}

void scavenge_close(scavenge_saved *saved)
{
    scavenge_scan_done(&saved->scan);
    io_close(&saved->folder.dir);
    io_close(&saved->folder.final);
    free(saved->path);
}

/* ---- one at a time ---- */

/* The lock goes away with what was saved; without that there is nothing to lock. */
static int try_lock(int hidden, const char *name, int *fd, char *err)
{
    const struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat st;
    int rc = beneath_open(hidden, name, O_RDWR | O_CREAT, beneath_record_mode(hidden), fd,
                          err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    if (fcntl(*fd, F_OFD_SETLK, &all) != 0) rc = errno == EACCES ? -EAGAIN : -errno;
    if (rc == -ENOLCK || rc == -ENOTSUP || rc == -ENOSYS) return 0; /* without, then */
    /* who had it before has removed it */
    if (!rc && (fstat(*fd, &st) != 0 || st.st_nlink == 0)) rc = -EAGAIN;
    if (rc) io_close(fd);
    return rc && rc != -EAGAIN ? err_sys(err, rc, "lock %s", name) : rc;
}

static int lock(int hidden, const scavenge_key *key, int *fd, char *err)
{
    const struct timespec nap = {0, 50000000};
    struct timespec now, start;
    char last[64], name[80];
    int rc;
    last_name(key, last);
    snprintf(name, sizeof name, "%s/" SCAVENGE_HIDDEN "/lock", last);
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        rc = try_lock(hidden, name, fd, err);
        if (rc == -EAGAIN) nanosleep(&nap, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (rc == -EAGAIN && now.tv_sec - start.tv_sec < PATIENCE);
    if (rc != -EAGAIN) return rc;
    return err_set(err, -EBUSY, "another process works on what was saved of it");
}

/* ---- the work ---- */

/* What a rebuild leaves that was killed. */
static void sweep(int dir)
{
    DIR *stream = beneath_list(dir);
    const struct dirent *item;
    unsigned long long number;
    int i, end;
    while (stream && (item = readdir(stream)) != NULL) {
        end = 0;
        if (strlen(item->d_name) > 21 &&
            sscanf(item->d_name, ".%16llx-%d.tmp%n", &number, &i, &end) == 2 && end > 0 &&
            item->d_name[end] == 0)
            unlinkat(dir, item->d_name, 0);
    }
    if (stream) closedir(stream);
}

static int complete_files(const scavenge_prefix *prefix, scavenge_saved *saved,
                          scavenge_settled *settled, char *err)
{
    if (scavenge_scan_missing(&saved->scan) == 0 || saved->scan.sets == 0) return 0;
    sweep(saved->folder.dir);
    int rc = scavenge_rebuild(&saved->folder, &saved->scan, prefix->most,
                              &settled->rebuilt, &settled->sets);
    if (rc) return err_set(err, rc, "no memory");
    scavenge_scan_done(&saved->scan);
    return scan(prefix, saved, err);
}

/* Why it is not whole; a set that could not be rebuilt tells more than what is missing.
 */
static void explain(const scavenge_saved *saved, scavenge_settled *settled)
{
    scavenge_scan_is_whole(&saved->scan, settled->why);
    for (int i = 0; i < settled->sets; i++) {
        if (!settled->rebuilt[i].failed) continue;
        snprintf(settled->why, sizeof settled->why, "%s", settled->rebuilt[i].why);
        return;
    }
}

/* How files are packed, which a second call must do as the first one did. */
static int read_packing(const scavenge_saved *saved, uint64_t *container, char *err)
{
    unsigned long bytes;
    kvtree *tree = kvtree_new();
    int rc = tree ? kvtree_file_read(saved->folder.dir, WHOLE_NAME, tree, err)
                  : err_set(err, -ENOMEM, "no memory");
    if (!rc &&
        (kvtree_util_get_bytecount(tree, "CONTAINER", &bytes) != 0 || bytes > INT64_MAX))
        rc = err_set(err, -EBADMSG, WHOLE_NAME " does not tell how files are packed");
    if (!rc) *container = bytes;
    kvtree_delete(&tree);
    return rc;
}

static int write_packing(const scavenge_saved *saved, uint64_t container, char *err)
{
    kvtree *tree = kvtree_new();
    int rc = tree ? kvtree_util_set_bytecount(tree, "CONTAINER", container) : -ENOMEM;
    rc = rc ? err_set(err, rc, "no memory")
            : kvtree_file_write(saved->folder.dir, WHOLE_NAME, tree, err);
    kvtree_delete(&tree);
    return rc;
}

/* Files are packed, if they shall be, and it is noted that all is there. */
static int prepare(const scavenge_prefix *prefix, const scavenge_saved *saved,
                   uint64_t *container, char *err)
{
    int rc = read_packing(saved, container, err);
    if (rc != -ENOENT) return rc;
    *container = prefix->container;
    rc = *container ? scavenge_pack(&saved->folder, &saved->scan, *container, err) : 0;
    return rc ? rc : write_packing(saved, *container, err);
}

/* From here on it is whole, whatever happens. */
static int move(const scavenge_prefix *prefix, scavenge_saved *saved,
                scavenge_settled *settled, char *err)
{
    const scr_dataset *d = &saved->scan.dataset;
    uint64_t container = 0;
    int rc = scavenge_enter(prefix->dir, d, SCAVENGE_BEGIN, NULL, &settled->current, err);
    rc = rc ? rc : prepare(prefix, saved, &container, err);
    rc = rc ? rc : scavenge_place(prefix, saved, container, err);
    rc = rc ? rc
            : scavenge_enter(prefix->dir, d, SCAVENGE_END, NULL, &settled->current, err);
    settled->complete = !rc;
    if (!rc) scavenge_remains_remove(prefix->dir, d);
    return rc;
}

static int work(const scavenge_prefix *prefix, scavenge_saved *saved,
                scavenge_settled *settled, char *err)
{
    char why[ERRTEXT_SIZE];
    int rc = scavenge_check_index(prefix->dir, &saved->scan.dataset, err);
    rc = rc ? rc : complete_files(prefix, saved, settled, err);
    if (rc) return rc;
    settled->dataset = saved->scan.dataset;
    /* whether it is scattered is known by now */
    rc = scavenge_check_index(prefix->dir, &settled->dataset, err);
    if (rc) return rc;
    if (scavenge_scan_is_whole(&saved->scan, why))
        return move(prefix, saved, settled, err);
    explain(saved, settled);
    return scavenge_enter(prefix->dir, &settled->dataset, SCAVENGE_INCOMPLETE,
                          settled->why, &settled->current, err);
}

/* Who waits for the lock may make its file anew in a folder that is about to go. */
static int remove_one(int hidden, const char *name, char *err)
{
    int rc = -ENOTEMPTY;
    for (int i = 0; rc == -ENOTEMPTY && i < 100; i++)
        rc = beneath_remove_tree(hidden, name, err);
    return rc;
}

/* Nobody needs it any more, nor what older caches had under the same id. */
static int remove_saved(int hidden, int id, char *err)
{
    scavenge_key one;
    DIR *stream = beneath_list(hidden);
    int rc = stream ? 0 : err_sys(err, -errno, "list what was saved");
    const struct dirent *item;
    while (stream && !rc && (item = readdir(stream)) != NULL)
        if (parse_name(item->d_name, &one) && one.id == id)
            rc = remove_one(hidden, item->d_name, err);
    if (stream) closedir(stream);
    return rc;
}

static int settle_locked(const scavenge_prefix *prefix, const scavenge_key *key,
                         scavenge_settled *settled, char *err)
{
    scavenge_saved saved;
    int rc = scavenge_is_complete(prefix->dir, key, &settled->dataset, err);
    if (rc < 0) return rc;
    if (rc > 0) {
        settled->complete = 1;
        return 0;
    }
    rc = scavenge_open(prefix, key, &saved, err);
    if (rc) return rc;
    rc = work(prefix, &saved, settled, err);
    scavenge_close(&saved);
    return rc;
}

int scavenge_settle(const scavenge_prefix *prefix, const scavenge_key *key,
                    scavenge_settled *settled, char *err)
{
    int hidden, fd = -1;
    memset(settled, 0, sizeof *settled);
    int rc = open_hidden(prefix->dir, key->name, &hidden, err);
    if (rc) return rc;
    rc = lock(hidden, key, &fd, err);
    if (!rc) {
        replace_sweep(hidden, NULL); /* what was left by one that was killed */
        rc = settle_locked(prefix, key, settled, err);
        if (!rc && settled->complete) rc = remove_saved(hidden, key->id, err);
    }
    io_close(&fd);
    io_close(&hidden);
    if (rc) {
        free(settled->rebuilt);
        settled->rebuilt = NULL;
        settled->sets = 0;
    }
    return rc;
}
