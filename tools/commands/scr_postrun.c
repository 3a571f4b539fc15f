/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_postrun: saves what is only in the caches, after the last run of an allocation (SCR
 * Developer Guide 1.2, section 2.33.1). */
#include "lib/processes.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_process.h"
#include "lib/tool_remote.h"
#include "lib/tool_words.h"
#include "nodes/down_nodes.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "run/hooks.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE = 10 /* seconds that a command has to end after a signal */ };

typedef struct save {
    const tool_prefix *prefix;
    tool_signals signals;
    kvtree *flush; /* the flush file */
    int count, *ids;
    int safe;         /* a newer checkpoint than those that are left is saved */
    int id;           /* of a dataset, ... */
    const char *name; /* ... and its name */
    char *up, *down;  /* nodes */
} save;

/* ---- what is to be saved ---- */

/* Newest first. */
static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x < y) - (x > y);
}

static int is_in(const save *s, int id, const char *location)
{
    return scr_flush_file_has(s->flush, id, location);
}

/* What the flush file lists; ids[0] is the newest dataset. */
static int list_datasets(save *s)
{
    char err[ERRTEXT_SIZE] = "no memory";
    s->flush = kvtree_new();
    int rc = s->flush ? scr_flush_file_read(s->prefix->dir, s->flush, err) : -ENOMEM;
    if (rc == -ENOENT) return COMMAND_GOOD;
    if (!rc) rc = scr_flush_file_list(s->flush, &s->count, &s->ids);
    if (rc == -EBADMSG)
        return tool_complain("%s: %s; scr_inspect --all lists what is in the caches, "
                             "scr_scavenge --id ID and scr_index --add NAME save it",
                             s->prefix->path, err);
    if (rc) return tool_complain("%s: %s", s->prefix->path, err);
    if (s->count > 0) qsort(s->ids, (size_t)s->count, sizeof *s->ids, compare);
    return COMMAND_GOOD;
}

/* 1 if the index has it as complete; with what it is. */
static int is_saved(const save *s, int id, scr_dataset *d)
{
    scr_index_state state = {.complete = 0};
    const char *name = scr_flush_file_name(s->flush, id);
    kvtree *index = kvtree_new();
    int is = index && name && scr_index_read(s->prefix->dir, index, NULL) == 0 &&
             scr_index_get(index, name, d) == 0 && d->id == id &&
             scr_index_look(index, d, &state) == 0 && state.complete == 1;
    kvtree_delete(&index);
    return is;
}

/* Whether a restart could begin with what is saved: an output that is no checkpoint makes
 * no older one dispensable. */
static int is_saved_checkpoint(const save *s, int id)
{
    scr_dataset d = {.id = 0};
    return is_saved(s, id, &d) && d.ckpt > 0;
}

/* Whether somebody would miss the dataset: no newer checkpoint is safe, or it was on its
 * way to the parallel file system. */
static int is_wanted(const save *s, int id)
{
    return is_in(s, id, SCR_LOCATION_CACHE) && !is_in(s, id, SCR_LOCATION_PFS) &&
           (!s->safe || is_in(s, id, SCR_LOCATION_FLUSHING));
}

/* ---- nodes ---- */

