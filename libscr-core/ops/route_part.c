/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR_Route_file_part: parts of files that ranks write together; see ops/route.h. */
#include "ops/bring_parts.h"

#include "common/errtext.h"
#include "plan/part_name.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- output ---- */

/* Number of bytes after the last slash. */
static size_t part_last_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return strlen(slash ? slash + 1 : name);
}

/* A part in the cache is a file of its own; a part that is written in place has the
 * offsets of the whole file. */
int scr_route_output_part(struct scr *scr, const char *name, const scr_part *part,
                          char *file, uint64_t *at)
{
    char full[SCR_MAX_FILENAME];
    if (scr->lifecycle.open.bypass)
        return scr_route_output(scr, name, SCR_CALL_ROUTE_FILE_PART, part, file);
    if (scr_part_name(name, part->offset, sizeof full, full) != 0 ||
        part_last_length(full) > NAME_MAX) {
        kvtree_error why;
        err_set(&why, 0,
                "\"%.200s\" is too long: the name of a file in the cache consists of it, "
                "\".scr-part.\" and the offset",
                name);
        scr_route_refused(scr, name, why.text);
        return scr_route_refuse(scr, SCR_CALL_ROUTE_FILE_PART, SCR_ERR_ARGUMENT,
                                why.text);
    }
    int rc = scr_route_output(scr, full, SCR_CALL_ROUTE_FILE_PART, part, file);
    if (!rc) *at = 0;
    return rc;
}

/* ---- restart ---- */

/* Finds a part that this rank wrote, or bytes that were brought for it. */
static int part_find_own(struct scr *scr, const char *name, const scr_part *part,
                         char path[SCR_MAX_FILENAME], uint64_t *at)
{
    char *full;
    const int id = scr->lifecycle.open.id;
    const char *below = NULL, *found;
    scr_file_match match;
    if (scr->prefix.direct.dataset.id == id) return -ENOENT;
    int rc = scr_route_below(scr, name, &full, &below);
    if (rc == -ENOMEM) return rc;
    scr_file_match_begin(&match, name, below, scr->prefix.path);
    rc = scr_route_look_up_part(scr, id, &match, part, &found, at);
    if (!rc && snprintf(path, SCR_MAX_FILENAME, "%s", found) >= SCR_MAX_FILENAME)
        rc = -ENAMETOOLONG;
    if (rc == -ENOENT && below) rc = scr_bring_find_part(scr, below, part, path, at);
    free(full);
    return rc;
}

/* Finds the part in the whole file, if that is available. */
static int part_find_in_file(struct scr *scr, const char *name, const scr_part *part,
                             char path[SCR_MAX_FILENAME], uint64_t *at, kvtree_error *err)
{
    struct stat st;
    int rc = scr_route_find(scr, name, path, err);
    if (rc) return rc;
    if (stat(path, &st) != 0) return err_sys(err, -errno, "%.200s", path);
    *at = part->offset;
    if (part->offset + part->length <= (uint64_t)st.st_size) return 0;
    return err_set(err, -ENOENT, "\"%.200s\" has %lld bytes, not %" PRIu64, name,
                   (long long)st.st_size, part->offset + part->length);
}

int scr_route_restart_part(struct scr *scr, const char *name, const scr_part *part,
                           char *file, uint64_t *at)
{
    char path[SCR_MAX_FILENAME];
    kvtree_error err = {""};
    uint64_t found = 0;
    int rc = part_find_own(scr, name, part, path, &found);
    if (rc == -ENOENT) rc = part_find_in_file(scr, name, part, path, &found, &err);
    if (rc && !err.text[0]) err_sys(&err, rc, "\"%.200s\"", name);
    rc = scr_route_answer(scr, SCR_CALL_ROUTE_FILE_PART, name, rc, &err);
    if (rc) return rc;
    strcpy(file, path);
    *at = found;
    return SCR_SUCCESS;
}
