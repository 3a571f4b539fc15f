/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups, stores and redundancy descriptors that a configuration makes, from all of its
 * layers, and what SCR_Config sets and asks. */
#include "records.h"

#include "configs.h"
#include <errno.h>

/* ---- groups ---- */

static void groups(void **state)
{
    struct conf c;
    conf_of(&c, "GROUPS=n1 POWER=p1 RACK='r 1'\nGROUPS=n2 POWER=p1\nGROUPS=n3\n");
    const scr_groups *g = &c.descs.groups;
    assert_string_equal(scr_groups_value(g, "POWER", "n1"), "p1");
    assert_string_equal(scr_groups_value(g, "POWER", "n2"), "p1");
    assert_string_equal(scr_groups_value(g, "RACK", "n1"), "r 1");
    assert_null(scr_groups_value(g, "RACK", "n2"));
    assert_null(scr_groups_value(g, "POWER", "n3"));
    assert_null(scr_groups_value(g, "POWER", "n4"));
    assert_null(scr_groups_value(g, "SWITCH", "n1"));
    assert_true(scr_groups_has(g, "POWER") && scr_groups_has(g, "RACK"));
    assert_true(scr_groups_has(g, "NODE") && scr_groups_has(g, "WORLD"));
    assert_false(scr_groups_has(g, "power") || scr_groups_has(g, "n1"));
    assert_string_equal(scr_groups_nearest(g, "RAKC"), "RACK");
    assert_string_equal(scr_groups_nearest(g, "WRLD"), "WORLD");
    conf_done(&c);
}

static void built_in_groups(void **state)
{
    struct conf c;
    conf_of(&c, "");
    const scr_groups *g = &c.descs.groups;
    assert_string_equal(scr_groups_value(g, "NODE", "n1"), "n1");
    assert_string_equal(scr_groups_value(g, "WORLD", "n1"),
                        scr_groups_value(g, "WORLD", "n2"));
    conf_answers(&c, "GROUPS", NULL);
    conf_answers(&c, "GROUPS=n1 NODE", "n1");
    conf_done(&c);
}

/* ---- stores ---- */

static void implied_stores(void **state)
{
    struct conf c;
    conf_of(&c, "SCR_CACHE_BASE=/ssd//x\nSCR_CNTL_BASE=/run/.\nSCR_CACHE_SIZE=5\n");
    conf_answers(&c, "STORE", "/ssd/x\n/run");
    conf_answers(&c, "STORE=/ssd/x/ COUNT", "5");
    assert_true(scr_stores_find(&c.descs.stores, "/run")->implied);
    conf_done(&c);
    conf_of(&c, "SCR_CACHE_BASE=relative\n"); /* reported when the directory is created */
    conf_answers(&c, "CKPT=0 STORE", "relative");
    conf_done(&c);
}

static void given_stores(void **state)
{
    struct conf c;
    conf_of(&c,
            "STORE=/dev/shm COUNT=7 GROUP=WORLD\nSTORE=/ssd FLUSH=daemon VIEW=global\n");
    conf_answers(&c, "STORE", "/dev/shm\n/ssd");
    conf_answers(&c, "STORE=/dev/shm COUNT", "7");
    conf_answers(&c, "STORE=/dev/shm VIEW", "GLOBAL");
    conf_answers(&c, "STORE=/ssd TYPE", "DAEMON");
    conf_answers(&c, "STORE=/ssd FLUSH", "DAEMON");
    conf_answers(&c, "STORE=/ssd VIEW", "GLOBAL");
    conf_answers(&c, "STORE=/ssd GROUP", "NODE");
    conf_answers(&c, "STORE=/ssd COUNT", "2");
    conf_answers(&c, "STORE=/ssd SIZE", NULL);
    conf_answers(&c, "STORE=/sdd COUNT", NULL);
    assert_false(scr_stores_find(&c.descs.stores, "/dev/shm")->implied);
    conf_done(&c);
}

/* ---- redundancy descriptors ---- */