static int split(save *s, const hostlist *nodes, const down_reason *reasons)
{
    size_t n = (size_t)nodes->count + 1;
    hostlist up = {0, calloc(n, sizeof(char *))}, down = {0, calloc(n, sizeof(char *))};
    for (int i = 0; i < nodes->count && up.names && down.names; i++) {
        hostlist *list = *reasons[i].text && !reasons[i].answers ? &down : &up;
        list->names[list->count++] = nodes->names[i];
    }
    s->up = up.names ? hostlist_compress(&up) : NULL;
    s->down = down.names ? hostlist_compress(&down) : NULL;
    free(up.names);
    free(down.names);
    if (!s->up || !s->down) return tool_complain("no memory");
    return *s->up ? COMMAND_GOOD
                  : tool_complain("dataset %d (%s) is not saved: no node is left to "
                                  "copy from",
                                  s->id, s->name ? s->name : "?");
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
    tool_job_result result;
    tool_words_add(&words, "%s", path ? path : name);
    tool_words_add(&words, "--prefix=%s", s->prefix->path);
    tool_words_add_all(&words, arguments);
    const tool_job job = {.argv = tool_words_list(&words),
                          .interval = 1,
                          .patience = PATIENCE,
                          .ours = true,
                          .out = -1};
    int rc = words.failed ? -ENOMEM : tool_process_watch(&job, &s->signals, &result);
    tool_words_done(&words);
    free(path);
    if (rc == -ENOENT)
        tool_complain("%s is not there", name);
    else if (rc)
        tool_complain("%s: %s", name, strerror(-rc));
    return rc ? rc : result.code;
}

static int copy(save *s)
{
    char id[16];
    const char *const known[] = {"--stop", "--id", id, "--up", s->up, NULL};
    const char *const all[] = {"--stop", "--id",   id,      "--up",
                               s->up,    "--down", s->down, NULL};
    snprintf(id, sizeof id, "%d", s->id);
    return run_command(s, "scr_scavenge", *s->down ? all : known);
}

/* Copies, completes and enters it; the next run begins with it, if it is a checkpoint and
 * the newest. */
static int save_dataset(save *s)
{
    const char *const add[] = {"--add", s->name, NULL};
    scr_dataset d;
    printf("dataset %d (%s) is only in the cache: it is copied from %s\n", s->id, s->name,
           s->up);
    fflush(stdout);
    int code = copy(s);
    /* what was copied may do although a node failed, or output was lost: the index knows
     */
    if (code >= 0 && !s->signals.stop) run_command(s, "scr_index", add);
    return is_saved(s, s->id, &d) ? COMMAND_GOOD : COMMAND_BAD;
}

static int tell_unsaved(const save *s)
{
    char why[64] = "";
    if (s->signals.stop)
        snprintf(why, sizeof why, "told to end by signal %d: ", s->signals.stop);
    return tool_complain("%sdataset %d (%s) is not saved, it may be only in the cache; "
                         "scr_postrun --prefix=%s %s",
                         why, s->id, s->name ? s->name : "?", s->prefix->path,
                         s->signals.stop ? "saves it" : "tries again");
}

/* The newest, and where that cannot be saved the one before it; a failure stays one. */
static int save_all(save *s)
{
    int result = COMMAND_GOOD;
    for (int i = 0; i < s->count; i++) {
        s->id = s->ids[i];
        s->name = scr_flush_file_name(s->flush, s->id);
        if (is_in(s, s->id, SCR_LOCATION_PFS)) s->safe |= is_saved_checkpoint(s, s->id);
        if (!is_wanted(s, s->id)) continue;
        if (s->signals.stop) return tell_unsaved(s);
        int code = s->name
                       ? save_dataset(s)
                       : tool_complain("dataset %d has no name in the flush file", s->id);
        if (code == COMMAND_GOOD)
            s->safe |= is_saved_checkpoint(s, s->id);
        else
            result = tell_unsaved(s);
        if (s->signals.stop && code != COMMAND_GOOD) return result;
    }
    return result;
}

/* And which is the first. */
static int has_wanted(save *s)
{
    int wanted = 0;
    for (int i = 0; i < s->count; i++) {
        if (is_in(s, s->ids[i], SCR_LOCATION_PFS))
            s->safe |= is_saved_checkpoint(s, s->ids[i]);
        if (wanted || !is_wanted(s, s->ids[i])) continue;
        wanted = 1;
        s->id = s->ids[i];
        s->name = scr_flush_file_name(s->flush, s->id);
    }
    s->safe = 0;
    if (!s->count)
        printf("no dataset is in the cache\n");
    else if (!wanted)
        printf("dataset %d is on the parallel file system\n", s->ids[0]);
    return wanted;
}

