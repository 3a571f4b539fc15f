/* SPDX-License-Identifier: BSD-3-Clause */
/* Index and summary as files; see prefix/index.h. */
#include "prefix/index.h"

#include "base/versions.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/others.h"
#include "common/record_size.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#define KEY_VERSION "VERSION"
#define KEY_DSET "DSET"
#define KEY_COMPLETE "COMPLETE"

int scr_index_read(int prefix, scr_index *index, kvtree_error *err)
{
    if (!index) return err_set(err, -ENOMEM, "no memory");
    int rc = kvtree_file_read(prefix, SCR_INDEX_NAME, RECORD_SIZE_INDEX, index, err);
    /* the process that created the file under its lock was killed */
    if (!rc && !kvtree_size(index))
        return err_set(err, -ENOENT, "%s is empty", SCR_INDEX_NAME);
    rc = rc ? rc : scr_version_check(index, SCR_INDEX_VERSION, SCR_INDEX_NAME, err);
    if (rc) kvtree_unset_all(index);
    return rc;
}

/* ---- names in the index ---- */

/* Replaces *here, which st describes, by the open directory above it. */
static int index_go_up(int *here, struct stat *st)
{
    const struct stat below = *st;
    int up = io_open(*here, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (up < 0) return up;
    io_close(here);
    *here = up;
    if (fstat(up, st) != 0) return -errno;
    return io_is_same_file(st, &below) ? -EPERM : 0; /* *here is the root */
}

int scr_index_check_place(int prefix, int folder, const char *name, kvtree_error *err)
{
    struct stat end, st, index;
    int here = io_open(folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    int rc = here < 0 ? here : 0;
    if (!rc && (fstat(prefix, &end) != 0 || fstat(here, &st) != 0)) rc = -errno;
    while (!rc && !io_is_same_file(&st, &end)) {
        if (fstatat(here, SCR_INDEX_NAME, &index, AT_SYMLINK_NOFOLLOW) == 0) {
            io_close(&here);
            return err_set(err, -EPERM, "%s is a prefix directory, or in another one",
                           name);
        }
        rc = index_go_up(&here, &st);
    }
    io_close(&here);
    return rc ? err_sys(err, rc, "inspect the directory of %s", name) : 0;
}

int scr_index_check_name(int prefix, int folder, const char *name, kvtree_error *err)
{
    int64_t who = others_put_below(prefix, SCR_INDEX_NAME, err);
    if (who < 0) return (int)who;
    if (who && others_reach(who, prefix, folder, name, NULL) != 0) {
        int above = io_open(folder, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        int rc = above < 0 ? err_sys(err, above, "open the directory of %s", name)
                           : others_reach(who, prefix, above, name, err);
        io_close(&above);
        if (rc) return rc;
    }
    return scr_index_check_place(prefix, folder, name, err);
}

/* Checks the name of an entry that is marked. The mark stays if the directory does not
 * exist or cannot be inspected now. */
static int index_check_mark(void *arg, const char *name)
{
    const int *prefix = arg;
    int folder, rc = beneath_open_below(*prefix, name, &folder, NULL);
    if (rc) return 0;
    rc = scr_index_check_name(*prefix, folder, name, NULL);
    io_close(&folder);
    return rc;
}

/* ---- changes ---- */

struct update {
    int prefix;
    scr_changer *change;
    void *arg;
};

/* Checks the version and changes the index. The locked file may differ from the one that
 * was read before. */
static int index_check_and_change(kvtree *index, void *arg)
{
    struct update *u = arg;
    int rc = kvtree_size(index)
                 ? scr_version_check(index, SCR_INDEX_VERSION, SCR_INDEX_NAME, NULL)
                 : -ENOENT;
    if (rc) return rc;
    const int dropped = scr_index_drop_marks(index, index_check_mark, &u->prefix);
    rc = u->change(index, u->arg);
    return rc ? rc : dropped > 0;
}

/* Changes the index. A change is expected to alter the index, so it is locked at once. */
static int index_change(int prefix, bool make, scr_changer *change, void *arg,
                        scr_index *index, kvtree_error *err)
{
    const scr_change c = {.prefix = prefix,
                          .name = SCR_INDEX_NAME,
                          .limit = RECORD_SIZE_INDEX,
                          .make = make,
                          .change = change,
                          .arg = arg,
                          .at_once = true};
    int rc = scr_change_record(&c, index, err);
    if (rc != -EBADMSG && rc != SCR_OTHER_VERSION) return rc;
    kvtree_unset_all(index);
    int why = scr_index_read(prefix, index, err); /* sets the text */
    return why ? why : rc;
}

int scr_index_update(int prefix, scr_changer *change, void *arg, scr_index *index,
                     kvtree_error *err)
{
    struct update u = {prefix, change, arg};
    return index_change(prefix, false, index_check_and_change, &u, index, err);
}

struct found {
    const scr_dataset *list;
    int count, *added;
};

static int index_enter_found(kvtree *index, void *arg)
{
    const struct found *f = arg;
    int is_new = kvtree_size(index) == 0;
    int rc =
        is_new ? 0 : scr_version_check(index, SCR_INDEX_VERSION, SCR_INDEX_NAME, NULL);
    rc = rc ? rc : scr_index_enter(index, f->list, f->count, f->added);
    return rc ? rc : is_new || *f->added;
}

int scr_index_make(int prefix, const scr_dataset *found, int count, scr_index *index,
                   int *added, kvtree_error *err)
{
    struct found f = {found, count, added};
    return index_change(prefix, true, index_enter_found, &f, index, err);
}

static int index_rename_aside(int prefix, char aside[SCR_INDEX_ASIDE_SIZE],
                              kvtree_error *err)
{
    struct stat st;
    int n = 1;
    do
        snprintf(aside, SCR_INDEX_ASIDE_SIZE, SCR_INDEX_NAME ".damaged.%d", n++);
    while (fstatat(prefix, aside, &st, AT_SYMLINK_NOFOLLOW) == 0);
    if (renameat(prefix, SCR_INDEX_NAME, prefix, aside) == 0) return 0;
    return err_sys(err, -errno, "%s is damaged and cannot be set aside", SCR_INDEX_NAME);
}

/* Renames the index if it is still damaged. The previous owner of the lock may have made
 * a new index, which must not be renamed. */
static int index_rename_damaged(int prefix, char aside[SCR_INDEX_ASIDE_SIZE],
                                kvtree_error *err)
{
    kvtree *index = kvtree_new();
    int rc = scr_index_read(prefix, index, err);
    kvtree_delete(&index);
    return rc == -EBADMSG  ? index_rename_aside(prefix, aside, err)
           : rc == -ENOENT ? 0
                           : rc;
}

int scr_index_set_aside(int prefix, char aside[SCR_INDEX_ASIDE_SIZE], kvtree_error *err)
{
    int lock;
    aside[0] = '\0';
    int rc = scr_change_lock(prefix, &lock, err);
    if (rc) return rc == -ENOENT ? 0 : rc;
    rc = index_rename_damaged(prefix, aside, err);
    io_unlock(&lock);
    return rc;
}

/* ---- summary ---- */

int scr_summary_write(int folder, const scr_dataset *dataset, kvtree_error *err)
{
    kvtree *tree = kvtree_new(), *description = kvtree_new();
    int rc = tree && description ? scr_dataset_to_tree(dataset, description) : -ENOMEM;
    if (!rc) rc = kvtree_util_set_int(tree, KEY_VERSION, SCR_SUMMARY_VERSION);
    if (!rc) rc = kvtree_util_set_int(tree, KEY_COMPLETE, dataset->complete);
    if (!rc && kvtree_set(tree, KEY_DSET, description)) {
        description = NULL;
        rc = kvtree_file_write(folder, SCR_SUMMARY_NAME, RECORD_SIZE_SMALL, tree, err);
    } else {
        rc = err_set(err, -ENOMEM, "%s: no memory", SCR_SUMMARY_NAME);
    }
    kvtree_delete(&tree);
    kvtree_delete(&description);
    return rc;
}

int scr_summary_read(int folder, scr_dataset *dataset, kvtree_error *err)
{
    kvtree *tree = kvtree_new();
    int rc =
        tree ? kvtree_file_read(folder, SCR_SUMMARY_NAME, RECORD_SIZE_SMALL, tree, err)
             : err_set(err, -ENOMEM, "no memory");
    rc = rc ? rc : scr_version_check(tree, SCR_SUMMARY_VERSION, SCR_SUMMARY_NAME, err);
    rc = rc ? rc : scr_dataset_from_tree(kvtree_get(tree, KEY_DSET), dataset, err);
    kvtree_delete(&tree);
    return rc;
}
