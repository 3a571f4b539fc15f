/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_postrun: saves datasets that are only in the caches, after the last run of an
 * allocation (SCR Developer Guide 1.2, section 2.33.1). */
#include "lib/processes.h"
#include "lib/tool.h"
#include "lib/tool_log.h"
#include "lib/tool_manager.h"
#include "lib/tool_process.h"
#include "nodes/down_nodes.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "run/hooks.h"
#include "scavenge/node_command.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE = 10 /* seconds that a command gets to end after a signal */ };

typedef struct postrun {
    const tool_prefix *prefix;
    tool_signals signals;
    kvtree *flush; /* the flush file, ... */
    int *ids;      /* ... its datasets, newest first */
    int count, next;
    bool safe;        /* a checkpoint that is newer than the next dataset is saved */
    int id;           /* id of the dataset to save ... */
    const char *name; /* ... and its name; NULL: unknown */
    char *up, *down;  /* nodes */
} postrun;

/* ---- datasets ---- */

static int postrun_compare_ids(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x < y) - (x > y);
}

static int postrun_list_datasets(postrun *s)
{
    kvtree_error err = {"no memory"};
    s->flush = kvtree_new();
    int rc = s->flush ? scr_flush_file_read(s->prefix->dir, s->flush, &err) : -ENOMEM;
    if (rc == -ENOENT) return COMMAND_GOOD;
    if (!rc) rc = scr_flush_file_list(s->flush, &s->count, &s->ids);
    if (rc)
        return tool_say(FLUSH_FILE_UNUSABLE, "%s: %s; scr_inspect --all lists the caches",
                        s->prefix->path, err.text);
    if (s->count > 1)
        qsort(s->ids, (size_t)s->count, sizeof *s->ids, postrun_compare_ids);
    return COMMAND_GOOD;
}

static bool postrun_is_in(const postrun *s, int id, const char *location)
{
    return scr_flush_file_has(s->flush, id, location);
}

/* Whether the dataset is complete in the index; gets its description. An unreadable index
 * is reported, and counts as one without the dataset. */
static bool postrun_is_saved(const postrun *s, int id, scr_dataset *d)
{
    scr_index_state state = {.complete = 0};
    kvtree_error err = {""};
    const char *name = scr_flush_file_name(s->flush, id);
    kvtree *index = kvtree_new();
    int rc = index ? scr_index_read(s->prefix->dir, index, &err)
                   : err_set(&err, -ENOMEM, "no memory");
    if (rc && rc != -ENOENT)
        tool_say(INDEX_UNREADABLE, "%s: %s", s->prefix->path, err.text);
    bool saved = !rc && name && scr_index_get(index, name, d) == 0 && d->id == id &&
                 scr_index_look(index, d, &state) == 0 && state.complete == 1;
    kvtree_delete(&index);
    return saved;
}

/* Only a saved checkpoint, not an output, makes older checkpoints unnecessary. */
static void postrun_note_saved(postrun *s, int id)
{
    scr_dataset d;
    if (postrun_is_saved(s, id, &d) && d.ckpt > 0) s->safe = true;
}

/* Whether a saved checkpoint replaces the dataset: an older checkpoint of which no flush
 * has begun. */
static bool postrun_is_replaced(const postrun *s, int id)
{
    return s->safe && !postrun_is_in(s, id, SCR_LOCATION_FLUSHING) &&
           !scr_flush_file_is(s->flush, id, SCR_FLUSH_OUTPUT);
}

/* Selects the next dataset to save: it is only in the cache, and not replaced. */
static bool postrun_next(postrun *s)
{
    while (s->next < s->count) {
        int id = s->ids[s->next++];
        bool flushed = postrun_is_in(s, id, SCR_LOCATION_PFS);
        if (flushed) postrun_note_saved(s, id);
        if (flushed || !postrun_is_in(s, id, SCR_LOCATION_CACHE) ||
            postrun_is_replaced(s, id))
            continue;
        s->id = id;
        s->name = scr_flush_file_name(s->flush, id);
        return true;
    }
    return false;
}

/* ---- nodes ---- */

