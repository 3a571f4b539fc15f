/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files: valid entries are used, and all mistakes are reported with their
 * places. */
#include "config/config_file.h"
#include "config/reader.h"
#include "records.h"
#include <errno.h>

/* The entries of a file, and its problems. */
struct result {
    int rc;
    kvtree *layer;
    scr_problems problems;
};

static struct result read_name(const struct scratch *s, const char *name)
{
    char path[128];
    struct result r = {.layer = kvtree_new()};
    snprintf(path, sizeof path, "%s/%s", s->path, name);
    r.rc = scr_config_file_read(path, r.layer, &r.problems);
    return r;
}

static struct result read_text(const struct scratch *s, const char *text)
{
    scratch_put(s, "scr.yaml", text, strlen(text));
    return read_name(s, "scr.yaml");
}

static void done(struct result *r)
{
    kvtree_delete(&r->layer);
    scr_problems_done(&r->problems);
}

static void assert_holds(const struct result *r, const char *name, const char *value)
{
    assert_string_equal(kvtree_get_val(kvtree_get(r->layer, name), "VALUE"), value);
}

/* The file gives exactly this problem, "<path>:" aside, and count values. */
static void refused(const struct scratch *s, const char *text, const char *problem,
                    int count)
{
    char line[512];
    struct result r = read_text(s, text);
    snprintf(line, sizeof line, "%s/scr.yaml:%s\n", s->path, problem);
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.problems.count, 1);
    assert_string_equal(r.problems.text, line);
    assert_int_equal(kvtree_size(r.layer), count);
    done(&r);
}

static void good_file(void **state)
{
    char line[128];
    struct scratch *s = *state;
    struct result r = read_text(s, "# what we use here\n"
                                   "SCR_DEBUG: 1\n"
                                   "SCR_CACHE_BASE: \"/ssd/my cache\"   # quoted\n"
                                   "  \n"
                                   "SCR_JOB_NAME: 'a: b'\n"
                                   "\"SCR_CHECKPOINT_SECONDS\":   10min\n");
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.problems.count, 0);
    assert_null(r.problems.text);
    assert_int_equal(kvtree_size(r.layer), 4);
    assert_holds(&r, "SCR_DEBUG", "1");
    assert_holds(&r, "SCR_CACHE_BASE", "/ssd/my cache");
    assert_holds(&r, "SCR_JOB_NAME", "a: b");
    assert_holds(&r, "SCR_CHECKPOINT_SECONDS", "10min");
    const kvtree *base = kvtree_get(r.layer, "SCR_CACHE_BASE");
    snprintf(line, sizeof line, "%s/scr.yaml:3:17", s->path);
    assert_string_equal(kvtree_get_val(base, "SOURCE"), line);
    done(&r);
}

static void other_forms_of_the_same(void **state)
{
    static const char *const texts[] = {
        "SCR_DEBUG: 2",         "SCR_DEBUG: 2\r\n",           "---\nSCR_DEBUG: 2\n...\n",
        "{SCR_DEBUG: 2}",       "\xef\xbb\xbfSCR_DEBUG: 2\n", "? SCR_DEBUG\n: 2\n",
        "SCR_DEBUG: !!int 2\n", "{\"SCR_DEBUG\": \"2\"}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct result r = read_text(*state, texts[i]);
        assert_int_equal(r.rc, 0);
        assert_int_equal(r.problems.count, 0);
        assert_holds(&r, "SCR_DEBUG", "2");
        done(&r);
    }
}

