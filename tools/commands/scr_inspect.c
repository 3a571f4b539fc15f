/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_inspect: lists the datasets in the cache of a node (SCR Developer Guide 1.2,
 * section 2.33.1). */
#include "commands/scr_inspect.h"

#include "common/io.h"
#include "lib/tool_manager.h"
#include "lib/tool_table.h"
#include "lib/tool_time.h"
#include "scavenge/node.h"
#include "scavenge/node_command.h"
#include "scavenge/scan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A dataset in the cache of this node. */
typedef struct inspect_contents {
    scr_dataset dataset;
    scavenge_answer brief;
    int files;
    uint64_t bytes;
    char type[8];
} inspect_contents;

/* ---- the cache ---- */

/* Whether all files exist with their full sizes. */
static bool inspect_is_whole(const scavenge_part *part)
{
    int folder = -1;
    bool whole = scavenge_part_open(part, &folder, NULL) == 0;
    for (int i = 0; i < part->rank->count && whole; i++)
        whole = scavenge_has_file(folder, &part->rank->files[i], NULL);
    io_close(&folder);
    return whole;
}

static void inspect_rank(const scavenge_node *node, int rank, inspect_contents *c)
{
    scavenge_part part;
    int id = c->dataset.id;
    if (scavenge_part_find(node, id, rank, &part, NULL) != 0) return;
    if (part.dataset.created == c->dataset.created) {
        const char *type =
            kvtree_get_val(scr_filemap_get_reddesc(node->map, id, rank), "TYPE");
        if (type) snprintf(c->type, sizeof c->type, "%s", type);
        c->brief.here++;
        c->brief.whole += inspect_is_whole(&part);
        for (int i = 0; i < part.rank->count; i++) {
            if (part.rank->files[i].redundancy) continue;
            c->files++;
            c->bytes += part.rank->files[i].size;
        }
    }
    scavenge_part_done(&part);
}

/* Fills in the contents. 0, or -errno if the dataset's description cannot be read. */
static int inspect_dataset(const scavenge_node *node, int id, inspect_contents *c)
{
    int ranks = 0, *list = NULL;
    *c = (inspect_contents){.files = 0};
    const scr_dataset *d = &c->dataset;
    int rc = scavenge_node_newest(node, id, &c->dataset);
    if (!rc) rc = scr_filemap_list_ranks_of(node->map, id, &ranks, &list);
    if (rc) return rc;
    c->brief = (scavenge_answer){
        .id = id, .created = d->created, .ranks = d->ranks, .run = node->run != 0};
    strcpy(c->brief.name, d->name);
    for (int i = 0; i < ranks; i++)
        inspect_rank(node, list[i], c);
    free(list);
    return 0;
}

/* ---- output ---- */

static void inspect_add_row(tool_table *table, const inspect_contents *c)
{
    char created[TOOL_TIME_SIZE];
    const scr_dataset *d = &c->dataset;
    tool_time_text(d->created / 1000000, created);
    tool_table_number(table, d->id);
    tool_table_number(table, d->ckpt);
    tool_table_text(table, created);
    tool_table_text(table, c->type[0] ? c->type : NULL);
    tool_table_number(table, d->ranks);
    tool_table_number(table, c->brief.here);
    tool_table_number(table, c->brief.whole);
    tool_table_mark(table, c->brief.whole == c->brief.here ? TOOL_GOOD : TOOL_BAD);
    tool_table_number(table, c->files);
    tool_table_number(table, (int64_t)c->bytes);
    tool_table_text(table, d->name);
    tool_table_number(table, d->created);
    tool_table_switch(table, d->output);
    tool_table_switch(table, c->brief.run);
}

