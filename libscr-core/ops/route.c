/* SPDX-License-Identifier: BSD-3-Clause */
/* SCR_Route_file: from the name that the application uses to the path of the file. */
#include "ops/context.h"

#include "base/path.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "ops/bring.h"
#include "ops/route.h"
#include "plan/part_name.h"
#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Local: each rank reports its own failure. */
int scr_route_refuse(const struct scr *scr, scr_call call, int code, const char *text)
{
    return scr_fail_local(&scr->report, SCR_MSG_ROUTE_REFUSED, code, "%s: rank %d: %s",
                          scr_call_name(call), scr->job.rank, text);
}

/* Resolves the links of an absolute path up to the prefix directory, or, if the path does
 * not lead there, in its existing directories. Links below the prefix directory keep
 * their names. *real: the result, which the caller frees; NULL: unknown. 0 or -ENOMEM. */
static int route_follow_links(const char *prefix, const char *path, char **real)
{
    char *above = strdup(path), *deepest = NULL;
    int rc = above ? 0 : -ENOMEM, found = 0;
    size_t rest = 0;
    for (char *end = above; !rc && !found && (end = strchr(end + 1, '/')) != NULL;) {
        *end = 0;
        char *folder = realpath(above, NULL);
        *end = '/';
        if (!folder && errno == ENOMEM) rc = -ENOMEM;
        if (!folder) break;
        free(deepest);
        deepest = folder;
        rest = (size_t)(end - above) + 1;
        found = strcmp(folder, prefix) == 0;
    }
    *real = rc || !deepest ? NULL : scr_path_join(deepest, path + rest);
    if (!rc && deepest && !*real) rc = -ENOMEM;
    free(deepest);
    free(above);
    return rc;
}

int scr_route_below(const struct scr *scr, const char *name, char **path,
                    const char **below)
{
    char cwd[PATH_MAX];
    const scr_prefix *prefix = &scr->prefix;
    *path = NULL;
    if (name[0] != '/' && !getcwd(cwd, sizeof cwd)) return -errno;
    *path = scr_path_absolute(name[0] == '/' ? "/" : cwd, name);
    if (!*path) return -ENOMEM;
    *below = scr_path_below(prefix->path, *path);
    if (!*below) *below = scr_path_below(prefix->real, *path);
    if (*below) return 0;
    char *real;
    if (route_follow_links(prefix->real, *path, &real) != 0) return -ENOMEM;
    *below = real ? scr_path_below(prefix->real, real) : NULL;
    if (!*below) {
        free(real);
        return -EXDEV;
    }
    free(*path);
    *path = real;
    return 0;
}

void scr_route_refused(struct scr *scr, const char *name, const char *why)
{
    if (!scr->output.refused || kvtree_set_kv(scr->output.refused, name, why)) return;
    kvtree_unset(scr->output.refused, name);
    scr_route_failed(scr, -ENOMEM, "no memory");
}

void scr_route_failed(struct scr *scr, int rc, const char *why)
{
    if (scr->output.route_failed) return;
    scr->output.route_failed = rc;
    err_set(&scr->output.route_error, rc, "%s", why);
}

/* Lets a file that was not routed before replace a name that was refused: the same name,
 * otherwise the oldest one. */
static void route_replace_refused(struct scr *scr, const char *name, int is_new)
{
    const kvtree_elem *first = kvtree_elem_first(scr->output.refused);
    if (kvtree_get(scr->output.refused, name))
        kvtree_unset(scr->output.refused, name);
    else if (first && is_new)
        kvtree_unset(scr->output.refused, kvtree_elem_key(first));
}

/* A file of the open output. */
typedef struct routed_file {
    const char *below, *orig, *path;
    const char *mark;     /* from scr_direct_route; "": none */
    const scr_part *part; /* NULL: it is a whole file */
} routed_file;

/* Records the length of a part. A part in the cache is a file of its own; a file on the
 * prefix directory may have any number of parts of this rank. */
static int route_add_part(const struct scr *scr, kvtree *file, const scr_part *part)
{
    char offset[24];
    if (!part) return 0;
    snprintf(offset, sizeof offset, "%" PRIu64, part->offset);
    if (scr->lifecycle.open.bypass) file = kvtree_set_kv(file, SCR_ROUTED_PART, offset);
    if (!file) return -ENOMEM;
    return kvtree_util_set_bytecount(file, SCR_ROUTED_LENGTH, part->length);
}