static int postrun_split(postrun *s, const hostlist *nodes, const down_reason *reasons)
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
    if (!s->up || !s->down) return tool_no_memory();
    if (*s->up) return COMMAND_GOOD;
    return tool_say(DATASET_UNSAVED, "dataset %d (%s): no node is left", s->id,
                    s->name ? s->name : "?");
}

static int postrun_find_nodes(postrun *s, const hostlist *known)
{
    double seconds;
    hostlist nodes = {0, NULL};
    down_reason *reasons = NULL;
    int code = tool_manager_nodes(s->prefix, &nodes);
    if (code == COMMAND_GOOD) code = down_nodes_patience(s->prefix, &seconds);
    if (code == COMMAND_GOOD) {
        reasons = calloc((size_t)nodes.count + 1, sizeof *reasons);
        if (!reasons) code = tool_no_memory();
    }
    if (code == COMMAND_GOOD) {
        down_nodes_mark(&nodes, known, "known to be down", reasons);
        code = down_nodes_find(s->prefix, &nodes, seconds, false, reasons);
    }
    if (code == COMMAND_GOOD) code = postrun_split(s, &nodes, reasons);
    free(reasons);
    hostlist_done(&nodes);
    return code;
}

/* ---- commands ---- */

/* Runs a command in the foreground; its exit code, or -errno. */
static int postrun_run(postrun *s, const char *name, const char *const *arguments)
{
    tool_words words = {0};
    tool_job_result result;
    scavenge_command_begin(&words, name, s->prefix);
    tool_words_add_all(&words, arguments);
    const tool_job job = {.argv = tool_words_list(&words),
                          .interval = 1,
                          .patience = PATIENCE,
                          .ours = true,
                          .out = -1};
    int rc = words.failed ? -ENOMEM : tool_process_watch(&job, &s->signals, &result);
    tool_words_done(&words);
    if (!rc) return result.code;
    tool_say(RUN_LAUNCH_FAILED, "%s: %s", name, strerror(-rc));
    return rc;
}

/* Copies the dataset and enters it into the index. */
static int postrun_save_dataset(postrun *s)
{
    char id[16];
    const char *const copy[] = {
        "--stop", "--id", id, "--up", s->up, *s->down ? "--down" : NULL, s->down, NULL};
    const char *const add[] = {"--add", s->name, NULL};
    scr_dataset d;
    if (!s->name) return tool_say(FLUSH_FILE_UNUSABLE, "dataset %d has no name", s->id);
    printf("dataset %d (", s->id);
    tool_print(s->name);
    printf(") is only in the cache: it is copied from %s\n", s->up);
    fflush(stdout);
    snprintf(id, sizeof id, "%d", s->id);
    int code = postrun_run(s, "scr_scavenge", copy);
    /* despite failed nodes or lost output, the copied files may suffice: the index
     * decides */
    if (code >= 0 && !s->signals.stop) postrun_run(s, "scr_index", add);
    return postrun_is_saved(s, s->id, &d) ? COMMAND_GOOD : COMMAND_BAD;
}

static int postrun_report_unsaved(const postrun *s)
{
    char why[64] = "", *again = scavenge_postrun_line(s->prefix->path);
    if (s->signals.stop)
        snprintf(why, sizeof why, "ended by signal %d: ", s->signals.stop);
    tool_say(DATASET_UNSAVED, "%sdataset %d (%s) is not saved; %s %s", why, s->id,
             s->name ? s->name : "?", again ? again : "scr_postrun",
             s->signals.stop ? "saves it" : "tries again");
    free(again);
    return COMMAND_BAD;
}

/* Saves the selected dataset, then the next one to be saved; after a failure, this is the
 * previous dataset. A failure remains in the result. */
static int postrun_save_all(postrun *s)
{
    int result = COMMAND_GOOD;
    do {
        if (s->signals.stop) return postrun_report_unsaved(s);
        if (postrun_save_dataset(s) == COMMAND_GOOD) {
            postrun_note_saved(s, s->id);
            continue;
        }
        result = postrun_report_unsaved(s);
        if (s->signals.stop) return result;
    } while (postrun_next(s));
    return result;
}

/* ---- work ---- */