/* Nothing goes on when a command had to be killed. */
static void end_strays(const save *s)
{
    static const processes_filter all = {.spared = NULL};
    if (s->signals.stop && processes_end(&all, PATIENCE) != 0)
        tool_complain("processes are left behind");
}

/* A wrong job id looks like lost caches. */
static void tell_other_owner(const save *s)
{
    tool_owner us;
    const char *theirs = scr_flush_file_owner(s->flush);
    if (!theirs || tool_owner_find(s->prefix, &us) != COMMAND_GOOD ||
        tool_owner_is(&us, theirs))
        return;
    tool_complain(
        "warning: the datasets are in the caches of %s, but this is job %s of %s "
        "(SCR_JOB_ID, SCR_USER_NAME)",
        theirs, us.job, us.user);
}

static int save_what_is_left(save *s, const hostlist *known)
{
    int code = list_datasets(s);
    if (code == COMMAND_GOOD && !s->count && tool_prefix_tell_unused(s->prefix))
        return COMMAND_BAD;
    if (code != COMMAND_GOOD || !has_wanted(s)) return code;
    tell_other_owner(s);
    if (processes_adopt() != 0 || tool_signals_catch(&s->signals, true) != 0)
        code = tool_complain("no signals");
    if (code == COMMAND_GOOD) {
        code = find_nodes(s, known);
        if (code != COMMAND_GOOD && tool_signals_wait(&s->signals, 0, 0)) tell_unsaved(s);
    }
    if (code == COMMAND_GOOD) code = save_all(s);
    end_strays(s);
    tool_signals_release(&s->signals);
    return code;
}

/* between: another run follows. *signal: the one that told it to end before all was
 * saved, or 0. */
static int work(const tool_prefix *prefix, const hostlist *known, int between,
                int *signal)
{
    scr_problems problems = {0, NULL};
    int enabled = 1;
    save s = {.prefix = prefix, .signals = {.fd = -1}};
    scr_config_switch(&prefix->config, "SCR_ENABLE", &enabled, &problems);
    int code = tool_tell_problems(&problems);
    if (code != COMMAND_GOOD || !enabled) return code;
    code = save_what_is_left(&s, known);
    *signal = code == COMMAND_GOOD ? 0 : s.signals.stop;
    kvtree_delete(&s.flush);
    free(s.ids);
    free(s.up);
    free(s.down);
    if (between) return code;
    int told = hooks_call(prefix, HOOK_POSTRUN, code == COMMAND_GOOD ? "0" : "1", NULL);
    return code == COMMAND_GOOD ? told : code;
}

int main(int argc, char **argv)
{
    char err[ERRTEXT_SIZE] = "";
    const char *dir = NULL, *down = NULL;
    int between = 0, signal = 0;
    hostlist known = {0, NULL};
    const tool_option options[] = {
        {'p', "prefix", "FOLDER", "the prefix folder (default: SCR_PREFIX, or this one)",
         .text = &dir},
        {'d', "down", "NODES", "these are down; they are not asked", .text = &down},
        {'b', "between", NULL, "another run follows: the site's postrun is not called",
         .flag = &between},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "After the last run of an allocation: when the newest dataset is only "
                 "in the caches\nof the nodes, copies it to the prefix folder, rebuilds "
                 "what is missing, and enters\nit into the index; and so what was being "
                 "flushed. scr_run does so itself.\n",
        .codes = "0 saved, or there was nothing to save, 1 it could not be saved, or an\n"
                 "error, 2 wrong usage.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (down && hostlist_parse(down, &known, err) != 0)
        return tool_misused(&t, "%s", err);
    command_outlive_reader();
    code = tool_prefix_configure_anyway(&prefix, dir);
    if (code == COMMAND_GOOD) code = work(&prefix, &known, between, &signal);
    tool_prefix_close(&prefix);
    hostlist_done(&known);
    code = tool_finish(code);
    if (signal) raise(signal); /* so that a script knows */
    return code;
}
