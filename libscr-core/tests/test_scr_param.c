/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of parameters, the layers of values, and typed values. */
#include "comma.h"
#include "common/number.h"
#include "config/values.h"
#include "records.h"
#include <errno.h>

/* No variable of the outside disturbs a test, and none is left behind. */
static int clean(void **state)
{
    for (const scr_param *p = scr_param_table; p->name; p++)
        unsetenv(p->name);
    return 0;
}

#define env_test(function) cmocka_unit_test_setup_teardown(function, clean, clean)

/* ---- the table ---- */

static int default_is_valid(const scr_param *p)
{
    uint64_t bytes;
    int64_t number;
    double real;
    if (!p->value) return 1;
    switch (p->type) {
    case SCR_PARAM_BOOL:
        return strcmp(p->value, "0") == 0 || strcmp(p->value, "1") == 0;
    case SCR_PARAM_INT:
    case SCR_PARAM_AUTO:
        return number_int64(p->value, &number) == 0;
    case SCR_PARAM_BYTES:
        return scr_parse_bytes(p->value, &bytes) == 0;
    case SCR_PARAM_SECONDS:
        return scr_parse_seconds(p->value, &number) == 0;
    case SCR_PARAM_DOUBLE:
        return number_double(p->value, &real) == 0;
    case SCR_PARAM_SCHEME:
    case SCR_PARAM_TEXT:
        return p->value[0] != 0;
    }
    return 0;
}

static void table_is_sound(void **state)
{
    int count = 0;
    for (const scr_param *p = scr_param_table; p->name; p++, count++) {
        assert_int_equal(strncmp(p->name, "SCR_", 4), 0);
        assert_true(strlen(p->name) < 64);
        assert_ptr_equal(scr_param_find(p->name), p); /* so no name is there twice */
        assert_true(p->help && p->help[0] && !strchr(p->help, '\n'));
        assert_null(strchr(p->help, '|')); /* it goes into a table of the documentation */
        assert_int_equal(p->flags & ~(unsigned)(SCR_PARAM_LOCAL | SCR_PARAM_ENVIRONMENT |
                                                SCR_PARAM_OUTSIDE),
                         0);
        if (!default_is_valid(p)) fail_msg("%s: default %s", p->name, p->value);
    }
    assert_true(count > 50);
    assert_null(scr_param_find("SCR_NONSENSE"));
    assert_null(scr_param_find("scr_debug"));
    assert_null(scr_param_find(""));
}

