/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_doctor: checks a site before the first run and suggests remedies. */
#include "config/parameters.h"
#include "doctor/doctor.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include <stdio.h>
#include <string.h>

static const tool_column doctor_columns[] = {{"check", "CHECK", TOOL_TEXT},
                                             {"result", "RESULT", TOOL_TEXT},
                                             {"text", "DETAIL", TOOL_TEXT},
                                             {"message", NULL, TOOL_TEXT},
                                             {"remedy", NULL, TOOL_TEXT}};

static int scr_doctor_print(const doctor_row *rows, int count, int json)
{
    static const char *const results[] = {"", "good", "warning", "bad"};
    tool_table *t = tool_table_new(doctor_columns, 5);
    for (int i = 0; i < count; i++) {
        const doctor_row *r = &rows[i];
        tool_table_text(t, r->check);
        tool_table_text(t, results[r->mark]);
        tool_table_mark(t, r->mark);
        tool_table_text(t, r->text);
        tool_table_text(t, r->message < 0 ? NULL : tool_messages[r->message].identifier);
        tool_table_text(t, doctor_remedy(r->message));
    }
    return tool_table_print(t, json ? TOOL_JSON : TOOL_COLUMNS);
}

/* Prints indented lines of at most 78 columns. */
static void scr_doctor_wrap(const char *text)
{
    enum { COLUMNS = 76 };
    while (*text) {
        int length = (int)strlen(text);
        if (length > COLUMNS) {
            length = COLUMNS;
            while (length > 0 && text[length] != ' ')
                length--;
            if (!length) length = (int)strcspn(text, " ");
        }
        printf("  %.*s\n", length, text);
        text += length;
        text += strspn(text, " ");
    }
}

static void scr_doctor_advise(const doctor_row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        if (rows[i].message < 0) continue;
        printf("\n%s [%s]:\n", rows[i].check, tool_messages[rows[i].message].identifier);
        scr_doctor_wrap(doctor_remedy(rows[i].message));
    }
}

static int scr_doctor_run(const tool_prefix *prefix, int64_t wanted, int json)
{
    doctor_facts facts;
    doctor_row rows[DOCTOR_ROWS];
    int count = doctor_ask_commands(prefix, rows);
    doctor_measure(prefix, &facts);
    facts.wanted = wanted;
    count += doctor_judge(&facts, rows + count);
    int code = scr_doctor_print(rows, count, json);
    if (!json) scr_doctor_advise(rows, count);
    for (int i = 0; i < count; i++)
        if (rows[i].mark == TOOL_BAD) code = COMMAND_BAD;
    return code;
}

int main(int argc, char **argv)
{
    const char *dir = NULL, *space = "1GB";
    int json = 0;
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&dir),
        {'s', "space", "SIZE", "least free space, as 500GB (default: 1GB)",
         .text = &space},
        {'j', "json", NULL, "print a JSON object for each check", .flag = &json},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "Checks this machine and the prefix directory before the first run: "
                 "configuration,\ndirectories, programs, locks, clock, space, memory and "
                 "limits. Says what to do.\n",
        .codes = "0 all is good, or there are only warnings, 1 something is bad, or an "
                 "error,\n2 wrong usage.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    uint64_t wanted = 0;
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0 && (scr_parse_bytes(space, &wanted) != 0 || wanted > INT64_MAX))
        code = tool_misused(&t, "--space %s: no size, as 500GB", space);
    if (code >= 0) return code;
    code = tool_prefix_configure_anyway(&prefix, dir);
    if (code == COMMAND_GOOD) code = scr_doctor_run(&prefix, (int64_t)wanted, json);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
