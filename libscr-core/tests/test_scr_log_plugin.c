/* SPDX-License-Identifier: BSD-3-Clause */
/* Without a plugin that can be used, the log to a database gives one warning with the
 * name of the file, and the other targets get the events. */
#include "log_records.h"

/* An event is not logged to the database, for this reason, but to the file. */
static void check_without_plugin(const struct scratch *s, const char *plugin,
                                 const char *why)
{
    struct told told;
    scr_log *log;
    scr_log_options options =
        log_options(s, 1u << SCR_LOG_TEXT | 1u << SCR_LOG_DATABASE, &told);
    options.db_plugin = plugin;
    options.set.db_pass = "secret";
    assert_int_equal(scr_log_open(&options, &log), 0);
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT});
    scr_log_close(log);
    assert_true(told_has(&told, "LOG_TARGET_FAILED", "the database", why));
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", "1 ", "the database"));
    assert_int_equal(told.lines, 2);
    assert_null(strstr(told.text, "secret"));
    char *text = log_read(s, SCR_LOG_TEXT_NAME);
    assert_says(text, " HALT ");
    free(text);
}

static void missing_plugin(void **state)
{
    check_without_plugin(*state, "/nowhere/scr_log_mariadb.so",
                         "the plugin for databases, /nowhere/scr_log_mariadb.so: No such "
                         "file or directory");
}

static void plugin_of_another_version(void **state)
{
    check_without_plugin(*state, SCR_OTHER_PLUGIN,
                         "/other_log_plugin.so has version 2, not 1");
}

static void not_a_plugin(void **state)
{
    check_without_plugin(*state, SCR_DOCS "/formats/log.md", "/formats/log.md: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(missing_plugin),
        scratch_test(plugin_of_another_version),
        scratch_test(not_a_plugin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
