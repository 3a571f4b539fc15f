/* SPDX-License-Identifier: BSD-3-Clause */
/* Configurations of SCR 3.1: no name of its documentation or examples is a mistake. */
#include "config/former.h"
#include "config/values.h"
#include "document.h"

#include "configs.h"

/* Every parameter that SCR 3.1 reads, with a value that it accepts. */
static const char *const names[] = {"SCR_ENABLE=1",
                                    "SCR_DEBUG=10",
                                    "SCR_PREFIX=/p",
                                    "SCR_CNTL_BASE=/dev/shm",
                                    "SCR_CACHE_BASE=/dev/shm",
                                    "SCR_CACHE_SIZE=1",
                                    "SCR_CACHE_BYPASS=1",
                                    "SCR_CACHE_PURGE=0",
                                    "SCR_PREFIX_SIZE=0",
                                    "SCR_PREFIX_PURGE=0",
                                    "SCR_CURRENT=c",
                                    "SCR_COPY_TYPE=xor",
                                    "SCR_GROUP=NODE",
                                    "SCR_SET_SIZE=8",
                                    "SCR_SET_FAILURES=2",
                                    "SCR_DISTRIBUTE=1",
                                    "SCR_FETCH=1",
                                    "SCR_FETCH_BYPASS=0",
                                    "SCR_FETCH_WIDTH=256",
                                    "SCR_FETCH_TYPE=SYNC",
                                    "SCR_FLUSH=10",
                                    "SCR_FLUSH_ASYNC=0",
                                    "SCR_FLUSH_ASYNC_BW=200MB",
                                    "SCR_FLUSH_ASYNC_PERCENT=0.0",
                                    "SCR_FLUSH_ASYNC_USLEEP=1000",
                                    "SCR_FLUSH_POSTSTAGE=1",
                                    "SCR_FLUSH_TYPE=BBAPI",
                                    "SCR_FLUSH_WIDTH=256",
                                    "SCR_FLUSH_ON_RESTART=0",
                                    "SCR_GLOBAL_RESTART=0",
                                    "SCR_DROP_AFTER_CURRENT=1",
                                    "SCR_RUNS=1",
                                    "SCR_MIN_NODES=2",
                                    "SCR_EXCLUDE_NODES=n1",
                                    "SCR_HALT_SECONDS=0",
                                    "SCR_HALT_EXIT=0",
                                    "SCR_CHECKPOINT_INTERVAL=0",
                                    "SCR_CHECKPOINT_SECONDS=0",
                                    "SCR_CHECKPOINT_OVERHEAD=0.0",
                                    "SCR_LOG_ENABLE=0",
                                    "SCR_LOG_TXT_ENABLE=1",
                                    "SCR_LOG_SYSLOG_ENABLE=1",
                                    "SCR_LOG_SYSLOG_PREFIX=SCR",
                                    "SCR_LOG_SYSLOG_FACILITY=LOG_LOCAL7",
                                    "SCR_LOG_SYSLOG_LEVEL=LOG_INFO",
                                    "SCR_LOG_DB_ENABLE=0",
                                    "SCR_LOG_DB_DEBUG=0",
                                    "SCR_LOG_DB_HOST=h",
                                    "SCR_LOG_DB_NAME=n",
                                    "SCR_LOG_DB_USER=u",
                                    "SCR_LOG_DB_PASS=p",
                                    "SCR_MPI_BUF_SIZE=131072",
                                    "SCR_FILE_BUF_SIZE=1048576",
                                    "SCR_COPY_METADATA=1",
                                    "SCR_AXL_MKDIR=0",
                                    "SCR_CRC_ON_COPY=0",
                                    "SCR_CRC_ON_DELETE=0",
                                    "SCR_CRC_ON_FLUSH=1",
                                    "SCR_WATCHDOG=1",
                                    "SCR_WATCHDOG_TIMEOUT=60",
                                    "SCR_WATCHDOG_TIMEOUT_PFS=60",
                                    "SCR_USER_NAME=me",
                                    "SCR_JOB_ID=456",
                                    "SCR_JOB_NAME=j",
                                    "SCR_CLUSTER_NAME=c",
                                    "SCR_OPEN_TRIES=5",
                                    "SCR_OPEN_USLEEP=100",
                                    "SCR_USE_CONTAINERS=0",
                                    "SCR_CONTAINER_SIZE=100GB",
                                    "SCR_HALT_ENABLED=1",
                                    "SCR_DB_ENABLE=0",
                                    "SCR_DB_DEBUG=0",
                                    "SCR_DB_HOST=h",
                                    "SCR_DB_NAME=n",
                                    "SCR_DB_USER=u",
                                    "SCR_DB_PASS=p",
                                    "jobid=456",
                                    "SCR_jobid=456"};

