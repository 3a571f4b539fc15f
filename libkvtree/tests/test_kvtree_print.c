/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees as text, in all forms; how a hostile key appears; and parsing the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "build_tree.h"
#include "src/kvtree_private.h"
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

/* Returns the text of a tree, which the caller frees. */
static char *text_of(const kvtree *tree, int form, int indent)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(kvtree_fprint(out, tree, form, indent), 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(strlen(text), size);
    return text;
}

static void assert_text(const kvtree *tree, int form, int indent, const char *expected)
{
    char *text = text_of(tree, form, indent);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- the example of the guide ---- */

static void tree_form(void **state)
{
    kvtree *tree = guide_tree();
    assert_text(tree, KVTREE_FORM_TREE, 2,
                "RANK\n"
                "  0\n"
                "    FILES\n"
                "      2\n"
                "    FILE\n"
                "      foo_0.txt\n"
                "        SIZE\n"
                "          1024\n"
                "        COMPLETE\n"
                "          1\n"
                "      bar_0.txt\n"
                "        SIZE\n"
                "          2048\n"
                "        COMPLETE\n"
                "          1\n"
                "  1\n"
                "    FILES\n"
                "      1\n"
                "    FILE\n"
                "      foo_1.txt\n"
                "        SIZE\n"
                "          3072\n"
                "        COMPLETE\n"
                "          1\n");
    kvtree_delete(&tree);
}

static void pairs_form(void **state)
{
    kvtree *tree = guide_tree();
    assert_text(tree, KVTREE_FORM_PAIRS, 1,
                "RANK\n"
                " 0\n"
                "  FILES = 2\n"
                "  FILE\n"
                "   foo_0.txt\n"
                "    SIZE = 1024\n"
                "    COMPLETE = 1\n"
                "   bar_0.txt\n"
                "    SIZE = 2048\n"
                "    COMPLETE = 1\n"
                " 1\n"
                "  FILES = 1\n"
                "  FILE\n"
                "   foo_1.txt\n"
                "    SIZE = 3072\n"
                "    COMPLETE = 1\n");
    kvtree_delete(&tree);
}

static void lines_form(void **state)
{
    kvtree *tree = guide_tree();
    assert_text(tree, KVTREE_FORM_LINES, 0,
                "+- RANK\n"
                "  +- 0\n"
                "  | +- FILES = 2\n"
                "  | +- FILE\n"
                "  |   +- foo_0.txt\n"
                "  |   | +- SIZE = 1024\n"
                "  |   | +- COMPLETE = 1\n"
                "  |   +- bar_0.txt\n"
                "  |     +- SIZE = 2048\n"
                "  |     +- COMPLETE = 1\n"
                "  +- 1\n"
                "    +- FILES = 1\n"
                "    +- FILE\n"
                "      +- foo_1.txt\n"
                "        +- SIZE = 3072\n"
                "        +- COMPLETE = 1\n");
    kvtree_delete(&tree);
}

static void json_form(void **state)
{
    kvtree *tree = guide_tree();
    kvtree_set_kv(tree, "NONE", "at all");
    kvtree_set(kvtree_get(tree, "NONE"), "left", NULL);
    assert_text(tree, KVTREE_FORM_JSON, 4,
                "{\n"
                "    \"RANK\": {\n"
                "        \"0\": {\n"
                "            \"FILES\": \"2\",\n"
                "            \"FILE\": {\n"
                "                \"foo_0.txt\": {\n"
                "                    \"SIZE\": \"1024\",\n"
                "                    \"COMPLETE\": \"1\"\n"
                "                },\n"
                "                \"bar_0.txt\": {\n"
                "                    \"SIZE\": \"2048\",\n"
                "                    \"COMPLETE\": \"1\"\n"
                "                }\n"
                "            }\n"
                "        },\n"
                "        \"1\": {\n"
                "            \"FILES\": \"1\",\n"
                "            \"FILE\": {\n"
                "                \"foo_1.txt\": {\n"
                "                    \"SIZE\": \"3072\",\n"
                "                    \"COMPLETE\": \"1\"\n"
                "                }\n"
                "            }\n"
                "        }\n"
                "    },\n"
                "    \"NONE\": {\n"
                "        \"at all\": {},\n"
                "        \"left\": {}\n"
                "    }\n"
                "}\n");
    kvtree_delete(&tree);
}

static void empty_trees(void **state)
{
    for (int form = KVTREE_FORM_TREE; form <= KVTREE_FORM_LINES; form++)
        assert_text(NULL, form, 2, "");
    assert_text(NULL, KVTREE_FORM_JSON, 2, "{}\n");
}

static void guides_as_wide_as_the_levels(void **state)
{
    kvtree *tree = kvtree_new();
    kvtree_setf(tree, NULL, "a b c d");
    kvtree_setf(tree, NULL, "a b e");
    kvtree_set(tree, "f", NULL);
    assert_text(tree, KVTREE_FORM_LINES, 4,
                "+- a\n"
                "|   +- b\n"
                "|       +- c = d\n"
                "|       +- e\n"
                "+- f\n");
    kvtree_delete(&tree);
}

/* ---- keys that are not what they look like ---- */

static void hostile_keys(void **state)
{
    static const struct {
        const char *key, *text, *json;
    } keys[] = {
        {"", "\\0", ""},
        {"\\0", "\\\\0", "\\\\0"},
        {"a\n  b\t\x7f", "a\\x0a  b\\x09\\x7f", "a\\u000a  b\\u0009\\u007f"},
        {"\x1b[2J\"", "\\x1b[2J\"", "\\u001b[2J\\\""},
        {"  a  ", "\\x20 a \\x20", "  a  "},
        {" ", "\\x20", " "},
        {"\xc2\x85\xc2\x9b\xc2\xa1", "\\xc2\\x85\\xc2\\x9b\xc2\xa1",
         "\\u0085\\u009b\xc2\xa1"},
        {"\xe2\x80\xae\xe3\x80\x80", "\\xe2\\x80\\xae\\xe3\\x80\\x80", "\\u202e\\u3000"},
        {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81", "\\udb40\\udc41"},
        {"Gr\xc3\xbc\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x8c\xb3",
         "Gr\xc3\xbc\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x8c\xb3",
         "Gr\xc3\xbc\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x8c\xb3"},
        /* invalid UTF-8: lone bytes, truncated, too long, a surrogate, beyond the last
         * one */
        {"\x80-\xff", "\\x80-\\xff", "\\u0080-\\u00ff"},
        {"\xc3", "\\xc3", "\\u00c3"},
        {"\xe2\x82", "\\xe2\\x82", "\\u00e2\\u0082"},
        {"\xc1\x81", "\\xc1\\x81", "\\u00c1\\u0081"},
        {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf", "\\u00e0\\u009f\\u00bf"},
        {"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf", "\\u00f0\\u008f\\u00bf\\u00bf"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\u00ed\\u00a0\\u0080"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\u00f4\\u0090\\u0080\\u0080"},
        {"\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80",
         "\\u00f8\\u0088\\u0080\\u0080\\u0080"},
        /* the first and the last of their kinds */
        {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
         "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
         "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"},
        {"(level 65) a", "\\x28level 65) a", "(level 65) a"},
        {"a = b", "a = b", "a = b"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char expected[100];
        kvtree *tree = kvtree_new();
        kvtree_set(tree, keys[i].key, NULL);
        snprintf(expected, sizeof expected, "%s\n", keys[i].text);
        assert_text(tree, KVTREE_FORM_TREE, 0, expected);
        snprintf(expected, sizeof expected, "{\n  \"%s\": {}\n}\n", keys[i].json);
        assert_text(tree, KVTREE_FORM_JSON, 0, expected);
        kvtree_delete(&tree);
    }
}

static void one_equals_sign_between_key_and_value(void **state)
{
    static const struct {
        const char *key, *value, *text;
    } pairs[] = {
        {"a", "b", "a = b\n"},
        {"", "", "\\0 = \\0\n"},
        {"a = b", "c", "a \\x3d b = c\n"},
        {"a", "b = = c", "a = b \\x3d \\x3d c\n"},
        {"a =", "b", "a \\x3d = b\n"},
        {"a", "= b", "a = \\x3d b\n"},
        {"a=b=", "=c= d", "a=b= = =c= d\n"},
        {" a ", " ", "\\x20a\\x20 = \\x20\n"},
        {"(level", "65) a", "\\x28level = 65) a\n"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        kvtree *tree = kvtree_new();
        kvtree_set_kv(tree, pairs[i].key, pairs[i].value);
        assert_text(tree, KVTREE_FORM_PAIRS, 0, pairs[i].text);
        char expected[100];
        snprintf(expected, sizeof expected, "+- %s", pairs[i].text);
        assert_text(tree, KVTREE_FORM_LINES, 0, expected);
        kvtree_delete(&tree);
    }
}

static void names_for_messages(void **state)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size), *closed = fopen("/dev/null", "r");
    assert_int_equal(kvtree_fprint_key(out, "a\nb"), 0);
    fclose(out);
    assert_string_equal(text, "a\\x0ab");
    free(text);
    assert_int_equal(kvtree_fprint_key(closed, "a"), -EBADF);
    fclose(closed);
}

/* ---- deep trees ---- */

static void deep_levels_have_a_number(void **state)
{
    char blanks[150];
    memset(blanks, ' ', sizeof blanks);
    kvtree *tree = deep_tree(68);
    char *text = text_of(tree, KVTREE_FORM_TREE, 2), *line = text;
    for (int level = 0; level <= 64; level++, line = strchr(line, '\n') + 1) {
        assert_memory_equal(line, blanks, 2 * (size_t)level);
        assert_memory_equal(line + 2 * level, "x\n", 2);
    }
    for (int level = 65; level < 68; level++, line = strchr(line, '\n') + 1) {
        char rest[30];
        snprintf(rest, sizeof rest, "(level %d) x\n", level);
        assert_memory_equal(line, blanks, 128);
        assert_memory_equal(line + 128, rest, strlen(rest));
    }
    assert_int_equal(*line, '\0');
    free(text);
    text = text_of(tree, KVTREE_FORM_LINES, 2);
    assert_non_null(strstr(text, "  (level 66) +- x = x\n"));
    assert_null(strchr(text, '|'));
    free(text);
    kvtree_delete(&tree);
}

static ssize_t count_bytes(void *cookie, const char *data, size_t size)
{
    *(size_t *)cookie += size;
    return (ssize_t)size;
}

struct job {
    const kvtree *tree;
    int form, rc;
    size_t size;
};

static void *print_and_count(void *argument)
{
    struct job *job = argument;
    FILE *out =
        fopencookie(&job->size, "w", (cookie_io_functions_t){.write = count_bytes});
    job->rc = kvtree_fprint(out, job->tree, job->form, 1);
    fclose(out);
    return NULL;
}

/* Prints on a stack without room for a frame per level. */
static size_t size_on_small_stack(const kvtree *tree, int form)
{
    struct job job = {.tree = tree, .form = form, .rc = -1};
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    assert_int_equal(pthread_create(&thread, &small, print_and_count, &job), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&small);
    assert_int_equal(job.rc, 0);
    return job.size;
}

static void a_million_levels(void **state)
{
    enum { DEPTH = 1000000 };
    kvtree *tree = deep_tree(DEPTH);
    size_t size[4];
    for (int form = KVTREE_FORM_TREE; form <= KVTREE_FORM_JSON; form++)
        size[form] = size_on_small_stack(tree, form);
    size_t indentation = 0, numbers = 0;
    for (int level = 0; level < DEPTH; level++) {
        indentation += level < 64 ? (size_t)level : 64;
        if (level > 64) numbers += (size_t)snprintf(NULL, 0, "(level %d) ", level);
    }
    assert_int_equal(size[KVTREE_FORM_TREE], indentation + numbers + 2 * DEPTH);
    /* the last two lines are one */
    size_t pairs =
        size[KVTREE_FORM_TREE] - 64 - strlen("(level 999999) x\n") + strlen(" = x");
    assert_int_equal(size[KVTREE_FORM_PAIRS], pairs);
    assert_int_equal(size[KVTREE_FORM_LINES], pairs + strlen("+- ") * (DEPTH - 1));
    /* the innermost object is a pair, and the outermost begins with no key: so DEPTH - 1
     * lines `"x": {` or `"x": "x"`, DEPTH - 2 and one `}` */
    indentation = 0;
    for (int level = 0; level < DEPTH - 1; level++)
        indentation += level + 1 < 64 ? (size_t)level + 1 : 64;
    size_t keys =
        indentation + (DEPTH - 2) * strlen("\"x\": {\n") + strlen("\"x\": \"x\"\n");
    size_t closing = indentation - 64 + (DEPTH - 2) * strlen("}\n");
    assert_int_equal(size[KVTREE_FORM_JSON], keys + closing + strlen("{\n}\n"));
    kvtree_delete(&tree);
}

/* ---- parsing the text ---- */

static int byte_of(const char *hex)
{
    unsigned byte;
    assert_int_equal(sscanf(hex, "%2x", &byte), 1);
    return (int)byte;
}

/* Parses the key up to the end of the line. */
static const char *parse_key(const char *text, char *key)
{
    for (; *text != '\n'; key++) {
        assert_true((unsigned char)*text >= ' ' && *text != '\x7f');
        if (*text != '\\') {
            *key = *text++;
        } else if (text[1] == '\\') {
            *key = '\\';
            text += 2;
        } else if (text[1] == '0') {
            text += 2;
            assert_int_equal(*text, '\n');
            break;
        } else {
            assert_int_equal(text[1], 'x');
            *key = (char)byte_of(text + 2);
            text += 4;
        }
    }
    *key = '\0';
    return text + 1;
}

#define LEVELS 300

/* Written from docs/formats/kvtree.md; shares nothing with the library. */
static kvtree *parse(const char *text, size_t indent)
{
    kvtree *at[LEVELS + 1] = {kvtree_new()};
    char key[1000];
    while (*text) {
        size_t blanks = strspn(text, " "), level = blanks / indent;
        int length = 0;
        assert_int_equal(blanks % indent, 0);
        text += blanks;
        if (sscanf(text, "(level %zu) %n", &level, &length) == 1 && length) {
            assert_int_equal(blanks, 64 * indent);
            text += length;
        }
        assert_true(level < LEVELS && at[level]);
        text = parse_key(text, key);
        at[level + 1] = kvtree_set(at[level], key, NULL);
        for (size_t i = level + 2; i <= LEVELS; i++)
            at[i] = NULL;
    }
    return at[0];
}

static void random_key(unsigned *seed, char *key)
{
    static const char *const parts[] = {
        " ",        "\\",   "\\x20",    "\\0",      "(level 65) ", "(level ",
        "\n",       "\t",   "\x7f",     "a",        "b",           " = ",
        "=",        "+- ",  "| ",       "\xc2\x85", "\xc3\xa9",    "\xc3",
        "\xa9",     "\xff", "\xf0\x9f", "\x01",     "\x1b[0m",     "\xe2\x80\xae",
        "\xed\xa0", ""};
    *key = '\0';
    for (int count = rand_r(seed) % 5; count > 0; count--)
        strcat(key, parts[(size_t)rand_r(seed) % (sizeof parts / sizeof *parts)]);
}

static kvtree *random_tree(unsigned *seed)
{
    enum { COUNT = 200 };
    kvtree *root = kvtree_new(), *trees[COUNT + 1] = {root};
    int depth[COUNT + 1] = {0}, deep = rand_r(seed) % 2;
    for (int i = 1; i <= COUNT; i++) {
        char key[100];
        int above = deep && rand_r(seed) % 8 ? i - 1 : rand_r(seed) % i;
        random_key(seed, key);
        kvtree *there = kvtree_get(trees[above], key);
        trees[i] = there ? there : kvtree_set(trees[above], key, NULL);
        depth[i] = depth[above] + 1;
    }
    return root;
}

static void the_tree_form_can_be_read_back(void **state)
{
    int deepest = 0;
    for (unsigned i = 0; i < 200; i++) {
        unsigned seed = i;
        int indent = 1 + (int)(i % 4);
        kvtree *tree = random_tree(&seed);
        char *text = text_of(tree, KVTREE_FORM_TREE, indent);
        kvtree *back = parse(text, (size_t)indent);
        assert_true(same_tree(tree, back));
        deepest += strstr(text, "(level 6") != NULL;
        free(text);
        kvtree_delete(&back);
        kvtree_delete(&tree);
    }
    assert_true(deepest > 10);
}

/* ---- failures ---- */

static void wrong_arguments(void **state)
{
    assert_int_equal(kvtree_fprint(stdout, NULL, -1, 2), -EINVAL);
    assert_int_equal(kvtree_fprint(stdout, NULL, 4, 2), -EINVAL);
    assert_int_equal(kvtree_fprint(NULL, NULL, KVTREE_FORM_TREE, 2), -EINVAL);
}

static void a_full_disk(void **state)
{
    kvtree *trees[] = {sample_tree(), wide_tree(5000), deep_tree(5000)};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        for (int form = KVTREE_FORM_TREE; form <= KVTREE_FORM_JSON; form++) {
            FILE *full = fopen("/dev/full", "w"), *input = fopen("/dev/null", "r");
            assert_int_equal(kvtree_fprint(full, trees[i], form, 2), -ENOSPC);
            assert_true(kvtree_fprint(full, NULL, form, 2) < 0); /* it stays so */
            assert_int_equal(kvtree_fprint(input, trees[i], form, 2), -EBADF);
            fclose(full);
            fclose(input);
        }
        kvtree_delete(&trees[i]);
    }
}

static ssize_t refuse(void *cookie, const char *data, size_t size)
{
    ++*(int *)cookie;
    return 0;
}

/* A stream that fails without an error code, to which nothing more is written. */
static void a_silent_failure(void **state)
{
    kvtree *tree = wide_tree(100000);
    for (int form = KVTREE_FORM_TREE; form <= KVTREE_FORM_JSON; form++) {
        int calls = 0;
        FILE *out = fopencookie(&calls, "w", (cookie_io_functions_t){.write = refuse});
        assert_int_equal(kvtree_fprint(out, tree, form, 2), -EIO);
        assert_in_range(calls, 1, 3);
        fclose(out);
    }
    kvtree_delete(&tree);
}

/* ---- kvtree_print ---- */

/* Prints to the file; returns the result of kvtree_print. */
static int print_to(int file, const kvtree *tree, int indent)
{
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(file, STDOUT_FILENO);
    int rc = kvtree_print(tree, indent);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    clearerr(stdout);
    return rc;
}

static void prints_to_stdout(void **state)
{
    static const char *const expected[] = {"  A\n    B\n", "   A\n     B\n",
                                           "     A\n       B\n"};
    static const int indent[] = {-3, 1, 3};
    kvtree *tree = kvtree_new();
    kvtree_set_kv(tree, "A", "B");
    for (size_t i = 0; i < 3; i++) {
        char text[20] = "";
        FILE *file = tmpfile();
        assert_int_equal(print_to(fileno(file), tree, indent[i]), 0);
        assert_int_equal(pread(fileno(file), text, sizeof text - 1, 0),
                         strlen(expected[i]));
        assert_string_equal(text, expected[i]);
        fclose(file);
    }
    int full = open("/dev/full", O_WRONLY);
    assert_int_equal(print_to(full, tree, 0), -ENOSPC);
    close(full);
    kvtree_delete(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree_form),
        cmocka_unit_test(pairs_form),
        cmocka_unit_test(lines_form),
        cmocka_unit_test(json_form),
        cmocka_unit_test(empty_trees),
        cmocka_unit_test(guides_as_wide_as_the_levels),
        cmocka_unit_test(hostile_keys),
        cmocka_unit_test(one_equals_sign_between_key_and_value),
        cmocka_unit_test(names_for_messages),
        cmocka_unit_test(deep_levels_have_a_number),
        cmocka_unit_test(a_million_levels),
        cmocka_unit_test(the_tree_form_can_be_read_back),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(a_full_disk),
        cmocka_unit_test(a_silent_failure),
        cmocka_unit_test(prints_to_stdout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