/* Warns if the caches are of another job: a wrong job id looks like lost caches. */
static void postrun_warn_of_owner(const postrun *s)
{
    tool_owner us;
    const char *owner = scr_flush_file_owner(s->flush);
    if (!owner || tool_owner_find(s->prefix, &us) != COMMAND_GOOD ||
        tool_owner_is(&us, owner))
        return;
    tool_say(CACHE_OTHER_JOB, "the datasets are in the caches of %s, not of job %s of %s",
             owner, us.job, us.user);
}

static int postrun_save(postrun *s, const hostlist *known)
{
    static const processes_filter all = {.spared = NULL};
    int code = postrun_list_datasets(s);
    if (code != COMMAND_GOOD) return code;
    if (!s->count && tool_prefix_tell_unused(s->prefix)) return COMMAND_BAD;
    if (!postrun_next(s)) {
        if (s->count)
            printf("dataset %d is on the parallel file system\n", s->ids[0]);
        else
            printf("nothing to save: no dataset is in the cache\n");
        return COMMAND_GOOD;
    }
    postrun_warn_of_owner(s);
    int rc = processes_adopt();
    if (!rc) rc = tool_signals_catch(&s->signals, true);
    if (rc)
        code =
            tool_say(PROCESS_CONTROL_FAILED, "signals and processes: %s", strerror(-rc));
    if (code == COMMAND_GOOD) {
        code = postrun_find_nodes(s, known);
        if (code != COMMAND_GOOD && tool_signals_wait(&s->signals, 0, 0))
            postrun_report_unsaved(s);
    }
    if (code == COMMAND_GOOD) code = postrun_save_all(s);
    rc = s->signals.stop ? processes_end(&all, PATIENCE) : 0;
    if (rc)
        tool_say(PROCESSES_LEFT, "processes of this command: %s", processes_reason(rc));
    tool_signals_release(&s->signals);
    return code;
}

/* Saves datasets and calls the site. between: another run follows. *signal: the signal
 * that ended the work early, or 0. */
static int postrun_work(const tool_prefix *prefix, const hostlist *known, int between,
                        int *signal)
{
    scr_problems problems = {.count = 0};
    int enabled = 1;
    postrun s = {.prefix = prefix, .signals = {.fd = -1}};
    scr_config_switch(&prefix->config, "SCR_ENABLE", &enabled, &problems);
    int code = tool_tell_problems(&problems);
    if (code != COMMAND_GOOD || !enabled) return code;
    tool_log_end_runs(prefix, NULL, "found by scr_postrun");
    code = postrun_save(&s, known);
    *signal = code == COMMAND_GOOD ? 0 : s.signals.stop;
    kvtree_delete(&s.flush);
    free(s.ids);
    free(s.up);
    free(s.down);
    if (between) return code;
    int hook = hooks_call(prefix, HOOK_POSTRUN, code == COMMAND_GOOD ? "0" : "1", NULL);
    return code == COMMAND_GOOD ? hook : code;
}

int main(int argc, char **argv)
{
    kvtree_error err = {""};
    const char *dir = NULL, *down = NULL, *old = NULL;
    int between = 0, signal = 0, verbose = 0;
    hostlist known = {0, NULL};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&dir),
        {'d', "down", "NODES", "these are down and are not asked", .text = &down},
        {'b', "between", NULL, "another run follows: the site's postrun is not called",
         .flag = &between},
        TOOL_LAUNCHER_OPTION(&old),
        TOOL_VERBOSE_OPTION(&verbose),
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "After the last run of an allocation: if the newest dataset is only in "
                 "the caches of\nthe nodes, copies it to the prefix directory, rebuilds "
                 "missing files, and enters it\ninto the index; likewise outputs, and "
                 "datasets with an interrupted flush.\nscr_run does so itself.\n",
        .codes = "0 saved, or there was nothing to save, 1 it could not be saved, or an\n"
                 "error, 2 wrong usage.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    if (down && hostlist_parse(down, &known, &err) != 0)
        return tool_misused(&t, "%s", err.text);
    command_outlive_reader();
    code = tool_prefix_configure_anyway(&prefix, dir);
    if (code == COMMAND_GOOD) code = tool_prefix_convert(&prefix);
    if (code == COMMAND_GOOD) code = postrun_work(&prefix, &known, between, &signal);
    tool_prefix_close(&prefix);
    hostlist_done(&known);
    code = tool_finish(code);
    if (signal) raise(signal); /* so that a script notices the signal */
    return code;
}
