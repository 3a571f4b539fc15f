/* SPDX-License-Identifier: BSD-3-Clause */
/* docs/configuration.md: its tables are those of the code, and its examples do what it
 * says of them. With the argument "write" it puts the tables of the code into the
 * document. */
#include "document.h"

#include "configs.h"
#include "values.h"

/* ---- the tables ---- */

/* A table for each purpose begins with this parameter. */
static const struct {
    const char *first, *title;
} purposes[] = {{"SCR_ENABLE", "General"},
                {"SCR_CNTL_BASE", "Cache"},
                {"SCR_PREFIX_SIZE", "Prefix directory"},
                {"SCR_COPY_TYPE", "Protection of cached files"},
                {"SCR_RESTART_RANKS", "Restart and fetch"},
                {"SCR_FLUSH", "Flush"},
                {"SCR_CHECKPOINT_INTERVAL", "Checkpoint interval"},
                {"SCR_HALT_SECONDS", "Halt conditions"},
                {"SCR_RUNS", "Runs and nodes"},
                {"SCR_LOG_ENABLE", "Log"},
                {"SCR_MPI_BUF_SIZE", "Buffers and checksums"},
                {"SCR_USER_NAME", "Names"}};
#define PURPOSES (sizeof purposes / sizeof *purposes)

/* Who may set a parameter, unless anybody may. */
static const char *restriction(unsigned flags)
{
    if (flags & SCR_PARAM_OUTSIDE) return "; only in the environment or the system file";
    return flags & SCR_PARAM_ENVIRONMENT ? "; only in the environment" : "";
}

/* A default: a value, or the name of a parameter, which has it. */
static void write_default(FILE *out, const char *value)
{
    if (value)
        fprintf(out, "`%s` |", value);
    else
        fputs("|", out);
}

static void write_params(FILE *out)
{
    size_t next = 0;
    for (const scr_param *p = scr_param_table; p->name; p++) {
        if (next < PURPOSES && strcmp(p->name, purposes[next].first) == 0)
            fprintf(out,
                    "\n### %s\n\n| parameter | type | default | meaning |\n"
                    "| --- | --- | --- | --- |\n",
                    purposes[next++].title);
        fprintf(out, "| `%s` | %s%s | ", p->name, scr_param_type_name(p->type),
                p->flags & SCR_PARAM_LOCAL ? ", per node" : "");
        write_default(out, p->value);
        fprintf(out, " %s%s |\n", p->help, restriction(p->flags));
    }
    fputs("\n", out);
    assert_int_equal(next, PURPOSES);
}

static void write_fields(FILE *out, scr_desc_kind kind)
{
    fputs("\n| field | type | default | meaning |\n| --- | --- | --- | --- |\n", out);
    for (const scr_desc_field *f = scr_desc_field_table; f->name; f++) {
        if (f->kind != kind) continue;
        fprintf(out, "| `%s` | %s | ", f->name, scr_param_type_name(f->type));
        write_default(out, f->value);
        fprintf(out, " %s |\n", f->help);
    }
    fputs("\n", out);
}

static void write_stores(FILE *out)
{
    write_fields(out, SCR_DESC_STORE);
}

static void write_ckpts(FILE *out)
{
    write_fields(out, SCR_DESC_CKPT);
}

static void write_launchers(FILE *out)
{
    write_fields(out, SCR_DESC_LAUNCHER);
}

#define PAGE(name, make)                                                                 \
    {                                                                                    \
        SCR_DOCS "/configuration.md", "<!-- begin " name " -->\n",                       \
            "<!-- end " name " -->\n", make                                              \
    }
static const struct document pages[] = {
    PAGE("parameters", write_params), PAGE("STORE", write_stores),
    PAGE("CKPT", write_ckpts), PAGE("LAUNCHER", write_launchers)};
#define PAGES (sizeof pages / sizeof *pages)

static void tables_are_those_of_the_code(void **state)
{
    for (size_t i = 0; i < PAGES; i++)
        document_check(&pages[i]);
}

static int write_document(void)
{
    int bad = 0;
    for (size_t i = 0; i < PAGES; i++)
        bad |= document_write(&pages[i]);
    return bad;
}

/* ---- the examples ---- */

/* The block after the example lists the problems in it, as a file of the user
 * or of the system. */
static void example_is_told_so(const char *document, const char *name, int system)
{
    struct conf c;
    const char *messages, *user = "SCR_CNTL_BASE=/tmp/mine\n";
    char *text = document_example(document, name, &messages);
    conf_make(&c, system ? text : NULL, system ? user : text, NULL);
    messages = strstr(messages, "```\n") + strlen("```\n");
    if (strncmp(messages, c.problems.text, strlen(c.problems.text)) != 0)
        fail_msg("%s: %s", name, c.problems.text);
    assert_int_equal(strncmp(messages + strlen(c.problems.text), "```\n", 4), 0);
    conf_done(&c);
    free(text);
}

static void mistakes_are_told_so(void **state)
{
    char *document = document_read(pages[0].path);
    unsetenv("SCRATCH_THAT_IS_NOT_SET");
    example_is_told_so(document, "mistakes", 0);
    example_is_told_so(document, "mistakes in descriptors", 0);
    example_is_told_so(document, "locked", 1);
    free(document);
}

static char *values_of(const char *document, const char *name)
{
    struct conf c;
    char *text = document_example(document, name, NULL);
    conf_of(&c, text);
    values_only(c.config.user);
    char *values = tree_text(c.config.user);
    conf_done(&c);
    free(text);
    return values;
}

static void both_forms_say_the_same(void **state)
{
    static const char *const names[][2] = {{"file", "file of lines"},
                                           {"descriptors", "descriptors in lines"}};
    char *document = document_read(pages[0].path);
    setenv("USER", "me", 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *yaml = values_of(document, names[i][0]);
        char *lines = values_of(document, names[i][1]);
        assert_true(strlen(yaml) > 50);
        assert_string_equal(yaml, lines);
        free(yaml);
        free(lines);
    }
    char *values = values_of(document, "file");
    assert_says(values, "/ssd/me\n");
    assert_says(values, "heat: fine grid\n");
    free(values);
    free(document);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_those_of_the_code),
        cmocka_unit_test(mistakes_are_told_so),
        cmocka_unit_test(both_forms_say_the_same),
    };
    if (argc == 2 && strcmp(argv[1], "write") == 0) return write_document();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
