/* SPDX-License-Identifier: BSD-3-Clause */
/* Every mistake that a configuration can have, with its message. */
#include "records.h"

#include "configs.h"

/* The user's file is named f, the system's sys. */
struct mistake {
    const char *text, *expected;
};

static void check(const char *system, const struct mistake *m)
{
    struct conf c;
    conf_make(&c, system, m->text, NULL);
    const char *is = c.problems.text ? c.problems.text : "nothing\n";
    if (strcmp(is, m->expected) != 0)
        fail_msg("\n%s\ngives\n%snot\n%s", m->text, is, m->expected);
    conf_done(&c);
}

#define CHECK_ALL(mistakes)                                                              \
    for (size_t i = 0; i < sizeof(mistakes) / sizeof *(mistakes); i++)                   \
    check(NULL, &(mistakes)[i])

static void form_of_lines(void **state)
{
    static const struct mistake all[] = {
        {"SCR_FLUSH=1\n=3\n", "f:2:1: a name was expected before \"=3\"\n"},
        {"SCR_FLUSH=1\nSCR_DEBUG\n", "f:2:1: no \"=\" after \"SCR_DEBUG\"\n"},
        {"SCR_FLUSH=1\nSCR_DEBUG: 2\n", "f:2:1: no \"=\" after \"SCR_DEBUG:\"\n"},
        {"SCR_FLUSH=\n", "f:1:11: no value for \"SCR_FLUSH\"\n"},
        {"SCR_FLUSH= # none\n", "f:1:12: no value for \"SCR_FLUSH\"\n"},
        {"SCR_JOB_NAME=\"\"\n", "f:1:14: no value for \"SCR_JOB_NAME\"\n"},
        {"SCR_JOB_NAME=my job\n",
         "f:1:17: one value was expected for \"SCR_JOB_NAME\"\n"},
        {"SCR_JOB_NAME=\"my job\n",
         "f:1:14: a quote does not end where the value ends: \"\"my job\"\n"},
        {"SCR_JOB_NAME='a'b\n",
         "f:1:14: a quote does not end where the value ends: \"'a'b\"\n"},
        {"SCR_JOB_NAME=a\001b\n", "f:1:15: a control character\n"},
        {"  SCR_FLUSSH = 1\n",
         "f:1:3: unknown parameter \"SCR_FLUSSH\"; did you mean SCR_FLUSH?\n"},
        {"SCR_FLUSH=1\nSCR_FLUSH=2\n", "f:2:1: given twice: \"SCR_FLUSH\"\n"},
        {"SCR_PREFIX=/p/$SCR_TEST_NONE\n",
         "f:1:12: no such environment variable: \"SCR_TEST_NONE\"\n"},
        {"STORAGE=/tmp COUNT=1\n",
         "f:1:1: unknown parameter \"STORAGE\"; did you mean STORE?\n"},
    };
    unsetenv("SCR_TEST_NONE");
    CHECK_ALL(all);
}

static void descriptors_in_lines(void **state)
{
    static const struct mistake all[] = {
        {"CKPT=x\n", "f:1:6: CKPT must be a whole number from 0 to 999, not \"x\"\n"},
        {"CKPT=-1\n", "f:1:6: CKPT must be a whole number from 0 to 999, not \"-1\"\n"},
        {"CKPT=1000\n",
         "f:1:6: CKPT must be a whole number from 0 to 999, not \"1000\"\n"},
        {"CKPT=\n", "f:1:6: no value for \"CKPT\"\n"},
        {"CKPT=0 TYPE\n", "f:1:8: no \"=\" after \"TYPE\"\n"},
        {"CKPT=0 TYPE=\n", "f:1:13: no value for \"TYPE\"\n"},
        {"CKPT=0 SETSIZE=3\n",
         "f:1:8: unknown field of CKPT \"SETSIZE\"; did you mean SET_SIZE?\n"},
        {"CKPT=0 TYPE=XOR TYPE=RS\n", "f:1:17: given twice: \"TYPE\"\n"},
        {"CKPT=0\nCKPT=00\n", "f:2:6: given twice: \"CKPT=0\"\n"},
        {"STORE=tmp\n", "f:1:7: STORE must be an absolute path of less than 1024 bytes, "
                        "not \"tmp\"\n"},
        {"STORE=/tmp\nSTORE=//tmp/ COUNT=1\n", "f:2:7: given twice: \"STORE=/tmp\"\n"},
        {"STORE=/tmp TYPE=SYNC FLUSH=SYNC\n", "f:1:22: given twice: \"TYPE\"\n"},
        {"STORE=/tmp TYPE=$SCR_TEST_NONE\n",
         "f:1:17: no such environment variable: \"SCR_TEST_NONE\"\n"},
        {"GROUPS=n1 NODE=n1\n", "f:1:11: this group is built in: \"NODE\"\n"},
        {"GROUPS=n1 WORLD=1\n", "f:1:11: this group is built in: \"WORLD\"\n"},
        {"GROUPS=n1 A=1 A=2\n", "f:1:15: given twice: \"A\"\n"},
        {"GROUPS=n1 A=1\nGROUPS=n1 B=1\n", "f:2:8: given twice: \"GROUPS=n1\"\n"},
        {"GROUPS=\n", "f:1:8: no value for \"GROUPS\"\n"},
    };
    CHECK_ALL(all);
}

