/* SPDX-License-Identifier: BSD-3-Clause */
/* From parameters to the targets of the log; see config/log_config.h. */
#include "config/log_config.h"

#include <string.h>
#include <strings.h>
#include <syslog.h>

enum { LOG_PREFIX_MAX = 32 };

struct log_code {
    const char *name;
    int code;
};

static const struct log_code log_facilities[] = {
    {"LOCAL7", LOG_LOCAL7},     {"LOCAL0", LOG_LOCAL0},
    {"LOCAL1", LOG_LOCAL1},     {"LOCAL2", LOG_LOCAL2},
    {"LOCAL3", LOG_LOCAL3},     {"LOCAL4", LOG_LOCAL4},
    {"LOCAL5", LOG_LOCAL5},     {"LOCAL6", LOG_LOCAL6},
    {"USER", LOG_USER},         {"DAEMON", LOG_DAEMON},
    {"AUTH", LOG_AUTH},         {"CRON", LOG_CRON},
    {"FTP", LOG_FTP},           {"LPR", LOG_LPR},
    {"MAIL", LOG_MAIL},         {"NEWS", LOG_NEWS},
    {"AUTHPRIV", LOG_AUTHPRIV}, {"SYSLOG", LOG_SYSLOG},
    {"UUCP", LOG_UUCP},         {NULL, 0}};

static const struct log_code log_levels[] = {
    {"INFO", LOG_INFO},       {"DEBUG", LOG_DEBUG}, {"NOTICE", LOG_NOTICE},
    {"WARNING", LOG_WARNING}, {"ERR", LOG_ERR},     {"CRIT", LOG_CRIT},
    {"ALERT", LOG_ALERT},     {"EMERG", LOG_EMERG}, {NULL, 0}};

/* Returns the syslog code for the value of a parameter; after a mistake, the first
 * code. */
static int log_code(const scr_config *config, const char *name,
                    const struct log_code *codes, scr_problems *problems)
{
    const scr_value v = scr_config_value(config, name);
    const char *word = strncasecmp(v.text, "LOG_", 4) == 0 ? v.text + 4 : v.text;
    for (const struct log_code *c = codes; c->name; c++)
        if (strcasecmp(word, c->name) == 0) return c->code;
    scr_value_bad(&v, problems, "syslog has no such name");
    return codes->code;
}

/* Returns the program name for messages to syslog. */
static const char *log_prefix(const scr_config *config, scr_problems *problems)
{
    const scr_value v = scr_config_value(config, "SCR_LOG_SYSLOG_PREFIX");
    size_t n = strlen(v.text);
    for (const char *c = v.text; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr(":[]", *c)) n = LOG_PREFIX_MAX + 1;
    if (n <= LOG_PREFIX_MAX) return v.text;
    scr_value_bad(&v, problems,
                  "must be at most %d printable characters without blanks, \":\", \"[\" "
                  "and \"]\"",
                  LOG_PREFIX_MAX);
    return "SCR";
}

/* Enables metrics. They are computed from the text log, which has the events of all
 * runs. */
static void log_configure_metrics(const scr_config *config, scr_log_settings *settings,
                                  scr_problems *problems)
{
    const scr_value v = scr_config_value(config, "SCR_METRICS");
    settings->metrics = v.text && *v.text ? v.text : NULL;
    if (!settings->metrics) return;
    if (*v.text != '/' || v.text[strlen(v.text) - 1] == '/')
        scr_value_bad(&v, problems, "must be the absolute path of a file");
    else if (settings->targets >> SCR_LOG_TEXT & 1)
        settings->targets |= 1u << SCR_LOG_METRICS;
    else
        scr_problems_warn(problems, "SCR_METRICS needs the log in .scr/log: "
                                    "SCR_LOG_ENABLE=1");
}

void scr_log_configure(const scr_config *config, scr_log_settings *settings,
                       scr_problems *problems)
{
    static const char *const switches[] = {[SCR_LOG_TEXT] = "SCR_LOG_TXT_ENABLE",
                                           [SCR_LOG_JSON] = "SCR_LOG_JSON_ENABLE",
                                           [SCR_LOG_SYSLOG] = "SCR_LOG_SYSLOG_ENABLE",
                                           [SCR_LOG_DATABASE] = "SCR_LOG_DB_ENABLE"};
    int all = 0;
    settings->targets = 0;
    scr_config_switch(config, "SCR_LOG_ENABLE", &all, problems);
    for (int i = 0; i < SCR_LOG_METRICS; i++) {
        int on = 0;
        scr_config_switch(config, switches[i], &on, problems);
        if (all && on) settings->targets |= 1u << i;
    }
    log_configure_metrics(config, settings, problems);
    settings->file_size = 0;
    scr_config_bytes(config, "SCR_LOG_SIZE", &settings->file_size, problems);
    settings->syslog_priority =
        log_code(config, "SCR_LOG_SYSLOG_FACILITY", log_facilities, problems) |
        log_code(config, "SCR_LOG_SYSLOG_LEVEL", log_levels, problems);
    settings->syslog_prefix = log_prefix(config, problems);
    settings->db_host = scr_config_get(config, "SCR_LOG_DB_HOST", NULL);
    settings->db_name = scr_config_get(config, "SCR_LOG_DB_NAME", NULL);
    settings->db_user = scr_config_get(config, "SCR_LOG_DB_USER", NULL);
    settings->db_pass = scr_config_get(config, "SCR_LOG_DB_PASS", NULL);
    scr_config_switch(config, "SCR_LOG_DB_DEBUG", &settings->db_debug, problems);
}
