/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that commands print; see tool_table.h. */
#include "lib/tool_table.h"

#include "common/array.h"
#include "common/io.h"
#include "common/number.h"
#include "lib/tool.h"
#include "report/quote.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { INDENT = 4 }; /* of a text that has lines of its own */

typedef struct cell {
    char *shown; /* for people; NULL: no value */
    char *json;
    tool_mark mark;
} cell;

struct tool_table {
    const tool_column *columns;
    int width, cells;
    cell *list;
    int failed; /* no memory for a cell */
};

tool_table *tool_table_new(const tool_column *columns, int count)
{
    tool_table *table = calloc(1, sizeof *table);
    if (!table) return NULL;
    table->columns = columns;
    table->width = count;
    return table;
}

static void table_delete(tool_table *table)
{
    for (int i = 0; i < table->cells; i++) {
        free(table->list[i].shown);
        free(table->list[i].json);
    }
    free(table->list);
    free(table);
}

/* ---- cells ---- */

/* Adds a cell and takes ownership of its texts; empty: the cell has no value. */
static void table_add_cell(tool_table *table, char *shown, char *json, bool empty)
{
    cell *list =
        table ? array_grow(table->list, (size_t)table->cells, sizeof *list) : NULL;
    if (list) table->list = list;
    if (list && (empty || (shown && json))) {
        list[table->cells++] = (cell){shown, json, TOOL_PLAIN};
        return;
    }
    free(shown);
    free(json);
    if (table) table->failed = 1;
}

/* Joins the texts, separated by blanks, or as JSON; NULL without memory. */
static char *table_join(const char *const *texts, int count, bool json, bool array)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    if (array) fputc('[', out);
    for (int i = 0; i < count; i++) {
        if (i) fputs(array ? ", " : " ", out);
        if (json)
            scr_quote_json_for(out, stdout, texts[i]);
        else
            scr_quote_text_for(out, stdout, texts[i]);
    }
    if (array) fputc(']', out);
    return io_text_end(out, &text);
}

void tool_table_text(tool_table *table, const char *text)
{
    table_add_cell(table, text ? table_join(&text, 1, false, false) : NULL,
                   text ? table_join(&text, 1, true, false) : NULL, !text);
}

void tool_table_number(tool_table *table, int64_t number)
{
    char buffer[NUMBER_TEXT_SIZE];
    const char *text = number_text_int64(buffer, number);
    table_add_cell(table, strdup(text), strdup(text), false);
}

void tool_table_real(tool_table *table, double number)
{
    char text[400]; /* the largest double has 309 digits */
    snprintf(text, sizeof text, "%.1f", number);
    table_add_cell(table, strdup(text), strdup(text), false);
}

void tool_table_exact(tool_table *table, double number)
{
    char shown[400], json[400];
    snprintf(shown, sizeof shown, number < 10 ? "%.3f" : "%.1f", number);
    snprintf(json, sizeof json, "%.6f", number);
    table_add_cell(table, strdup(shown), strdup(json), false);
}

void tool_table_switch(tool_table *table, int on)
{
    table_add_cell(table, strdup(on ? "yes" : "no"), strdup(on ? "true" : "false"),
                   false);
}

void tool_table_list(tool_table *table, const char *const *texts, int count)
{
    table_add_cell(table, table_join(texts, count, false, false),
                   table_join(texts, count, true, true), false);
}

void tool_table_mark(tool_table *table, tool_mark mark)
{
    if (table && table->cells) table->list[table->cells - 1].mark = mark;
}

/* ---- output ---- */

/* Columns of a text on a terminal: one per UTF-8 character. */
static int table_text_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static bool table_is_colored(void)
{
    const char *term = getenv("TERM"), *off = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && !(off && *off);
}

/* width: minimum number of columns; negative: aligned to the right. */
static void table_print_text(const char *text, int width, const char *color)
{
    int blanks = abs(width) - table_text_width(text);
    if (blanks < 0) blanks = 0;
    if (!table_is_colored()) color = "";
    printf("%*s%s%s%s%*s", width < 0 ? blanks : 0, "", color, text,
           *color ? "\033[0m" : "", width > 0 ? blanks : 0, "");
}

