/* SPDX-License-Identifier: BSD-3-Clause */
/* The flush file; see prefix/flush_file.h. */
#include "prefix/flush_file.h"

#include "common/batch.h"
#include "common/errtext.h"
#include "common/record_size.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <string.h>

#define KEY_DSET "DSET"
#define KEY_LOCATION "LOCATION"
#define KEY_DIR "DIR"
#define KEY_OWNER "OWNER"

/* Checks that each id is written in its only valid form; another form would not be
 * found. */
static int flush_file_check_ids(const kvtree *flush, kvtree_error *err)
{
    const kvtree_elem *e = kvtree_elem_first(kvtree_get(flush, KEY_DSET));
    for (; e; e = kvtree_elem_next(e)) {
        int id = kvtree_elem_key_int(e);
        if (id < 1 || id > SCR_ID_MAX ||
            kvtree_get_kv_int(flush, KEY_DSET, id) != kvtree_elem_hash(e))
            return err_set(err, -EBADMSG, "%s has an impossible dataset id \"%.20s\"",
                           SCR_FLUSH_FILE_NAME, kvtree_elem_key(e));
    }
    return 0;
}

int scr_flush_file_read(int prefix, kvtree *flush, kvtree_error *err)
{
    int rc = kvtree_file_read(prefix, SCR_FLUSH_FILE_NAME, RECORD_SIZE_SMALL, flush, err);
    rc = rc ? rc : flush_file_check_ids(flush, err);
    if (rc) kvtree_unset_all(flush);
    return rc;
}

int scr_flush_file_write(int prefix, const kvtree *flush, kvtree_error *err)
{
    return kvtree_file_write(prefix, SCR_FLUSH_FILE_NAME, RECORD_SIZE_SMALL, flush, err);
}

int scr_flush_file_note(int prefix, const kvtree *flush, kvtree_error *err)
{
    batch b = {.dir = prefix, .durability = BATCH_WHOLE};
    int fd, rc = batch_open(&b, SCR_FLUSH_FILE_NAME, 0, &fd, err);
    if (!rc) {
        ssize_t size = kvtree_fd_write(fd, RECORD_SIZE_SMALL, flush, err);
        rc = size < 0 ? (int)size : batch_commit(&b, err);
    }
    batch_drop(&b);
    return rc ? err_wrap(err, rc, "write %s", SCR_FLUSH_FILE_NAME) : 0;
}

int scr_flush_file_set(kvtree *flush, int dset, const char *name, const char *location,
                       int on)
{
    /* an entry without a location would be useless */
    if (!on && !scr_flush_file_has(flush, dset, location)) return 0;
    kvtree *entry = kvtree_set_kv_int(flush, KEY_DSET, dset);
    if (!entry || kvtree_util_set_str(entry, KEY_DIR, name) != 0) return -ENOMEM;
    if (!on) return kvtree_unset_kv(entry, KEY_LOCATION, location);
    return kvtree_set_kv(entry, KEY_LOCATION, location) ? 0 : -ENOMEM;
}

int scr_flush_file_has(const kvtree *flush, int dset, const char *location)
{
    return kvtree_get_kv(kvtree_get_kv_int(flush, KEY_DSET, dset), KEY_LOCATION,
                         location) != NULL;
}

void scr_flush_file_remove(kvtree *flush, int dset)
{
    kvtree_unset_kv_int(flush, KEY_DSET, dset);
}

static int flush_file_set_flag(kvtree *entry, const char *key, bool on)
{
    if (on) return kvtree_util_set_str(entry, key, "1") ? -ENOMEM : 0;
    kvtree_unset(entry, key);
    return 0;
}

int scr_flush_file_set_kind(kvtree *flush, int dset, bool ckpt, bool output)
{
    kvtree *entry = kvtree_set_kv_int(flush, KEY_DSET, dset);
    int rc = entry ? flush_file_set_flag(entry, SCR_FLUSH_CKPT, ckpt) : -ENOMEM;
    return rc ? rc : flush_file_set_flag(entry, SCR_FLUSH_OUTPUT, output);
}

bool scr_flush_file_is(const kvtree *flush, int dset, const char *kind)
{
    const char *value = kvtree_get_val(kvtree_get_kv_int(flush, KEY_DSET, dset), kind);
    return value && strcmp(value, "1") == 0;
}

int scr_flush_file_list(const kvtree *flush, int *count, int **ids)
{
    return kvtree_list_int(kvtree_get(flush, KEY_DSET), count, ids);
}

const char *scr_flush_file_name(const kvtree *flush, int dset)
{
    const char *name = kvtree_get_val(kvtree_get_kv_int(flush, KEY_DSET, dset), KEY_DIR);
    return name && scr_dataset_check_name(name, NULL) == 0 ? name : NULL;
}

int scr_flush_file_keep(kvtree *flush, const int *ids, int count)
{
    int all, *listed;
    if (kvtree_list_int(kvtree_get(flush, KEY_DSET), &all, &listed) != 0) {
        kvtree_unset_all(flush); /* the keys are not ids, so SCR did not write them */
        return 0;
    }
    for (int i = 0; i < all; i++) {
        int keep = 0;
        for (int k = 0; k < count; k++)
            keep = keep || ids[k] == listed[i];
        if (!keep) scr_flush_file_remove(flush, listed[i]);
    }
    free(listed);
    return 0;
}

int scr_flush_file_set_owner(kvtree *flush, const char *owner)
{
    return kvtree_util_set_str(flush, KEY_OWNER, owner) ? -ENOMEM : 0;
}

const char *scr_flush_file_owner(const kvtree *flush)
{
    return kvtree_get_val(flush, KEY_OWNER);
}
