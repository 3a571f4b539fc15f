/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_index --add: enters a dataset on the prefix directory, or a dataset that
 * scr_scavenge or scr_copy saved, into the index; --build does so by the id of the
 * dataset (SCR Developer Guide 1.2, sections 2.13.2 and 2.33.5). */
#include "commands/scr_index.h"

#include "config/values.h"
#include "lib/tool.h"
#include "lib/tool_progress.h"
#include "prefix/flush_file.h"
#include "scavenge/commit_scavenged.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* ---- scavenged datasets ---- */

static void index_add_report_sets(const char *name, const scavenge_commit_result *result)
{
    for (int i = 0; i < result->sets; i++) {
        const scavenge_rebuilt *r = &result->rebuilt[i];
        char what[sizeof(kvtree_error) + 100];
        snprintf(what, sizeof what, "set %d: files of %d rank%s were rebuilt: %s", r->id,
                 r->ranks, r->ranks == 1 ? "" : "s", r->why.text);
        if (r->failed)
            tool_say(SCAVENGE_REBUILD_FAILED, "%s: set %d: %s", name, r->id, r->why.text);
        else
            index_report(name, what);
    }
}

/* Gets the size of the containers that a flush would write; 0: none. */
static int index_add_container(const tool_prefix *prefix, uint64_t *bytes)
{
    scr_problems problems = {.count = 0};
    uint64_t size = 0;
    bool containers = scr_config_packing(&prefix->config, &problems) != SCR_PACKS_NOT;
    scr_config_bytes(&prefix->config, "SCR_CONTAINER_SIZE", &size, &problems);
    int code = tool_tell_problems(&problems);
    if (code == COMMAND_GOOD && containers && (size == 0 || size > INT64_MAX))
        code =
            tool_say(CONFIG_MISTAKE, "SCR_CONTAINER_SIZE is not a size of a container");
    *bytes = containers ? size : 0;
    return code;
}

/* Commits a scavenged dataset. An incomplete dataset is entered, too, but is not a
 * success. */
static int index_add_scavenged(const tool_prefix *prefix, const index_request *r,
                               const scavenge_key *key)
{
    kvtree_error err = {""};
    scavenge_commit_result result;
    scavenge_prefix where = {prefix->path, prefix->dir, r->width, 0};
    struct rlimit files;
    if (index_add_container(prefix, &where.container) != COMMAND_GOOD) return COMMAND_BAD;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* a rebuild opens many files */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    tool_progress_begin("read the records", NULL);
    int rc = scavenge_commit(&where, key, &result, &err);
    tool_progress_end();
    if (rc == SCAVENGE_WHOLE_BAD)
        return tool_say(SCAVENGE_WHOLE_DAMAGED,
                        "%s: %s; remove it, and repeat this command", r->name, err.text);
    if (rc) return tool_say(SCAVENGE_COMMIT_FAILED, "%s: %s", r->name, err.text);
    index_add_report_sets(r->name, &result);
    free(result.rebuilt);
    if (!result.complete)
        return tool_say(DATASET_INCOMPLETE, "%s: %s", r->name, result.why.text);
    index_report(r->name,
                 result.current ? "added; the next run begins with it" : "added");
    return COMMAND_GOOD;
}

int index_print_scan(const tool_prefix *prefix, const index_request *r)
{
    kvtree_error err = {"no memory"};
    scavenge_saved saved;
    scavenge_key key;
    const scavenge_prefix where = {prefix->path, prefix->dir, r->width, 0};
    int rc = scavenge_find(prefix->dir, r->name, &key, &err);
    if (!rc) rc = scavenge_open(&where, &key, &saved, &err);
    if (rc) return tool_say(SCAVENGE_UNREADABLE, "%s: %s", r->name, err.text);
    kvtree *tree = kvtree_new();
    rc = tree ? scavenge_scan_to_tree(&saved.scan, tree) : -ENOMEM;
    if (!rc)
        rc =
            kvtree_fprint(stdout, tree, r->json ? KVTREE_FORM_JSON : KVTREE_FORM_TREE, 2);
    if (saved.scan.refused)
        tool_say(SCAVENGE_FILE_REFUSED, "%d files cannot be used; the first: %s",
                 saved.scan.refused, saved.scan.why.text);
    kvtree_delete(&tree);
    scavenge_close(&saved);
    return rc ? tool_say(OUTPUT_LOST, "the scan could not be printed") : COMMAND_GOOD;
}

/* ---- datasets on the prefix directory ---- */

