/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and stores the tokens of configuration files; see config/reader.h. */
#include "config/reader.h"
#include "common/io.h"
#include "config/former.h"

#include <errno.h>
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

/* Whether name is a former name without a meaning now, which is a warning. */
static bool reader_is_former(const scr_reader *r, scr_token name)
{
    const char *reason = scr_former_reason(name.text);
    if (reason)
        scr_problems_warn(r->problems, "%s:%zu:%zu: %s has no meaning here, because %s",
                          r->path, name.mark.line, name.mark.column, name.text, reason);
    return reason != NULL;
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
 * *text. Writes a "$" without a name as it is. Returns -EINVAL after a problem, or
 * -ENOMEM. */
static int reader_put_variable(const scr_reader *r, scr_mark mark, const char **text,
                               FILE *stream)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    const bool braces = (*text)[1] == '{';
    const char *name = *text + 1 + braces;
    size_t n = strspn(name, letters);
    if (braces && (n == 0 || name[n] != '}')) {
        scr_read_problem(r, mark, "no name of a variable in braces:", *text);
        return -EINVAL;
    }
    *text = name + n + braces;
    char *copy = n ? strndup(name, n) : strdup("");
    if (!copy) return -ENOMEM;
    const char *value = n ? getenv(copy) : "$";
    if (value)
        fputs(value, stream);
    else
        scr_read_problem(r, mark, "no such environment variable:", copy);
    free(copy);
    return value ? 0 : -EINVAL;
}

int scr_read_expand(const scr_reader *r, scr_mark mark, const char *text, char **value)
{
    size_t size;
    *value = NULL;
    FILE *stream = open_memstream(value, &size);
    int rc = 0;
    while (stream && *text && !rc)
        if (*text == '$')
            rc = reader_put_variable(r, mark, &text, stream);
        else
            fputc(*text++, stream);
    if (!stream || !io_text_end(stream, value)) rc = -ENOMEM;
    if (rc == -ENOMEM) scr_read_no_memory(r, mark);
    if (rc) {
        free(*value);
        *value = NULL;
    }
    return rc;
}

/* Returns the expanded value of name, which the caller frees; NULL after a problem, such
 * as a missing or empty value. */
static char *reader_value(const scr_reader *r, const char *name, scr_token value)
{
    if (!value.text) {
        scr_read_problem(r, value.mark, "one value was expected for", name);
        return NULL;
    }
    char *text;
    scr_read_expand(r, value.mark, value.text, &text);
    if (!text || *text || r->plain) return text;
    scr_read_problem(r, value.mark, "no value for", name);
    free(text);
    return NULL;
}

/* ---- parameters ---- */

void scr_read_param(const scr_reader *r, scr_token name, scr_token value)
{
    char source[SOURCE_SIZE];
    const scr_param *param = scr_param_find(name.text);
    if (!param) {
        if (!reader_is_former(r, name))
            reader_report_unknown(r, name, "parameter", scr_desc_nearest(name.text));
        return;
    }
    if (kvtree_get(r->layer, param->name)) {
        scr_read_problem(r, name.mark, "given twice:", param->name);
        return;
    }
    char *text = reader_value(r, param->name, value);
    reader_source(source, r, value.mark);
    if (text && scr_layer_set(r->layer, param->name, text, source) != 0)
        scr_read_no_memory(r, value.mark);
    free(text);
}

void scr_read_locked(const scr_reader *r, scr_token name)
{
    char source[SOURCE_SIZE];
    const scr_param *param = scr_param_find(name.text);
    reader_source(source, r, name.mark);
    if (!param) {
        if (!reader_is_former(r, name))
            reader_report_unknown(r, name, "parameter", scr_param_nearest(name.text));
        return;
    }
    kvtree *list = kvtree_get(r->layer, SCR_LOCKED);
    if (!list) list = kvtree_set(r->layer, SCR_LOCKED, NULL);
    if (kvtree_get(list, param->name))
        scr_read_problem(r, name.mark, "given twice:", param->name);
    else if (!kvtree_setf(list, NULL, "%s SOURCE %s", param->name, source))
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