static void descriptors_in_yaml(void **state)
{
    static const struct mistake all[] = {
        {"CKPT: 0\n", "f:1:7: descriptors were expected for \"CKPT\"\n"},
        {"CKPT:\n", "f:1:6: descriptors were expected for \"CKPT\"\n"},
        {"CKPT: {0: XOR}\n", "f:1:11: fields were expected for \"0\"\n"},
        {"CKPT: {0: {TYPE: [XOR]}}\n", "f:1:18: one value was expected for \"TYPE\"\n"},
        {"CKPT: {0: {[TYPE]: XOR}}\n", "f:1:12: a name was expected \"\"\n"},
        {"CKPT: {[0]: {TYPE: XOR}}\n", "f:1:8: a name was expected \"\"\n"},
        {"CKPT: {x: {TYPE: XOR}}\n",
         "f:1:8: CKPT must be a whole number from 0 to 999, not \"x\"\n"},
        {"CKPT:\n  0: {}\n  0: {}\n", "f:3:3: given twice: \"CKPT=0\"\n"},
        {"CKPT:\n  - {TYPE: XOR}\n",
         "f:2:5: this descriptor has no number: add \"CKPT: 0\"\n"},
        {"STORE:\n  - {COUNT: 2}\n",
         "f:2:5: this descriptor has no path: add \"STORE: /path\"\n"},
        {"CKPT:\n  - 0\n", "f:2:5: fields were expected in the list \"CKPT\"\n"},
        {"CKPT:\n  - CKPT: [0]\n", "f:2:11: one value was expected for \"CKPT\"\n"},
        {"CKPT:\n  - CKPT: 0\n    TYPO: XOR\n",
         "f:3:5: unknown field of CKPT \"TYPO\"; did you mean TYPE?\n"},
        {"STORE: {/a: {}}\nSTORES: {/a/: {}}\n", "f:2:10: given twice: \"STORE=/a\"\n"},
        {"STORE: {/a: {COUNT: 1, COUNT: 2}}\n", "f:1:24: given twice: \"COUNT\"\n"},
        {"GROUPS: {n1: {A: ''}}\n", "f:1:18: no value for \"A\"\n"},
        {"GROUPS: {n1: {\"A\\tB\": 1}}\n", "f:1:15: not the name of a group: \"A?B\"\n"},
        {"GROUPS: {n1: {A: \"1\\n2\"}}\n", "f:1:18: not the value of a group: \"1?2\"\n"},
        {"GROUPS: {\"n\\r\": {A: 1}}\n", "f:1:10: GROUPS must be the name of a node, or "
                                         "of several, such as atlas[1-48], not \"n?\"\n"},
        {"SCR_FLUSSH: 1\n",
         "f:1:1: unknown parameter \"SCR_FLUSSH\"; did you mean SCR_FLUSH?\n"},
        {"CKTP: 1\n", "f:1:1: unknown parameter \"CKTP\"; did you mean CKPT?\n"},
    };
    CHECK_ALL(all);
}