static int index_add_found(const tool_prefix *prefix, const index_request *r)
{
    kvtree_error err = {""};
    scr_scan scan;
    int added = 0, code;
    if (scr_scan_open(&scan, prefix->path, &err) != 0)
        return tool_say(SCAN_FAILED, "%s", err.text);
    if (scr_scan_one(&scan, r->name, &err) != 0)
        code = tool_say(SCAN_FAILED, "%s", err.text);
    else if (scan.count == 0)
        code = tool_say(DATASET_REFUSED, "%s", scan.why.text);
    else
        code = index_enter_all(prefix, &scan, &added);
    if (code == COMMAND_GOOD) {
        if (scan.refused) tool_say(DATASET_REFUSED, "%s", scan.why.text);
        index_report(r->name,
                     scan.found[0].complete
                         ? "added"
                         : "added; it is not complete, and no run begins with it");
    }
    scr_scan_close(&scan);
    return code;
}

int index_add(const tool_prefix *prefix, const index_request *r)
{
    kvtree_error err = {""};
    scr_dataset known;
    scavenge_key key;
    kvtree *index;
    int code = index_read(prefix, &index);
    if (code != COMMAND_GOOD) return code;
    bool there = scr_index_get(index, r->name, &known) == 0;
    kvtree_delete(&index);
    int rc = scavenge_find(prefix->dir, r->name, &key, &err);
    if (rc == 0) return index_add_scavenged(prefix, r, &key);
    if (rc != -ENOENT) return tool_say(SCAVENGE_UNREADABLE, "%s", err.text);
    if (!there) return index_add_found(prefix, r);
    index_report(r->name, "is in the index already");
    return COMMAND_GOOD;
}

/* ---- by id ---- */

/* Finds a name of the dataset with that id: from the flush file, else of the newest such
 * dataset in the index, else of the newest one that a search of the prefix directory
 * finds. */
static bool index_name_in_flush_file(const tool_prefix *prefix, int id,
                                     char name[SCR_NAME_SIZE])
{
    kvtree *flush = kvtree_new();
    const char *text = NULL;
    if (flush && scr_flush_file_read(prefix->dir, flush, NULL) == 0)
        text = scr_flush_file_name(flush, id);
    snprintf(name, SCR_NAME_SIZE, "%s", text ? text : "");
    kvtree_delete(&flush);
    return *name != 0;
}

static bool index_name_in_list(const scr_dataset *list, int count, int id,
                               char name[SCR_NAME_SIZE])
{
    for (int i = count - 1; i >= 0; i--) {
        if (list[i].id != id) continue;
        snprintf(name, SCR_NAME_SIZE, "%s", list[i].name);
        return true;
    }
    return false;
}

static bool index_name_in_index(const kvtree *index, int id, char name[SCR_NAME_SIZE])
{
    scr_dataset *list = NULL;
    int count = 0;
    bool found = scr_index_list(index, &list, &count) == 0 &&
                 index_name_in_list(list, count, id, name);
    free(list);
    return found;
}

static bool index_name_on_prefix(const tool_prefix *prefix, int id,
                                 char name[SCR_NAME_SIZE])
{
    kvtree_error err = {""};
    scr_scan scan;
    if (scr_scan_open(&scan, prefix->path, &err) != 0) return false;
    bool found = scr_scan_all(&scan, NULL, &err) == 0 &&
                 index_name_in_list(scan.found, scan.count, id, name);
    scr_scan_close(&scan);
    return found;
}

int index_build(const tool_prefix *prefix, const index_request *r)
{
    char name[SCR_NAME_SIZE];
    kvtree *index;
    scr_dataset d;
    scavenge_key key;
    scr_index_state state = {.complete = 0};
    int code = index_read(prefix, &index);
    if (code != COMMAND_GOOD) return code;
    bool known = index_name_in_flush_file(prefix, r->id, name) ||
                 index_name_in_index(index, r->id, name) ||
                 index_name_on_prefix(prefix, r->id, name);
    kvtree_delete(&index);
    if (!known || (scavenge_find(prefix->dir, name, &key, NULL) == 0 && key.id != r->id))
        return tool_say(DATASET_UNKNOWN, "%s: there is no dataset %d", prefix->path,
                        r->id);
    index_request one = *r;
    one.name = name;
    code = index_add(prefix, &one);
    if (code == COMMAND_GOOD) code = index_find(prefix, name, &index, &d);
    if (code != COMMAND_GOOD) return code;
    scr_index_look(index, &d, &state);
    kvtree_delete(&index);
    if (d.id != r->id)
        return tool_say(DATASET_UNKNOWN, "%s is dataset %d in the index, not %d", name,
                        d.id, r->id);
    return state.complete == 1
               ? COMMAND_GOOD
               : tool_say(DATASET_INCOMPLETE, "%s: it is not complete", name);
}
