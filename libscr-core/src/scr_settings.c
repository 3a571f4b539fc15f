/* SPDX-License-Identifier: BSD-3-Clause */
/* From parameters to settings: rank 0 reads environment and files, all ranks get the same
 * values. */
#include "scr_context.h"

#include "common/errtext.h"
#include "records/scr_path.h"
#include <errno.h>
#include <kvtree/kvtree_mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The user's file: $SCR_CONF_FILE, which must exist then, or scr.yaml in the prefix
 * folder. */
static void read_user_file(struct scr *scr, scr_problems *problems)
{
    const char *named = getenv("SCR_CONF_FILE");
    if (named && *named) {
        if (scr_config_file_read(named, scr->config.user, problems) == -ENOENT)
            scr_problems_add(problems, "SCR_CONF_FILE=%s: no such file", named);
        return;
    }
    const char *prefix = scr_config_get(&scr->config, "SCR_PREFIX", NULL);
    char *path = scr_path_join(prefix ? prefix : ".", "scr.yaml");
    /* a prefix folder that cannot be used is told of later, as that */
    if (path && access(path, F_OK) == 0)
        scr_config_file_read(path, scr->config.user, problems);
    free(path);
}

static void check_environment(struct scr *scr)
{
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");
        char name[64];
        if (strncmp(*e, "SCR_", 4) != 0 || n >= sizeof name) continue;
        memcpy(name, *e, n);
        name[n] = 0;
        if (!scr_param_find(name) && strcmp(name, "SCR_CONF_FILE") != 0)
            scr_say(scr, 0,
                    "warning: unknown variable %s in the environment; did you mean %s?",
                    name, scr_param_nearest(name));
    }
}

static void warn_without_effect(struct scr *scr)
{
    const char *source, *value;
    for (const scr_param *p = scr_param_table; p->name; p++) {
        if (!(p->flags & SCR_PARAM_LATER)) continue;
        value = scr_config_get(&scr->config, p->name, &source);
        if (value && (!p->value || strcmp(value, p->value) != 0))
            scr_say(scr, 0, "warning: %s=%s (%s) has no effect in this version of SCR",
                    p->name, value, source);
    }
}

static void load_scheme(struct scr *scr, scr_problems *problems)
{
    const char *source, *name = scr_config_get(&scr->config, "SCR_COPY_TYPE", &source);
    if (redset_scheme_from_name(name, &scr->set.scheme) != 0)
        scr_problems_add(problems,
                         "SCR_COPY_TYPE=\"%s\" (%s): must be SINGLE, "
                         "PARTNER, XOR or RS",
                         name, source);
    name = scr_config_get(&scr->config, "SCR_GROUP", &source);
    scr->set.world_is_group = strcmp(name, "WORLD") == 0;
    if (!scr->set.world_is_group && strcmp(name, "NODE") != 0)
        scr_problems_add(problems, "SCR_GROUP=\"%s\" (%s): must be NODE or WORLD", name,
                         source);
}

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
    if (!(s->flush_percent >= 0)) {
        scr_config_get(&scr->config, "SCR_FLUSH_ASYNC_PERCENT", &source);
        scr_problems_add(problems, "SCR_FLUSH_ASYNC_PERCENT=%g (%s): must be at least 0",
                         s->flush_percent, source);
    }
    if (s->container_size == 0 || s->container_size > INT64_MAX) {
        scr_config_get(&scr->config, "SCR_CONTAINER_SIZE", &source);
        scr_problems_add(problems, "SCR_CONTAINER_SIZE=%llu (%s): must be 1 to 2^63 - 1",
                         (unsigned long long)s->container_size, source);
    }
}

/* Where events are logged to. */
static void load_log(struct scr *scr, scr_problems *problems)
{
    static const char *const switches[] = {[SCR_LOG_TEXT] = "SCR_LOG_TXT_ENABLE",
                                           [SCR_LOG_JSON] = "SCR_LOG_JSON_ENABLE",
                                           [SCR_LOG_SYSLOG] = "SCR_LOG_SYSLOG_ENABLE",
                                           [SCR_LOG_DATABASE] = "SCR_LOG_DB_ENABLE"};
    int all = 0;
    scr_config_int(&scr->config, "SCR_LOG_ENABLE", &all, problems);
    scr_config_int(&scr->config, "SCR_LOG_DB_DEBUG", &scr->set.log_db_debug, problems);
    for (int i = 0; i < SCR_LOG_TARGETS; i++) {
        int on = 0;
        scr_config_int(&scr->config, switches[i], &on, problems);
        if (all && on) scr->set.log_targets |= 1u << i;
    }
}