static void implied_descriptor(void **state)
{
    struct conf c;
    conf_of(&c, "");
    const scr_reddescs *r = &c.descs.reddescs;
    assert_int_equal(r->count, 1);
    assert_true(r->list[0].implied && r->ignored == 0);
    conf_answers(&c, "CKPT", "0");
    conf_answers(&c, "CKPT=0 TYPE", "XOR");
    conf_answers(&c, "CKPT=0 STORE", "/dev/shm");
    conf_answers(&c, "CKPT=0 SET_SIZE", "8");
    conf_answers(&c, "CKPT=0 NONSENSE", NULL);
    conf_answers(&c, "CKPT=1 TYPE", NULL);
    conf_answers(&c, "CKPT=x TYPE", NULL);
    conf_done(&c);
    conf_of(&c, "SCR_COPY_TYPE=PARTNER\nSCR_SET_SIZE=4\nSCR_SET_FAILURES=3\n"
                "SCR_CACHE_BYPASS=1\nSCR_GROUP=RACK\nGROUPS=n RACK=1\n");
    conf_answers(&c, "CKPT=0 TYPE", "PARTNER");
    conf_answers(&c, "CKPT=0 SET_SIZE", "4");
    conf_answers(&c, "CKPT=0 SET_FAILURES", "3");
    conf_answers(&c, "CKPT=0 BYPASS", "1");
    conf_answers(&c, "CKPT=0 GROUP", "RACK");
    conf_done(&c);
}

/* Parameters are the defaults of descriptors. */
static void defaults_of_descriptors(void **state)
{
    struct conf c;
    conf_of(&c, "SCR_SET_SIZE=4\nSCR_CACHE_BASE=/ssd\nCKPT=0\nCKPT=1 INTERVAL=2 TYPE=RS "
                "SET_SIZE=6\nSCR_GROUP=WORLD\n");
    assert_int_equal(c.descs.reddescs.count, 2);
    conf_answers(&c, "CKPT", "0\n1");
    conf_answers(&c, "CKPT=0 TYPE", "XOR");
    conf_answers(&c, "CKPT=0 SET_SIZE", "4");
    conf_answers(&c, "CKPT=0 STORE", "/ssd");
    conf_answers(&c, "CKPT=1 TYPE", "RS");
    conf_answers(&c, "CKPT=01 SET_SIZE", "6");
    conf_answers(&c, "CKPT=1 GROUP", "WORLD");
    conf_answers(&c, "CKPT=1 INTERVAL", "2");
    conf_done(&c);
}

/* SCR_COPY_TYPE with a scheme is what the user wants for this run (section 2.9.4). */
static void copy_type_counts(void **state)
{
    struct conf c;
    conf_of(&c, "SCR_COPY_TYPE=SINGLE\nCKPT=0 TYPE=RS\nCKPT=1 INTERVAL=2\n");
    assert_int_equal(c.descs.reddescs.count, 1);
    assert_int_equal(c.descs.reddescs.ignored, 2);
    conf_answers(&c, "CKPT=0 TYPE", "SINGLE");
    conf_done(&c);
    conf_of(&c, "SCR_COPY_TYPE=FILE\nCKPT=0\nCKPT=1 INTERVAL=2 TYPE=RS\n");
    assert_int_equal(c.descs.reddescs.count, 2);
    assert_int_equal(c.descs.reddescs.ignored, 0);
    conf_answers(&c, "CKPT=0 TYPE", "XOR");
    conf_done(&c);
    conf_of(&c, "SCR_COPY_TYPE=file\nCKPT=0 TYPE=RS\n"); /* words in either case */
    assert_int_equal(c.descs.reddescs.ignored, 0);
    conf_answers(&c, "CKPT=0 TYPE", "RS");
    conf_done(&c);
}

/* ---- layers ---- */

static void layers(void **state)
{
    static const char *const set[] = {"STORE=/ssd COUNT=4 TYPE=DAEMON", "STORE=/set",
                                      "CKPT=0 TYPE=SINGLE", "GROUPS=n1 A=set B=set",
                                      NULL};
    struct conf c;
    conf_make(&c,
              "STORE=/ssd COUNT=3 GROUP=WORLD\nSTORE=/sys\nCKPT=0 TYPE=RS\nCKPT=1 "
              "INTERVAL=2\nGROUPS=n1 A=sys C=sys\nGROUPS=n2 A=sys\n",
              "STORE=/ssd COUNT=5\nSTORE=/user\nGROUPS=n1 A=user\n", set);
    assert_int_equal(c.problems.count, 0);
    conf_answers(&c, "STORE", "/ssd\n/user\n/set\n/sys\n/dev/shm");
    conf_answers(&c, "STORE=/ssd COUNT", "5");
    conf_answers(&c, "STORE=/ssd TYPE", "DAEMON");
    conf_answers(&c, "STORE=/ssd GROUP", "WORLD");
    conf_answers(&c, "GROUPS", "n1\nn2");
    conf_answers(&c, "GROUPS=n1 A", "user");
    conf_answers(&c, "GROUPS=n1 B", "set");
    conf_answers(&c, "GROUPS=n1 C", "sys");
    conf_answers(&c, "GROUPS=n2 A", "sys");
    conf_answers(&c, "CKPT", "0"); /* of SCR_Config, and none of the system file */
    conf_answers(&c, "CKPT=0 TYPE", "SINGLE");
    conf_done(&c);
}