static int route_add(struct scr *scr, const routed_file *add)
{
    const char *below = add->below, *orig = add->orig;
    kvtree *there = kvtree_get(scr->output.routed, below);
    if (there) {
        route_replace_refused(scr, orig, 0);
        return route_add_part(scr, there, add->part);
    }
    kvtree *file = kvtree_set(scr->output.routed, below, NULL);
    if (!file) return -ENOMEM;
    int rc = kvtree_util_set_str(file, SCR_META_ORIG, orig);
    rc = rc ? rc : kvtree_util_set_str(file, SCR_META_PATH, add->path);
    if (!rc && add->mark[0]) rc = kvtree_util_set_str(file, SCR_DIRECT_MARK, add->mark);
    rc = rc ? rc : route_add_part(scr, file, add->part);
    if (rc)
        kvtree_unset(scr->output.routed, below);
    else
        route_replace_refused(scr, orig, 1);
    return rc;
}

/* Creates the directory of a file of the open dataset. */
static int route_make_parent(struct scr *scr, const char *below, kvtree_error *err)
{
    char name[SCR_CACHED_NAME_SIZE];
    scr_cached_name(scr->lifecycle.open.id, below, name);
    int rc = beneath_check_name(name, err);
    if (rc) return rc;
    name[beneath_folder_length(name) - 1] = 0; /* keeps the dataset's directory */
    return beneath_mkdirs(scr_cache_of(&scr->cache, scr->lifecycle.open.id)->fd, name,
                          0700, err);
}

int scr_route_cached_path(const scr_cache *cache, int id, const char *below,
                          char file[SCR_MAX_FILENAME])
{
    char *folder = scr_dataset_folder(cache, id);
    int n = folder ? snprintf(file, SCR_MAX_FILENAME, "%s/%s", folder, below) : -1;
    free(folder);
    return n < 0 ? -ENOMEM : n >= SCR_MAX_FILENAME ? -ENAMETOOLONG : 0;
}

static int route_to_cache(struct scr *scr, const char *name, const char *below,
                          char routed[SCR_MAX_FILENAME], kvtree_error *err)
{
    int rc = scr_route_cached_path(&scr->cache, scr->lifecycle.open.id, below, routed);
    if (rc) return err_sys(err, rc, "the path in the cache of \"%.200s\"", name);
    return route_make_parent(scr, below, err);
}

/* Whether the error is one of the name: the application may have chosen another name
 * since. After any other error the dataset lacks a file that belongs to it. */
static int route_is_name_error(int rc)
{
    return rc == -EXDEV || rc == -EINVAL || rc == -ENAMETOOLONG || rc == -ELOOP ||
           rc == -ENOTDIR;
}

/* Explains that a name is not below the prefix directory. */
static void route_explain_outside(const scr_prefix *prefix, const char *name,
                                  const char *path, kvtree_error *err)
{
    char cwd[PATH_MAX];
    if (name[0] != '/' && getcwd(cwd, sizeof cwd))
        err_set(err, -EXDEV,
                "\"%.120s\" is not below the prefix directory: names are relative to the "
                "current directory %.150s; the prefix directory is %.150s",
                name, cwd, prefix->path);
    else
        err_set(err, -EXDEV,
                "\"%.150s\" (%.150s) is not below the prefix directory %.150s", name,
                path, prefix->path);
}

int scr_route_place(const struct scr *scr, const char *name, char **path,
                    const char **below, kvtree_error *err)
{
    *below = NULL;
    int rc = scr_route_below(scr, name, path, below);
    if (rc == -EXDEV)
        route_explain_outside(&scr->prefix, name, *path, err);
    else if (rc)
        err_sys(err, rc, "\"%.200s\"", name);
    return rc ? rc : beneath_check_name(*below, err);
}

/* The length of a name, without the suffix that makes it the name of a part. */
static int route_length(const char *name, bool is_part)
{
    uint64_t offset;
    return (int)(is_part ? scr_part_parse(name, &offset) : strlen(name));
}

/* Whether SCR reserves the name, or, for a part, the name of its file. */
static bool route_is_reserved(const char *below, bool is_part)
{
    char file[SCR_MAX_FILENAME];
    snprintf(file, sizeof file, "%.*s", route_length(below, is_part), below);
    return scr_part_name_is_reserved(file) || beneath_check_name(file, NULL) != 0;
}

/* Whether the name is that of the open dataset's directory, or of one above it: a file
 * cannot have such a name on the prefix directory. */