static const cell *table_cell(const tool_table *table, int row, int column)
{
    return &table->list[row * table->width + column];
}

/* Prints a cell; row -1 has the titles. */
static void table_print_cell(const tool_table *table, int row, int column, int width)
{
    static const char *const colors[] = {"", "\033[32m", "\033[33m", "\033[31m"};
    const cell *c = row < 0 ? NULL : table_cell(table, row, column);
    if (!c)
        table_print_text(table->columns[column].title, width, "\033[1m");
    else
        table_print_text(c->shown && *c->shown ? c->shown : "-", width, colors[c->mark]);
}

/* Columns of the terminal; 0: no terminal. */
static int table_terminal_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO)) return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Prints the last cell of a row, after `used` columns. most: columns of a line; 0: no
 * limit. */
static void table_print_last(const tool_table *table, int row, int column, int width,
                             int used, int most)
{
    const char *shown =
        row < 0 ? table->columns[column].title : table_cell(table, row, column)->shown;
    if (most && shown && used && used + 2 + table_text_width(shown) > most) {
        printf("\n%*s", INDENT, "");
        tool_print_wrapped(shown, INDENT, INDENT, most);
    } else {
        printf("%s", used ? "  " : "");
        table_print_cell(table, row, column, width);
        printf("\n");
    }
}

static int table_column_width(const tool_table *table, int rows, int column)
{
    if (!table->columns[column].title) return 0;
    int width = table_text_width(table->columns[column].title);
    for (int row = 0; row < rows; row++) {
        const char *shown = table_cell(table, row, column)->shown;
        int of_cell = shown && *shown ? table_text_width(shown) : 1;
        if (of_cell > width) width = of_cell;
    }
    return table->columns[column].type == TOOL_NUMBER ? -width : width;
}

static int table_print_columns(const tool_table *table, int rows)
{
    int *widths = calloc((size_t)table->width, sizeof *widths), last = 0;
    if (!widths) return tool_no_memory();
    for (int i = 0; i < table->width; i++) {
        widths[i] = table_column_width(table, rows, i);
        if (table->columns[i].title) last = i;
    }
    if (widths[last] > 0) widths[last] = 0; /* no blanks at the end of a line */
    const int most = widths[last] < 0 ? 0 : table_terminal_width();
    for (int row = -1; row < rows; row++) {
        int used = 0;
        for (int i = 0; i < last; i++) {
            if (!table->columns[i].title) continue;
            if (most && used && used + 2 + abs(widths[i]) > most)
                used = printf("\n%*s", INDENT, "") - 1;
            else if (used)
                used += printf("  ");
            table_print_cell(table, row, i, widths[i]);
            used += abs(widths[i]);
        }
        table_print_last(table, row, last, widths[last], used, most);
    }
    free(widths);
    return COMMAND_GOOD;
}

static void table_print_lines(const tool_table *table, int rows)
{
    int width = 0;
    for (int i = 0; i < table->width; i++)
        if (table->columns[i].title && table_text_width(table->columns[i].title) > width)
            width = table_text_width(table->columns[i].title);
    for (int row = 0; row < rows; row++) {
        if (row) printf("\n");
        for (int i = 0; i < table->width; i++) {
            const cell *c = table_cell(table, row, i);
            if (!table->columns[i].title || !c->shown) continue;
            table_print_cell(table, -1, i, width + 2);
            if (*c->shown) table_print_cell(table, row, i, 0);
            printf("\n");
        }
    }
}

static void table_print_json(const tool_table *table, int rows)
{
    for (int row = 0; row < rows; row++) {
        for (int i = 0; i < table->width; i++) {
            const char *json = table_cell(table, row, i)->json;
            printf("%s\"%s\": %s", i ? ", " : "{", table->columns[i].key,
                   json ? json : "null");
        }
        printf("}\n");
    }
}

int tool_table_print(tool_table *table, tool_form form)
{
    if (!table || table->failed) {
        if (table) table_delete(table);
        return tool_no_memory();
    }
    int rows = table->cells / table->width, code = COMMAND_GOOD;
    if (form == TOOL_JSON)
        table_print_json(table, rows);
    else if (form == TOOL_LINES)
        table_print_lines(table, rows);
    else
        code = table_print_columns(table, rows);
    table_delete(table);
    return code;
}
