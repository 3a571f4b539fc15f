/* SPDX-License-Identifier: BSD-3-Clause */
/* From parameters to values; see config/values.h. */
#include "config/values.h"

#include "config/log_config.h"
#include "config/signals.h"
#include <limits.h>
#include <string.h>
#include <strings.h>

const char *scr_flush_method(const char *type, int background)
{
    static const struct {
        const char *type, *method;
    } methods[] = {{"SYNC", "sync"}, {"PTHREAD", "pthread"}, {"DAEMON", "daemon"}};
    if (!type || !*type || (background && strcasecmp(type, "SYNC") == 0))
        return background ? "pthread" : "sync";
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcasecmp(type, methods[i].type) == 0) return methods[i].method;
    return NULL;
}

/* A store may name a way that other builds have, as long as nothing is cached there. */
static void check_methods(const scr_descs *descs, int flush_async, scr_problems *problems)
{
    const scr_reddescs *r = &descs->reddescs;
    for (int i = 0; i < r->count; i++) {
        const scr_store *store = scr_stores_find(&descs->stores, r->list[i].store);
        if (r->list[i].enabled && store && !store->implied &&
            !scr_flush_method(store->type, flush_async))
            scr_problems_add(
                problems,
                "STORE=%s TYPE=%s: not in this build; there are SYNC, PTHREAD and DAEMON",
                store->path, store->type);
    }
}

/* How flushes move files. */
static void load_flush(const scr_config *c, struct scr_settings *s,
                       scr_problems *problems)
{
    int64_t timeout = 0;
    scr_config_seconds(c, "SCR_NODE_TIMEOUT", &timeout, problems);
    s->node_timeout = timeout < INT_MAX ? (int)timeout : INT_MAX;
    const char *source, *type = scr_config_get(c, "SCR_FLUSH_TYPE", &source);
    s->flush_method = scr_flush_method(type, s->flush_async);
    if (!s->flush_method)
        scr_problems_add(
            problems, "SCR_FLUSH_TYPE=\"%.100s\" (%s): must be SYNC, PTHREAD or DAEMON",
            type, source);
    if (s->container_size == 0 || s->container_size > INT64_MAX) {
        scr_config_get(c, "SCR_CONTAINER_SIZE", &source);
        scr_problems_add(problems, "SCR_CONTAINER_SIZE=%llu (%s): must be 1 to 2^63 - 1",
                         (unsigned long long)s->container_size, source);
    }
}

/* Where events are logged to. */
static void load_log(const scr_config *c, struct scr_settings *s, scr_problems *problems)
{
    scr_log_settings log = {.targets = 0};
    scr_log_configure(c, &log, problems);
    s->log_targets = log.targets;
}

/* When to stop, and what failures are expected. */
static void load_halt(const scr_config *c, struct scr_settings *s, scr_problems *problems)
{
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

void scr_values_load(const scr_config *config, struct scr_settings *values,
                     scr_descs *descs, scr_problems *problems)
{
    struct scr_settings *s = values;
    const scr_config *c = config;
    scr_config_switch(c, "SCR_ENABLE", &s->enable, problems);
    scr_config_int(c, "SCR_DEBUG", INT_MIN, &s->debug, problems);
    scr_config_switch(c, "SCR_CACHE_PURGE", &s->cache_purge, problems);
    scr_config_switch(c, "SCR_CACHE_KEEP", &s->cache_keep, problems);
    scr_config_switch(c, "SCR_DISTRIBUTE", &s->distribute, problems);
    scr_config_switch(c, "SCR_FETCH", &s->fetch, problems);
    scr_config_switch(c, "SCR_FETCH_BYPASS", &s->fetch_bypass, problems);
    scr_config_switch(c, "SCR_FETCH_ON_INIT", &s->fetch_on_init, problems);
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
    load_halt(c, s, problems);
    scr_config_seconds(c, "SCR_CHECKPOINT_SECONDS", &s->seconds, problems);
    scr_config_double(c, "SCR_CHECKPOINT_OVERHEAD", 0, &s->overhead, problems);
    s->current = scr_config_get(c, "SCR_CURRENT", NULL);
    scr_config_int(c, "SCR_FLUSH_WIDTH", 1, &s->flush_width, problems);
    scr_config_int(c, "SCR_FETCH_WIDTH", 1, &s->fetch_width, problems);
    scr_config_switch(c, "SCR_FLUSH_ASYNC", &s->flush_async, problems);
    scr_config_bytes(c, "SCR_FLUSH_ASYNC_BW", &s->flush_bandwidth, problems);
    scr_config_double(c, "SCR_FLUSH_ASYNC_PERCENT", 0, &s->flush_percent, problems);
    scr_config_switch(c, "SCR_USE_CONTAINERS", &s->containers, problems);
    s->container_size = 1; /* where it is no number, that is said, and no more */
    scr_config_bytes(c, "SCR_CONTAINER_SIZE", &s->container_size, problems);
    load_buffer(c, "SCR_FILE_BUF_SIZE", &s->file_buffer, problems);
    load_buffer(c, "SCR_MPI_BUF_SIZE", &s->message, problems);
    load_flush(c, s, problems);
    if (scr_descs_load(c, descs, problems) != 0)
        scr_problems_add(problems, "no memory for descriptors");
    else
        check_methods(descs, s->flush_async, problems);
    load_log(c, s, problems);
    s->cntl_base = scr_config_get(c, "SCR_CNTL_BASE", NULL);
}
