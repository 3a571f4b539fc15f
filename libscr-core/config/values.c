/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the values of all parameters; see config/values.h. */
#include "config/values.h"

#include "config/log_config.h"
#include "config/signals.h"
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Types of transfers, and the transfer method of each. */
static const struct values_type {
    const char *type, *method;
    bool elsewhere; /* only on machines with a burst buffer; PTHREAD is used instead */
} values_types[] = {{"SYNC", "sync", false},       {"PTHREAD", "pthread", false},
                    {"DAEMON", "daemon", false},   {"BBAPI", "pthread", true},
                    {"DATAWARP", "pthread", true}, {"DW", "pthread", true},
                    {"DEFAULT", "pthread", true},  {"NATIVE", "pthread", true}};

static const struct values_type *values_find_type(const char *type)
{
    for (size_t i = 0; i < sizeof values_types / sizeof *values_types; i++)
        if (strcasecmp(type, values_types[i].type) == 0) return &values_types[i];
    return NULL;
}

const char *scr_flush_method(const char *type, int background)
{
    if (!type || !*type || (background && strcasecmp(type, "SYNC") == 0))
        return background ? "pthread" : "sync";
    const struct values_type *found = values_find_type(type);
    return found ? found->method : NULL;
}

/* Warns if type exists on other machines only; what names the value. */
static void values_check_type(const char *what, const char *type, scr_problems *problems)
{
    const struct values_type *found = type ? values_find_type(type) : NULL;
    if (found && found->elsewhere)
        scr_problems_warn(
            problems,
            "%s=%s is not in this build, and PTHREAD is used instead; there "
            "are SYNC, PTHREAD and DAEMON",
            what, type);
}

/* Checks the types of stores. Skips stores without checkpoints, whose type is not used,
 * and types equal to SCR_FLUSH_TYPE, which was checked before. */
static void values_check_types(const scr_config *c, const scr_descs *descs,
                               scr_problems *problems)
{
    const scr_reddescs *r = &descs->reddescs;
    const char *common = scr_config_get(c, "SCR_FLUSH_TYPE", NULL);
    for (int i = 0; i < r->count; i++) {
        char what[SCR_DESC_PATH_SIZE + 32];
        const scr_store *store = scr_stores_find(&descs->stores, r->list[i].store);
        if (!r->list[i].enabled || !store || store->implied) continue;
        if (common && strcasecmp(store->type, common) == 0) continue;
        snprintf(what, sizeof what, "STORE=%s TYPE", store->path);
        values_check_type(what, store->type, problems);
    }
}

/* Reads the transfer method and the sizes of flushes. */
static void values_load_flush(const scr_config *c, struct scr_settings *s,
                              scr_problems *problems)
{
    int64_t timeout = 0;
    scr_config_seconds(c, "SCR_NODE_TIMEOUT", &timeout, problems);
    s->node_timeout = timeout < INT_MAX ? (int)timeout : INT_MAX;
    const char *source, *type = scr_config_get(c, "SCR_FLUSH_TYPE", &source);
    s->flush_method = scr_flush_method(type, s->flush_async);
    values_check_type("SCR_FLUSH_TYPE", type, problems);
    if (!s->flush_method)
        scr_problems_add(
            problems, "SCR_FLUSH_TYPE=\"%.100s\" (%s): must be SYNC, PTHREAD or DAEMON",
            type, source);
    s->packing = scr_config_packing(c, problems);
    const scr_value align = scr_config_value(c, "SCR_FLUSH_ALIGN");
    if (s->flush_align == 0 || s->flush_align > SCR_ALIGN_MAX)
        scr_value_bad(&align, problems, "must be 1 to 1GB");
    if (s->container_size == 0 || s->container_size > INT64_MAX) {
        scr_config_get(c, "SCR_CONTAINER_SIZE", &source);
        scr_problems_add(problems, "SCR_CONTAINER_SIZE=%llu (%s): must be 1 to 2^63 - 1",
                         (unsigned long long)s->container_size, source);
    }
}

scr_packing scr_config_packing(const scr_config *c, scr_problems *problems)
{
    static const char *const words[] = {"files", "containers", NULL};
    const scr_value v = scr_config_value(c, "SCR_FLUSH_FORM");
    char word[16] = "";
    int sized = 0;
    if (v.text) scr_value_word(&v, words, word, problems);
    if (*word) return strcmp(word, "files") == 0 ? SCR_PACKS_NOT : SCR_PACKS_NODES;
    scr_config_switch(c, "SCR_USE_CONTAINERS", &sized, problems);
    return sized ? SCR_PACKS_SIZED : SCR_PACKS_NOT;
}

/* Reads the targets of the event log. */
static void values_load_log(const scr_config *c, struct scr_settings *s,
                            scr_problems *problems)
{
    scr_log_settings log = {.targets = 0};
    scr_log_configure(c, &log, problems);
    s->log_targets = log.targets;
}

/* Reads the end of the allocation and the signals that request a halt. */
static void values_load_halt(const scr_config *c, struct scr_settings *s,
                             scr_problems *problems)
{
    scr_value v = scr_config_value(c, "SCR_HALT_SIGNALS");
    scr_config_int64(c, "SCR_END_TIME", 0, &s->end_time, problems);
    if (scr_signals_parse(v.text, &s->halt_signals) != 0)
        scr_value_bad(&v, problems,
                      "not NONE or a list of TERM, USR1, USR2, INT, HUP, QUIT and XCPU");
}