static void mistakes_name_the_layer(void **state)
{
    static const char *const set[] = {"STORE=/a GROUP=NO", NULL};
    struct conf c;
    conf_make(&c, "STORE=/a COUNT=-1\n", NULL, set);
    assert_string_equal(c.problems.text,
                        "STORE=/a GROUP=\"NO\" (SCR_Config): no such group; did you mean "
                        "NODE?\n"
                        "STORE=/a COUNT=\"-1\" (sys:1:16): must be at least 0\n");
    conf_done(&c);
}

/* ---- SCR_Config ---- */

static void set(struct conf *c, const char *text)
{
    kvtree_error err = {""};
    if (scr_config_set(&c->config, text, &err) != 0) fail_msg("%s: %s", text, err.text);
    scr_descs_done(&c->descs);
    assert_int_equal(scr_descs_load(&c->config, &c->descs, &c->problems), 0);
}

static void set_and_unset(void **state)
{
    struct conf c;
    conf_of(&c, "");
    set(&c, "CKPT=0 TYPE=RS SET_SIZE=16");
    set(&c, "  CKPT = 00   SET_FAILURES=3 ");
    conf_answers(&c, "CKPT=0 TYPE", "RS");
    conf_answers(&c, "CKPT=0 SET_SIZE", "16");
    conf_answers(&c, "  CKPT = 0   SET_FAILURES ", "3");
    set(&c, "CKPT=0 TYPE=PARTNER SET_SIZE=");
    conf_answers(&c, "CKPT=0 TYPE", "PARTNER");
    conf_answers(&c, "CKPT=0 SET_SIZE", "8");
    set(&c, "CKPT=1 INTERVAL=10");
    conf_answers(&c, "CKPT", "0\n1");
    set(&c, "CKPT=1 INTERVAL="); /* removed with its last field */
    conf_answers(&c, "CKPT", "0");
    set(&c, "CKPT=");
    conf_answers(&c, "CKPT=0 TYPE", "XOR");
    assert_true(c.descs.reddescs.list[0].implied);
    set(&c, "CKPT=0");
    assert_false(c.descs.reddescs.list[0].implied);
    set(&c, "STORES=/ssd COUNT=4 FLUSH='SYNC'");
    conf_answers(&c, "STORES=/ssd/ TYPE", "SYNC");
    set(&c, "GROUPS=n1 RACK=\"row 1, $\"");
    conf_answers(&c, "GROUPS=n1 RACK", "row 1, $");
    assert_int_equal(c.problems.count, 0);
    conf_done(&c);
}

/* As in files. */
/* CKPT=0 may be set last. */
static void set_in_any_order(void **state)
{
    struct conf c;
    conf_of(&c, "");
    set(&c, "CKPT=1 TYPE=RS INTERVAL=4");
    conf_answers(&c, "CKPT=1 TYPE", "RS");
    conf_answers(&c, "CKPT=0 TYPE", NULL);
    set(&c, "CKPT=0 TYPE=SINGLE");
    conf_answers(&c, "CKPT=0 TYPE", "SINGLE");
    conf_answers(&c, "CKPT=1 TYPE", "RS");
    conf_done(&c);
}

static void set_with_variables(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"SCR_JOB_NAME = a $SCR_TEST_NONE",
         "SCR_Config:1:16: no such environment variable: \"SCR_TEST_NONE\""},
        {"SCR_JOB_NAME=${SCR_TEST_A",
         "SCR_Config:1:14: no name of a variable in braces: \"${SCR_TEST_A\""},
        {"STORE=/s COUNT=$SCR_TEST_NONE",
         "SCR_Config:1:16: no such environment variable: \"SCR_TEST_NONE\""},
    };
    struct conf c;
    kvtree_error err = {""};
    conf_of(&c, "");
    setenv("SCR_TEST_A", "/a", 1);
    setenv("SCR_TEST_B", "5", 1);
    unsetenv("SCR_TEST_NONE");
    set(&c, "SCR_JOB_NAME=x $SCR_TEST_A ${SCR_TEST_B}.$");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(scr_config_set(&c.config, bad[i].text, &err), -EINVAL);
        assert_string_equal(err.text, bad[i].why);
    }
    assert_string_equal(scr_config_get(&c.config, "SCR_JOB_NAME", NULL), "x /a 5.$");
    set(&c, "STORE=$SCR_TEST_A/s COUNT=$SCR_TEST_B");
    conf_answers(&c, "STORE=/a/s COUNT", "5");
    conf_done(&c);
}

