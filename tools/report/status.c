/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the running or last job according to the records of a prefix directory;
 * see status.h. */
#include "report/status.h"

#include "common/array.h"
#include "common/io.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "prefix/nodes.h"
#include "report/history.h"
#include "report/log_read.h"
#include "run/single_instance.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void status_note(status *s, tool_message message, const kvtree_error *err)
{
    if (s->problem_count == STATUS_PROBLEMS) return;
    s->problems[s->problem_count++] = (status_problem){message, *err};
}

/* ---- the log ---- */

static void status_copy(char *to, size_t size, const char *text)
{
    if (text) snprintf(to, size, "%s", text);
}

static void status_begin_run(status_run *r, const scr_log_event *e)
{
    free(r->lost);
    *r = (status_run){.is_short = r->is_short,
                      .started = e->time,
                      .last = e->time,
                      .ranks = e->ranks,
                      .nodes = e->nodes,
                      .computed = -1};
    status_copy(r->id, sizeof r->id, e->run);
    status_copy(r->user, sizeof r->user, e->user);
    status_copy(r->job, sizeof r->job, e->job_id);
}

static void status_add_lost(status_run *r, const scr_log_event *e)
{
    char *text = NULL;
    if (!e->node) return;
    if (asprintf(&text, "%s%s%s", r->lost ? r->lost : "", r->lost ? " " : "", e->node) <
        0) {
        r->is_short = true;
        return;
    }
    free(r->lost);
    r->lost = text;
}

static void status_count_output(status_run *r, const scr_log_event *e)
{
    if (e->kind == SCR_LOG_OUTPUT_COMPLETE) {
        r->output = e->time;
        r->output_id = e->dset;
    }
    if (e->kind != SCR_LOG_OUTPUT_START || e->compute < 0) return;
    r->computed = (r->outputs ? r->computed * r->outputs : 0) + e->compute;
    r->computed /= ++r->outputs;
}

static void status_use_event(void *arg, const scr_log_event *e)
{
    status_run *r = arg;
    if (e->kind == SCR_LOG_RUN_START && e->run) status_begin_run(r, e);
    if (e->kind == SCR_LOG_NODE_LOST) status_add_lost(r, e);
    if (e->kind == SCR_LOG_LAUNCH_END) r->is_over = true;
    if (!e->run || strcmp(e->run, r->id) != 0 || !r->id[0]) return;
    if (e->kind == SCR_LOG_RUN_INTERRUPTED) {
        r->is_over = true;
        return;
    }
    if (e->time > r->last) r->last = e->time;
    if (e->kind == SCR_LOG_RUN_READY) r->ready = e->time;
    if (e->kind == SCR_LOG_RUN_END) r->is_ended = true;
    if (e->kind == SCR_LOG_HALT) r->is_halted = true;
    status_count_output(r, e);
}

static void status_read_log(const tool_prefix *prefix, status *s)
{
    kvtree_error err = {""};
    int rc =
        scr_log_read(prefix->dir, SCR_HISTORY_BYTES, status_use_event, &s->run, &err);
    if (rc && rc != -ENOENT) status_note(s, TOOL_MSG_LOG_UNREADABLE, &err);
    s->is_logged = s->run.id[0] != 0;
}

/* ---- datasets ---- */

static void status_set_dataset(status_dataset *to, int id, const char *name)
{
    *to = (status_dataset){.id = id, .bytes = -1};
    status_copy(to->name, sizeof to->name, name);
}

static int status_add_risk(status *s, const char *name)
{
    char **list = array_grow(s->risk, (size_t)s->risks, sizeof *list);
    if (!list) return -ENOMEM;
    s->risk = list;
    s->risk[s->risks] = strdup(name);
    if (!s->risk[s->risks]) return -ENOMEM;
    s->risks++;
    return 0;
}

/* Adds a dataset of the flush file; called in the order of ids. */
static int status_use_cached(status *s, const kvtree *flush, int id)
{
    const char *name = scr_flush_file_name(flush, id);
    bool saved = scr_flush_file_has(flush, id, SCR_LOCATION_PFS) != 0;
    if (!name) return 0;
    if (scr_flush_file_has(flush, id, SCR_LOCATION_FLUSHING))
        status_set_dataset(&s->flushing, id, name);
    if (!scr_flush_file_has(flush, id, SCR_LOCATION_CACHE)) return 0;
    if (id > s->cached.id && scr_flush_file_is(flush, id, SCR_FLUSH_CKPT))
        status_set_dataset(&s->cached, id, name);
    return saved ? 0 : status_add_risk(s, name);
}

