/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parameters lead to which targets of the log. */
#include "config/log_config.h"
#include "records.h"
#include <syslog.h>

/* The targets from these parameters, which have that number of mistakes. */
static unsigned targets(const char *text, int problems)
{
    char copy[256], *rest = copy, *pair;
    scr_config config;
    scr_problems found = {.count = 0};
    scr_log_settings options = {.targets = 99};
    assert_int_equal(scr_config_init(&config), 0);
    config.have_env = 1; /* an empty one */
    strcpy(copy, text);
    while ((pair = strsep(&rest, " ")) && *pair) {
        char *value = strchr(pair, '=');
        *value++ = 0;
        assert_int_equal(scr_layer_set(config.set, pair, value, "test"), 0);
    }
    scr_log_configure(&config, &options, &found);
    assert_int_equal(found.count, problems);
    scr_problems_done(&found);
    scr_config_done(&config);
    return options.targets;
}

static void each_target(void **state)
{
    const unsigned text = 1u << SCR_LOG_TEXT, json = 1u << SCR_LOG_JSON,
                   sys = 1u << SCR_LOG_SYSLOG, db = 1u << SCR_LOG_DATABASE;
    assert_int_equal(targets("", 0), 0);
    assert_int_equal(targets("SCR_LOG_JSON_ENABLE=1 SCR_LOG_DB_ENABLE=1", 0), 0);
    assert_int_equal(targets("SCR_LOG_ENABLE=1", 0), text | sys);
    assert_int_equal(targets("SCR_LOG_ENABLE=1 SCR_LOG_TXT_ENABLE=0", 0), sys);
    assert_int_equal(targets("SCR_LOG_ENABLE=1 SCR_LOG_SYSLOG_ENABLE=0", 0), text);
    assert_int_equal(targets("SCR_LOG_ENABLE=1 SCR_LOG_JSON_ENABLE=1", 0),
                     text | sys | json);
    assert_int_equal(targets("SCR_LOG_ENABLE=1 SCR_LOG_DB_ENABLE=1", 0), text | sys | db);
    assert_int_equal(targets("SCR_LOG_ENABLE=1 SCR_METRICS=/m/scr.prom", 0),
                     text | sys | 1u << SCR_LOG_METRICS);
    assert_int_equal(targets("SCR_LOG_ENABLE=1 SCR_METRICS=scr.prom", 1), text | sys);
    assert_int_equal(targets("SCR_LOG_ENABLE=1 SCR_METRICS=/m/", 1), text | sys);
    assert_int_equal(targets("SCR_METRICS=/m/scr.prom", 0), 0); /* a warning */
    assert_int_equal(targets("SCR_LOG_ENABLE=yes", 1), 0);
    assert_int_equal(targets("SCR_LOG_ENABLE=1 SCR_LOG_DB_DEBUG=2", 1), text | sys);
}

static int priority(const char *name, const char *value, int problems)
{
    scr_config config;
    scr_problems found = {.count = 0};
    scr_log_settings options = {.targets = 0};
    assert_int_equal(scr_config_init(&config), 0);
    config.have_env = 1; /* an empty one */
    if (name) scr_layer_set(config.set, name, value, "test");
    scr_log_configure(&config, &options, &found);
    if (found.count != problems) fail_msg("%s=%s: %s", name, value, found.text);
    bool is_prefix = name && strcmp(name, "SCR_LOG_SYSLOG_PREFIX") == 0;
    assert_string_equal(options.syslog_prefix, is_prefix && !problems ? value : "SCR");
    scr_problems_done(&found);
    scr_config_done(&config);
    return options.syslog_priority;
}

static void syslog_parameters(void **state)
{
    const char *facility = "SCR_LOG_SYSLOG_FACILITY", *level = "SCR_LOG_SYSLOG_LEVEL",
               *prefix = "SCR_LOG_SYSLOG_PREFIX";
    assert_int_equal(priority(NULL, NULL, 0), LOG_LOCAL7 | LOG_INFO);
    assert_int_equal(priority(facility, "LOG_USER", 0), LOG_USER | LOG_INFO);
    assert_int_equal(priority(facility, "local3", 0), LOG_LOCAL3 | LOG_INFO);
    assert_int_equal(priority(facility, "LOCAL8", 1), LOG_LOCAL7 | LOG_INFO);
    assert_int_equal(priority(facility, "LOG_", 1), LOG_LOCAL7 | LOG_INFO);
    assert_int_equal(priority(level, "log_err", 0), LOG_LOCAL7 | LOG_ERR);
    assert_int_equal(priority(level, "6", 1), LOG_LOCAL7 | LOG_INFO);
    priority(prefix, "scr-atlas", 0);
    priority(prefix, "a:b", 1);
    priority(prefix, "a b", 1);
    priority(prefix, "a[7]", 1);
    priority(prefix, "a\nb", 1);
    priority(prefix, "0123456789012345678901234567890123", 1);
}

static void database(void **state)
{
    scr_config config;
    scr_problems problems = {.count = 0};
    scr_log_settings options = {.db_debug = 7};
    assert_int_equal(scr_config_init(&config), 0);
    config.have_env = 1; /* an empty one */
    scr_layer_set(config.set, "SCR_LOG_DB_HOST", "h", "test");
    scr_layer_set(config.set, "SCR_LOG_DB_NAME", "n", "test");
    scr_layer_set(config.set, "SCR_LOG_DB_USER", "u", "test");
    scr_layer_set(config.set, "SCR_LOG_DB_DEBUG", "1", "test");
    scr_log_configure(&config, &options, &problems);
    assert_string_equal(options.db_host, "h");
    assert_string_equal(options.db_name, "n");
    assert_string_equal(options.db_user, "u");
    assert_null(options.db_pass);
    assert_int_equal(options.db_debug, 1);
    scr_config_done(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_target),
                                       cmocka_unit_test(syslog_parameters),
                                       cmocka_unit_test(database)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
