/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR_CRC_ON_DELETE: compares files with their checksums before they are removed from the
 * cache. The files are no longer needed, but a mismatch shows that the store corrupts
 * data. */
#include "cache/cache.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include <axl/axl.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>

static int verify_file(const kvtree_elem *file, kvtree_error *err)
{
    const kvtree *meta = kvtree_elem_hash(file);
    const char *path = kvtree_elem_key(file);
    unsigned long crc, size = 0;
    uint64_t bytes;
    uint32_t found;
    if (kvtree_util_get_crc32(meta, SCR_META_CRC, &crc) != 0) return 0;
    kvtree_util_get_bytecount(meta, SCR_META_SIZE, &size);
    int rc = axl_checksum(path, &bytes, &found, err);
    if (rc) return rc;
    if (bytes != size)
        return err_set(err, -EBADMSG, "%s has %llu bytes, not %lu", path,
                       (unsigned long long)bytes, size);
    if (found == crc) return 0;
    return err_set(err, -EBADMSG, "%s has checksum %08x, not %08lx", path, found, crc);
}

/* Compares the files of all ranks in the map of this process: its own, and at start also
 * those of others. Reports the first damaged file. */
int scr_cache_compare(const scr_cache *cache, int id, kvtree_error *err)
{
    const kvtree_elem *r = scr_filemap_ranks_of(cache->map, id);
    int rc = 0;
    for (; r && !rc; r = kvtree_elem_next(r)) {
        const kvtree_elem *f =
            kvtree_elem_first(scr_filemap_files(cache->map, id, kvtree_elem_key_int(r)));
        for (; f && !rc; f = kvtree_elem_next(f))
            rc = verify_file(f, err);
    }
    return rc;
}

void scr_cache_verify(const scr_cache *cache, int id)
{
    kvtree_error err = {""};
    if (!cache->set->crc_on_delete) return;
    int rc = scr_cache_compare(cache, id, &err);
    if (rc) err_wrap(&err, rc, "node %s", cache->job->node_name);
    if (agree(cache->job->world, rc, &err) != 0)
        scr_fail(cache->job->report, SCR_MSG_CACHE_DATASET_DAMAGED, 0,
                 "dataset %d was damaged when it left the cache: %s", id, err.text);
}