static int inspect_print(const inspect_request *r, const scavenge_node *node)
{
    static const tool_column columns[] = {
        {"dset", "DSET", TOOL_NUMBER},     {"checkpoint", "CKPT", TOOL_NUMBER},
        {"created", "CREATED", TOOL_TEXT}, {"type", "TYPE", TOOL_TEXT},
        {"ranks", "RANKS", TOOL_NUMBER},   {"here", "HERE", TOOL_NUMBER},
        {"whole", "WHOLE", TOOL_NUMBER},   {"files", "FILES", TOOL_NUMBER},
        {"bytes", "BYTES", TOOL_NUMBER},   {"name", "NAME", TOOL_TEXT},
        {"time", NULL, TOOL_NUMBER},       {"output", NULL, TOOL_SWITCH},
        {"run", NULL, TOOL_SWITCH},
    };
    int count = 0, *ids = NULL;
    inspect_contents c;
    if (scr_filemap_list_datasets(node->map, &count, &ids) != 0) return tool_no_memory();
    tool_table *table = r->brief ? NULL : tool_table_new(columns, 13);
    for (int i = 0; i < count; i++) {
        if ((r->id && ids[i] != r->id) || inspect_dataset(node, ids[i], &c) != 0)
            continue;
        if (r->brief)
            scavenge_answer_print(&c.brief);
        else
            inspect_add_row(table, &c);
    }
    free(ids);
    if (r->brief) return COMMAND_GOOD;
    return tool_table_print(table, r->json ? TOOL_JSON : TOOL_COLUMNS);
}

/* ---- work ---- */

static void inspect_report_nothing(const tool_prefix *prefix)
{
    tool_owner owner;
    if (tool_owner_find(prefix, &owner) != COMMAND_GOOD) return;
    tool_say(CACHE_EMPTY, "nothing of job %s (SCR_JOB_ID) is here; see --all", owner.job);
    tool_prefix_tell_unused(prefix);
}

static int inspect_work(const inspect_request *r, const tool_prefix *prefix)
{
    char control[TOOL_PATH_SIZE];
    kvtree_error err = {""};
    scavenge_node node;
    if (tool_control_folder(prefix, r->control, control) != COMMAND_GOOD)
        return COMMAND_BAD;
    int rc = scavenge_node_open(control, prefix->path, &node, &err);
    if (rc == -ENOENT && !r->brief && !r->control)
        inspect_report_nothing(prefix);
    else if (rc)
        tool_print_message(rc == -ENOENT ? TOOL_MSG_CACHE_EMPTY : TOOL_MSG_CACHE_UNUSABLE,
                           "%s", err.text);
    if (rc) return rc == -ENOENT ? SCAVENGE_NOTHING_HERE : COMMAND_BAD;
    if (node.run)
        tool_say(CACHE_IN_USE, "%s: a run, process %ld", control, (long)node.run);
    if (node.refused)
        tool_say(CACHE_FILEMAP_REFUSED, "%d filemaps count as lost; the first: %s",
                 node.refused, node.why.text);
    int code = inspect_print(r, &node);
    scavenge_node_close(&node);
    return code;
}

int main(int argc, char **argv)
{
    inspect_request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'c', "cntldir", "DIRECTORY", "the control directory (default: as scr_list_dir)",
         .text = &r.control},
        {'f', "from", "DIRECTORY", "the same", .text = &r.control},
        {'i', "id", "ID", "only this dataset", .number = &r.id},
        {'b', "brief", NULL,
         "print one line per dataset: id, creation in microseconds,\nranks, ranks here, "
         "whole ones, 1 if a run uses the cache,\nname",
         .flag = &r.brief},
        {'u', "up", "NODES", "print the datasets of these nodes together", .text = &r.up},
        {'a', "all", NULL, "the same for the nodes of the allocation", .flag = &r.all},
        {'j', "json", NULL, "print a JSON object per dataset", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "Lists the datasets in the cache of this node, or of several nodes, and "
                 "how much of\nthem is there.\n",
        .codes = "0 printed, 1 an error, 2 wrong usage, 3 no run was here.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (r.up && r.all) return tool_misused(&t, "either --up or --all");
    if ((r.up || r.all) && r.brief) return tool_misused(&t, "--brief is for one node");
    code = tool_manager_check(&t, r.up);
    if (code >= 0) return code;
    code = tool_prefix_configure_anyway(&prefix, r.dir);
    if (code == COMMAND_GOOD)
        code = r.up || r.all ? inspect_nodes(&r, &prefix) : inspect_work(&r, &prefix);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
