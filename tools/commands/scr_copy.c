/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_copy: copies a node's part of a dataset from its cache to the prefix directory (SCR
 * Developer Guide 1.2, sections 2.13.1 and 2.33.3). */
#include "common/number.h"
#include "lib/hostlist.h"
#include "lib/tool.h"
#include "lib/tool_heartbeat.h"
#include "lib/tool_prefix.h"
#include "lib/tool_progress.h"
#include "lib/tool_table.h"
#include "scavenge/copy.h"
#include "scavenge/node_command.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct copy_request {
    const char *dir, *control, *created, *sets;
    int files, json, wait, alive;
    scavenge_wish wish;
} copy_request;

/* ---- work ---- */

static int copy_print(const copy_request *r, const scavenge_copied *c)
{
    static const tool_column columns[] = {
        {"dset", NULL, TOOL_NUMBER},    {"name", NULL, TOOL_TEXT},
        {"created", NULL, TOOL_NUMBER}, {"ranks", NULL, TOOL_NUMBER},
        {"files", NULL, TOOL_NUMBER},   {"bytes", NULL, TOOL_NUMBER},
        {"failed", NULL, TOOL_NUMBER},  {"reason", NULL, TOOL_TEXT},
    };
    if (!r->json) {
        printf("dataset %d (", c->dataset.id);
        tool_print(c->dataset.name);
        printf("): %d files of %d ranks, %" PRIu64 " bytes\n", c->files, c->ranks,
               c->bytes);
        return COMMAND_GOOD;
    }
    tool_table *table = tool_table_new(columns, 8);
    tool_table_number(table, c->dataset.id);
    tool_table_text(table, c->dataset.name);
    tool_table_number(table, c->dataset.created);
    tool_table_number(table, c->ranks);
    tool_table_number(table, c->files);
    tool_table_number(table, (int64_t)c->bytes);
    tool_table_number(table, c->failed);
    tool_table_text(table, c->failed ? c->why.text : NULL);
    return tool_table_print(table, TOOL_JSON);
}

static int copy_fail(tool_message message, int rc, const char *err)
{
    bool nothing = rc == -ENOENT;
    tool_print_message(nothing ? TOOL_MSG_CACHE_EMPTY : message, "%s", err);
    return nothing ? SCAVENGE_NOTHING_HERE : COMMAND_BAD;
}

static int copy_dataset(const copy_request *r, const tool_prefix *prefix,
                        const scavenge_node *node)
{
    kvtree_error err = {""};
    scavenge_copied copied;
    int rc = scavenge_copy(node, prefix->dir, &r->wish, &copied, &err);
    tool_progress_end();
    if (node->refused)
        tool_say(CACHE_FILEMAP_REFUSED, "%d filemaps count as lost; the first: %s",
                 node->refused, node->why.text);
    if (rc) return copy_fail(TOOL_MSG_CACHE_COPY_FAILED, rc, err.text);
    int code = copy_print(r, &copied);
    if (copied.failed)
        code = tool_say(CACHE_COPY_FAILED, "%d rank%s; the first: %s", copied.failed,
                        copied.failed == 1 ? "" : "s", copied.why.text);
    return code;
}

static int copy_work(const copy_request *r, const tool_prefix *prefix)
{
    char control[TOOL_PATH_SIZE];
    kvtree_error err = {""};
    scavenge_node node;
    if (tool_control_folder(prefix, r->control, control) != COMMAND_GOOD)
        return COMMAND_BAD;
    int rc = scavenge_node_open(control, prefix->path, &node, &err);
    if (rc) return copy_fail(TOOL_MSG_CACHE_UNUSABLE, rc, err.text);
    tool_heartbeat heartbeat;
    tool_heartbeat_begin(&heartbeat, r->alive);
    if (!r->alive) tool_progress_begin("copy", NULL);
    rc = scavenge_node_wait(&node, r->wait, &err);
    int code = rc ? tool_say(CACHE_IN_USE, "%s: %s", control, err.text)
                  : copy_dataset(r, prefix, &node);
    tool_progress_end();
    tool_heartbeat_end(&heartbeat);
    scavenge_node_close(&node);
    return code;
}