static bool route_is_folder(const struct scr *scr, const char *below, bool is_part)
{
    char file[SCR_MAX_FILENAME];
    snprintf(file, sizeof file, "%.*s", route_length(below, is_part), below);
    return folder_rest(file, scr->lifecycle.open.name) != NULL;
}

int scr_route_output(struct scr *scr, const char *name, scr_call call,
                     const scr_part *part, char *file)
{
    char *path, routed[SCR_MAX_FILENAME], mark[SCR_FILE_MARK_SIZE] = "";
    kvtree_error err = {""};
    const char *below;
    const bool is_part = part && !scr->lifecycle.open.bypass;
    int rc = scr_route_place(scr, name, &path, &below, &err);
    if (!rc && route_is_reserved(below, is_part))
        rc = err_set(&err, -EINVAL, "\"%.*s\" is a name of SCR itself",
                     route_length(name, is_part), name);
    if (!rc && route_is_folder(scr, below, is_part))
        rc = err_set(&err, -EINVAL,
                     "\"%.*s\" is the name of a directory, that of dataset %.200s",
                     route_length(name, is_part), name, scr->lifecycle.open.name);
    if (!rc)
        rc = scr->lifecycle.open.bypass
                 ? scr_direct_route(&scr->prefix, below, routed, mark, &err)
                 : route_to_cache(scr, name, below, routed, &err);
    const routed_file add = {below, name, path, mark, part};
    if (!rc && route_add(scr, &add) != 0) rc = err_set(&err, -ENOMEM, "no memory");
    free(path);
    if (rc && route_is_name_error(rc)) {
        scr_route_refused(scr, name, err.text);
        return scr_route_refuse(scr, call, SCR_ERR_ARGUMENT, err.text);
    }
    if (rc) {
        scr_route_failed(scr, rc, err.text);
        return scr_route_refuse(
            scr, call, scr->lifecycle.open.bypass ? SCR_ERR_PREFIX : SCR_ERR_CACHE,
            err.text);
    }
    strcpy(file, routed);
    return SCR_SUCCESS;
}

/* The same for a dataset that is read on the prefix directory: 0 or -errno, with a text
 * unless it is -ENOENT. */
static int route_find_in_place(struct scr *scr, scr_file_match *match,
                               char path[SCR_MAX_FILENAME], kvtree_error *err)
{
    int rc = scr_direct_find(&scr->prefix, match, path);
    if (rc == -ENOENT && scr->prefix.direct.extracts)
        return scr_bypass_find_packed(scr, match, path, err);
    return rc && rc != -ENOENT ? err_sys(err, rc, "\"%.200s\"", match->name) : rc;
}

/* The same for a dataset in the cache. */
static int route_find_in_cache(struct scr *scr, int id, scr_file_match *match,
                               char path[SCR_MAX_FILENAME], kvtree_error *err)
{
    const char *found;
    int rc = scr_route_look_up(scr, id, match, &found);
    if (!rc && !found) return -ENOENT;
    rc = rc ? rc : scr_route_cached_path(&scr->cache, id, found, path);
    return rc ? err_sys(err, rc, "\"%.200s\"", match->name) : 0;
}

/* Finds this rank's file of the dataset: 0, -ENOENT if it has none of that name, or
 * another -errno, with a text. */
static int route_find_own(struct scr *scr, const scr_dataset *d, scr_file_match *match,
                          char path[SCR_MAX_FILENAME], kvtree_error *err)
{
    int rc = scr->prefix.direct.dataset.id == d->id
                 ? route_find_in_place(scr, match, path, err)
                 : route_find_in_cache(scr, d->id, match, path, err);
    if (match->files > 1)
        return err_set(err, -ENOTUNIQ,
                       "\"%.200s\" may be any of %d files of dataset %.200s", match->name,
                       match->files, d->name);
    if (rc == -ENOENT)
        return err_set(err, rc, "dataset %.150s has no file \"%.150s\" of this rank",
                       d->name, match->name);
    return rc;
}

/* The same for a file of another rank. */
static int route_find_of_others(struct scr *scr, const scr_file_match *match,
                                char path[SCR_MAX_FILENAME], kvtree_error *err)
{
    const scr_dataset *d = &scr->lifecycle.open;
    const char *brought = match->below ? scr_bring_find(scr, match->below) : NULL;
    if (brought) {
        strcpy(path, brought);
        return 0;
    }
    if (scr->restart.in_prefix)
        return scr_direct_find_other(&scr->prefix, d, match, path, err);
    return err_set(err, -ENOENT,
                   "dataset %.150s has no file \"%.150s\" of this rank; SCR_Fetch_files "
                   "brings those of other ranks",
                   d->name, match->name);
}