static void nearest_name(void **state)
{
    static const char *const cases[][2] = {
        {"SCR_DEBUG", "SCR_DEBUG"},
        {"SCR_DEBGU", "SCR_DEBUG"},
        {"scr_debug", "SCR_DEBUG"},
        {"DEBUG", "SCR_DEBUG"},
        {"SCR_CACHESIZE", "SCR_CACHE_SIZE"},
        {"SCR_CHECKPOINT_SECOND", "SCR_CHECKPOINT_SECONDS"},
        {"SCR_FLUSH_ASYNCH", "SCR_FLUSH_ASYNC"},
        {"SCR_PREFIX_", "SCR_PREFIX"},
        {"SCR_COPYTYPE", "SCR_COPY_TYPE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(scr_param_nearest(cases[i][0]), cases[i][1]);
    for (const scr_param *p = scr_param_table; p->name; p++)
        assert_string_equal(scr_param_nearest(p->name), p->name);
}

static void nearest_name_of_anything(void **state)
{
    size_t size = 20 << 20;
    char *huge = malloc(size + 1);
    memset(huge, 'S', size);
    huge[size] = 0;
    assert_non_null(scr_param_nearest(huge)); /* and within the time of this test */
    assert_non_null(scr_param_nearest(""));
    free(huge);
}

/* ---- problems ---- */

static void problems_are_lines(void **state)
{
    scr_problems p = {.count = 0};
    scr_problems_add(&p, "%s is %d", "one", 1);
    scr_problems_add(&p, "two");
    assert_int_equal(p.count, 2);
    assert_string_equal(p.text, "one is 1\ntwo\n");
    scr_problems_done(&p);
    assert_int_equal(p.count, 0);
    assert_null(p.text);
    scr_problems_done(&p);
}

static void problems_do_not_carry_control_characters(void **state)
{
    scr_problems p = {.count = 0};
    scr_problems_add(&p, "a\nb\033[2Jc\177d\xc3\xa9");
    assert_string_equal(p.text, "a?b?[2Jc?d\xc3\xa9\n");
    scr_problems_done(&p);
}

static void problems_are_not_endless(void **state)
{
    scr_problems p = {.count = 0};
    int lines = 0;
    for (int i = 0; i < 100000; i++)
        scr_problems_add(&p, "problem %d", i);
    assert_int_equal(p.count, 100000);
    for (const char *c = p.text; (c = strchr(c, '\n')); c++)
        lines++;
    assert_int_equal(lines, SCR_PROBLEMS_SHOWN + 1);
    assert_says(p.text, "\nproblem 99\nfurther problems are not shown\n");
    scr_problems_done(&p);
}

/* ---- layers ---- */

static void assert_value(const scr_config *c, const char *name, const char *value,
                         const char *source)
{
    const char *from = NULL, *is = scr_config_get(c, name, &from);
    if (!value)
        assert_null(is);
    else
        assert_string_equal(is, value);
    assert_string_equal(from, source);
    is = scr_config_get(c, name, NULL);
    assert_true(!is == !value);
}

/* All 16 ways in which the four layers may have a value or not, before and after the
 * environment was captured: the first in the order that has one counts. */
static void order_of_layers(void **state)
{
    for (int given = 0; given < 32; given++) {
        scr_config c;
        const char *name = "SCR_SET_SIZE";
        int env = given & 1, user = given & 2, set = given & 4, system = given & 8;
        unsetenv(name);
        assert_int_equal(scr_config_init(&c), 0);
        if (env) setenv(name, "11", 1);
        if (user) scr_layer_set(c.user, name, "12", "my.yaml:1:1");
        if (set) scr_layer_set(c.set, name, "13", "SCR_Config");
        if (system) scr_layer_set(c.system, name, "14", "scr.yaml:2:2");
        if (given & 16) assert_int_equal(scr_config_capture_env(&c), 0);
        if (env)
            assert_value(&c, name, "11", "the environment");
        else if (user)
            assert_value(&c, name, "12", "my.yaml:1:1");
        else if (set)
            assert_value(&c, name, "13", "SCR_Config");
        else if (system)
            assert_value(&c, name, "14", "scr.yaml:2:2");
        else
            assert_value(&c, name, "8", "default");
        scr_config_done(&c);
    }
}

static void without_any_value(void **state)
{
    scr_config c;
    assert_int_equal(scr_config_init(&c), 0);
    assert_value(&c, "SCR_CURRENT", NULL, "default");
    assert_value(&c, "SCR_NONSENSE", NULL, "default");
    scr_config_done(&c);
    scr_config_done(&c); /* what is done is empty */
}

static void empty_variable_counts_as_unset(void **state)
{
    scr_config c;
    setenv("SCR_SET_SIZE", "", 1);
    setenv("SCR_NODE_NAME", "", 1);
    for (int captured = 0; captured < 2; captured++) {
        assert_int_equal(scr_config_init(&c), 0);
        if (captured) scr_config_capture_env(&c);
        assert_value(&c, "SCR_SET_SIZE", "8", "default");
        assert_value(&c, "SCR_NODE_NAME", NULL, "default");
        scr_config_done(&c);
    }
}

/* Once rank 0's environment is known it counts for all; but each node has its own value
 * of local parameters, and does not get that of rank 0. */
static void local_and_shared(void **state)
{
    scr_config c;
    setenv("SCR_SET_SIZE", "4", 1);
    setenv("SCR_NODE_NAME", "rank0s", 1);
    setenv("SCR_CNTL_BASE", "/rank0", 1);
    assert_int_equal(scr_config_init(&c), 0);
    assert_int_equal(scr_config_capture_env(&c), 0);
    /* from here on this process plays another rank */
    setenv("SCR_SET_SIZE", "5", 1);
    setenv("SCR_FLUSH", "99", 1);
    setenv("SCR_NODE_NAME", "mine", 1);
    unsetenv("SCR_CNTL_BASE");
    scr_layer_set(c.user, "SCR_CNTL_BASE", "/of/file", "my.yaml:1:1");
    assert_value(&c, "SCR_SET_SIZE", "4", "the environment");
    assert_value(&c, "SCR_FLUSH", "10", "default");
    assert_value(&c, "SCR_NODE_NAME", "mine", "the environment");
    assert_value(&c, "SCR_CNTL_BASE", "/of/file", "my.yaml:1:1");
    scr_config_done(&c);
}

static void later_value_replaces(void **state)
{
    scr_config c;
    assert_int_equal(scr_config_init(&c), 0);
    scr_layer_set(c.set, "SCR_FLUSH", "1", "first");
    scr_layer_set(c.set, "SCR_FLUSH", "2", "second");
    assert_value(&c, "SCR_FLUSH", "2", "second");
    assert_int_equal(scr_layer_set(NULL, "SCR_FLUSH", "1", "x"), -ENOMEM);
    scr_config_done(&c);
}

/* ---- typed values ---- */

static void bytes(void **state)
{
    static const struct {
        const char *text;
        int rc;
        uint64_t value;
    } cases[] = {
        {"0", 0, 0},
        {"1", 0, 1},
        {"512", 0, 512},
        {"512B", 0, 512},
        {"1k", 0, 1024},
        {"1KB", 0, 1024},
        {"1kib", 0, 1024},
        {"512 kb", 0, 524288},
        {"10GB", 0, 10737418240},
        {"1MiB", 0, 1048576},
        {"1T", 0, 1ULL << 40},
        {"2P", 0, 2ULL << 50},
        {"15E", 0, 15ULL << 60},
        {"1.5K", 0, 1536},
        {"0.1GB", 0, 107374182},
        {"1.5", 0, 2},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"16E", -ERANGE, 0},
        {"0.1", -ERANGE, 0},
        {"", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"GB", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {"1X", -EINVAL, 0},
        {"1kx", -EINVAL, 0},
        {"1kbb", -EINVAL, 0},
        {"1ib", -EINVAL, 0},
        {"1 k b", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"1.2.3", -EINVAL, 0},
        {".", -EINVAL, 0},
        {"nan", -EINVAL, 0},
        {"inf", -EINVAL, 0},
        {"11111111111111111111111111111111111111111", -EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t value = 77;
        int rc = scr_parse_bytes(cases[i].text, &value);
        if (rc != cases[i].rc || value != (rc ? 77 : cases[i].value))
            fail_msg("\"%s\": %d, %llu", cases[i].text, rc, (unsigned long long)value);
    }
}

static void seconds(void **state)
{
    static const struct {
        const char *text;
        int rc;
        int64_t value;
    } cases[] = {
        {"0", 0, 0},          {"90", 0, 90},        {"90s", 0, 90},
        {"90sec", 0, 90},     {"2m", 0, 120},       {"30min", 0, 1800},
        {"30 min", 0, 1800},  {"30MIN", 0, 1800},   {"2h", 0, 7200},
        {"1d", 0, 86400},     {"1.5h", 0, 5400},    {"1.15h", 0, 4140},
        {"0.5min", 0, 30},    {"0.6", 0, 1},        {"0.2", -ERANGE, 0},
        {"0.0", 0, 0},        {"1e3", -EINVAL, 0},  {"", -EINVAL, 0},
        {"min", -EINVAL, 0},  {"-5", -EINVAL, 0},   {"5 years", -EINVAL, 0},
        {"1h30", -EINVAL, 0}, {"1:30", -EINVAL, 0}, {"99999999999999d", -ERANGE, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 77;
        int rc = scr_parse_seconds(cases[i].text, &value);
        if (rc != cases[i].rc || value != (rc ? 77 : cases[i].value))
            fail_msg("\"%s\": %d, %lld", cases[i].text, rc, (long long)value);
    }
}

static void locale_does_not_matter(void **state)
{
    if (!use_decimal_comma()) {
        print_message("no definitions of locales here\n");
        skip();
    }
    uint64_t b = 0;
    int64_t s = 0;
    double d = 0;
    int bytes = scr_parse_bytes("1.5k", &b), time = scr_parse_seconds("1.5h", &s);
    int real = number_double("2.5", &d), comma = number_double("2,5", &d);
    setlocale(LC_NUMERIC, "C");
    assert_true(bytes == 0 && time == 0 && real == 0 && comma == -EINVAL);
    assert_true(b == 1536 && s == 5400 && d == 2.5);
}

/* What a getter makes of text: 1 and the value, or 0 and one problem that names the
 * parameter, the text and where it stands. */
struct get {
    const char *name, *text;
    int ok;
    double value;
    const char *why;
};

static double get_typed(const scr_config *c, const struct get *g, scr_problems *p)
{
    const scr_value v = scr_config_value(c, g->name);
    int whole = 77;
    int64_t time = 77;
    double real = 77;
    switch (scr_param_find(g->name)->type) {
    case SCR_PARAM_SECONDS:
        scr_config_seconds(c, g->name, &time, p);
        return (double)time;
    case SCR_PARAM_DOUBLE:
        scr_value_read(&v, SCR_PARAM_DOUBLE, 0, &real, p);
        return real;
    case SCR_PARAM_BOOL:
        scr_config_switch(c, g->name, &whole, p);
        return whole;
    case SCR_PARAM_AUTO:
        scr_value_read(&v, SCR_PARAM_AUTO, 0, &whole, p);
        return whole;
    default:
        if (strcmp(g->name, "SCR_END_TIME") == 0) {
            scr_config_int64(c, g->name, 0, &time, p);
            return (double)time;
        }
        scr_config_int(c, g->name, -2147483647 - 1, &whole, p);
        return whole;
    }
}

static void typed_values(void **state)
{
    static const struct get cases[] = {
        {"SCR_DEBUG", "2", 1, 2, NULL},
        {"SCR_DEBUG", "-2", 1, -2, NULL},
        {"SCR_DEBUG", "2147483647", 1, 2147483647, NULL},
        {"SCR_CHECKPOINT_INTERVAL", "auto", 1, -1, NULL}, /* here -1 */
        {"SCR_CHECKPOINT_INTERVAL", "Auto", 1, -1, NULL},
        {"SCR_CHECKPOINT_INTERVAL", "10", 1, 10, NULL},
        {"SCR_CHECKPOINT_INTERVAL", "-1", 0, 0, "must be at least 0"},
        {"SCR_CHECKPOINT_INTERVAL", "2147483648", 0, 0, "must be 0 to 2147483647"},
        {"SCR_CHECKPOINT_INTERVAL", "automatic", 0, 0, "nor \"auto\""},
        {"SCR_END_TIME", "4102444800", 1, 4102444800, NULL},
        {"SCR_END_TIME", "-1", 0, 0, "must be at least 0"},
        {"SCR_END_TIME", "noon", 0, 0, "not a whole number"},
        {"SCR_DEBUG", "2147483648", 0, 0, "to 2147483647"},
        {"SCR_DEBUG", "-2147483649", 0, 0, "must be -2147483648"},
        {"SCR_DEBUG", "99999999999999999999", 0, 0, "to 2147483647"},
        {"SCR_DEBUG", "1.5", 0, 0, "not a whole number"},
        {"SCR_DEBUG", "two", 0, 0, "not a whole number"},
        {"SCR_DEBUG", "2 ", 0, 0, "not a whole number"},
        {"SCR_DEBUG", "0x2", 0, 0, "not a whole number"},
        {"SCR_FETCH", "0", 1, 0, NULL},
        {"SCR_FETCH", "1", 1, 1, NULL},
        {"SCR_FETCH", "2", 0, 0, "neither 0 nor 1"},
        {"SCR_FETCH", "-1", 0, 0, "neither 0 nor 1"},
        {"SCR_FETCH", "yes", 0, 0, "neither 0 nor 1"},
        {"SCR_FETCH", "01", 0, 0, "neither 0 nor 1"},
        {"SCR_CHECKPOINT_SECONDS", "10min", 1, 600, NULL},
        {"SCR_CHECKPOINT_SECONDS", "10GB", 0, 0, "not a time"},
        {"SCR_CHECKPOINT_OVERHEAD", "2.5", 1, 2.5, NULL},
        {"SCR_CHECKPOINT_OVERHEAD", "2.5%", 0, 0, "not a number"},
        {"SCR_CHECKPOINT_OVERHEAD", "nan", 0, 0, "not a number"},
        {"SCR_CHECKPOINT_OVERHEAD", "0", 1, 0, NULL},
        {"SCR_CHECKPOINT_OVERHEAD", "-0.5", 0, 0, "must be at least 0"},
        {"SCR_CHECKPOINT_OVERHEAD", "inf", 0, 0, "not a number"},
        {"SCR_CHECKPOINT_OVERHEAD", "0x10", 0, 0, "not a number"},
        {"SCR_CHECKPOINT_OVERHEAD", " 1", 0, 0, "not a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct get *g = &cases[i];
        scr_config c;
        scr_problems p = {.count = 0};
        assert_int_equal(scr_config_init(&c), 0);
        scr_layer_set(c.user, g->name, g->text, "my.yaml:7:9");
        double value = get_typed(&c, g, &p);
        assert_true(value == (g->ok ? g->value : 77));
        assert_int_equal(p.count, !g->ok);
        if (!g->ok) {
            char start[128];
            snprintf(start, sizeof start, "%s=\"%s\" (my.yaml:7:9): ", g->name, g->text);
            assert_int_equal(strncmp(p.text, start, strlen(start)), 0);
            assert_says(p.text, g->why);
        }
        scr_problems_done(&p);
        scr_config_done(&c);
    }
}

/* A parameter without any value leaves what is there, and is no problem. */
static void no_value_keeps(void **state)
{
    scr_config c;
    scr_problems p = {.count = 0};
    int whole = 3;
    int64_t time = 4;
    double real = 5;
    assert_int_equal(scr_config_init(&c), 0);
    scr_config_int(&c, "SCR_MIN_NODES", 4, &whole, &p);
    scr_config_seconds(&c, "SCR_WATCHDOG_TIMEOUT", &time, &p);
    const scr_value v = scr_config_value(&c, "SCR_FLUSH_ASYNC_PERCENT");
    scr_value_read(&v, SCR_PARAM_DOUBLE, 0, &real, &p);
    assert_true(whole == 3 && time == 4 && real == 5 && p.count == 0);
    scr_config_done(&c);
}

static void flush_methods(void **state)
{
    assert_string_equal(scr_flush_method(NULL, 0), "sync");
    assert_string_equal(scr_flush_method("SYNC", 0), "sync");
    assert_string_equal(scr_flush_method("pthread", 0), "pthread");
    assert_string_equal(scr_flush_method("Daemon", 0), "daemon");
    /* in the background: without a type, or with one that cannot apply */
    assert_string_equal(scr_flush_method(NULL, 1), "pthread");
    assert_string_equal(scr_flush_method("", 1), "pthread");
    assert_string_equal(scr_flush_method("SYNC", 1), "pthread");
    assert_string_equal(scr_flush_method("DAEMON", 1), "daemon");
    /* of other machines */
    assert_string_equal(scr_flush_method("BBAPI", 1), "pthread");
    assert_string_equal(scr_flush_method("datawarp", 0), "pthread");
    assert_null(scr_flush_method("swallow", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_sound),
        cmocka_unit_test(nearest_name),
        cmocka_unit_test(nearest_name_of_anything),
        cmocka_unit_test(problems_are_lines),
        cmocka_unit_test(problems_do_not_carry_control_characters),
        cmocka_unit_test(problems_are_not_endless),
        env_test(order_of_layers),
        env_test(without_any_value),
        env_test(empty_variable_counts_as_unset),
        env_test(local_and_shared),
        env_test(later_value_replaces),
        cmocka_unit_test(bytes),
        cmocka_unit_test(seconds),
        cmocka_unit_test(locale_does_not_matter),
        env_test(typed_values),
        env_test(no_value_keeps),
        cmocka_unit_test(flush_methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
