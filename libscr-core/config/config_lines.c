/* SPDX-License-Identifier: BSD-3-Clause */
/* The older form of configuration files, which is also the form of texts of SCR_Config;
 * see config/config_file.h:
 *
 *     SCR_FLUSH=5                                  # a comment
 *     SCR_JOB_NAME="heat: fine grid"
 *     CKPT=0 INTERVAL=1 STORE=/ssd TYPE=XOR
 *
 * A line is a parameter and its value, or a descriptor: its kind, its key, and its
 * fields. Words are separated by blanks, and there may be blanks around "=". A value that
 * contains blanks or a "#" is enclosed in single or double quotes. */
#include "config/config_file.h"

#include "common/errtext.h"
#include "config/former.h"
#include "config/reader.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The unparsed part of a line, and its position. Parsing modifies the text: each name and
 * value gets a NUL at its end. */
struct line {
    const scr_reader *r;
    char *begin, *at;
    size_t number;
};

/* NAME=value; the text of value is NULL if there is no "=". */
struct pair {
    scr_token name, value;
};

static scr_mark lines_mark(const struct line *l, const char *at)
{
    return (scr_mark){l->number, (size_t)(at - l->begin) + 1};
}

static void lines_skip_blanks(struct line *l)
{
    l->at += strspn(l->at, " \t");
}

static bool lines_is_at_end(struct line *l)
{
    lines_skip_blanks(l);
    return !*l->at || *l->at == '#';
}

/* Returns the value at the current position; NULL if a quote is not closed. */
static char *lines_next_value(struct line *l)
{
    char quote = *l->at == '"' || *l->at == '\'' ? *l->at : 0, *value = l->at + !!quote;
    char *end = quote ? strchr(value, quote) : value + strcspn(value, " \t");
    if (!end || (quote && end[1] && !strchr(" \t", end[1]))) return NULL;
    l->at = end + (*end != 0);
    *end = 0;
    return value;
}

/* Parses the next pair. Returns 1; 0 at the end of the line; -1 for a mistake at the
 * position of pair->value, with *why set. */
static int lines_parse_pair(struct line *l, struct pair *pair, const char **why)
{
    if (lines_is_at_end(l)) return 0;
    char *name = l->at;
    size_t n = strcspn(name, "= \t");
    *pair = (struct pair){{name, lines_mark(l, name)}, {NULL, lines_mark(l, name)}};
    *why = "a name was expected before";
    if (n == 0) return -1;
    l->at += n;
    lines_skip_blanks(l);
    bool has_value = *l->at == '=';
    l->at += has_value;
    name[n] = 0;
    if (!has_value) return 1;
    lines_skip_blanks(l);
    pair->value.mark = lines_mark(l, l->at);
    *why = "a quote does not end where the value ends:";
    if (*l->at == '#') l->at += strlen(l->at);
    pair->value.text = lines_next_value(l);
    return pair->value.text ? 1 : -1;
}

/* ---- lines of a file ---- */

/* Parses the next pair, which must have a value. Returns false at the end of the line,
 * and after a problem. */
static bool lines_next_pair(struct line *l, struct pair *pair)
{
    const char *why;
    int rc = lines_parse_pair(l, pair, &why);
    if (rc < 0) scr_read_problem(l->r, pair->value.mark, why, l->at);
    if (rc > 0 && !pair->value.text) {
        scr_read_problem(l->r, pair->value.mark, "no \"=\" after", pair->name.text);
        rc = 0;
    }
    return rc > 0;
}

static void lines_read_desc(struct line *l, scr_desc_kind kind, const struct pair *first)
{
    struct pair pair;
    kvtree *desc = scr_read_desc(l->r, kind, first->value);
    while (desc && lines_next_pair(l, &pair))
        scr_read_field(l->r, kind, desc, pair.name, pair.value);
}

/* SCR_LOCKED=SCR_CNTL_BASE,SCR_PREFIX */
static void lines_read_locked(struct line *l, const struct pair *pair)
{
    char *rest = l->begin + (pair->value.text - l->begin), *name;
    while ((name = strsep(&rest, ",")))
        scr_read_locked(l->r, (scr_token){name, lines_mark(l, name)});
}

static void lines_read_line(struct line *l)
{
    struct pair pair;
    if (!lines_next_pair(l, &pair)) return;
    scr_desc_kind kind = scr_desc_kind_find(pair.name.text);
    if (kind != SCR_DESC_KINDS) {
        lines_read_desc(l, kind, &pair);
        return;
    }
    bool is_locked = strcmp(pair.name.text, SCR_LOCKED) == 0;
    if (is_locked)
        lines_read_locked(l, &pair);
    else
        scr_read_param(l->r, pair.name, pair.value);
    if (!lines_is_at_end(l) && (is_locked || scr_param_find(pair.name.text)))
        scr_read_problem(l->r, lines_mark(l, l->at), "one value was expected for",
                         pair.name.text);
}