int scr_config_any_ranks(const scr_config *c, scr_problems *problems)
{
    static const char *const words[] = {"same", "any", NULL};
    const scr_value v = scr_config_value(c, "SCR_RESTART_RANKS");
    char word[8] = "same";
    scr_value_word(&v, words, word, problems);
    return strcmp(word, "any") == 0;
}

/* Parameters that are stored unchanged; least: lower limit of a number. */
static const struct values_row {
    const char *name;
    size_t offset;
    int least;
} values_table[] = {
#define VALUES_ROW(name, member, least)                                                  \
    {                                                                                    \
        name, offsetof(struct scr_settings, member), least                               \
    }
    VALUES_ROW("SCR_ENABLE", enable, 0),
    VALUES_ROW("SCR_DEBUG", debug, INT_MIN),
    VALUES_ROW("SCR_PROGRESS", progress, 0),
    VALUES_ROW("SCR_CACHE_PURGE", cache_purge, 0),
    VALUES_ROW("SCR_CACHE_KEEP", cache_keep, 0),
    VALUES_ROW("SCR_DISTRIBUTE", distribute, 0),
    VALUES_ROW("SCR_FETCH", fetch, 0),
    VALUES_ROW("SCR_FETCH_BYPASS", fetch_bypass, 0),
    VALUES_ROW("SCR_FETCH_ON_INIT", fetch_on_init, 0),
    VALUES_ROW("SCR_FETCH_WIDTH", fetch_width, 1),
    VALUES_ROW("SCR_PREFIX_SIZE", prefix_size, 0),
    VALUES_ROW("SCR_PREFIX_PURGE", prefix_purge, 0),
    VALUES_ROW("SCR_GLOBAL_RESTART", global_restart, 0),
    VALUES_ROW("SCR_FLUSH", flush, 0),
    VALUES_ROW("SCR_FLUSH_ON_RESTART", flush_on_restart, 0),
    VALUES_ROW("SCR_FLUSH_WIDTH", flush_width, 1),
    VALUES_ROW("SCR_FLUSH_ASYNC", flush_async, 0),
    VALUES_ROW("SCR_FLUSH_ASYNC_BW", flush_bandwidth, 0),
    VALUES_ROW("SCR_FLUSH_ASYNC_PERCENT", flush_percent, 0),
    VALUES_ROW("SCR_FLUSH_ALIGN", flush_align, 0),
    VALUES_ROW("SCR_CONTAINER_NODES", container_nodes, 1),
    VALUES_ROW("SCR_CONTAINER_SIZE", container_size, 0),
    VALUES_ROW("SCR_CRC_ON_FLUSH", crc_on_flush, 0),
    VALUES_ROW("SCR_CRC_ON_COPY", crc_on_copy, 0),
    VALUES_ROW("SCR_CRC_ON_DELETE", crc_on_delete, 0),
    VALUES_ROW("SCR_CHECKPOINT_INTERVAL", interval, 0),
    VALUES_ROW("SCR_CHECKPOINT_SECONDS", seconds, 0),
    VALUES_ROW("SCR_CHECKPOINT_OVERHEAD", overhead, 0),
    VALUES_ROW("SCR_MTBF", mtbf, 0),
    VALUES_ROW("SCR_HALT_SECONDS", halt_seconds, 0),
    VALUES_ROW("SCR_HALT_EXIT", halt_exit, 0),
    VALUES_ROW("SCR_FILE_BUF_SIZE", file_buffer, 0),
    VALUES_ROW("SCR_MPI_BUF_SIZE", message, 0)};

/* Checks a number of bytes of file data per system call or message. */
static void values_check_buffer(const scr_config *config, const char *name, uint64_t size,
                                scr_problems *problems)
{
    const scr_value v = scr_config_value(config, name);
    if (size && (size < 4096 || size > (uint64_t)1 << 30))
        scr_value_bad(&v, problems, "must be 4KB to 1GB, or 0");
}

void scr_values_load(const scr_config *config, struct scr_settings *values,
                     scr_descs *descs, scr_problems *problems)
{
    struct scr_settings *s = values;
    const scr_config *c = config;
    s->container_size = s->flush_align = 1; /* valid, so that a bad text is one problem */
    for (size_t i = 0; i < sizeof values_table / sizeof *values_table; i++) {
        const struct values_row *row = &values_table[i];
        const scr_value v = scr_config_value(c, row->name);
        scr_value_read(&v, scr_param_find(row->name)->type, row->least,
                       (char *)s + row->offset, problems);
    }
    s->interval_auto = s->interval == SCR_AUTO;
    if (s->interval_auto) s->interval = 0;
    s->current = scr_config_get(c, "SCR_CURRENT", NULL);
    s->cntl_base = scr_config_get(c, "SCR_CNTL_BASE", NULL);
    values_check_buffer(c, "SCR_FILE_BUF_SIZE", s->file_buffer, problems);
    values_check_buffer(c, "SCR_MPI_BUF_SIZE", s->message, problems);
    values_load_halt(c, s, problems);
    s->any_ranks = scr_config_any_ranks(c, problems);
    values_load_flush(c, s, problems);
    if (scr_descs_load(c, descs, problems) != 0)
        scr_problems_add(problems, "no memory for descriptors");
    else
        values_check_types(c, descs, problems);
    values_load_log(c, s, problems);
}
