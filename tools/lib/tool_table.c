/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables for people and for programs; see tool_table.h. */
#include "lib/tool_table.h"

#include "common/number.h"
#include "lib/tool.h"
#include "report/quote.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void table_free(tool_table *table)
{
    for (int i = 0; i < table->cells; i++) {
        free(table->list[i].shown);
        free(table->list[i].json);
    }
    free(table->list);
    free(table);
}

/* ---- cells ---- */

/* The next cell, empty; NULL without memory. */
static cell *table_add_cell(tool_table *table)
{
    if (!table) return NULL;
    int n = table->cells;
    if ((n & (n + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
        cell *more = realloc(table->list, (2 * (size_t)n + 1) * sizeof *more);
        table->failed |= !more;
        if (!more) return NULL;
        table->list = more;
    }
    table->list[n] = (cell){NULL, NULL, TOOL_PLAIN};
    table->cells++;
    return &table->list[n];
}

/* A text that is written by a stream; NULL without memory. */
struct text {
    char *at;
    size_t size;
    FILE *out;
};

static int table_open_text(struct text *t)
{
    t->at = NULL;
    t->out = open_memstream(&t->at, &t->size);
    return t->out != NULL;
}

static char *table_close_text(struct text *t)
{
    int bad = ferror(t->out);
    if (fclose(t->out) == 0 && !bad) return t->at;
    free(t->at);
    return NULL;
}

/* The texts, each written by put, with what stands between and around them. */
static char *table_join(const char *const *texts, int count, const char *const around[3],
                        void (*put)(FILE *, const char *))
{
    struct text t;
    if (!table_open_text(&t)) return NULL;
    fputs(around[0], t.out);
    for (int i = 0; i < count; i++) {
        if (i) fputs(around[1], t.out);
        put(t.out, texts[i]);
    }
    fputs(around[2], t.out);
    return table_close_text(&t);
}

static void table_put_shown(FILE *out, const char *text)
{
    scr_quote_text(out, text, "");
}

static void table_put_json(FILE *out, const char *text)
{
    scr_quote_json(out, text);
}

static const char *const no_marks[3] = {"", " ", ""};
static const char *const array_marks[3] = {"[", ", ", "]"};

static void table_fill_cell(tool_table *table, cell *c, char *shown, char *json)
{
    if (c && shown && json) {
        c->shown = shown;
        c->json = json;
        return;
    }
    free(shown);
    free(json);
    if (table) table->failed = 1;
}

void tool_table_text(tool_table *table, const char *text)
{
    cell *c = table_add_cell(table);
    if (c && text)
        table_fill_cell(table, c, table_join(&text, 1, no_marks, table_put_shown),
                        table_join(&text, 1, no_marks, table_put_json));
}

void tool_table_number(tool_table *table, int64_t number)
{
    char buffer[NUMBER_TEXT_SIZE];
    const char *text = number_text_int64(buffer, number);
    cell *c = table_add_cell(table);
    if (c) table_fill_cell(table, c, strdup(text), strdup(text));
}

void tool_table_real(tool_table *table, double number)
{
    char text[400]; /* the largest double has 309 digits */
    cell *c = table_add_cell(table);
    snprintf(text, sizeof text, "%.1f", number);
    if (c) table_fill_cell(table, c, strdup(text), strdup(text));
}

void tool_table_switch(tool_table *table, int on)
{
    cell *c = table_add_cell(table);
    if (c)
        table_fill_cell(table, c, strdup(on ? "yes" : "no"),
                        strdup(on ? "true" : "false"));
}

void tool_table_list(tool_table *table, const char *const *texts, int count)
{
    cell *c = table_add_cell(table);
    if (c)
        table_fill_cell(table, c, table_join(texts, count, no_marks, table_put_shown),
                        table_join(texts, count, array_marks, table_put_json));
}

void tool_table_mark(tool_table *table, tool_mark mark)
{
    if (table && table->cells) table->list[table->cells - 1].mark = mark;
}

/* ---- people ---- */

/* Columns that a text takes: each UTF-8 character one. */
static int table_text_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static bool table_is_coloured(void)
{
    const char *term = getenv("TERM"), *off = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && !(off && *off);
}

/* to: columns that it takes at least; below 0: the same, to the right. */
static void table_print_cell(const char *text, int to, const char *colour)
{
    int blanks = abs(to) - table_text_width(text);
    if (blanks < 0) blanks = 0;
    if (to < 0) printf("%*s", blanks, "");
    printf("%s%s%s", colour, text, *colour ? "\033[0m" : "");
    if (to > 0) printf("%*s", blanks, "");
}

static const char *table_color(const cell *c, int coloured)
{
    static const char *const colours[] = {"", "\033[32m", "\033[33m", "\033[31m"};
    return coloured ? colours[c->mark] : "";
}

static const cell *table_cell_at(const tool_table *table, int row, int column)
{
    return &table->list[row * table->width + column];
}

static const char *table_shown_at(const tool_table *table, int row, int column)
{
    const char *shown = table_cell_at(table, row, column)->shown;
    return shown && *shown ? shown : "-";
}

static int table_column_width(const tool_table *table, int rows, int column)
{
    int width = table_text_width(table->columns[column].title);
    for (int row = 0; row < rows; row++) {
        int of_cell = table_text_width(table_shown_at(table, row, column));
        if (of_cell > width) width = of_cell;
    }
    return table->columns[column].type == TOOL_NUMBER ? -width : width;
}

/* Row -1 is that of the titles. The last column has no blanks behind it. */
static void table_print_row(const tool_table *table, int row, const int *widths,
                            int coloured)
{
    int last = table->width - 1, first = 1;
    while (last > 0 && !table->columns[last].title)
        last--;
    for (int i = 0; i <= last; i++) {
        int width = i == last && widths[i] > 0 ? 0 : widths[i];
        if (!table->columns[i].title) continue;
        if (!first) printf("  ");
        first = 0;
        if (row < 0)
            table_print_cell(table->columns[i].title, width, coloured ? "\033[1m" : "");
        else
            table_print_cell(table_shown_at(table, row, i), width,
                             table_color(table_cell_at(table, row, i), coloured));
    }
    printf("\n");
}

static int table_print_columns(const tool_table *table, int rows)
{
    int *widths = calloc((size_t)table->width, sizeof *widths);
    int coloured = table_is_coloured();
    if (!widths) return tool_complain("no memory");
    for (int i = 0; i < table->width; i++)
        if (table->columns[i].title) widths[i] = table_column_width(table, rows, i);
    for (int row = -1; row < rows; row++)
        table_print_row(table, row, widths, coloured);
    free(widths);
    return COMMAND_GOOD;
}

static void table_print_lines(const tool_table *table, int rows)
{
    int width = 0, coloured = table_is_coloured();
    for (int i = 0; i < table->width; i++)
        if (table->columns[i].title && table_text_width(table->columns[i].title) > width)
            width = table_text_width(table->columns[i].title);
    for (int row = 0; row < rows; row++) {
        if (row) printf("\n");
        for (int i = 0; i < table->width; i++) {
            const cell *c = table_cell_at(table, row, i);
            if (!table->columns[i].title || !c->shown) continue;
            table_print_cell(table->columns[i].title, width + 2,
                             coloured ? "\033[1m" : "");
            table_print_cell(c->shown, 0, table_color(c, coloured));
            printf("\n");
        }
    }
}

/* ---- programs ---- */

static void table_print_json(const tool_table *table, int rows)
{
    for (int row = 0; row < rows; row++) {
        for (int i = 0; i < table->width; i++) {
            const char *json = table_cell_at(table, row, i)->json;
            printf("%s\"%s\": %s", i ? ", " : "{", table->columns[i].key,
                   json ? json : "null");
        }
        printf("}\n");
    }
}

int tool_table_print(tool_table *table, tool_form form)
{
    if (!table || table->failed) {
        if (table) table_free(table);
        return tool_complain("no memory");
    }
    int rows = table->cells / table->width, code = COMMAND_GOOD;
    if (form == TOOL_JSON)
        table_print_json(table, rows);
    else if (form == TOOL_LINES)
        table_print_lines(table, rows);
    else
        code = table_print_columns(table, rows);
    table_free(table);
    return code;
}
