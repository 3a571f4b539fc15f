/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the files that were routed by SCR_Route_file. */
#include "ops/route.h"

#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include <errno.h>
#include <filo/filo_mpi.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int scr_routed_check(const struct scr *scr, int valid, kvtree_error *err)
{
    if (!valid)
        return err_set(err, -EINVAL, "the application says that its files are not valid");
    if (scr->output.route_failed)
        return err_set(err, scr->output.route_failed,
                       "SCR_Route_file failed, so a file is missing: %.400s",
                       scr->output.route_error.text);
    const kvtree_elem *refused = kvtree_elem_first(scr->output.refused);
    if (refused)
        return err_set(err, -EINVAL,
                       "SCR_Route_file refused \"%.100s\", and the rank routed no other "
                       "file in its place: %.250s",
                       kvtree_elem_key(refused),
                       kvtree_elem_key(kvtree_elem_first(kvtree_elem_hash(refused))));
    return 0;
}

int scr_routed_any(long files, kvtree_error *err)
{
    if (files > 0) return 0;
    return err_set(err, -EINVAL,
                   "no rank routed a file; call SCR_Route_file for each file between "
                   "SCR_Start_output and SCR_Complete_output");
}

/* ---- parts of files on the prefix directory ---- */

static scr_part routed_part(const kvtree_elem *e)
{
    unsigned long length = 0;
    kvtree_util_get_bytecount(kvtree_elem_hash(e), SCR_ROUTED_LENGTH, &length);
    return (scr_part){strtoull(kvtree_elem_key(e), NULL, 10), length};
}

/* Checks that a file has all bytes of this rank's parts. scr_direct_route opened the
 * prefix directory when the first part was routed. */
static int routed_check_end(const struct scr *scr, const kvtree_elem *file,
                            int64_t *parts, kvtree_error *err)
{
    const kvtree *list = kvtree_get(kvtree_elem_hash(file), SCR_ROUTED_PART);
    scr_part last = {0, 0};
    struct stat st;
    for (const kvtree_elem *e = kvtree_elem_first(list); e; e = kvtree_elem_next(e)) {
        const scr_part part = routed_part(e);
        if (part.offset + part.length > last.offset + last.length) last = part;
        ++*parts;
    }
    if (last.length == 0) return 0;
    int rc = beneath_stat(scr->prefix.fd, kvtree_elem_key(file), &st, err);
    if (rc || (uint64_t)st.st_size >= last.offset + last.length) return rc;
    return err_set(
        err, -EINVAL,
        "\"%.200s\" has %lld bytes, but SCR_Route_file_part was called for %" PRIu64
        " from byte %" PRIu64 " on",
        kvtree_elem_key(file), (long long)st.st_size, last.length, last.offset);
}

int scr_routed_check_ends(const struct scr *scr, int64_t *parts, kvtree_error *err)
{
    int rc = 0;
    const kvtree_elem *e = kvtree_elem_first(scr->output.routed);
    for (*parts = 0; e && !rc; e = kvtree_elem_next(e))
        rc = routed_check_end(scr, e, parts, err);
    return rc;
}

/* Describes a part for libfilo: as a file in a container, with a name that no file of the
 * application has. */
static int routed_name_part(filo_file *f, int number, const char *file, scr_part part)
{
    f->packed = f->segments = 1;
    f->size = part.length;
    f->segment = calloc(1, sizeof *f->segment);
    if (!f->segment || asprintf(&f->name, ".scr/%d.%d", f->rank, number) < 0)
        return -ENOMEM;
    *f->segment = (filo_segment){strdup(file), part.offset, part.length};
    return f->segment->container ? 0 : -ENOMEM;
}

/* Lists the parts of this rank as files. */
static int routed_list_parts(const struct scr *scr, int count, filo_file *files)
{
    int rc = 0, n = 0;
    const kvtree_elem *file = kvtree_elem_first(scr->output.routed);
    for (; file && !rc; file = kvtree_elem_next(file)) {
        const kvtree *list = kvtree_get(kvtree_elem_hash(file), SCR_ROUTED_PART);
        const kvtree_elem *e = kvtree_elem_first(list);
        for (; e && n < count && !rc; e = kvtree_elem_next(e), n++) {
            files[n].rank = scr->job.rank;
            rc = routed_name_part(&files[n], n, kvtree_elem_key(file), routed_part(e));
        }
    }
    return rc;
}

int scr_routed_check_parts(const struct scr *scr, int count, kvtree_error *err)
{
    filo_file *files = calloc((size_t)count + 1, sizeof *files);
    int rc = files ? routed_list_parts(scr, count, files) : -ENOMEM;
    rc = agree(scr->job.world, rc ? err_set(err, rc, "no memory") : 0, err);
    rc = rc ? rc : filo_check_names(scr->job.world, count, files, err);
    filo_files_free(count, files);
    return rc;
}
