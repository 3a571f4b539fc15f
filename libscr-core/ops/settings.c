/* SPDX-License-Identifier: BSD-3-Clause */
/* From parameters to settings: rank 0 reads environment and files, and all ranks get the
 * same values. */
#include "ops/context.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "config/config_file.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <string.h>

static void settings_warn_unknown(void *report, const char *name, const char *reason,
                                  const char *nearest)
{
    if (reason)
        scr_say(report, SCR_MSG_CONFIG_FORMER,
                "%s in the environment has no meaning here, because %s", name, reason);
    else
        scr_say(report, SCR_MSG_CONFIG_VARIABLE_UNKNOWN,
                "unknown variable %s in the environment; did you mean %s?", name,
                nearest);
}

/* ---- descriptors ---- */

/* On rank 0: moves the rows of all nodes out of the layers; only the names of groups
 * stay. 0 or -ENOMEM. */
static int settings_take_groups(scr_config *config, scr_groups *groups)
{
    kvtree *layers[] = {config->user, config->set, config->system};
    int rc = scr_groups_from_config(config, groups);
    for (int i = 0; i < 3; i++)
        kvtree_unset(layers[i], scr_desc_kind_name(SCR_DESC_GROUPS));
    config->group_names = kvtree_new();
    return rc ? rc : kvtree_merge(config->group_names, groups->names);
}

/* On rank 0: collects the rows of the nodes that ask, for the ranks that ask. */
static int settings_answer(const scr_groups *groups, const kvtree *asked, kvtree *rows)
{
    int rc = 0;
    const kvtree_elem *e = kvtree_elem_first(asked);
    for (; e && !rc; e = kvtree_elem_next(e)) {
        kvtree *row = kvtree_set(rows, kvtree_elem_key(e), NULL);
        const char *node = kvtree_elem_key(kvtree_elem_first(kvtree_elem_hash(e)));
        rc = row ? scr_groups_row(groups, node, row) : -ENOMEM;
    }
    return rc;
}

int scr_settings_find_groups(struct scr *scr)
{
    scr_groups *groups = &scr->descs.groups;
    const scr_job *job = &scr->job;
    if (kvtree_size(groups->names) == 0) return SCR_SUCCESS;
    kvtree *ask = kvtree_new(), *asked = kvtree_new(), *rows = kvtree_new(),
           *row = kvtree_new(), *came = kvtree_new();
    int rc = ask && asked && rows && row && came ? 0 : -ENOMEM;
    if (!rc && job->node_rank == 0 && !kvtree_set_kv(ask, "0", job->node_name))
        rc = -ENOMEM;
    int sent = kvtree_exchange(ask, asked, job->world);
    if (!rc && !sent && job->rank == 0) rc = settings_answer(groups, asked, rows);
    int answered = kvtree_exchange(rows, came, job->world);
    kvtree *own = kvtree_extract(came, "0");
    int shared = kvtree_bcast(own ? own : row, 0, job->node);
    rc = rc ? rc : sent ? sent : answered ? answered : shared;
    int kept = scr_groups_keep(groups, job->node_name, own ? own : row);
    rc = scr_job_min(job, rc ? rc : kept);
    if (own) kvtree_delete(&row);
    kvtree_delete(&ask);
    kvtree_delete(&asked);
    kvtree_delete(&rows);
    kvtree_delete(&came);
    if (rc == 0) return SCR_SUCCESS;
    return scr_fail(&scr->report, SCR_MSG_MEMORY_EXHAUSTED, SCR_FAILURE,
                    "SCR_Init: GROUPS could not be shared: %s", strerror(-rc));
}

static void settings_warn_of_descs(struct scr *scr)
{
    const scr_reddescs *r = &scr->descs.reddescs;
    const char *source, *type = scr_config_get(&scr->config, "SCR_COPY_TYPE", &source);
    if (r->ignored > 0)
        scr_say(&scr->report, SCR_MSG_CONFIG_DESCRIPTORS_UNUSED,
                "SCR_COPY_TYPE=%s (%s) overrides the descriptors CKPT; "
                "SCR_COPY_TYPE=FILE uses them",
                type, source);
}

/* ---- parameters ---- */