/* Values of descriptors have types and limits, and refer to existing descriptors. */
static void values(void **state)
{
    static const struct mistake all[] = {
        {"CKPT=0 INTERVAL=0\n", "CKPT=0 INTERVAL=\"0\" (f:1:17): must be at least 1\n"},
        {"CKPT=0 INTERVAL=two\n", "CKPT=0 INTERVAL=\"two\" (f:1:17): not a whole "
                                  "number\n"},
        {"CKPT=0 TYPE=ZOR\n",
         "CKPT=0 TYPE=\"ZOR\" (f:1:13): must be SINGLE, PARTNER, XOR or RS\n"},
        {"CKPT=0 TYPE=FILE\n",
         "CKPT=0 TYPE=\"FILE\" (f:1:13): must be SINGLE, PARTNER, XOR or RS\n"},
        {"CKPT=0 SET_SIZE=1\n", "CKPT=0 SET_SIZE=\"1\" (f:1:17): must be at least 2\n"},
        {"CKPT=0 SET_FAILURES=0\n",
         "CKPT=0 SET_FAILURES=\"0\" (f:1:21): must be at least 1\n"},
        {"CKPT=0 ENABLED=yes\n", "CKPT=0 ENABLED=\"yes\" (f:1:16): neither 0 nor 1\n"},
        {"CKPT=0 OUTPUT=2\n", "CKPT=0 OUTPUT=\"2\" (f:1:15): neither 0 nor 1\n"},
        {"CKPT=0 BYPASS=-1\n", "CKPT=0 BYPASS=\"-1\" (f:1:15): neither 0 nor 1\n"},
        {"CKPT=0 STORE=/sdd\nSTORE=/ssd COUNT=1\n",
         "CKPT=0 STORE=\"/sdd\" (f:1:14): no such store; did you mean /ssd?\n"},
        {"CKPT=0 GROUP=SWICH\nGROUPS=n1 SWITCH=1\n",
         "CKPT=0 GROUP=\"SWICH\" (f:1:14): no such group; did you mean SWITCH?\n"},
        {"STORE=/ssd GROUP=NOED\n",
         "STORE=/ssd GROUP=\"NOED\" (f:1:18): no such group; did you mean NODE?\n"},
        {"STORE=/ssd COUNT=-1\n", "STORE=/ssd COUNT=\"-1\" (f:1:18): must be at least "
                                  "0\n"},
        {"STORE=/ssd ENABLED=on\n",
         "STORE=/ssd ENABLED=\"on\" (f:1:20): neither 0 nor 1\n"},
        {"STORE=/ssd MKDIR=no\n", "STORE=/ssd MKDIR=\"no\" (f:1:18): neither 0 nor 1\n"},
        {"STORE=/ssd TYPE=rsync\n", "STORE=/ssd TYPE=\"rsync\" (f:1:17): must be SYNC, "
                                    "PTHREAD, DAEMON, BBAPI, DATAWARP, DW, DEFAULT or "
                                    "NATIVE\n"},
        {"STORE=/ssd VIEW=some\n",
         "STORE=/ssd VIEW=\"some\" (f:1:17): must be PRIVATE or GLOBAL\n"},
        {"SCR_GROUP=POWER\n",
         "SCR_GROUP=\"POWER\" (f:1:11): no such group; did you mean NODE?\n"},
        {"SCR_COPY_TYPE=ZOR\n",
         "SCR_COPY_TYPE=\"ZOR\" (f:1:15): must be SINGLE, PARTNER, "
         "XOR, RS or FILE\n"},
        {"SCR_COPY_TYPE=FILE\n",
         "SCR_COPY_TYPE=\"FILE\" (f:1:15): no descriptor CKPT is given\n"},
        {"SCR_SET_SIZE=1\n", "SCR_SET_SIZE=\"1\" (f:1:14): must be at least 2\n"},
        {"SCR_CACHE_SIZE=-1\n", "SCR_CACHE_SIZE=\"-1\" (f:1:16): must be at least 0\n"},
    };
    CHECK_ALL(all);
}