/* What SCR_Init does with a user's file. */
static void load(struct conf *c, const char *user)
{
    struct scr_settings values = {.enable = 0};
    scr_descs descs;
    conf_make(c, NULL, user, NULL);
    scr_values_load(&c->config, &values, &descs, &c->problems);
    scr_descs_done(&descs);
    if (c->problems.count > 0) fail_msg("%s: %s", user, c->problems.text);
}

static void every_name_is_known(void **state)
{
    struct conf c;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        load(&c, names[i]);
        char *name = strndup(names[i], strcspn(names[i], "="));
        if (!scr_param_find(name) &&
            !(c.problems.warnings && strstr(c.problems.warnings, name)))
            fail_msg("%s: no warning", name);
        free(name);
        conf_done(&c);
    }
}

static void has(const struct conf *c, const char *name, const char *value,
                const char *source)
{
    const char *from = NULL, *is = scr_config_get(&c->config, name, &from);
    if (!is || strcmp(is, value) != 0) fail_msg("%s: %s", name, is);
    if (source) assert_string_equal(from, source);
}

static void file_with_directories_and_database(void **state)
{
    struct conf c;
    load(&c, "# of a system administrator\n"
             "CNTLDIR=/tmp BYTES=1GB\n"
             "SCR_CNTL_BASE=/tmp\n"
             "CACHEDIR=$NO_SUCH_VARIABLE BYTES=50GB\n"
             "SCR_DB_HOST=host45\n"
             "SCR_HALT_ENABLED=1\n"
             "STORE=/ssd GROUP=NODE COUNT=1 FLUSH=BBAPI\n"
             "SCR_COPY_TYPE=FILE\n"
             "CKPT=0 INTERVAL=1 STORE=/ssd TYPE=xor SET_SIZE=16\n");
    assert_string_equal(
        c.problems.warnings,
        "f:2:1: CNTLDIR has no meaning here, because the field CAPACITY of a STORE, or "
        "SCR_NODE_CAPACITY, says how large its file system must be\n"
        "f:4:1: CACHEDIR has no meaning here, because the field CAPACITY of a STORE, or "
        "SCR_NODE_CAPACITY, says how large its file system must be\n"
        "STORE=/ssd TYPE=BBAPI is not in this build, and PTHREAD is used instead; there "
        "are SYNC, PTHREAD and DAEMON\n");
    has(&c, "SCR_LOG_DB_HOST", "host45", "f:5:13");
    has(&c, "SCR_DB_HOST", "host45", "f:5:13");
    has(&c, "SCR_HALT_EXIT", "1", NULL);
    conf_answers(&c, "CKPT=0 TYPE", "XOR");
    conf_done(&c);
}

/* One warning, not one more for each store that takes it over. */
static void one_type_for_all_stores(void **state)
{
    struct conf c;
    load(&c, "SCR_FLUSH_TYPE=bbapi\n"
             "STORE=/ssd COUNT=1\n"
             "STORE=/nvme COUNT=1 TYPE=DATAWARP\n"
             "SCR_COPY_TYPE=FILE\n"
             "CKPT=0 INTERVAL=1 STORE=/ssd\n"
             "CKPT=1 INTERVAL=2 STORE=/nvme\n");
    assert_string_equal(
        c.problems.warnings,
        "SCR_FLUSH_TYPE=bbapi is not in this build, and PTHREAD is used instead; there "
        "are SYNC, PTHREAD and DAEMON\n"
        "STORE=/nvme TYPE=DATAWARP is not in this build, and PTHREAD is used instead; "
        "there are SYNC, PTHREAD and DAEMON\n");
    conf_done(&c);
}

static void nothing_in_the_cache(void **state)
{
    struct conf c;
    load(&c, "SCR_CACHE_SIZE=0\nSTORE=/a COUNT=0\nSTORE=/b COUNT=3\n");
    assert_string_equal(
        c.problems.warnings,
        "SCR_CACHE_SIZE=0 counts as 1; SCR_CACHE_BYPASS=1 writes without a cache\n"
        "STORE=/a COUNT=0 counts as 1; SCR_CACHE_BYPASS=1 writes without a cache\n");
    conf_answers(&c, "STORE=/a COUNT", "1");
    conf_answers(&c, "STORE=/b COUNT", "3");
    conf_answers(&c, "STORE=/dev/shm COUNT", "1");
    conf_done(&c);
}

static void both_names_are_one(void **state)
{
    struct conf c;
    conf_make(&c, NULL, "SCR_LOG_DB_HOST: a\nSCR_DB_HOST: b\nCACHEDIR: {/ssd: 1}\n",
              NULL);
    assert_string_equal(c.problems.text, "f:2:1: given twice: \"SCR_LOG_DB_HOST\"\n");
    assert_non_null(strstr(c.problems.warnings, "f:3:1: CACHEDIR has no meaning"));
    conf_done(&c);
    conf_make(&c, "SCR_LOCKED: [SCR_DB_HOST, SCR_HOP_DISTANCE]\n", "SCR_LOG_DB_HOST=a",
              NULL);
    assert_int_equal(c.problems.count, 1);
    assert_non_null(strstr(c.problems.text, "may only be set in the system file"));
    assert_non_null(strstr(c.problems.warnings, "SCR_HOP_DISTANCE"));
    conf_done(&c);
}

