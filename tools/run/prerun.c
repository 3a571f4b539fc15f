/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparation of an allocation; see prerun.h. */
#include "run/prerun.h"

#include "common/beneath.h"
#include "halt/halt.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "lib/tool_run.h"
#include "prefix/flush_file.h"
#include "prefix/nodes.h"
#include "run/hooks.h"
#include "run/launcher.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- programs ---- */

static int prerun_need(const char *program, const char *what)
{
    return tool_run_is_there(program)
               ? COMMAND_GOOD
               : tool_say(PROGRAM_MISSING, "%s is not there: %s", program, what);
}

static int prerun_test_ours(void)
{
    static const char *const ours[] = {"scr_check_node", "scr_list_down_nodes",
                                       "scr_postrun"};
    int code = COMMAND_GOOD;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        char *path = tool_remote_command(ours[i]);
        if (!path) return tool_no_memory();
        if (*path != '/' && prerun_need(path, "a command of SCR") != COMMAND_GOOD)
            code = COMMAND_BAD;
        free(path);
    }
    return code;
}

static int prerun_test_reach(const tool_remote *remote)
{
    static const struct {
        const char *way, *program;
    } table[] = {{"srun", "srun"}, {"flux", "flux"}, {"pdsh", "pdsh"}};
    static const char what[] = "nodes are reached by it (SCR_REMOTE)";
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(remote->way, table[i].way) == 0)
            return prerun_need(table[i].program, what);
    if (strcmp(remote->way, "shell") == 0 && !strchr(remote->shell, '/'))
        return prerun_need(remote->shell, what);
    return COMMAND_GOOD;
}

int prerun_test_runtime(const tool_prefix *prefix)
{
    hostlist nodes = {0, NULL};
    tool_remote remote = {.seconds = 1};
    int code = prerun_test_ours(), found = tool_manager_nodes(prefix, &nodes);
    if (found == COMMAND_GOOD) found = tool_remote_choose(&remote, prefix, &nodes);
    if (found == COMMAND_GOOD) found = prerun_test_reach(&remote);
    tool_remote_done(&remote);
    hostlist_done(&nodes);
    return code == COMMAND_GOOD ? found : code;
}

int prerun_test_programs(const tool_prefix *prefix, const char *name)
{
    launcher_choice choice;
    int code = prerun_test_runtime(prefix);
    if (launcher_choose(prefix, name, false, &choice) != COMMAND_GOOD) code = COMMAND_BAD;
    launcher_choice_free(&choice);
    return code;
}

/* ---- the prefix directory ---- */

/* Whether the flush file is of this allocation. Simulated nodes are new in each run. */
static bool prerun_is_of_this_allocation(const tool_prefix *prefix, const kvtree *flush)
{
    tool_owner us;
    const char *theirs = scr_flush_file_owner(flush), *simulated = getenv("SCR_SIMULATE");
    if (!theirs || (simulated && *simulated)) return false;
    return tool_owner_find(prefix, &us) == COMMAND_GOOD && tool_owner_is(&us, theirs);
}

static void prerun_tell_dropped(const kvtree *flush, int id)
{
    const char *owner = scr_flush_file_owner(flush);
    const char *name = scr_flush_file_name(flush, id);
    tool_say(CACHE_DATASET_DROPPED,
             "dataset %d (%s) was only in the caches of %s, and is not known here any "
             "more; scr_scavenge --id %d saves it in that job",
             id, name ? name : "?", owner ? owner : "another job", id);
}

static bool prerun_is_cached_only(const kvtree *flush, int id)
{
    return !scr_flush_file_has(flush, id, SCR_LOCATION_PFS) &&
           scr_flush_file_has(flush, id, SCR_LOCATION_CACHE);
}

/* Warns of datasets that are about to be dropped: of the newest checkpoint, unless a
 * newer one is saved, and of outputs, which no checkpoint replaces. */
static void prerun_warn_dropped(const kvtree *flush)
{
    int count = 0, *ids = NULL, newest = 0, saved = 0;
    if (scr_flush_file_list(flush, &count, &ids) != 0) return;
    for (int i = 0; i < count; i++) {
        const bool is_ckpt = !scr_flush_file_is(flush, ids[i], SCR_FLUSH_OUTPUT) ||
                             scr_flush_file_is(flush, ids[i], SCR_FLUSH_CKPT);
        if (!is_ckpt) continue;
        if (prerun_is_cached_only(flush, ids[i]) && ids[i] > newest) newest = ids[i];
        if (scr_flush_file_has(flush, ids[i], SCR_LOCATION_PFS) && ids[i] > saved)
            saved = ids[i];
    }
    for (int i = 0; i < count; i++)
        if (prerun_is_cached_only(flush, ids[i]) &&
            ((ids[i] == newest && newest > saved) ||
             scr_flush_file_is(flush, ids[i], SCR_FLUSH_OUTPUT)))
            prerun_tell_dropped(flush, ids[i]);
    free(ids);
}

static int prerun_drop_datasets(const tool_prefix *prefix, kvtree_error *err)
{
    kvtree *flush = kvtree_new();
    int rc = flush ? scr_flush_file_read(prefix->dir, flush, err)
                   : err_set(err, -ENOMEM, "no memory");
    if (rc == -ENOENT) {
        rc = 0;
    } else if (rc == -EBADMSG) {
        tool_say(FLUSH_FILE_REMOVED, "%s; it is removed; see scr_inspect --all",
                 err->text);
        rc = beneath_unlink(prefix->dir, SCR_FLUSH_FILE_NAME, err);
    } else if (!rc && !prerun_is_of_this_allocation(prefix, flush)) {
        prerun_warn_dropped(flush);
        rc = scr_flush_file_keep(flush, NULL, 0);
        rc = rc ? err_set(err, rc, "no memory")
                : scr_flush_file_write(prefix->dir, flush, err);
    }
    kvtree_delete(&flush);
    return rc;
}

/* ---- the halt file ---- */

/* Drops the reason that SCR recorded itself, and the HaltSeconds of an earlier run: the
 * next run sets its own, and a shorter allocation would otherwise always be refused. */
static int prerun_drop_own(kvtree *halt, void *arg)
{
    (void)arg;
    int dropped = scr_halt_drop_own_reason(halt);
    int seconds = scr_halt_begin_seconds(halt, 0);
    return seconds < 0 ? seconds : dropped || seconds;
}

/* A damaged file stays; the next reader reports it. */
static int prerun_drop_halt_reason(int prefix, kvtree_error *err)
{
    kvtree *halt = kvtree_new();
    int rc = halt ? scr_halt_change(prefix, prerun_drop_own, NULL, halt, err)
                  : err_set(err, -ENOMEM, "no memory");
    kvtree_delete(&halt);
    return rc == -EBADMSG ? 0 : rc;
}

int prerun_prefix(const tool_prefix *prefix)
{
    kvtree_error err = {""};
    int rc = beneath_mkdirs(prefix->dir, ".scr", 0777, &err);
    if (!rc) rc = prerun_drop_datasets(prefix, &err);
    if (!rc) rc = prerun_drop_halt_reason(prefix->dir, &err);
    if (!rc) rc = beneath_unlink(prefix->dir, SCR_NODES_NAME, &err);
    if (rc) return tool_say(DIRECTORY_UNUSABLE, "%s: %s", prefix->path, err.text);
    return hooks_call(prefix, HOOK_PRERUN, NULL, NULL);
}