/* The first line that is neither empty nor a comment decides. */
static void forms_are_told_apart(void **state)
{
    static const struct {
        const char *text;
        int lines;
    } cases[] = {
        {"SCR_DEBUG=2", 1},
        {"\xef\xbb\xbfSCR_DEBUG=2\r\n", 1},
        {"\n  # a: b\n\t \r\n\tSCR_DEBUG\t = '2' # x", 1},
        {"CKPT=0 TYPE=XOR\nSCR_DEBUG: 2\n", 1},
        {"NONSENSE=", 1},
        {"SCR_DEBUG: 2\nSCR_FLUSH=1\n", 0},
        {"SCR_DEBUG: a=b\n", 0},
        {"{SCR_DEBUG: 2}", 0},
        {"\"SCR_DEBUG\"=2", 0},
        {"=2", 0},
        {"SCR_DEBUG\n=2", 0},
        {"# SCR_DEBUG=2", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (scr_is_lines(cases[i].text, strlen(cases[i].text)) != cases[i].lines)
            fail_msg("%s", cases[i].text);
    for (size_t i = 0; i < 3; i++) {
        struct result r = read_text(*state, cases[i].text);
        assert_int_equal(r.problems.count, 0);
        assert_holds(&r, "SCR_DEBUG", "2");
        done(&r);
    }
}

static void file_without_values(void **state)
{
    static const char *const texts[] = {"", "\n\n", "# nothing yet\n", "---\n", "{}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct result r = read_text(*state, texts[i]);
        if (i == 3) { /* a document that holds one empty text */
            assert_int_equal(r.problems.count, 1);
        } else {
            assert_int_equal(r.rc, 0);
            assert_int_equal(r.problems.count, 0);
        }
        assert_int_equal(kvtree_size(r.layer), 0);
        done(&r);
    }
}

static void missing_file(void **state)
{
    struct result r = read_name(*state, "none.yaml");
    assert_int_equal(r.rc, -ENOENT);
    assert_int_equal(r.problems.count, 0);
    done(&r);
    r = read_name(*state, "none/none.yaml");
    assert_int_equal(r.rc, -ENOENT);
    done(&r);
}

static void what_is_no_file(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(mkdirat(s->dir, "folder", 0700), 0);
    assert_int_equal(mkfifoat(s->dir, "pipe", 0600), 0);
    assert_int_equal(symlinkat("/dev/zero", s->dir, "endless"), 0);
    scratch_put(s, "file", "x", 1);
    static const char *const cases[][2] = {{"folder", "folder: not a regular file\n"},
                                           {"pipe", "pipe: not a regular file\n"},
                                           {"endless", "endless: not a regular file\n"},
                                           {"file/below", "below: Not a directory\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result r = read_name(s, cases[i][0]);
        assert_true(r.rc < 0 && r.rc != -ENOENT);
        assert_int_equal(r.problems.count, 1);
        assert_says(r.problems.text, cases[i][1]);
        done(&r);
    }
}

static void not_yaml(void **state)
{
    static const char *const cases[][2] = {
        {"SCR_DEBUG: 1\n\tSCR_FLUSH: 2\n", "scr.yaml:2:1: "},
        {"SCR_DEBUG: [1, 2\nSCR_FLUSH: 2\n", "scr.yaml:2:"},
        {"SCR_JOB_NAME: \"no end\n", "scr.yaml:2:1: "},
        {"SCR_DEBUG: 1\n SCR_FLUSH: 2\n", "scr.yaml:2:11: "},
        {"SCR_DEBUG: *nothing\n", "scr.yaml:1:"},
        {"SCR_DEBUG: @1\n", "scr.yaml:1:12: "},
        {"SCR_DEBUG: \x01\n", "scr.yaml:"},
        {"SCR_DEBUG: \xff\xff\n", "scr.yaml:"},
        {"%YAML 9.9\n---\nSCR_DEBUG: 1\n", "scr.yaml:1:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result r = read_text(*state, cases[i][0]);
        assert_int_equal(r.rc, -EBADMSG);
        assert_int_equal(r.problems.count, 1);
        assert_says(r.problems.text, cases[i][1]);
        assert_int_equal(kvtree_size(r.layer), 0);
        done(&r);
    }
}

static void wrong_shape(void **state)
{
    struct scratch *s = *state;
    refused(s, "just words\n", "1:1: the file must consist of \"NAME: value\"", 0);
    refused(s, "\n- SCR_DEBUG\n", "2:1: the file must consist of \"NAME: value\"", 0);
    refused(s, "SCR_FLUSH: 3\nSCR_DEBUG: [1, 2]\n",
            "2:12: one value was expected for \"SCR_DEBUG\"", 1);
    refused(s, "SCR_DEBUG:\n  LEVEL: 2\n",
            "2:3: one value was expected for \"SCR_DEBUG\"", 0);
    refused(s, "[a, b]: 1\n", "1:1: a name was expected \"\"", 0);
    refused(s, "SCR_JOB_NAME: \"a\\0b\"\n",
            "1:15: one value was expected for \"SCR_JOB_NAME\"", 0);
    refused(s, "\"SCR_DEBUG\\0_OLD\": 1\n", "1:1: a name was expected \"\"", 0);
    refused(s, "SCR_DEBUG:\n", "1:11: no value for \"SCR_DEBUG\"", 0);
    refused(s, "SCR_PREFIX: \"\"\n", "1:13: no value for \"SCR_PREFIX\"", 0);
}

static void unknown_name(void **state)
{
    struct scratch *s = *state;
    refused(s, "SCR_DEBUG: 1\nSCR_FLUSHH: 2\n",
            "2:1: unknown parameter \"SCR_FLUSHH\"; did you mean SCR_FLUSH?", 1);
    refused(s, "scr_debug: 1\n",
            "1:1: unknown parameter \"scr_debug\"; did you mean SCR_DEBUG?", 0);
    refused(s, "\"SCR\\nDEBUG\": 1\n",
            "1:1: unknown parameter \"SCR?DEBUG\"; did you mean SCR_DEBUG?", 0);
}

static void given_twice(void **state)
{
    struct result r = read_text(*state, "SCR_DEBUG: 1\nSCR_FLUSH: 2\nSCR_DEBUG: 3\n");
    assert_int_equal(r.problems.count, 1);
    assert_says(r.problems.text, "scr.yaml:3:1: given twice: \"SCR_DEBUG\"\n");
    assert_holds(&r, "SCR_DEBUG", "1");
    done(&r);
}

static void second_document(void **state)
{
    struct scratch *s = *state;
    refused(s, "SCR_DEBUG: 1\n---\nSCR_FLUSH: 2\n",
            "2:1: there may be one document only, no \"---\"", 1);
    struct result r = read_text(s, "SCR_DEBUG: 1\n---\n[\n");
    assert_int_equal(r.rc, -EBADMSG); /* also what is not used must be YAML */
    assert_says(r.problems.text, "scr.yaml:4:1: ");
    done(&r);
}

static void variables(void **state)
{
    static const char *const cases[][2] = {
        {"$SCR_TEST_A", "/a"},
        {"${SCR_TEST_A}", "/a"},
        {"$SCR_TEST_A/x", "/a/x"},
        {"x${SCR_TEST_A}x$SCR_TEST_B.$SCR_TEST_A", "x/axb c./a"},
        {"${SCR_TEST_B}$SCR_TEST_E", "b c"},
        {"5$", "5$"},
        {"a $ b", "a $ b"},
        {"$$", "$$"},
        {"$(ls)", "$(ls)"},
        {"$SCR_TEST_D", "$SCR_TEST_A"}, /* once only */
    };
    setenv("SCR_TEST_A", "/a", 1);
    setenv("SCR_TEST_B", "b c", 1);
    setenv("SCR_TEST_D", "$SCR_TEST_A", 1);
    setenv("SCR_TEST_E", "", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "SCR_JOB_NAME: \"%s\"\n", cases[i][0]);
        struct result r = read_text(*state, text);
        assert_int_equal(r.problems.count, 0);
        assert_holds(&r, "SCR_JOB_NAME", cases[i][1]);
        done(&r);
    }
}

static void unknown_variable(void **state)
{
    struct scratch *s = *state;
    unsetenv("SCR_TEST_NONE");
    setenv("SCR_TEST_E", "", 1);
    refused(s, "SCR_PREFIX: /p/$SCR_TEST_NONE/x\n",
            "1:13: no such environment variable: \"SCR_TEST_NONE\"", 0);
    refused(s, "SCR_FLUSH: 1\nSCR_PREFIX: ${SCR_TEST_NONE}\n",
            "2:13: no such environment variable: \"SCR_TEST_NONE\"", 1);
    refused(s, "SCR_PREFIX: /p/${SCR_TEST_E\n",
            "1:13: no name of a variable in braces: \"${SCR_TEST_E\"", 0);
    refused(s, "SCR_PREFIX: ${}\n", "1:13: no name of a variable in braces: \"${}\"", 0);
    refused(s, "SCR_PREFIX: $SCR_TEST_E\n", "1:13: no value for \"SCR_PREFIX\"", 0);
}

static void all_problems_in_one_go(void **state)
{
    static const char *const lines[] = {
        ":2:1: unknown parameter \"SCR_CASHE_SIZE\"; did you mean SCR_CACHE_SIZE?\n",
        ":3:12: one value was expected for \"SCR_FLUSH\"\n",
        ":4:13: no such environment variable: \"SCR_TEST_NONE\"\n",
        ":5:1: given twice: \"SCR_DEBUG\"\n",
        ":7:1: unknown parameter \"DEBUG\"; did you mean SCR_DEBUG?\n",
    };
    struct scratch *s = *state;
    unsetenv("SCR_TEST_NONE");
    struct result r = read_text(s, "SCR_DEBUG: 1\n"
                                   "SCR_CASHE_SIZE: 3\n"
                                   "SCR_FLUSH: [1]\n"
                                   "SCR_PREFIX: $SCR_TEST_NONE\n"
                                   "SCR_DEBUG: 2\n"
                                   "SCR_GROUP: NODE\n"
                                   "DEBUG: 1\n");
    char all[1024] = "";
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s/scr.yaml%s", s->path,
                 lines[i]);
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.problems.count, 5);
    assert_string_equal(r.problems.text, all);
    assert_int_equal(kvtree_size(r.layer), 2);
    assert_holds(&r, "SCR_GROUP", "NODE");
    done(&r);
}

/* ---- hostile files: refused, within the time and memory of a test ---- */

static void too_large(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "scr.yaml", "SCR_DEBUG: 1\n", 13);
    char path[128];
    snprintf(path, sizeof path, "%s/scr.yaml", s->path);
    assert_int_equal(truncate(path, SCR_CONFIG_FILE_MAX + 1), 0);
    struct result r = read_name(s, "scr.yaml");
    assert_int_equal(r.rc, -EINVAL);
    assert_says(r.problems.text, "scr.yaml: too large\n");
    done(&r);
}

