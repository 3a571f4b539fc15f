/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and stores the tokens of configuration files; see config/reader.h. */
#include "config/reader.h"
#include "common/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE_SIZE 512

void scr_read_problem(const scr_reader *r, scr_mark mark, const char *text,
                      const char *name)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: %s \"%.100s\"", r->path, mark.line,
                     mark.column, text, name);
}

void scr_read_no_memory(const scr_reader *r, scr_mark mark)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: no memory", r->path, mark.line,
                     mark.column);
}

static void reader_report_unknown(const scr_reader *r, scr_token name, const char *what,
                                  const char *nearest)
{
    scr_problems_add(r->problems, "%s:%zu:%zu: unknown %s \"%.100s\"; did you mean %s?",
                     r->path, name.mark.line, name.mark.column, what, name.text, nearest);
}

static void reader_source(char source[SOURCE_SIZE], const scr_reader *r, scr_mark mark)
{
    if (r->plain)
        snprintf(source, SOURCE_SIZE, "%.440s", r->path);
    else
        snprintf(source, SOURCE_SIZE, "%.440s:%zu:%zu", r->path, mark.line, mark.column);
}

/* ---- values ---- */

/* Writes the value of the variable at *text ("$VAR" or "${VAR}") to stream and advances
 * *text. A "$" without a name is written itself. False after a problem. */
static bool reader_put_variable(const scr_reader *r, scr_mark mark, const char **text,
                                FILE *stream)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    const bool braces = (*text)[1] == '{';
    const char *name = *text + 1 + braces;
    size_t n = strspn(name, letters);
    if (braces && (n == 0 || name[n] != '}')) {
        scr_read_problem(r, mark, "no name of a variable in braces:", *text);
        return false;
    }
    *text = name + n + braces;
    if (n == 0) return fputc('$', stream) != EOF;
    char *copy = strndup(name, n);
    const char *value = copy ? getenv(copy) : NULL;
    if (value)
        fputs(value, stream);
    else if (copy)
        scr_read_problem(r, mark, "no such environment variable:", copy);
    else
        scr_read_no_memory(r, mark);
    free(copy);
    return value != NULL;
}

/* A copy with environment variables expanded; NULL after a problem. */
static char *reader_expand(const scr_reader *r, scr_mark mark, const char *text)
{
    char *out = NULL;
    size_t size;
    FILE *stream = open_memstream(&out, &size);
    bool good = true;
    while (stream && *text && good)
        if (*text == '$')
            good = reader_put_variable(r, mark, &text, stream);
        else
            fputc(*text++, stream);
    if (!stream || !io_text_end(stream, &out)) scr_read_no_memory(r, mark);
    if (good) return out;
    free(out);
    return NULL;
}

/* The value of name, expanded, to be freed. NULL after a problem; a missing or empty
 * value is one. */
static char *reader_value(const scr_reader *r, const char *name, scr_token value)
{
    if (!value.text) {
        scr_read_problem(r, value.mark, "one value was expected for", name);
        return NULL;
    }
    char *text = r->plain ? strdup(value.text) : reader_expand(r, value.mark, value.text);
    if (!text && r->plain) scr_read_no_memory(r, value.mark);
    if (!text || *text || r->plain) return text;
    scr_read_problem(r, value.mark, "no value for", name);
    free(text);
    return NULL;
}

/* ---- parameters ---- */

void scr_read_param(const scr_reader *r, scr_token name, scr_token value)
{
    char source[SOURCE_SIZE];
    if (!scr_param_find(name.text)) {
        reader_report_unknown(r, name, "parameter", scr_desc_nearest(name.text));
        return;
    }
    if (kvtree_get(r->layer, name.text)) {
        scr_read_problem(r, name.mark, "given twice:", name.text);
        return;
    }
    char *text = reader_value(r, name.text, value);
    reader_source(source, r, value.mark);
    if (text && scr_layer_set(r->layer, name.text, text, source) != 0)
        scr_read_no_memory(r, value.mark);
    free(text);
}

void scr_read_locked(const scr_reader *r, scr_token name)
{
    char source[SOURCE_SIZE];
    reader_source(source, r, name.mark);
    if (!scr_param_find(name.text)) {
        reader_report_unknown(r, name, "parameter", scr_param_nearest(name.text));
        return;
    }
    kvtree *list = kvtree_get(r->layer, SCR_LOCKED);
    if (!list) list = kvtree_set(r->layer, SCR_LOCKED, NULL);
    if (kvtree_get(list, name.text))
        scr_read_problem(r, name.mark, "given twice:", name.text);
    else if (!kvtree_setf(list, NULL, "%s SOURCE %s", name.text, source))
        scr_read_no_memory(r, name.mark);
}

/* ---- descriptors ---- */

kvtree *scr_read_desc(const scr_reader *r, scr_desc_kind kind, scr_token token)
{
    char source[SOURCE_SIZE];
    const char *kind_name = scr_desc_kind_name(kind);
    kvtree *desc = NULL;
    char *text = reader_value(r, kind_name, token);
    if (!text) return NULL;
    char *key = scr_desc_key(kind, text);
    reader_source(source, r, token.mark);
    if (!key)
        scr_problems_add(r->problems, "%s:%zu:%zu: %s must be %s, not \"%.100s\"",
                         r->path, token.mark.line, token.mark.column, kind_name,
                         scr_desc_key_rule(kind), text);
    else if (scr_desc_get(r->layer, kind, key))
        scr_problems_add(r->problems, "%s:%zu:%zu: given twice: \"%s=%.100s\"", r->path,
                         token.mark.line, token.mark.column, kind_name, key);
    else if (!(desc = scr_desc_add(r->layer, kind, key, source)))
        scr_read_no_memory(r, token.mark);
    free(key);
    free(text);
    return desc;
}

static void reader_report_field(const scr_reader *r, scr_desc_kind kind, scr_token name)
{
    char what[32];
    snprintf(what, sizeof what, "field of %s", scr_desc_kind_name(kind));
    if (kind != SCR_DESC_GROUPS)
        reader_report_unknown(r, name, what, scr_desc_field_nearest(kind, name.text));
    else
        scr_read_problem(r, name.mark,
                         scr_desc_is_name(name.text) ? "this group is built in:"
                                                     : "not the name of a group:",
                         name.text);
}

void scr_read_field(const scr_reader *r, scr_desc_kind kind, kvtree *desc, scr_token name,
                    scr_token value)
{
    char source[SOURCE_SIZE];
    const bool is_group = kind == SCR_DESC_GROUPS;
    const char *field = scr_desc_field_find(kind, name.text);
    if (!field) {
        reader_report_field(r, kind, name);
        return;
    }
    if (scr_desc_has(desc, field)) {
        scr_read_problem(r, name.mark, "given twice:", field);
        return;
    }
    char *text = reader_value(r, field, value);
    if (!text) return;
    reader_source(source, r, value.mark);
    if (is_group && *text && !scr_desc_is_name(text))
        scr_read_problem(r, value.mark, "not the value of a group:", text);
    else if (scr_desc_set(desc, field, text, is_group ? NULL : source) != 0)
        scr_read_no_memory(r, value.mark);
    free(text);
}