static void set_parameters(void **state)
{
    static const struct {
        const char *text, *name, *value;
    } all[] = {
        {"SCR_JOB_NAME=my job", "SCR_JOB_NAME", "my job"},
        {" SCR_JOB_NAME\t=  a = b ", "SCR_JOB_NAME", "a = b"},
        {"SCR_JOB_NAME==", "SCR_JOB_NAME", "="},
        {"SCR_JOB_NAME=", "SCR_JOB_NAME", NULL},
        {"SCR_FLUSH=3", "SCR_FLUSH", "3"},
        {"SCR_FLUSH= ", "SCR_FLUSH", "10"},
    };
    struct conf c;
    conf_of(&c, "");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        set(&c, all[i].text);
        const char *value = scr_config_get(&c.config, all[i].name, NULL);
        assert_true(!value == !all[i].value);
        if (value) assert_string_equal(value, all[i].value);
    }
    conf_done(&c);
}

static void wrong_settings(void **state)
{
    static const char *const all[][2] = {
        {"SCR_FLUSSH=1",
         "SCR_Config: unknown parameter \"SCR_FLUSSH\"; did you mean SCR_FLUSH?"},
        {"=1", "SCR_Config: unknown parameter \"\"; did you mean CKPT?"},
        {"SCR_LOCKED=SCR_FLUSH", "SCR_Config: only the system file may have SCR_LOCKED"},
        {"CKPT=0 TYPES=XOR",
         "SCR_Config:1:8: unknown field of CKPT \"TYPES\"; did you mean TYPE?"},
        {"CKPT=x TYPE=XOR", "SCR_Config:1:6: CKPT must be a whole number from 0 to 999, "
                            "not \"x\""},
        {"CKPT=0 TYPE=RS SET_SIZE", "SCR_Config:1:16: no \"=\" after \"SET_SIZE\""},
        {"CKPT=0 TYPE SET_SIZE", "SCR_Config:1:8: no \"=\" after \"TYPE\""},
        {"CKPT=0 TYPE=RS TYPE=XOR", "SCR_Config:1:16: given twice: \"TYPE\""},
        {"CKPT= 0 'TYPE'=RS", "SCR_Config:1:9: unknown field of CKPT \"'TYPE'\"; did you "
                              "mean TYPE?"},
        {"STORE=tmp COUNT=1", "SCR_Config:1:7: STORE must be an absolute path of less "
                              "than 1024 bytes, not \"tmp\""},
        {"GROUPS=n1 NODE=1", "SCR_Config:1:11: this group is built in: \"NODE\""},
    };
    struct conf c;
    conf_of(&c, "");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        kvtree_error err = {""};
        assert_int_equal(scr_config_set(&c.config, all[i][0], &err), -EINVAL);
        assert_string_equal(err.text, all[i][1]);
        assert_int_equal(kvtree_size(c.config.set), 0);
        assert_false(scr_config_is_question(all[i][0]));
    }
    conf_done(&c);
}

static void questions(void **state)
{
    static const char *const all[] = {"SCR_FLUSH",
                                      "CKPT",
                                      "STORE",
                                      "",
                                      "CKPT=0 TYPE",
                                      " CKPT = 0  TYPE ",
                                      "STORE=/tmp COUNT",
                                      "GROUPS=n1 RACK",
                                      "CKPT=x TYPE"};
    static const char *const none[] = {"SCR_FLUSH=1",  "SCR_FLUSH=",         "CKPT=0",
                                       "CKPT=",        "CKPT=0 TYPE=XOR",    "CKPT=0 A B",
                                       "CKPT=0 A=1 B", "SCR_JOB_NAME=0 TYPE"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!scr_config_is_question(all[i])) fail_msg("%s", all[i]);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (scr_config_is_question(none[i])) fail_msg("%s", none[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups),
        cmocka_unit_test(built_in_groups),
        cmocka_unit_test(implied_stores),
        cmocka_unit_test(given_stores),
        cmocka_unit_test(implied_descriptor),
        cmocka_unit_test(defaults_of_descriptors),
        cmocka_unit_test(copy_type_counts),
        cmocka_unit_test(layers),
        cmocka_unit_test(mistakes_name_the_layer),
        cmocka_unit_test(set_and_unset),
        cmocka_unit_test(set_parameters),
        cmocka_unit_test(set_in_any_order),
        cmocka_unit_test(set_with_variables),
        cmocka_unit_test(wrong_settings),
        cmocka_unit_test(questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
