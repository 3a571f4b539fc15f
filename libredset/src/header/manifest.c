/* SPDX-License-Identifier: BSD-3-Clause */
/* Manifests: independent copies of headers for callers. */
#include "src/header/header.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static kvtree *manifest_copy_tree(const kvtree *source)
{
    kvtree *copy = kvtree_new();
    if (copy && kvtree_merge(copy, source) != KVTREE_SUCCESS) kvtree_delete(&copy);
    return copy;
}

/* Copies name and meta as the encode received them, without redset's own keys. */
static int manifest_copy_file(const redset_file *source, redset_file *file)
{
    kvtree *meta = manifest_copy_tree(source->meta);
    if (!meta) return -ENOMEM;
    kvtree_unset(meta, "FILE");
    kvtree_unset(meta, "SIZE");
    kvtree_unset(meta, "MODE");
    kvtree_unset(meta, "CRC");
    *file = *source;
    file->meta = meta;
    file->name = strdup(source->name);
    return file->name ? 0 : -ENOMEM;
}

static int manifest_copy_files(const redset_list *list, redset_manifest *manifest)
{
    manifest->files = calloc((size_t)list->count + 1, sizeof *manifest->files);
    if (!manifest->files) return -ENOMEM;
    for (; manifest->count < list->count; manifest->count++) {
        int i = manifest->count,
            rc = manifest_copy_file(&list->files[i], &manifest->files[i]);
        if (!rc) continue;
        manifest->count++; /* so that the incomplete one is freed, too */
        return rc;
    }
    return 0;
}

redset_manifest *redset_manifest_new(const redset_header *header)
{
    redset_manifest *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->rank = header->list[0].rank;
    m->ranks = header->layout.ranks;
    m->place = header->layout.place;
    m->file_size = header->size ? header->size + header->data : 0;
    m->file_crc = header->crc;
    m->checksums = !header->layout.unchecked;
    redset_file_name(&m->place, m->file);
    m->about = manifest_copy_tree(kvtree_get(header->tree, "DSET"));
    if (!m->about || manifest_copy_files(&header->list[0], m) != 0)
        return redset_manifest_free(m);
    return m;
}

redset_manifest *redset_manifest_free(redset_manifest *manifest)
{
    if (!manifest) return NULL;
    for (int i = 0; i < manifest->count; i++) {
        kvtree *meta = (kvtree *)manifest->files[i].meta;
        kvtree_delete(&meta);
        free((char *)manifest->files[i].name);
    }
    free(manifest->files);
    kvtree_delete(&manifest->about);
    free(manifest);
    return NULL;
}

int redset_read_header(int dir, const char *folder, const char *name,
                       redset_manifest **manifest, redset_error *err)
{
    redset_header *header;
    int there = dir, rc = 0;
    if (dir == AT_FDCWD) rc = beneath_open_folder(folder, &there, err);
    if (rc) return rc;
    rc = redset_header_read(there, name, &header, err);
    if (there != dir) io_close(&there);
    if (rc) return err_wrap(err, rc, "%s", folder);
    redset_manifest *made = redset_manifest_new(header);
    redset_header_free(header);
    if (!made) return err_sys(err, -ENOMEM, "manifest of %s/%s", folder, name);
    *manifest = made;
    return 0;
}