static int status_read_flush(const tool_prefix *prefix, status *s, kvtree *flush)
{
    kvtree_error err = {""};
    int count = 0, *ids = NULL, rc = scr_flush_file_read(prefix->dir, flush, &err);
    if (rc && rc != -ENOENT && rc != -ENOMEM)
        status_note(s, TOOL_MSG_FLUSH_FILE_UNUSABLE, &err);
    if (rc) return rc == -ENOMEM ? rc : 0;
    rc = scr_flush_file_list(flush, &count, &ids);
    for (int i = 0; i < count && !rc; i++)
        rc = status_use_cached(s, flush, ids[i]);
    free(ids);
    return rc;
}

static void status_describe(status_dataset *to, const scr_dataset *d)
{
    if (to->id != d->id || strcmp(to->name, d->name) != 0) return;
    to->created = d->created;
    to->bytes = (int64_t)d->size;
    to->ranks = d->ranks;
}

static void status_use_entry(status *s, const scr_index *index, const scr_dataset *d)
{
    scr_index_state state = {.complete = 0};
    status_describe(&s->cached, d);
    status_describe(&s->flushing, d);
    if (scr_index_look(index, d, &state) != 0 || state.complete != 1 || state.failed ||
        state.deleting || d->ckpt <= 0)
        return;
    status_set_dataset(&s->flushed, d->id, d->name);
    status_describe(&s->flushed, d);
}

static int status_read_index(const tool_prefix *prefix, status *s)
{
    kvtree_error err = {""};
    scr_dataset *list = NULL;
    int count = 0;
    kvtree *index = kvtree_new();
    int rc = index ? scr_index_read(prefix->dir, index, &err) : -ENOMEM;
    if (!rc && (rc = scr_index_list(index, &list, &count)) == 0)
        for (int i = 0; i < count; i++)
            status_use_entry(s, index, &list[i]);
    else if (rc != -ENOENT && rc != -ENOMEM)
        status_note(s, TOOL_MSG_INDEX_UNREADABLE, &err);
    free(list);
    kvtree_delete(&index);
    return rc == -ENOMEM ? rc : 0;
}

/* ---- the state ---- */

/* Finds the job of the caches: as recorded in the flush file, else that of the
 * environment, which may be another job. */
static bool status_find_owner(const tool_prefix *prefix, const kvtree *flush,
                              tool_owner *owner)
{
    const char *noted = scr_flush_file_owner(flush), *slash;
    if (tool_owner_user(prefix, owner->user) != COMMAND_GOOD) return false;
    slash = noted ? strchr(noted, '/') : NULL;
    if (!slash || strncmp(slash, "/scr.", 5) != 0 || strlen(slash) >= sizeof owner->job)
        return tool_owner_find(prefix, owner) == COMMAND_GOOD;
    strcpy(owner->job, slash + 5);
    char *other = strstr(owner->job, ".prefix-");
    if (other) *other = 0;
    return true;
}

static void status_find_state(const tool_prefix *prefix, const kvtree *flush, status *s)
{
    tool_owner owner = {.user = ""};
    const char *reason = kvtree_elem_get_first_val(s->halt, SCR_HALT_KEY_REASON);
    if (status_find_owner(prefix, flush, &owner))
        s->process = single_instance_holder(prefix, &owner);
    s->state = STATUS_UNKNOWN;
    s->evidence = s->is_logged ? "the log has no end of it" : "there is no log of it";
    if (s->process) {
        s->state = STATUS_RUNNING;
        s->evidence = s->process > 0 ? "a process of this machine holds its lock"
                                     : "a process of another machine holds its lock";
    } else if (s->is_logged && (s->run.is_ended || s->run.is_over)) {
        s->state = s->run.is_halted  ? STATUS_HALTED
                   : s->run.is_ended ? STATUS_ENDED
                                     : STATUS_INTERRUPTED;
        s->evidence = "according to the log";
    } else if (reason && strcmp(reason, SCR_HALT_FINALIZED) == 0) {
        s->state = STATUS_ENDED;
        s->evidence = "the program called SCR_Finalize";
    } else if (reason &&
               (strncmp(reason, SCR_HALT_SIGNAL, strlen(SCR_HALT_SIGNAL)) == 0 ||
                strncmp(reason, SCR_HALT_EXITED, strlen(SCR_HALT_EXITED)) == 0)) {
        s->state = STATUS_HALTED;
        s->evidence = "according to the halt file";
    }
}

