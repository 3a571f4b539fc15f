/* SPDX-License-Identifier: BSD-3-Clause */
/* What the map says about one rank (docs/formats/rank2file.md): its entry made and taken
 * apart. What is taken apart may come from anyone, so all of it is checked before any of
 * it is used. */
#include "src/filo_private.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

static int add_file(kvtree *names, const filo_file *file)
{
    kvtree *known = kvtree_set(names, file->name, NULL);
    if (!known) return -ENOMEM;
    int rc = kvtree_util_set_bytecount(known, "SIZE", file->size);
    return rc || !file->has_crc ? rc : kvtree_util_set_crc32(known, "CRC", file->crc);
}

kvtree *filo_map_entry(int count, const filo_file files[])
{
    kvtree *entry = kvtree_new();
    kvtree *names = kvtree_set(entry, "FILE", NULL);
    int rc = names ? 0 : -ENOMEM;
    for (int i = 0; i < count && rc == 0; i++)
        rc = add_file(names, &files[i]);
    if (rc) kvtree_delete(&entry);
    return entry;
}

/* ---- taking apart ---- */

static int check_file(const char *name, const kvtree *known, char *err)
{
    unsigned long number;
    if (beneath_check_name(name, err) != 0) return FILO_DAMAGED;
    if (kvtree_util_get_bytecount(known, "SIZE", &number) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid SIZE", name);
    if (kvtree_get(known, "CRC") && kvtree_util_get_crc32(known, "CRC", &number) != 0)
        return err_set(err, FILO_DAMAGED, "file \"%s\" has no valid CRC", name);
    return 0;
}

int filo_map_check(const kvtree *entry, char *err)
{
    const kvtree *names = kvtree_get(entry, "FILE");
    int rc = 0;
    for (kvtree_elem *e = kvtree_elem_first(names); e && rc == 0; e = kvtree_elem_next(e))
        rc = check_file(kvtree_elem_key(e), kvtree_elem_hash(e), err);
    return rc;
}

int filo_map_files(const kvtree *entry, int *count, filo_file **files)
{
    const kvtree *names = kvtree_get(entry, "FILE");
    int total = kvtree_size(names), i = 0;
    filo_file *list = calloc((size_t)total + 1, sizeof *list);
    if (!list) return -ENOMEM;
    for (kvtree_elem *e = kvtree_elem_first(names); e; e = kvtree_elem_next(e), i++) {
        unsigned long size = 0, crc = 0;
        const kvtree *known = kvtree_elem_hash(e);
        kvtree_util_get_bytecount(known, "SIZE", &size);
        list[i].has_crc = kvtree_util_get_crc32(known, "CRC", &crc) == 0;
        list[i].size = size;
        list[i].crc = (uint32_t)crc;
        list[i].name = strdup(kvtree_elem_key(e));
        if (!list[i].name) {
            filo_files_free(i, list);
            return -ENOMEM;
        }
    }
    *count = total;
    *files = list;
    return 0;
}