/* ---- arguments ---- */

/* Parses "0,[4-7]", in the syntax of host lists. -1 to continue, or an exit code. */
static int copy_take_sets(const tool *t, const char *text, scavenge_wish *wish)
{
    kvtree_error err = {""};
    hostlist list = {0};
    int64_t id;
    if (!text || strcmp(text, "all") == 0) return -1;
    int rc = hostlist_parse(text, &list, &err);
    int *sets = calloc((size_t)list.count + 1, sizeof *sets);
    for (int i = 0; sets && i < list.count && !rc; i++)
        if (number_int64(list.names[i], &id) != 0 || id < 0 || id > INT_MAX)
            rc =
                err_set(&err, -EINVAL, "'%.60s' is not a number of a set", list.names[i]);
        else
            sets[i] = (int)id;
    wish->set_count = list.count;
    hostlist_done(&list);
    if (rc) free(sets);
    if (rc) return tool_misused(t, "%s", err.text);
    wish->sets = sets;
    return sets ? -1 : tool_no_memory();
}

static int copy_take_request(const tool *t, copy_request *r)
{
    if (r->wish.dset < 1) return tool_misused(t, "--id is missing");
    if (r->created &&
        (number_int64(r->created, &r->wish.created) != 0 || r->wish.created < 1))
        return tool_misused(t, "'%.60s' is not a time in microseconds", r->created);
    if (r->files && r->sets) return tool_misused(t, "--files or --sets, not both");
    if (r->wish.width < 1) return tool_misused(t, "--width is at least 1");
    r->wish.files = !r->sets;
    r->wish.redundancy = !r->files;
    return copy_take_sets(t, r->sets, &r->wish);
}

int main(int argc, char **argv)
{
    copy_request r = {.wait = 10, .wish = {.width = 4}};
    const tool_option options[] = {
        {'i', "id", "ID", "the dataset", .number = &r.wish.dset},
        TOOL_PREFIX_OPTION(&r.dir),
        {'c', "cntldir", "DIRECTORY", "the control directory (default: as scr_list_dir)",
         .text = &r.control},
        {'t', "created", "TIME",
         "only the dataset with this time of creation, in\nmicroseconds since 1970",
         .text = &r.created},
        {'f', "files", NULL, "no redundancy files", .flag = &r.files},
        {'s', "sets", "LIST", "only redundancy files, of these sets: 0,[4-7], or all",
         .text = &r.sets},
        {'w', "width", "N", "copy N ranks at the same time (default: 4)",
         .number = &r.wish.width},
        {'W', "wait", "SECONDS", "wait for the end of a run (default: 10)",
         .number = &r.wait},
        {'a', "alive", "SECONDS",
         "print a line with the bytes that are copied, and all of\nthem, at this "
         "interval, as a sign of life",
         .number = &r.alive},
        {'x', "stop", NULL, "end transfers of scr_transfer for ranks that are saved",
         .flag = &r.wish.stop},
        {'j', "json", NULL, "print a JSON object", .flag = &r.json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]... --id ID",
        .about = "Copies what the cache of this node has of a dataset to the prefix "
                 "directory.\n",
        .codes =
            "0 copied, 1 not all of it, or an error, 2 wrong usage, 3 the cache has\n"
            "nothing of that dataset.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0) code = copy_take_request(&t, &r);
    if (code >= 0) return code;
    signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit is an error, like a full
                               * disk */
    /* with --alive, SIGPIPE ends the copy when the caller is gone */
    if (!r.alive) command_outlive_reader();
    code = tool_prefix_configure_anyway(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = copy_work(&r, &prefix);
    tool_prefix_close(&prefix);
    free((int *)(uintptr_t)r.wish.sets);
    return tool_finish(code);
}