/* A file of the largest size, of head and as many times body as fit. */
static struct result read_repeated(const struct scratch *s, const char *head,
                                   const char *body)
{
    size_t size = strlen(head), step = strlen(body);
    char *text = calloc(1, SCR_CONFIG_FILE_MAX + 1);
    strcpy(text, head);
    for (; size + step <= SCR_CONFIG_FILE_MAX; size += step)
        memcpy(text + size, body, step);
    struct result r = read_text(s, text);
    free(text);
    return r;
}

static void huge_name(void **state)
{
    struct result r = read_repeated(*state, "? ", "S");
    assert_int_equal(r.problems.count, 1);
    assert_true(strlen(r.problems.text) < 400);
    done(&r);
}

static void huge_value(void **state)
{
    struct result r = read_repeated(*state, "SCR_JOB_NAME: ", "x");
    assert_int_equal(r.problems.count, 0);
    const char *value = kvtree_get_val(kvtree_get(r.layer, "SCR_JOB_NAME"), "VALUE");
    assert_int_equal(strlen(value), SCR_CONFIG_FILE_MAX - strlen("SCR_JOB_NAME: "));
    done(&r);
}

static void many_problems(void **state)
{
    struct result r = read_repeated(*state, "", "A: 1\n");
    assert_int_equal(r.problems.count, SCR_PROBLEMS_SHOWN + 1);
    assert_says(r.problems.text, "\nfurther problems are not shown\n");
    assert_true(strlen(r.problems.text) < 200 * SCR_PROBLEMS_SHOWN);
    done(&r);
}

