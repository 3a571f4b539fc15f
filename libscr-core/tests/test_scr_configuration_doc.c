/* SPDX-License-Identifier: BSD-3-Clause */
/* docs/configuration.md: its tables are those of the code, and its examples do what it
 * says. With the argument "write" it puts the tables of the code into the document. */
#include "document.h"
#include "records/scr_param.h"

/* ---- the tables ---- */

static const char *type_name(scr_param_type type)
{
    static const char *const names[] = {
        [SCR_PARAM_BOOL] = "switch",    [SCR_PARAM_INT] = "number",
        [SCR_PARAM_BYTES] = "bytes",    [SCR_PARAM_SECONDS] = "time",
        [SCR_PARAM_DOUBLE] = "decimal", [SCR_PARAM_SCHEME] = "scheme",
        [SCR_PARAM_TEXT] = "text"};
    return names[type];
}

static void write_table(FILE *out, unsigned later)
{
    fputs("\n| parameter | type | default | meaning |\n| --- | --- | --- | --- |\n", out);
    for (const scr_param *p = scr_param_table; p->name; p++) {
        if ((p->flags & SCR_PARAM_LATER) != later) continue;
        const char *mark = p->value ? "`" : "", *value = p->value ? p->value : "";
        fprintf(out, "| `%s` | %s%s | %s%s%s%s| %s |\n", p->name, type_name(p->type),
                p->flags & SCR_PARAM_LOCAL ? ", per node" : "", mark, value, mark,
                p->value ? " " : "", p->help);
    }
}

static void write_tables(FILE *out)
{
    write_table(out, 0);
    fputs("\nThese are known, but have no effect in this version. Setting one to another "
          "value than its default\ngives a warning.\n",
          out);
    write_table(out, SCR_PARAM_LATER);
    fputs("\n", out);
}

static const struct document page = {SCR_DOCS "/configuration.md",
                                     "<!-- begin parameters -->\n",
                                     "<!-- end parameters -->\n", write_tables};

static void tables_are_those_of_the_code(void **state)
{
    document_check(&page);
}

/* ---- the examples ---- */

/* Puts the block after "<!-- example: name -->" into a file scr.yaml, and reads it.
 * Returns the rest of the document behind the block. */
static const char *read_example(const struct scratch *s, const char *document,
                                const char *name, kvtree *layer, scr_problems *problems)
{
    char mark[64], path[128];
    snprintf(mark, sizeof mark, "<!-- example: %s -->\n\n```yaml\n", name);
    const char *begin = strstr(document, mark);
    assert_non_null(begin);
    begin += strlen(mark);
    const char *end = strstr(begin, "```\n");
    assert_non_null(end);
    scratch_put(s, "scr.yaml", begin, (size_t)(end - begin));
    snprintf(path, sizeof path, "%s/scr.yaml", s->path);
    assert_int_equal(scr_config_file_read(path, layer, problems), 0);
    return end + strlen("```\n");
}

static void example_file_is_good(void **state)
{
    scr_problems problems = {0, NULL};
    char *text = document_read(page.path);
    kvtree *layer = kvtree_new();
    setenv("USER", "me", 1);
    read_example(*state, text, "file", layer, &problems);
    assert_int_equal(problems.count, 0);
    assert_int_equal(kvtree_size(layer), 4);
    assert_string_equal(kvtree_get_val(kvtree_get(layer, "SCR_CACHE_BASE"), "VALUE"),
                        "/ssd/me");
    assert_string_equal(kvtree_get_val(kvtree_get(layer, "SCR_JOB_NAME"), "VALUE"),
                        "heat: fine grid");
    kvtree_delete(&layer);
    free(text);
}

static void example_mistakes_are_told_so(void **state)
{
    struct scratch *s = *state;
    scr_problems problems = {0, NULL};
    char *text = document_read(page.path), *line, *rest;
    kvtree *layer = kvtree_new();
    const char *told = read_example(s, text, "mistakes", layer, &problems);
    told = strstr(told, "```\n") + strlen("```\n");
    rest = problems.text;
    while ((line = strsep(&rest, "\n")) && *line) {
        line += strlen(s->path) + 1; /* the document has no folder before the name */
        assert_int_equal(strncmp(line, told, strlen(line)), 0);
        told += strlen(line);
        assert_int_equal(*told++, '\n');
    }
    assert_int_equal(strncmp(told, "```\n", 4), 0);
    scr_problems_done(&problems);
    kvtree_delete(&layer);
    free(text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_those_of_the_code),
        scratch_test(example_file_is_good),
        scratch_test(example_mistakes_are_told_so),
    };
    if (argc == 2 && strcmp(argv[1], "write") == 0) return document_write(&page);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