static bool status_may_run(const status *s)
{
    return s->state == STATUS_RUNNING || s->state == STATUS_UNKNOWN;
}

/* ---- forecast ---- */

/* Finds when the next checkpoint is due, counted from the last checkpoint, or from the
 * time at which the run was ready. */
static void status_find_due(const tool_prefix *prefix, status *s)
{
    int64_t seconds = 0;
    scr_problems ignored = {0};
    int64_t from = s->run.output ? s->run.output : s->run.ready;
    scr_config_seconds(&prefix->config, "SCR_CHECKPOINT_SECONDS", &seconds, &ignored);
    scr_problems_done(&ignored);
    if (!s->is_logged || !from || !status_may_run(s)) return;
    s->is_due_configured = seconds > 0;
    if (seconds > 0)
        s->due = from / 1000000 + seconds;
    else if (s->run.computed >= 0)
        s->due = from / 1000000 + (int64_t)s->run.computed;
}

static void status_find_lost_work(status *s)
{
    int64_t from = s->flushed.id ? s->flushed.created : s->run.ready;
    int64_t until = s->state == STATUS_RUNNING ? s->now : s->run.last;
    s->lost_work = -1;
    if (!status_may_run(s) || !from || until < from) return;
    /* the run resumed from an older checkpoint, so only its own time counts */
    if (s->run.ready > from) from = s->run.ready;
    s->lost_work = until > from ? (double)(until - from) / 1e6 : 0;
}

static void status_find_flush(const tool_prefix *prefix, const status *before, status *s)
{
    s->rate = -1;
    s->done = s->flushing.id ? status_staged(prefix->dir, s->flushing.name) : -1;
    if (s->done < 0 || !before || before->flushing.id != s->flushing.id ||
        before->done < 0 || s->now <= before->now || s->done < before->done)
        return;
    s->rate = (double)(s->done - before->done) * 1e6 / (double)(s->now - before->now);
}

static void status_read_halt(const tool_prefix *prefix, status *s)
{
    kvtree_error err = {""};
    scr_halt_end end = {0, NULL};
    int rc = scr_halt_read(prefix->dir, s->halt, &err);
    if (rc) status_note(s, TOOL_MSG_HALT_FILE_UNREADABLE, &err);
    scr_halt_find_end(&end, NULL);
    if (!scr_halt_check(s->halt, &end, s->now / 1000000, s->reason)) s->reason[0] = 0;
}

static int64_t status_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int status_read(const tool_prefix *prefix, const status *before, status *s)
{
    struct stat st;
    kvtree *flush = kvtree_new();
    *s = (status){
        .halt = kvtree_new(), .now = status_now(), .run.computed = -1, .lost_work = -1};
    int rc = flush && s->halt ? 0 : -ENOMEM;
    if (!rc && fstatat(prefix->dir, ".scr", &st, AT_SYMLINK_NOFOLLOW) == 0) {
        status_read_log(prefix, s);
        rc = s->run.is_short ? -ENOMEM : status_read_flush(prefix, s, flush);
        /* the index has times only of datasets on the prefix directory */
        if (s->cached.id && s->cached.id == s->run.output_id)
            s->cached.created = s->run.output;
        if (!rc) rc = status_read_index(prefix, s);
        if (scr_nodes_read(prefix->dir, &s->nodes, NULL) != 0) s->nodes = 0;
        status_read_halt(prefix, s);
        status_find_state(prefix, flush, s);
        status_find_due(prefix, s);
        status_find_lost_work(s);
    }
    status_find_flush(prefix, before, s);
    kvtree_delete(&flush);
    return rc;
}

void status_done(status *s)
{
    for (int i = 0; i < s->risks; i++)
        free(s->risk[i]);
    free(s->risk);
    free(s->run.lost);
    kvtree_delete(&s->halt);
}
