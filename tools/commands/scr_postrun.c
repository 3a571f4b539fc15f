/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_postrun: saves what is only in the caches, after the last run of an allocation (SCR
 * Developer Guide 1.2, section 2.33.1). */
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "lib/tool_words.h"
#include "nodes/down_nodes.h"
#include "records/scr_flush_file.h"
#include "run/execute.h"
#include "run/hooks.h"
#include "run/processes.h"
#include "run/progress.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE = 10 /* seconds that a command has to end after a signal */ };

typedef struct save {
    const tool_prefix *prefix;
    execute_signals signals;
    int id;
    char *name;      /* of the dataset */
    char *up, *down; /* nodes */
} save;

/* ---- what is to be saved ---- */

/* *id 0: nothing. */
static int find_unsaved(const tool_prefix *prefix, int *id, char **name)
{
    char err[ERRTEXT_SIZE] = "no memory";
    progress p;
    kvtree *flush = kvtree_new();
    int rc = flush ? progress_read(prefix->dir, &p, err) : -ENOMEM;
    *id = 0;
    *name = NULL;
    if (!rc && p.latest == 0) {
        printf("no dataset is in the cache\n");
    } else if (!rc && p.unsaved == 0) {
        printf("dataset %d is on the parallel file system\n", p.latest);
    } else if (!rc) {
        *id = p.unsaved;
        rc = scr_flush_file_read(prefix->dir, flush, err);
        const char *found = rc ? NULL : scr_flush_file_name(flush, p.unsaved);
        *name = found ? strdup(found) : NULL;
        if (!rc && !*name)
            rc = err_set(err, -EBADMSG, "dataset %d has no name in the flush file",
                         p.unsaved);
    }
    kvtree_delete(&flush);
    return rc ? tool_complain("%s", err) : COMMAND_GOOD;
}

/* ---- nodes ---- */

static int split(save *s, const hostlist *nodes, const down_reason *reasons)
{
    size_t n = (size_t)nodes->count + 1;
    hostlist up = {0, calloc(n, sizeof(char *))}, down = {0, calloc(n, sizeof(char *))};
    for (int i = 0; i < nodes->count && up.names && down.names; i++) {
        hostlist *list = *reasons[i].text ? &down : &up;
        list->names[list->count++] = nodes->names[i];
    }
    s->up = up.names ? hostlist_compress(&up) : NULL;
    s->down = down.names ? hostlist_compress(&down) : NULL;
    free(up.names);
    free(down.names);
    if (!s->up || !s->down) return tool_complain("no memory");
    return *s->up ? COMMAND_GOOD : tool_complain("no node is left to copy from");
}

static int find_nodes(save *s, const hostlist *known)
{
    double seconds;
    hostlist nodes = {0, NULL};
    down_reason *reasons = NULL;
    int code = tool_manager_nodes(s->prefix, &nodes);
    if (code == COMMAND_GOOD) code = down_nodes_patience(s->prefix, &seconds);
    if (code == COMMAND_GOOD) {
        reasons = calloc((size_t)nodes.count + 1, sizeof *reasons);
        if (!reasons) code = tool_complain("no memory");
    }
    if (code == COMMAND_GOOD) {
        down_nodes_mark(&nodes, known, "known to be down", reasons);
        code = down_nodes_find(s->prefix, &nodes, seconds, reasons);
    }
    if (code == COMMAND_GOOD) code = split(s, &nodes, reasons);
    free(reasons);
    hostlist_done(&nodes);
    return code;
}

/* ---- commands ---- */

/* Runs a command of ours in the foreground; its exit code, or -errno. */
static int run_command(save *s, const char *name, const char *const *arguments)
{
    char *path = tool_remote_command(name);
    tool_words words = {0};
    execute_result result;
    tool_words_add(&words, "%s", path ? path : name);
    tool_words_add(&words, "--prefix=%s", s->prefix->path);
    tool_words_add_all(&words, arguments);
    const execute_job job = {
        .argv = tool_words_list(&words), .interval = 1, .patience = PATIENCE};
    int rc = words.failed ? -ENOMEM : execute(&job, &s->signals, &result);
    tool_words_done(&words);
    free(path);
    if (rc == -ENOENT)
        tool_complain("%s is not there: dataset %d (%s) stays in the cache only", name,
                      s->id, s->name);
    else if (rc)
        tool_complain("%s: %s", name, strerror(-rc));
    return rc ? rc : result.code;
}

static int copy(save *s)
{
    char id[16];
    const char *const known[] = {"--id", id, "--up", s->up, NULL};
    const char *const all[] = {"--id", id, "--up", s->up, "--down", s->down, NULL};
    snprintf(id, sizeof id, "%d", s->id);
    return run_command(s, "scr_scavenge", *s->down ? all : known);
}

/* Copies, completes and enters it; the next run begins with it. */
static int save_dataset(save *s)
{
    const char *const add[] = {"--add", s->name, NULL};
    const char *const current[] = {"--current", s->name, NULL};
    int code;
    printf("dataset %d (%s) is only in the cache: it is copied from %s\n", s->id, s->name,
           s->up);
    fflush(stdout);
    code = copy(s);
    /* what was copied may do although a node failed: the index knows */
    if (code < 0 || s->signals.stop) return COMMAND_BAD;
    code = run_command(s, "scr_index", add);
    if (code != 0 || s->signals.stop) return COMMAND_BAD;
    return run_command(s, "scr_index", current) == 0 ? COMMAND_GOOD : COMMAND_BAD;
}

static int work(const tool_prefix *prefix, const hostlist *known)
{
    scr_problems problems = {0, NULL};
    int enabled = 1;
    save s = {.prefix = prefix, .signals = {.fd = -1}};
    scr_config_switch(&prefix->config, "SCR_ENABLE", &enabled, &problems);
    int code = tool_tell_problems(&problems);
    if (code != COMMAND_GOOD || !enabled) return code;
    code = find_unsaved(prefix, &s.id, &s.name);
    if (code == COMMAND_GOOD && s.id) {
        if (processes_adopt() != 0 || execute_catch(&s.signals) != 0)
            code = tool_complain("no signals");
        if (code == COMMAND_GOOD) code = find_nodes(&s, known);
        if (code == COMMAND_GOOD) code = save_dataset(&s);
        execute_release(&s.signals);
    }
    free(s.up);
    free(s.down);
    free(s.name);
    int told = hooks_call(prefix, HOOK_POSTRUN, code == COMMAND_GOOD ? "0" : "1", NULL);
    return code == COMMAND_GOOD ? told : code;
}

int main(int argc, char **argv)
{
    char err[ERRTEXT_SIZE] = "";
    const char *dir = NULL, *down = NULL;
    hostlist known = {0, NULL};
    const tool_option options[] = {
        {'p', "prefix", "FOLDER", "the prefix folder (default: SCR_PREFIX, or this one)",
         .text = &dir},
        {'d', "down", "NODES", "these are down; they are not asked", .text = &down},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "After the last run of an allocation: when the newest dataset is only "
                 "in the caches\nof the nodes, copies it to the prefix folder, rebuilds "
                 "what is missing, and enters\nit into the index. scr_run does so "
                 "itself.\n",
        .codes = "0 saved, or there was nothing to save, 1 it could not be saved, or an\n"
                 "error, 2 wrong usage.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (down && hostlist_parse(down, &known, err) != 0)
        return tool_misused(&t, "%s", err);
    code = tool_prefix_configure(&prefix, dir);
    if (code == COMMAND_GOOD) code = work(&prefix, &known);
    tool_prefix_close(&prefix);
    hostlist_done(&known);
    return tool_finish(code);
}