static void sets_of_descriptors(void **state)
{
    static const struct mistake all[] = {
        {"CKPT=0 INTERVAL=2\n",
         "CKPT (f:1:6): no enabled descriptor with an enabled STORE has "
         "INTERVAL=1: add one, for the checkpoints that match no other\n"},
        {"CKPT=0 ENABLED=0\nCKPT=1 INTERVAL=3\n",
         "CKPT (f:1:6): no enabled descriptor with an enabled STORE has "
         "INTERVAL=1: add one, for the checkpoints that match no other\n"},
        {"STORE=/a ENABLED=0\nCKPT=0 STORE=/a\n",
         "CKPT (f:2:6): no enabled descriptor with an enabled STORE has "
         "INTERVAL=1: add one, for the checkpoints that match no other\n"},
        {"STORE=/a ENABLED=0\nSCR_CACHE_BASE=/a\n",
         "STORE=/a is not enabled, and no CKPT names another one\n"},
        {"CKPT=1\n",
         "CKPT=1 (f:1:6): numbers must be consecutive from 0; CKPT=0 is missing: add it, "
         "or give its number to this one\n"},
        {"CKPT=3 INTERVAL=2\nCKPT=0\nCKPT=1 INTERVAL=5\n",
         "CKPT=3 (f:1:6): numbers must be consecutive from 0; CKPT=2 is missing: add it, "
         "or give its number to this one\n"},
        /* unused descriptors are checked as well */
        {"SCR_COPY_TYPE=XOR\nCKPT=0 INTERVAL=2\n",
         "CKPT (f:2:6): no enabled descriptor with an enabled STORE has "
         "INTERVAL=1: add one, for the checkpoints that match no other\n"},
    };
    CHECK_ALL(all);
}

static void a_path_too_long(void **state)
{
    struct conf c;
    char text[1200] = "SCR_CACHE_BASE=/";
    memset(text + strlen(text), 'x', 1023);
    conf_make(&c, NULL, text, NULL);
    assert_int_equal(c.problems.count, 1);
    assert_says(c.problems.text, "(f:1:16): longer than 1023 bytes\n");
    conf_done(&c);
    text[strlen(text) - 1] = 0;
    conf_of(&c, text);
    assert_int_equal(strlen(c.descs.reddescs.list[0].store), 1023);
    conf_done(&c);
}

/* ---- where a parameter may be set ---- */