static void remember(void *list, const char *name, const char *reason,
                     const char *nearest)
{
    if (strncmp(name, "SCR_DB", 6) == 0 || strncmp(name, "SCR_AXL", 7) == 0)
        sprintf((char *)list + strlen(list), "%s %s|", name, reason);
}

static void in_the_environment(void **state)
{
    struct conf c;
    char list[500] = "";
    setenv("SCR_DB_HOST", "env", 1);
    setenv("SCR_AXL_MKDIR", "1", 1);
    conf_make(&c, NULL, "SCR_DB_HOST=file", NULL);
    scr_param_find_unknown(remember, list);
    has(&c, "SCR_LOG_DB_HOST", "env", "the environment");
    assert_int_equal(scr_config_capture_env(&c.config), 0);
    setenv("SCR_DB_HOST", "later", 1);
    has(&c, "SCR_LOG_DB_HOST", "env", "the environment");
    assert_string_equal(list,
                        "SCR_AXL_MKDIR SCR always creates the directories of its files|");
    unsetenv("SCR_DB_HOST");
    unsetenv("SCR_AXL_MKDIR");
    conf_done(&c);
}

static void by_call(void **state)
{
    struct conf c;
    kvtree_error err = {""};
    conf_make(&c, NULL, NULL, (const char *[]){"SCR_DB_NAME=x", NULL});
    has(&c, "SCR_LOG_DB_NAME", "x", "SCR_Config");
    assert_int_equal(scr_config_set(&c.config, "SCR_COPY_METADATA=0", &err), 1);
    assert_string_equal(err.text, "SCR_Config: SCR_COPY_METADATA has no meaning here, "
                                  "because a copy has a time of its own, and permissions "
                                  "by the rules of docs/security.md");
    assert_int_equal(scr_config_set(&c.config, "SCR_DB_NAME=", &err), 0);
    assert_null(scr_config_get(&c.config, "SCR_LOG_DB_NAME", NULL));
    conf_done(&c);
}

/* The file of SCR 3.1 is read where there is no scr.yaml. */
static void system_file(void **state)
{
    struct scratch *s = *state;
    struct conf c;
    char path[256];
    snprintf(path, sizeof path, "%s/scr.yaml", s->path);
    scratch_put(s, "scr.conf", "SCR_FLUSH=7\n", 12);
    conf_make(&c, NULL, NULL, NULL);
    scr_config_read_files(&c.config, path, &c.problems);
    has(&c, "SCR_FLUSH", "7", NULL);
    conf_done(&c);
    scratch_put(s, "scr.yaml", "SCR_FLUSH: 8\n", 13);
    conf_make(&c, NULL, NULL, NULL);
    scr_config_read_files(&c.config, path, &c.problems);
    has(&c, "SCR_FLUSH", "8", NULL);
    assert_int_equal(c.problems.count, 0);
    conf_done(&c);
}

/* docs/migration.md has each name, and its system file has no mistake. */
static void page(void **state)
{
    struct conf c;
    char *text = document_read(SCR_DOCS "/migration.md"),
         *system = document_example(text, "as SCR 3.1", NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64] = "`";
        size_t n = strcspn(names[i], "=");
        strncat(name, names[i], n);
        strcat(name, "`");
        name[n + 1] = 0;
        if (scr_former_reason(name + 1) && strncmp(name, "`SCR_", 5) == 0 &&
            strcmp(name, "`SCR_jobid") != 0 && !strstr(text, strcat(name, "`")))
            fail_msg("docs/migration.md does not have %s", name);
    }
    conf_make(&c, system, NULL, NULL);
    assert_int_equal(c.problems.count, 0);
    has(&c, "SCR_CACHE_BYPASS", "1", "sys:1:19");
    conf_done(&c);
    free(system);
    free(text);
}

static void warnings_are_not_endless(void **state)
{
    struct conf c;
    char text[16 * 2000] = "";
    for (int i = 0; i < 2000; i++)
        strcat(text, "CACHEDIR=/a\n");
    conf_make(&c, NULL, text, NULL);
    int lines = 0;
    for (const char *t = c.problems.warnings; *t; t++)
        lines += *t == '\n';
    assert_int_equal(lines, SCR_PROBLEMS_SHOWN);
    assert_int_equal(c.problems.count, 0);
    conf_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_known),
        cmocka_unit_test(file_with_directories_and_database),
        cmocka_unit_test(one_type_for_all_stores),
        cmocka_unit_test(nothing_in_the_cache),
        cmocka_unit_test(both_names_are_one),
        cmocka_unit_test(in_the_environment),
        cmocka_unit_test(by_call),
        scratch_test(system_file),
        cmocka_unit_test(page),
        cmocka_unit_test(warnings_are_not_endless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
