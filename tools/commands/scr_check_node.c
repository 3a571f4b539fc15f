/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_check_node: tests whether this node can be used (SCR Developer Guide 1.2,
 * section 2.24.5). */
#include "cache/base.h"
#include "config/descs.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "nodes/node_check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    const char *dir, *control, *cache, *tests;
    int seconds, list, free;
    char user[SCR_USER_SIZE]; /* of the job */
    const tool *usage;
} request;

static int check_node_list_checks(void)
{
    for (const node_check *c = node_checks; c->name; c++)
        printf("%-10s %s\n", c->name, c->help);
    printf("%-10s %s\n", "tests", "each program in SCR_NODE_TESTS exits with 0");
    return command_flush();
}

/* Returns the more severe of two exit codes. */
static int check_node_worse(int a, int b)
{
    static const int order[] = {COMMAND_WRONG_USAGE, COMMAND_BAD, NODE_UNCHECKED};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (a == order[i] || b == order[i]) return order[i];
    return COMMAND_GOOD;
}

/* ---- directories ---- */

static int check_node_folder(const request *r, const char *path, uint64_t bytes, int made)
{
    kvtree_error err = {""};
    const node_folder folder = {path, bytes, r->free, made, r->user};
    const int unsafe = scr_base_is_unsafe(path);
    if (unsafe == 2)
        tool_say(CACHE_BASE_UNSAFE,
                 "%s belongs to another user, who may rename and remove files in it",
                 path);
    if (unsafe == 1)
        tool_say(CACHE_BASE_UNSAFE, "everybody may remove what is in %s", path);
    return tool_result(NODE_DIRECTORY_UNUSABLE, node_check_folder(&folder, &err), &err);
}

/* Checks a list of PATH or PATH:SIZE, separated by commas. */
static int check_node_given(const request *r, const char *list)
{
    char *copy = strdup(list), *rest = copy, *path;
    int code = copy ? COMMAND_GOOD : tool_no_memory();
    while (code != COMMAND_WRONG_USAGE && (path = strsep(&rest, ",")) != NULL) {
        uint64_t bytes = 0;
        char *colon = strrchr(path, ':');
        if (colon) *colon = 0;
        if (*path != '/' || (colon && scr_parse_bytes(colon + 1, &bytes) != 0)) {
            code = tool_misused(r->usage, "'%s%s%s' is no DIRECTORY or DIRECTORY:SIZE",
                                path, colon ? ":" : "", colon ? colon + 1 : "");
        } else if (check_node_folder(r, path, bytes, 0) != COMMAND_GOOD) {
            code = COMMAND_BAD;
        }
    }
    free(copy);
    return code;
}

static int check_node_stores(const request *r, const scr_descs *descs)
{
    int code = COMMAND_GOOD;
    for (int i = 0; i < descs->stores.count; i++) {
        const scr_store *store = &descs->stores.list[i];
        int used = 0;
        for (int k = 0; k < descs->reddescs.count; k++)
            used |= descs->reddescs.list[k].enabled &&
                    strcmp(descs->reddescs.list[k].store, store->path) == 0;
        if (used && check_node_folder(r, store->path, store->capacity, store->mkdir) !=
                        COMMAND_GOOD)
            code = COMMAND_BAD;
    }
    return code;
}

/* Checks the control directory of the configuration; only a store descriptor gives its
 * size. */
static int check_node_control(const request *r, const tool_prefix *prefix,
                              const scr_descs *descs)
{
    const char *path = scr_config_get(&prefix->config, "SCR_CNTL_BASE", NULL);
    const scr_store *store = scr_stores_find(&descs->stores, path);
    return check_node_folder(r, path, store && store->own_capacity ? store->capacity : 0,
                             1);
}

/* Checks the directories of the command line, else of the configuration. */
static int check_node_folders(const request *r, const tool_prefix *prefix)
{
    scr_problems problems = {.count = 0};
    scr_descs descs;
    if (scr_descs_load(&prefix->config, &descs, &problems) != 0) return tool_no_memory();
    int control = r->control ? check_node_given(r, r->control)
                             : check_node_control(r, prefix, &descs);
    int code = r->cache             ? check_node_given(r, r->cache)
               : problems.count > 0 ? NODE_UNCHECKED
                                    : check_node_stores(r, &descs);
    if (!r->cache) tool_tell_problems(&problems);
    scr_problems_done(&problems);
    scr_descs_done(&descs);
    return check_node_worse(code, control);
}

/* ---- work ---- */

static int check_node_run(const request *r, const tool_prefix *prefix)
{
    kvtree_error err = {""};
    const char *tests = r->tests;
    int code = check_node_folders(r, prefix);
    if (prefix->mistaken) code = check_node_worse(code, NODE_UNCHECKED);
    if (!tests) tests = scr_config_get(&prefix->config, "SCR_NODE_TESTS", NULL);
    if (code == COMMAND_GOOD && tests && *tests &&
        node_check_programs(tests, r->seconds, &err) != 0)
        code = tool_say(NODE_TEST_FAILED, "%s", err.text);
    if (code == COMMAND_GOOD) printf("PASS\n");
    return code;
}

int main(int argc, char **argv)
{
    request r = {.seconds = 30};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'c', "cntl", "LIST",
         "control directories, DIRECTORY or DIRECTORY:SIZE, with commas",
         .text = &r.control},
        {'a', "cache", "LIST", "the same for cache directories", .text = &r.cache},
        {'t', "tests", "DIRECTORY", "programs to run (default: SCR_NODE_TESTS)",
         .text = &r.tests},
        {'s', "seconds", "N", "seconds that one of them may take (default: 30)",
         .number = &r.seconds},
        {'f', "free", NULL, "sizes are those of free space, not of the file system",
         .flag = &r.free},
        {'l', "list", NULL, "list what is checked", .flag = &r.list},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "Tells whether this node can be used: the directories of SCR on it are "
                 "there, large\nenough and can be written, and tests of the site pass. "
                 "Prints PASS then.\n",
        .codes =
            "0 it can, 1 it cannot, or an error, 2 wrong usage, 3 the configuration\n"
            "has mistakes, so that nothing is known of the node.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (r.list) return check_node_list_checks();
    r.usage = &t;
    code = tool_prefix_configure_anyway(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = tool_owner_user(&prefix, r.user);
    if (code == COMMAND_GOOD) code = check_node_run(&r, &prefix);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
