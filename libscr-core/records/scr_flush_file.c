/* SPDX-License-Identifier: BSD-3-Clause */
/* The flush file; see scr_flush_file.h. */
#include "records/scr_flush_file.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stddef.h>
#include <stdlib.h>

#define KEY_DSET "DSET"
#define KEY_LOCATION "LOCATION"
#define KEY_DIR "DIR"

void scr_flush_file_read(int prefix, kvtree *flush)
{
    if (kvtree_file_read(prefix, SCR_FLUSH_FILE_NAME, flush, NULL) != 0)
        kvtree_unset_all(flush);
}

int scr_flush_file_write(int prefix, const kvtree *flush, char *err)
{
    return kvtree_file_write(prefix, SCR_FLUSH_FILE_NAME, flush, err);
}

int scr_flush_file_set(kvtree *flush, int dset, const char *name, const char *location,
                       int on)
{
    /* an entry that has no location would only be noise */
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

int scr_flush_file_keep(kvtree *flush, const int *ids, int count)
{
    int all, *listed;
    if (kvtree_list_int(kvtree_get(flush, KEY_DSET), &all, &listed) != 0) {
        kvtree_unset_all(flush); /* not ids: not ours */
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