static void locked(void **state)
{
    static const struct mistake all[] = {
        {"SCR_CNTL_BASE=/tmp\n", "SCR_CNTL_BASE=\"/tmp\" (f:1:15): may only be set in "
                                 "the system file, as sys:2:14 says\n"},
        {"SCR_FLUSH=1\n", "nothing\n"},
        {"SCR_LOCKED=SCR_FLUSH\n",
         "SCR_LOCKED (f:1:12): only the system file may have it\n"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        check("SCR_CNTL_BASE: /run\nSCR_LOCKED: [SCR_CNTL_BASE, SCR_DEBUG]\n", &all[i]);
        check("SCR_CNTL_BASE=/run\nSCR_LOCKED=  SCR_CNTL_BASE,SCR_DEBUG\n", &all[i]);
    }
}

/* A password does not appear in messages. */
static void locked_secret(void **state)
{
    static const struct mistake all = {
        "SCR_LOG_DB_PASS=abc\n", "SCR_LOG_DB_PASS=\"...\" (f:1:17): may only be set in "
                                 "the system file, as sys:1:14 says\n"};
    check("SCR_LOCKED: [SCR_LOG_DB_PASS]\n", &all);
}

static void locked_elsewhere(void **state)
{
    static const char *const set[] = {"SCR_CNTL_BASE=/set", NULL};
    struct conf c;
    for (int captured = 0; captured < 2; captured++) {
        conf_make(&c, "SCR_LOCKED: [SCR_CNTL_BASE, SCR_FLUSH]\n", NULL, set);
        assert_string_equal(c.problems.text,
                            "SCR_CNTL_BASE=\"/set\" (SCR_Config): may only be set in the "
                            "system file, as sys:1:14 says\n");
        scr_problems_done(&c.problems);
        setenv("SCR_FLUSH", "3", 1);
        setenv("SCR_CNTL_BASE", "/env", 1);
        if (captured) scr_config_capture_env(&c.config);
        if (captured) setenv("SCR_FLUSH", "4", 1); /* of another rank: ignored */
        scr_config_check_places(&c.config, &c.problems);
        assert_string_equal(
            c.problems.text,
            "SCR_CNTL_BASE=\"/env\" (the environment): may only be set in the "
            "system file, as sys:1:14 says\n"
            "SCR_CNTL_BASE=\"/set\" (SCR_Config): may only be set in the "
            "system file, as sys:1:14 says\n"
            "SCR_FLUSH=\"3\" (the environment): may only be set in the "
            "system file, as sys:1:29 says\n");
        conf_done(&c);
    }
    conf_clean_env();
}

static void lists_of_locks(void **state)
{
    static const struct {
        const char *system, *expected;
    } all[] = {
        {"SCR_LOCKED: SCR_FLUSH\n",
         "sys:1:13: a list of parameters was expected for \"SCR_LOCKED\"\n"},
        {"SCR_LOCKED: [[SCR_FLUSH]]\n", "sys:1:14: a name was expected \"\"\n"},
        {"SCR_LOCKED: [SCR_FLUSSH]\n",
         "sys:1:14: unknown parameter \"SCR_FLUSSH\"; did you mean SCR_FLUSH?\n"},
        {"SCR_LOCKED: [CKPT]\n",
         "sys:1:14: unknown parameter \"CKPT\"; did you mean SCR_MTBF?\n"},
        {"SCR_LOCKED: [SCR_FLUSH, SCR_FLUSH]\n",
         "sys:1:25: given twice: \"SCR_FLUSH\"\n"},
        {"SCR_LOCKED=SCR_FLUSH,,SCR_FETC\n",
         "sys:1:22: unknown parameter \"\"; did you mean SCR_MTBF?\n"
         "sys:1:23: unknown parameter \"SCR_FETC\"; did you mean SCR_FETCH?\n"},
        {"SCR_LOCKED=SCR_FLUSH SCR_FETCH\n",
         "sys:1:22: one value was expected for \"SCR_LOCKED\"\n"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct conf c;
        conf_make(&c, all[i].system, NULL, NULL);
        assert_string_equal(c.problems.text, all[i].expected);
        conf_done(&c);
    }
}

static void of_the_environment(void **state)
{
    static const char *const set[] = {"SCR_NODE_NAME=c", NULL};
    struct conf c;
    conf_make(&c, "SCR_NODE_NAME: a\n", "SCR_NODE_NAME: b\n", set);
    assert_string_equal(
        c.problems.text,
        "SCR_NODE_NAME=\"b\" (f:1:16): may only be set in the environment of its node\n"
        "SCR_NODE_NAME=\"c\" (SCR_Config): may only be set in the environment of its "
        "node\n"
        "SCR_NODE_NAME=\"a\" (sys:1:16): may only be set in the environment of its "
        "node\n");
    scr_problems_done(&c.problems);
    conf_done(&c);
    setenv("SCR_NODE_NAME", "n1", 1);
    assert_int_equal(scr_config_init(&c.config), 0);
    scr_config_check_places(&c.config, &c.problems);
    assert_int_equal(c.problems.count, 0);
    scr_config_done(&c.config);
    conf_clean_env();
}

/* All mistakes are reported together. */
static void all_together(void **state)
{
    static const struct mistake all = {"SCR_FLUSH=x\n"
                                       "SCR_FLUSSH=1\n"
                                       "STORE=/ssd COUNT=none SIZE=3\n"
                                       "CKPT=0 INTERVAL=2 STORE=/sdd\n"
                                       "CKPT=0 TYPE=RS\n"
                                       "CKPT=1 TYPE=RZ GROUP=NONE\n",
                                       "f:2:1: unknown parameter \"SCR_FLUSSH\"; did you "
                                       "mean SCR_FLUSH?\n"
                                       "f:3:23: unknown field of STORE \"SIZE\"; did you "
                                       "mean TYPE?\n"
                                       "f:5:6: given twice: \"CKPT=0\"\n"
                                       "STORE=/ssd COUNT=\"none\" (f:3:18): not a whole "
                                       "number\n"
                                       "CKPT=0 STORE=\"/sdd\" (f:4:25): no such store; "
                                       "did you mean /ssd?\n"
                                       "CKPT=1 TYPE=\"RZ\" (f:6:13): must be SINGLE, "
                                       "PARTNER, XOR or RS\n"
                                       "CKPT=1 GROUP=\"NONE\" (f:6:22): no such group; "
                                       "did you mean NODE?\n"};
    check(NULL, &all); /* SCR_FLUSH=x is reported when that parameter is loaded */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(form_of_lines),
        cmocka_unit_test(descriptors_in_lines),
        cmocka_unit_test(descriptors_in_yaml),
        cmocka_unit_test(values),
        cmocka_unit_test(sets_of_descriptors),
        cmocka_unit_test(a_path_too_long),
        cmocka_unit_test(locked),
        cmocka_unit_test(locked_secret),
        cmocka_unit_test(locked_elsewhere),
        cmocka_unit_test(lists_of_locks),
        cmocka_unit_test(of_the_environment),
        cmocka_unit_test(all_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
