/* SPDX-License-Identifier: BSD-3-Clause */
/* From parameters to settings: rank 0 reads environment and files, all ranks get the same
 * values. */
#include "scr_context.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "records/scr_config_file.h"
#include "records/scr_log_config.h"
#include "records/scr_signals.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void tell_unknown(void *scr, const char *name, const char *nearest)
{
    scr_say(scr, 0, "warning: unknown variable %s in the environment; did you mean %s?",
            name, nearest);
}

/* ---- descriptors ---- */

/* scr->descs has those of all nodes; once is enough. */
static void drop_groups(scr_config *config)
{
    kvtree *layers[] = {config->user, config->set, config->system};
    for (int i = 0; i < 3; i++)
        kvtree_unset(layers[i], scr_desc_kind_name(SCR_DESC_GROUPS));
}

/* A store may name a way that other builds have, as long as nothing is cached there. */
static void check_methods(struct scr *scr, scr_problems *problems)
{
    const scr_reddescs *r = &scr->descs.reddescs;
    for (int i = 0; i < r->count; i++) {
        const scr_store *store = scr_stores_find(&scr->descs.stores, r->list[i].store);
        if (r->list[i].enabled && store && !store->implied &&
            !scr_decide_method(store->type, scr->set.flush_async))
            scr_problems_add(
                problems,
                "STORE=%s TYPE=%s: not in this build; there are SYNC, PTHREAD and DAEMON",
                store->path, store->type);
    }
}

static void load_descs(struct scr *scr, scr_problems *problems)
{
    if (scr_descs_load(&scr->config, &scr->descs, problems) != 0) {
        scr_problems_add(problems, "no memory for descriptors");
        return;
    }
    check_methods(scr, problems);
    drop_groups(&scr->config);
}

static void warn_of_descs(struct scr *scr)
{
    const scr_reddescs *r = &scr->descs.reddescs;
    const char *source, *type = scr_config_get(&scr->config, "SCR_COPY_TYPE", &source);
    if (r->ignored > 0)
        scr_say(scr, 0,
                "warning: the descriptors CKPT are not used, because of SCR_COPY_TYPE=%s "
                "(%s); with SCR_COPY_TYPE=FILE they are",
                type, source);
}

/* ---- parameters ---- */

/* How flushes move files. */
static void load_flush(struct scr *scr, scr_problems *problems)
{
    struct scr_settings *s = &scr->set;
    const char *source, *type = scr_config_get(&scr->config, "SCR_FLUSH_TYPE", &source);
    s->flush_method = scr_decide_method(type, s->flush_async);
    if (!s->flush_method)
        scr_problems_add(
            problems, "SCR_FLUSH_TYPE=\"%.100s\" (%s): must be SYNC, PTHREAD or DAEMON",
            type, source);
    if (s->container_size == 0 || s->container_size > INT64_MAX) {
        scr_config_get(&scr->config, "SCR_CONTAINER_SIZE", &source);
        scr_problems_add(problems, "SCR_CONTAINER_SIZE=%llu (%s): must be 1 to 2^63 - 1",
                         (unsigned long long)s->container_size, source);
    }
}

/* Where events are logged to. */
static void load_log(struct scr *scr, scr_problems *problems)
{
    scr_log_options options = {.targets = 0};
    scr_log_configure(&scr->config, &options, problems);
    scr->set.log_targets = options.targets;
}

/* When to stop, and what failures are expected. */
static void load_halt(struct scr *scr, scr_problems *problems)
{
    struct scr_settings *s = &scr->set;
    const scr_config *c = &scr->config;
    scr_value v = scr_config_value(c, "SCR_HALT_SIGNALS");
    scr_config_seconds(c, "SCR_MTBF", &s->mtbf, problems);
    scr_config_seconds(c, "SCR_HALT_SECONDS", &s->halt_seconds, problems);
    scr_config_switch(c, "SCR_HALT_EXIT", &s->halt_exit, problems);
    scr_config_int64(c, "SCR_END_TIME", 0, &s->end_time, problems);
    if (scr_signals_parse(v.text, &s->halt_signals) != 0)
        scr_value_bad(&v, problems,
                      "not NONE or a list of TERM, USR1, USR2, INT, HUP, QUIT and XCPU");
}

/* How much file data goes through one call of the system, or of MPI. */
static void load_buffer(const scr_config *config, const char *name, uint64_t *size,
                        scr_problems *problems)
{
    scr_value v = scr_config_value(config, name);
    scr_config_bytes(config, name, size, problems);
    if (*size && (*size < 4096 || *size > (uint64_t)1 << 30))
        scr_value_bad(&v, problems, "must be 4KB to 1GB, or 0");
}