static void deep_nesting(void **state)
{
    static const char *const bodies[] = {"[", "{", "- ", "? ", "{a: ", "[\n"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct result r = read_repeated(*state, "SCR_DEBUG:\n  ", bodies[i]);
        assert_int_equal(r.rc, -EBADMSG);
        assert_says(r.problems.text, "nested too deeply for \"NAME: value\"\n");
        assert_int_equal(kvtree_size(r.layer), 0);
        done(&r);
    }
}

static void aliases_do_not_multiply(void **state)
{
    struct result r = read_text(*state, "a: &a [x, x]\n"
                                        "b: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n"
                                        "c: &c [*b, *b, *b, *b, *b, *b, *b, *b]\n"
                                        "d: &d [*c, *c, *c, *c, *c, *c, *c, *c]\n"
                                        "SCR_DEBUG: *d\n"
                                        "SCR_JOB_NAME: &n x\n"
                                        "SCR_CLUSTER_NAME: *n\n");
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.problems.count, 5);
    assert_int_equal(kvtree_size(r.layer), 2);
    assert_holds(&r, "SCR_CLUSTER_NAME", "x");
    done(&r);
}

/* Every file that is cut off somewhere, or has one other byte, gives values that are
 * parameters, or problems; and nothing else happens. */
static void every_byte_changed(void **state)
{
    static const char good[] =
        "SCR_DEBUG: 1\nSCR_JOB_NAME: \"$HOME\" # x\n{}: [a, &b c]\n";
    static const char others[] = "\0\n\t\"'[]{}:#&*!|>-?%@`$\\ \x80\xff";
    for (size_t at = 0; at < sizeof good - 1; at++)
        for (size_t k = 0; k < sizeof others; k++) {
            char text[sizeof good];
            struct scratch *s = *state;
            memcpy(text, good, sizeof good);
            text[at] = others[k];
            scratch_put(s, "scr.yaml", text, k ? sizeof good - 1 : at);
            struct result r = read_name(s, "scr.yaml");
            assert_true(r.rc == 0 || r.rc == -EBADMSG);
            assert_true(r.rc == 0 || r.problems.count > 0);
            const kvtree_elem *e = kvtree_elem_first(r.layer);
            for (; e; e = kvtree_elem_next(e))
                assert_non_null(scr_param_find(kvtree_elem_key(e)));
            done(&r);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(good_file),
        scratch_test(other_forms_of_the_same),
        scratch_test(forms_are_told_apart),
        scratch_test(file_without_values),
        scratch_test(missing_file),
        scratch_test(what_is_no_file),
        scratch_test(not_yaml),
        scratch_test(wrong_shape),
        scratch_test(unknown_name),
        scratch_test(given_twice),
        scratch_test(second_document),
        scratch_test(variables),
        scratch_test(unknown_variable),
        scratch_test(all_problems_in_one_go),
        scratch_test(too_large),
        scratch_test(huge_name),
        scratch_test(huge_value),
        scratch_test(many_problems),
        scratch_test(deep_nesting),
        scratch_test(aliases_do_not_multiply),
        scratch_test(every_byte_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
