/* SPDX-License-Identifier: BSD-3-Clause */
/* docs/formats/log.md and scr.mysql have the events and fields of the code. With the
 * argument "write" this program puts them there. */
#include "document.h"
#include "report/log_private.h"

#define DOCUMENT SCR_DOCS "/formats/log.md"

static void put_fields(FILE *out, uint32_t fields, uint32_t without)
{
    const char *between = "";
    for (int i = 0; scr_log_fields[i].name; i++) {
        if (!((fields & ~without) >> i & 1)) continue;
        fprintf(out, "%s`%s`", between, scr_log_fields[i].name);
        between = ", ";
    }
}

static uint32_t common_fields(void)
{
    uint32_t common = ~0u;
    for (int i = 0; i < SCR_LOG_KINDS; i++)
        common &= scr_log_types[i].fields;
    return common;
}

static void make_events(FILE *out)
{
    fputs("\nEvery event has ", out);
    put_fields(out, common_fields(), 0);
    fputs(".\n\n| event | meaning | further fields |\n| --- | --- | --- |\n", out);
    for (int i = 0; i < SCR_LOG_KINDS; i++) {
        fprintf(out, "| `%s` | %s | ", scr_log_types[i].name, scr_log_types[i].help);
        put_fields(out, scr_log_types[i].fields, common_fields());
        fputs(" |\n", out);
    }
    fputs("\n", out);
}

static void make_fields(FILE *out)
{
    static const char *const types[] = {"time", "word", "text", "number", "seconds"};
    fputs("\n| field | type | meaning |\n| --- | --- | --- |\n", out);
    for (const scr_log_field *f = scr_log_fields; f->name; f++) {
        fprintf(out, "| `%s` | %s", f->name, types[f->type]);
        if (f->type == SCR_LOG_FIELD_TEXT) fprintf(out, " of at most %zu bytes", f->most);
        fprintf(out, " | %s |\n", f->help);
    }
    fputs("\n", out);
}

/* 2026-11-21T21:40:27Z, and some more. */
#define TIME 1795297227123456

static const scr_log_event examples[] = {
    {.kind = SCR_LOG_RUN_START,
     .time = TIME,
     .job_name = "heat",
     .prefix = "/p/simulation",
     .ranks = 8,
     .nodes = 4},
    {.kind = SCR_LOG_OUTPUT_COMPLETE,
     .time = TIME + 61500000,
     .dset = 1,
     .name = "the \"first\"\tone",
     .type = "checkpoint",
     .files = 8,
     .bytes = 8364,
     .secs = 0.0123},
};

static void put_lines(FILE *out, char *(*line_of)(const scr_log_event *, size_t *))
{
    const scr_log_options options = {.run = "20261121T214027-5ca1ab1e",
                                     .user = "tester",
                                     .job_id = "17",
                                     .host = "n1"};
    size_t size;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        scr_log_event *event = scr_log_copy(&examples[i], &options);
        char *line = line_of(event, &size);
        fputs(line, out);
        free(line);
        free(event);
    }
}

static void make_text(FILE *out)
{
    fputs("\n```\n", out);
    put_lines(out, scr_log_text_line);
    fputs("```\n\n", out);
}

static void make_json(FILE *out)
{
    fputs("\n```\n", out);
    put_lines(out, scr_log_json_line);
    fputs("```\n\n", out);
}

static void make_columns(FILE *out)
{
    for (const scr_log_field *f = scr_log_fields; f->name; f++) {
        fprintf(out, "    `%s` ", f->name);
        switch (f->type) {
        case SCR_LOG_FIELD_TIME:
            fputs("DATETIME(6) NULL,\n", out);
            break;
        case SCR_LOG_FIELD_KIND:
            fputs("VARBINARY(32) NOT NULL,\n", out);
            break;
        case SCR_LOG_FIELD_TEXT:
            fprintf(out, "VARBINARY(%zu) NULL,\n", f->most);
            break;
        case SCR_LOG_FIELD_NUMBER:
            fputs("BIGINT NULL,\n", out);
            break;
        case SCR_LOG_FIELD_SECONDS:
            fputs("DECIMAL(20,6) NULL,\n", out);
            break;
        }
    }
}

#define MARK(what) "<!-- begin " what " -->\n", "<!-- end " what " -->\n"

static const struct document parts[] = {
    {DOCUMENT, MARK("events"), make_events},
    {DOCUMENT, MARK("fields"), make_fields},
    {DOCUMENT, MARK("text example"), make_text},
    {DOCUMENT, MARK("json example"), make_json},
    {SCR_MYSQL, "-- begin columns\n", "-- end columns\n", make_columns},
};
#define PARTS (sizeof parts / sizeof *parts)

static void they_are_those_of_the_code(void **state)
{
    for (size_t i = 0; i < PARTS; i++)
        document_check(&parts[i]);
}

/* Names are said once, and a kind has the name that its number says. */
static void every_event_is_found(void **state)
{
    scr_log_kind kind;
    for (int i = 0; i < SCR_LOG_KINDS; i++) {
        assert_int_equal(scr_log_find(scr_log_types[i].name, &kind), 0);
        assert_int_equal(kind, i);
        assert_true(strlen(scr_log_types[i].name) <= 32);
        assert_non_null(scr_log_types[i].help);
    }
    assert_int_equal(scr_log_find("NO_SUCH_EVENT", &kind), -ENOENT);
    assert_int_equal(kind, SCR_LOG_KINDS - 1);
    assert_int_equal(scr_log_find("NODE_LOST", &kind), 0);
    assert_int_equal(kind, SCR_LOG_NODE_LOST);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_those_of_the_code),
        cmocka_unit_test(every_event_is_found),
    };
    if (argc == 2 && strcmp(argv[1], "write") == 0) {
        int bad = 0;
        for (size_t i = 0; i < PARTS; i++)
            bad = document_write(&parts[i]) || bad;
        return bad;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