int scr_route_find(struct scr *scr, const char *name, char path[SCR_MAX_FILENAME],
                   kvtree_error *err)
{
    char *full;
    const char *below = NULL;
    scr_file_match match;
    int rc = scr_route_below(scr, name, &full, &below);
    /* a name that is not below the prefix directory may be a bare file name */
    if (rc == -ENOMEM) return err_sys(err, rc, "\"%.200s\"", name);
    scr_file_match_begin(&match, name, below, scr->prefix.path);
    rc = route_find_own(scr, &scr->lifecycle.open, &match, path, err);
    if (rc == -ENOENT) rc = route_find_of_others(scr, &match, path, err);
    free(full);
    if (!rc && access(path, R_OK) != 0)
        rc = err_set(err, -EIO, "\"%.200s\" cannot be read: %s", name, strerror(errno));
    return rc;
}

/* Finds the checkpoint that SCR_Have_restart offers, or would offer from the cache. */
static int route_find_loadable(struct scr *scr, scr_dataset *d)
{
    int id = scr->restart.offered;
    if (!id && !scr->lifecycle.have_called) id = scr_cached_newest(&scr->cache);
    if (id && id == scr->prefix.direct.dataset.id) *d = scr->prefix.direct.dataset;
    return id && (id == scr->prefix.direct.dataset.id ||
                  scr_cached_get(&scr->cache, id, d) == 0);
}

/* Local. Compares files of an earlier run with their checksums, once. */
static int route_compare_early(struct scr *scr, const scr_dataset *d, kvtree_error *err)
{
    const scr_cached *kept = scr_cached_find(&scr->cache, d->id);
    if (d->id == scr->prefix.direct.dataset.id || d->id == scr->restart.compared ||
        !kept || !kept->unread)
        return 0;
    int rc = scr_cache_compare(&scr->cache, d->id, err);
    if (!rc) scr->restart.compared = d->id;
    return rc;
}

int scr_route_idle(struct scr *scr, const char *name, char *file)
{
    char *full, path[SCR_MAX_FILENAME];
    kvtree_error err = {""};
    const char *below = NULL;
    scr_dataset d;
    scr_file_match match;
    if (scr->lifecycle.begun || !route_find_loadable(scr, &d)) return SCR_SUCCESS;
    scr_route_below(scr, name, &full, &below);
    scr_file_match_begin(&match, name, below, scr->prefix.path);
    int rc = route_find_own(scr, &d, &match, path, &err);
    free(full);
    if (rc == -ENOENT) return SCR_SUCCESS; /* the name stays as it is */
    if (rc == -ENOTUNIQ)
        return scr_route_refuse(scr, SCR_CALL_ROUTE_FILE, SCR_ERR_ARGUMENT, err.text);
    rc = rc ? rc : route_compare_early(scr, &d, &err);
    if (!rc && access(path, R_OK) != 0) rc = err_sys(&err, -errno, "open %s", path);
    if (rc) return scr_route_refuse(scr, SCR_CALL_ROUTE_FILE, SCR_FAILURE, err.text);
    scr->restart.routed_early = 1;
    strcpy(file, path);
    return SCR_SUCCESS;
}

int scr_route_answer(struct scr *scr, scr_call call, const char *name, int rc,
                     const kvtree_error *err)
{
    const bool of_the_name = rc == -ENOENT || rc == -ENOTUNIQ;
    if (rc == -ENOMEM) scr->restart.no_memory = 1;
    if (of_the_name || rc == -EKEYREJECTED) scr_route_refused(scr, name, err->text);
    if (rc)
        return scr_route_refuse(scr, call, of_the_name ? SCR_ERR_ARGUMENT : SCR_FAILURE,
                                err->text);
    route_replace_refused(scr, name, 1);
    return SCR_SUCCESS;
}

int scr_route_restart(struct scr *scr, const char *name, char *file)
{
    char path[SCR_MAX_FILENAME];
    kvtree_error err = {""};
    int rc = scr_route_find(scr, name, path, &err);
    rc = scr_route_answer(scr, SCR_CALL_ROUTE_FILE, name, rc, &err);
    if (!rc) strcpy(file, path);
    return rc;
}