static void load_int(const scr_config *config, const char *name, int least, int *value,
                     scr_problems *problems)
{
    const char *source;
    int before = problems->count;
    scr_config_int(config, name, value, problems);
    if (problems->count > before || *value >= least) return;
    scr_config_get(config, name, &source);
    scr_problems_add(problems, "%s=%d (%s): must be at least %d", name, *value, source,
                     least);
}

static void load_values(struct scr *scr, scr_problems *problems)
{
    struct scr_settings *s = &scr->set;
    const scr_config *c = &scr->config;
    scr_config_int(c, "SCR_ENABLE", &s->enable, problems);
    scr_config_int(c, "SCR_DEBUG", &s->debug, problems);
    load_int(c, "SCR_CACHE_SIZE", 1, &s->cache_size, problems);
    scr_config_int(c, "SCR_CACHE_PURGE", &s->cache_purge, problems);
    load_int(c, "SCR_SET_SIZE", 2, &s->set_size, problems);
    load_int(c, "SCR_SET_FAILURES", 1, &s->set_failures, problems);
    scr_config_int(c, "SCR_DISTRIBUTE", &s->distribute, problems);
    scr_config_int(c, "SCR_FETCH", &s->fetch, problems);
    load_int(c, "SCR_FLUSH", 0, &s->flush, problems);
    scr_config_int(c, "SCR_FLUSH_ON_RESTART", &s->flush_on_restart, problems);
    scr_config_int(c, "SCR_CRC_ON_FLUSH", &s->crc_on_flush, problems);
    load_int(c, "SCR_CHECKPOINT_INTERVAL", 0, &s->interval, problems);
    scr_config_seconds(c, "SCR_CHECKPOINT_SECONDS", &s->seconds, problems);
    scr_config_seconds(c, "SCR_HALT_SECONDS", &s->halt_seconds, problems);
    scr_config_double(c, "SCR_CHECKPOINT_OVERHEAD", &s->overhead, problems);
    s->current = scr_config_get(c, "SCR_CURRENT", NULL);
    load_int(c, "SCR_FLUSH_WIDTH", 1, &s->flush_width, problems);
    load_int(c, "SCR_FETCH_WIDTH", 1, &s->fetch_width, problems);
    scr_config_int(c, "SCR_FLUSH_ASYNC", &s->flush_async, problems);
    scr_config_bytes(c, "SCR_FLUSH_ASYNC_BW", &s->flush_bandwidth, problems);
    scr_config_double(c, "SCR_FLUSH_ASYNC_PERCENT", &s->flush_percent, problems);
    scr_config_int(c, "SCR_USE_CONTAINERS", &s->containers, problems);
    scr_config_bytes(c, "SCR_CONTAINER_SIZE", &s->container_size, problems);
    load_flush(scr, problems);
    load_scheme(scr, problems);
    load_log(scr, problems);
    /* folders of this node: its own environment comes first */
    s->cntl_base = scr_config_get(c, "SCR_CNTL_BASE", NULL);
    s->cache_base = scr_config_get(c, "SCR_CACHE_BASE", NULL);
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

int scr_settings_load(struct scr *scr)
{
    scr_problems problems = {0, NULL};
    if (scr->rank == 0) {
        if (scr_config_capture_env(&scr->config) != 0)
            scr_problems_add(&problems, "no memory for the environment");
        scr_config_file_read(SCR_SYSTEM_FILE, scr->config.system, &problems);
        read_user_file(scr, &problems);
    }
    int rc = share_layers(scr);
    load_values(scr, &problems);
    if (rc == SCR_SUCCESS && scr->rank == 0) {
        check_environment(scr);
        warn_without_effect(scr);
    }
    if (problems.text && scr->rank == 0) {
        char *line, *rest = problems.text;
        while ((line = strsep(&rest, "\n")) && *line)
            scr_fail(scr, SCR_ERR_CONFIG, "%s", line);
    }
    MPI_Allreduce(MPI_IN_PLACE, &problems.count, 1, MPI_INT, MPI_MAX, scr->world);
    if (rc == SCR_SUCCESS && problems.count)
        rc = scr_fail(scr, SCR_ERR_CONFIG, "the configuration has mistakes; SCR is off");
    scr_problems_done(&problems);
    return rc;
}