static size_t lines_skip_bom(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* Returns a control character other than a tab; NULL: none. Control characters could
 * change the output of a terminal, and a NUL would end the text. */
static const char *lines_find_control(const char *line, size_t n)
{
    for (const char *c = line; c < line + n; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f) return c;
    return NULL;
}

int scr_read_lines(const scr_reader *r, const char *text, size_t size)
{
    const char *end = text + size;
    struct line l = {.r = r};
    for (text += lines_skip_bom(text, size);
         text < end && !scr_problems_full(r->problems);) {
        const char *next = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((next ? next : end) - text);
        size_t keep = n > 0 && text[n - 1] == '\r' ? n - 1 : n;
        l.number++;
        l.begin = l.at = strndup(text, keep);
        const char *control = lines_find_control(text, keep);
        if (!l.begin) {
            scr_read_no_memory(r, (scr_mark){l.number, 1});
            return -ENOMEM;
        }
        if (control)
            scr_problems_add(r->problems, "%s:%zu:%zu: a control character", r->path,
                             l.number, (size_t)(control - text) + 1);
        else
            lines_read_line(&l);
        free(l.begin);
        text = next ? next + 1 : end;
    }
    return 0;
}

bool scr_is_lines(const char *text, size_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    const char *end = text + size, *name;
    text += lines_skip_bom(text, size);
    for (;;) {
        while (text < end && memchr(" \t\r\n", *text, 4))
            text++;
        if (text == end || *text != '#') break;
        text = memchr(text, '\n', (size_t)(end - text));
        if (!text) return false;
    }
    for (name = text; text < end && memchr(letters, *text, sizeof letters - 1);)
        text++;
    if (text == name) return false;
    while (text < end && (*text == ' ' || *text == '\t'))
        text++;
    return text < end && *text == '=';
}

/* ---- of SCR_Config ---- */

/* Copies text as a line. Returns 0 or -ENOMEM. */
static int lines_begin(struct line *l, const scr_reader *r, const char *text)
{
    *l = (struct line){.r = r, .number = 1, .begin = strdup(text)};
    l->at = l->begin;
    return l->begin ? 0 : -ENOMEM;
}

/* Returns the kind of the descriptor that text begins with; SCR_DESC_KINDS: none. */
static scr_desc_kind lines_kind(const char *text)
{
    char name[16] = "";
    text += strspn(text, " \t");
    size_t n = strcspn(text, "= \t");
    if (n < sizeof name) memcpy(name, text, n);
    return scr_desc_kind_find(name);
}

/* Parses "CKPT" or "CKPT=0 TYPE"; *key and *field point into the line. */
static int lines_parse_query(struct line *l, const char **key, const char **field)
{
    struct pair first, second, third;
    const char *why;
    *key = *field = NULL;
    if (lines_parse_pair(l, &first, &why) <= 0) return -EINVAL;
    if (!first.value.text) return lines_is_at_end(l) ? 0 : -EINVAL;
    if (lines_parse_pair(l, &second, &why) <= 0 || second.value.text) return -EINVAL;
    *key = first.value.text;
    *field = second.name.text;
    return lines_parse_pair(l, &third, &why) == 0 ? 0 : -EINVAL;
}

int scr_config_question(const char *text, scr_question *question)
{
    struct line l;
    const char *key, *field;
    scr_question q = {.kind = lines_kind(text)};
    if (q.kind == SCR_DESC_KINDS) return -EINVAL;
    if (lines_begin(&l, NULL, text) != 0) return -ENOMEM;
    int rc = lines_parse_query(&l, &key, &field);
    if (!rc && key) {
        char *canonical = scr_desc_key(q.kind, key);
        if (!canonical || strlen(field) >= sizeof q.field) rc = -ENOENT;
        if (!rc) {
            strcpy(q.key, canonical);
            strcpy(q.field, field);
        }
        free(canonical);
    }
    free(l.begin);
    if (!rc) *question = q;
    return rc;
}

bool scr_config_is_question(const char *text)
{
    scr_question q;
    if (!strchr(text, '='))
        return lines_kind(text) != SCR_DESC_KINDS || !strpbrk(text, " \t");
    int rc = scr_config_question(text, &q);
    return rc == 0 || rc == -ENOENT;
}

/* Merges from into the descriptor of the same key in layer. An empty value removes the
 * field. A descriptor without fields is removed. */
static int lines_merge_desc(kvtree *layer, scr_desc_kind kind, const kvtree_elem *from)
{
    const char *key = kvtree_elem_key(from);
    const kvtree *fields = kvtree_get(kvtree_elem_hash(from), "FIELD");
    kvtree *desc = scr_desc_add(layer, kind, key, "SCR_Config");
    const kvtree_elem *e = kvtree_elem_first(fields);
    int rc = desc ? 0 : -ENOMEM;
    for (; e && !rc; e = kvtree_elem_next(e)) {
        const char *value = kvtree_get_val(kvtree_elem_hash(e), "VALUE");
        if (*value)
            rc = scr_desc_set(desc, kvtree_elem_key(e), value, NULL);
        else
            kvtree_unset(kvtree_get(desc, "FIELD"), kvtree_elem_key(e));
    }
    if (desc && kvtree_size(fields) > 0 && kvtree_size(kvtree_get(desc, "FIELD")) == 0)
        kvtree_unset(kvtree_get(layer, scr_desc_kind_name(kind)), key);
    return rc;
}

/* Returns -EINVAL with the first problem. */
static int lines_fail(const scr_problems *problems, kvtree_error *err)
{
    const char *text = problems->text ? problems->text : "no memory";
    return err_set(err, -EINVAL, "%.*s", (int)strcspn(text, "\n"), text);
}

static int lines_set_desc(scr_config *config, scr_desc_kind kind, const char *text,
                          kvtree_error *err)
{
    struct line l;
    struct pair first;
    scr_problems problems = {.count = 0};
    scr_reader r = {"SCR_Config", kvtree_new(), &problems, .plain = true};
    int rc = r.layer ? lines_begin(&l, &r, text) : -ENOMEM;
    if (rc) return rc;
    bool found = lines_next_pair(&l, &first);
    bool all = found && !*first.value.text && lines_is_at_end(&l);
    if (found && !all) lines_read_desc(&l, kind, &first);
    const kvtree *read = kvtree_get(r.layer, scr_desc_kind_name(kind));
    if (problems.count > 0)
        rc = lines_fail(&problems, err);
    else if (all)
        kvtree_unset(config->set, scr_desc_kind_name(kind));
    else if (read)
        rc = lines_merge_desc(config->set, kind, kvtree_elem_first(read));
    free(l.begin);
    kvtree_delete(&r.layer);
    scr_problems_done(&problems);
    return rc;
}

/* Returns a copy of the n bytes at text without surrounding blanks. */
static char *lines_trim(const char *text, size_t n)
{
    for (; n > 0 && strchr(" \t", *text); n--)
        text++;
    while (n > 0 && strchr(" \t", text[n - 1]))
        n--;
    return strndup(text, n);
}

/* Refuses a name that is no parameter. */
static int lines_refuse(const char *name, kvtree_error *err)
{
    const char *reason = scr_former_reason(name);
    if (reason) {
        err_set(err, 0, "SCR_Config: %s has no meaning here, because %s", name, reason);
        return 1;
    }
    if (strcmp(name, SCR_LOCKED) == 0)
        return err_set(err, -EINVAL, "SCR_Config: only the system file may have %s",
                       name);
    return err_set(err, -EINVAL,
                   "SCR_Config: unknown parameter \"%.200s\"; did you mean %s?", name,
                   scr_desc_nearest(name));
}

/* Sets a parameter; text is its value, which begins at column. */
static int lines_set_param(scr_config *config, const scr_param *param, const char *text,
                           size_t column, kvtree_error *err)
{
    scr_problems problems = {.count = 0};
    const scr_reader r = {"SCR_Config", NULL, &problems, .plain = true};
    char *value;
    int rc = scr_read_expand(&r, (scr_mark){1, column}, text, &value);
    if (rc == -EINVAL) lines_fail(&problems, err);
    if (value && *value)
        rc = scr_layer_set(config->set, param->name, value, "SCR_Config");
    else if (value)
        kvtree_unset(config->set, param->name);
    free(value);
    scr_problems_done(&problems);
    return rc;
}

int scr_config_set(scr_config *config, const char *text, kvtree_error *err)
{
    const char *equals = strchr(text, '=');
    scr_desc_kind kind = lines_kind(text);
    if (!equals) return err_set(err, -EINVAL, "SCR_Config: no \"=\" in \"%.100s\"", text);
    if (kind != SCR_DESC_KINDS) return lines_set_desc(config, kind, text, err);
    char *name = lines_trim(text, (size_t)(equals - text));
    char *value = lines_trim(equals + 1, strlen(equals + 1));
    size_t column = (size_t)(equals - text) + strspn(equals + 1, " \t") + 2;
    const scr_param *param = name && value ? scr_param_find(name) : NULL;
    int rc = -ENOMEM;
    if (param)
        rc = lines_set_param(config, param, value, column, err);
    else if (name && value)
        rc = lines_refuse(name, err);
    free(name);
    free(value);
    return rc;
}
