/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H

/* Tables that commands print: in columns, with one line per value, or as JSON with one
 * object per line.
 *
 *     static const tool_column columns[] = {{"name", "NAME", TOOL_TEXT},
 *                                           {"files", "FILES", TOOL_NUMBER}};
 *     tool_table *table = tool_table_new(columns, 2);
 *     tool_table_text(table, "ckpt.1");
 *     tool_table_number(table, 8);
 *     return tool_finish(tool_table_print(table, json ? TOOL_JSON : TOOL_COLUMNS));
 *
 * On a terminal, a row that is too long continues on further lines, and a text in the
 * last column is wrapped. Titles are bold and marked cells are colored, unless NO_COLOR
 * is set. Control characters are quoted. */

#include <stdint.h>

typedef enum tool_type {
    TOOL_TEXT,
    TOOL_NUMBER, /* aligned to the right */
    TOOL_SWITCH, /* yes or no; in JSON true or false */
    TOOL_LIST    /* any number of texts; in JSON an array */
} tool_type;

typedef struct tool_column {
    const char *key;   /* in JSON */
    const char *title; /* for people; NULL: only in JSON */
    tool_type type;
} tool_column;

typedef enum tool_form { TOOL_COLUMNS, TOOL_LINES, TOOL_JSON } tool_form;

typedef enum tool_mark { TOOL_PLAIN, TOOL_GOOD, TOOL_WARN, TOOL_BAD } tool_mark;

typedef struct tool_table tool_table;

/* Returns an empty table; columns must outlive it. NULL without memory; all functions
 * accept NULL. */
tool_table *tool_table_new(const tool_column *columns, int count);

/* Adds the next cell, row by row. A NULL text is null in JSON, '-' in columns, and no
 * line in the form TOOL_LINES. */
void tool_table_text(tool_table *table, const char *text);
void tool_table_number(tool_table *table, int64_t number);
void tool_table_real(tool_table *table, double number);  /* with one decimal */
void tool_table_exact(tool_table *table, double number); /* with three below 10;
                                                             in JSON with six */
void tool_table_switch(tool_table *table, int on);
void tool_table_list(tool_table *table, const char *const *texts, int count);

/* Sets the color of the cell that was added last. */
void tool_table_mark(tool_table *table, tool_mark mark);

/* Prints and frees the table; an exit code, to be passed to tool_finish. */
int tool_table_print(tool_table *table, tool_form form);

#endif