/* Sends rank 0's layers to all ranks. */
static int settings_share_layers(struct scr *scr)
{
    scr_config *c = &scr->config;
    enum { LAYERS = 5 };
    kvtree *all = kvtree_new(),
           **layers[LAYERS] = {&c->env, &c->user, &c->set, &c->system, &c->group_names};
    static const char *const names[LAYERS] = {"env", "user", "set", "system", "groups"};
    int rc = all ? 0 : -ENOMEM;
    for (int i = 0; i < LAYERS; i++)
        if (kvtree_set(all, names[i], *layers[i]))
            *layers[i] = NULL;
        else
            rc = -ENOMEM;
    if (scr->job.rank != 0) kvtree_unset_all(all);
    int sent = kvtree_bcast(all, 0, scr->job.world);
    for (int i = 0; i < LAYERS; i++) {
        kvtree *layer = kvtree_extract(all, names[i]);
        kvtree_delete(layers[i]);
        *layers[i] = layer ? layer : kvtree_new();
    }
    c->have_env = 1;
    kvtree_delete(&all);
    rc = scr_job_min(&scr->job, rc ? rc : sent);
    if (rc == 0) return SCR_SUCCESS;
    return scr_fail(
        &scr->report, rc == -ENOMEM ? SCR_MSG_MEMORY_EXHAUSTED : SCR_MSG_CALL_MPI_FAILED,
        SCR_FAILURE, "SCR_Init: parameters could not be shared: %s", strerror(-rc));
}

static void settings_warn_of_problems(struct scr *scr, scr_problems *problems)
{
    char *line, *rest = problems->warnings;
    while ((line = strsep(&rest, "\n")) && *line)
        scr_say(&scr->report, SCR_MSG_CONFIG_FORMER, "%s", line);
}

/* Reports all mistakes of rank 0. Mistakes that only other ranks have come from the
 * environment of their nodes; only the first of these is reported. */
static int settings_report_problems(struct scr *scr, scr_problems *problems)
{
    char *line, *rest = problems->text;
    kvtree_error err = {""};
    while (scr->job.rank == 0 && (line = strsep(&rest, "\n")) && *line)
        scr_fail(&scr->report, SCR_MSG_CONFIG_MISTAKE, SCR_ERR_CONFIG, "%s", line);
    int here = scr->job.rank == 0 && problems->count > 0, rc = 0;
    if (problems->count > 0)
        rc = err_set(&err, -EINVAL, "%.*s",
                     problems->text ? (int)strcspn(problems->text, "\n") : 0,
                     problems->text ? problems->text : "");
    if (agree(scr->job.world, rc, &err) == 0) return SCR_SUCCESS;
    if (scr->job.rank == 0 && !here)
        scr_fail(&scr->report, SCR_MSG_CONFIG_MISTAKE, SCR_ERR_CONFIG, "%s", err.text);
    return scr_fail(&scr->report, SCR_MSG_CONFIG_REFUSED, SCR_ERR_CONFIG,
                    "the configuration has mistakes; SCR is off");
}

int scr_settings_load(struct scr *scr)
{
    scr_problems problems = {.count = 0};
    scr_groups groups = {.nodes = NULL};
    if (scr->job.rank == 0) {
        if (scr_config_capture_env(&scr->config) != 0)
            scr_problems_add(&problems, "no memory for the environment");
        scr_config_read_files(&scr->config, SCR_SYSTEM_FILE, &problems);
        if (settings_take_groups(&scr->config, &groups) != 0)
            scr_problems_add(&problems, "no memory for GROUPS");
    }
    int rc = settings_share_layers(scr);
    scr_config_check_places(&scr->config, &problems);
    scr_values_load(&scr->config, &scr->set, &scr->descs, &problems);
    if (scr->job.rank == 0) {
        scr_groups_done(&scr->descs.groups);
        scr->descs.groups = groups;
    }
    scr->report.debug = scr->set.debug;
    if (rc == SCR_SUCCESS) rc = settings_report_problems(scr, &problems);
    if (rc == SCR_SUCCESS && scr->job.rank == 0) {
        scr_param_find_unknown(settings_warn_unknown, &scr->report);
        settings_warn_of_problems(scr, &problems);
        settings_warn_of_descs(scr);
    }
    scr_problems_done(&problems);
    return rc;
}