static void load_values(struct scr *scr, scr_problems *problems)
{
    struct scr_settings *s = &scr->set;
    const scr_config *c = &scr->config;
    scr_config_switch(c, "SCR_ENABLE", &s->enable, problems);
    scr_config_int(c, "SCR_DEBUG", INT_MIN, &s->debug, problems);
    scr_config_switch(c, "SCR_CACHE_PURGE", &s->cache_purge, problems);
    scr_config_switch(c, "SCR_CACHE_KEEP", &s->cache_keep, problems);
    scr_config_switch(c, "SCR_DISTRIBUTE", &s->distribute, problems);
    scr_config_switch(c, "SCR_FETCH", &s->fetch, problems);
    scr_config_switch(c, "SCR_FETCH_BYPASS", &s->fetch_bypass, problems);
    scr_config_int(c, "SCR_PREFIX_SIZE", 0, &s->prefix_size, problems);
    scr_config_switch(c, "SCR_PREFIX_PURGE", &s->prefix_purge, problems);
    scr_config_switch(c, "SCR_GLOBAL_RESTART", &s->global_restart, problems);
    scr_config_int(c, "SCR_FLUSH", 0, &s->flush, problems);
    scr_config_switch(c, "SCR_FLUSH_ON_RESTART", &s->flush_on_restart, problems);
    scr_config_switch(c, "SCR_CRC_ON_FLUSH", &s->crc_on_flush, problems);
    scr_config_switch(c, "SCR_CRC_ON_COPY", &s->crc_on_copy, problems);
    scr_config_switch(c, "SCR_CRC_ON_DELETE", &s->crc_on_delete, problems);
    scr_config_auto(c, "SCR_CHECKPOINT_INTERVAL", &s->interval, &s->interval_auto,
                    problems);
    load_halt(scr, problems);
    scr_config_seconds(c, "SCR_CHECKPOINT_SECONDS", &s->seconds, problems);
    scr_config_double(c, "SCR_CHECKPOINT_OVERHEAD", 0, &s->overhead, problems);
    s->current = scr_config_get(c, "SCR_CURRENT", NULL);
    scr_config_int(c, "SCR_FLUSH_WIDTH", 1, &s->flush_width, problems);
    scr_config_int(c, "SCR_FETCH_WIDTH", 1, &s->fetch_width, problems);
    scr_config_switch(c, "SCR_FLUSH_ASYNC", &s->flush_async, problems);
    scr_config_bytes(c, "SCR_FLUSH_ASYNC_BW", &s->flush_bandwidth, problems);
    scr_config_double(c, "SCR_FLUSH_ASYNC_PERCENT", 0, &s->flush_percent, problems);
    scr_config_switch(c, "SCR_USE_CONTAINERS", &s->containers, problems);
    scr_config_bytes(c, "SCR_CONTAINER_SIZE", &s->container_size, problems);
    load_buffer(c, "SCR_FILE_BUF_SIZE", &s->file_buffer, problems);
    load_buffer(c, "SCR_MPI_BUF_SIZE", &s->message, problems);
    load_flush(scr, problems);
    load_descs(scr, problems);
    load_log(scr, problems);
    s->cntl_base = scr_config_get(c, "SCR_CNTL_BASE", NULL);
}

/* Rank 0's layers to everyone. */
static int share_layers(struct scr *scr)
{
    scr_config *c = &scr->config;
    kvtree *all = kvtree_new(), **layers[] = {&c->env, &c->user, &c->set, &c->system};
    static const char *const names[] = {"env", "user", "set", "system"};
    int failed = !all;
    for (int i = 0; i < 4; i++)
        if (kvtree_set(all, names[i], *layers[i]))
            *layers[i] = NULL;
        else
            failed = 1;
    if (scr->rank != 0) kvtree_unset_all(all);
    if (kvtree_bcast(all, 0, scr->world) != 0) failed = 1;
    for (int i = 0; i < 4; i++) {
        kvtree *layer = kvtree_extract(all, names[i]);
        kvtree_delete(layers[i]);
        *layers[i] = layer ? layer : kvtree_new();
    }
    c->have_env = 1;
    kvtree_delete(&all);
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, scr->world);
    return failed ? scr_fail(scr, SCR_FAILURE, "parameters could not be shared")
                  : SCR_SUCCESS;
}

/* All mistakes of rank 0. Those that only other ranks have are of the environment of
 * their node; the first of them stands for all. */
static int tell_problems(struct scr *scr, scr_problems *problems)
{
    char err[SCR_ERR_TEXT] = "", *line, *rest = problems->text;
    while (scr->rank == 0 && (line = strsep(&rest, "\n")) && *line)
        scr_fail(scr, SCR_ERR_CONFIG, "%s", line);
    int here = scr->rank == 0 && problems->count > 0, rc = 0;
    if (problems->count > 0)
        rc = err_set(err, -EINVAL, "%.*s",
                     problems->text ? (int)strcspn(problems->text, "\n") : 0,
                     problems->text ? problems->text : "");
    if (agree(scr->world, rc, err) == 0) return SCR_SUCCESS;
    if (scr->rank == 0 && !here) scr_fail(scr, SCR_ERR_CONFIG, "%s", err);
    return scr_fail(scr, SCR_ERR_CONFIG, "the configuration has mistakes; SCR is off");
}

int scr_settings_load(struct scr *scr)
{
    scr_problems problems = {0, NULL};
    if (scr->rank == 0) {
        if (scr_config_capture_env(&scr->config) != 0)
            scr_problems_add(&problems, "no memory for the environment");
        scr_config_read_files(&scr->config, SCR_SYSTEM_FILE, &problems);
    }
    int rc = share_layers(scr);
    scr_config_check_places(&scr->config, &problems);
    load_values(scr, &problems);
    if (rc == SCR_SUCCESS) rc = tell_problems(scr, &problems);
    if (rc == SCR_SUCCESS && scr->rank == 0) {
        scr_param_find_unknown(tell_unknown, scr);
        warn_of_descs(scr);
    }
    scr_problems_done(&problems);
    return rc;
}
