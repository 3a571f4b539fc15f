/* SPDX-License-Identifier: BSD-3-Clause */
/* The older form of configuration files, and the text of SCR_Config; see
 * config/config_file.h:
 *
 *     SCR_FLUSH=5                                  # a comment
 *     SCR_JOB_NAME="heat: fine grid"
 *     CKPT=0 INTERVAL=1 STORE=/ssd TYPE=XOR
 *
 * A line is a parameter and its value, or a descriptor: its kind and key and then fields.
 * Words are separated by blanks, and there may be blanks around "=". Quotes, single or
 * double, hold a value with blanks or a "#" together. */
#include "config/config_file.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is left of a line, and where it is. The text that a name or value is taken from is
 * cut up: a NUL is put behind each. */
struct line {
    const scr_reader *r;
    char *begin, *at;
    size_t number;
};

/* NAME=value; value is NULL if there is no "=". */
struct pair {
    scr_read_name name;
    char *value;
    scr_mark mark;
};

static scr_mark mark_of(const struct line *l, const char *at)
{
    return (scr_mark){l->number, (size_t)(at - l->begin) + 1};
}

static void skip_blanks(struct line *l)
{
    l->at += strspn(l->at, " \t");
}

static int is_at_end(struct line *l)
{
    skip_blanks(l);
    return !*l->at || *l->at == '#';
}

/* The value at the place where line is. NULL if a quote is not closed. */
static char *take_value(struct line *l)
{
    char quote = *l->at == '"' || *l->at == '\'' ? *l->at : 0, *value = l->at + !!quote;
    char *end = quote ? strchr(value, quote) : value + strcspn(value, " \t");
    if (!end || (quote && end[1] && !strchr(" \t", end[1]))) return NULL;
    l->at = end + (*end != 0);
    *end = 0;
    return value;
}

/* The next pair: 1, or 0 at the end of the line. -1 after a problem, with the place in
 * pair->mark. */
static int take_pair(struct line *l, struct pair *pair, const char **why)
{
    if (is_at_end(l)) return 0;
    char *name = l->at;
    size_t n = strcspn(name, "= \t");
    *pair = (struct pair){{name, mark_of(l, name)}, NULL, mark_of(l, name)};
    *why = "a name was expected before";
    if (n == 0) return -1;
    l->at += n;
    skip_blanks(l);
    int equals = *l->at == '=';
    if (equals) l->at++;
    name[n] = 0;
    if (!equals) return 1;
    skip_blanks(l);
    pair->mark = mark_of(l, l->at);
    *why = "a quote does not end where the value ends:";
    pair->value = *l->at == '#' ? l->at + strlen(l->at) : take_value(l);
    if (*l->at == '#') l->at += strlen(l->at);
    return pair->value ? 1 : -1;
}

/* ---- of a file ---- */

/* A pair with a value: 1; 0 at the end, and after a problem, which ends the line. */
static int next_pair(struct line *l, struct pair *pair)
{
    const char *why;
    int rc = take_pair(l, pair, &why);
    if (rc < 0) scr_read_problem(l->r, pair->mark, why, l->at);
    if (rc > 0 && !pair->value) {
        scr_read_problem(l->r, pair->mark, "no \"=\" after", pair->name.text);
        rc = 0;
    }
    return rc > 0;
}

static void read_desc(struct line *l, scr_desc_kind kind, const struct pair *first)
{
    struct pair pair;
    kvtree *desc = scr_read_desc(l->r, kind, first->mark, first->value);
    while (desc && next_pair(l, &pair)) {
        scr_read_field field = {desc, kind, pair.name};
        scr_read_field_value(l->r, field, pair.mark, pair.value);
    }
}

/* SCR_LOCKED=SCR_CNTL_BASE,SCR_PREFIX */
static void read_locked(struct line *l, const struct pair *pair)
{
    char *rest = pair->value, *name;
    while ((name = strsep(&rest, ",")))
        scr_read_locked(
            l->r, (scr_mark){l->number, pair->mark.column + (size_t)(name - pair->value)},
            name);
}

static void read_line(struct line *l)
{
    struct pair pair;
    if (!next_pair(l, &pair)) return;
    scr_desc_kind kind = scr_desc_kind_find(pair.name.text);
    if (kind != SCR_DESC_KINDS) {
        read_desc(l, kind, &pair);
        return;
    }
    int is_locked = strcmp(pair.name.text, SCR_LOCKED) == 0;
    if (is_locked)
        read_locked(l, &pair);
    else
        scr_read_param(l->r, pair.name, pair.mark, pair.value);
    if (!is_at_end(l) && (is_locked || scr_param_find(pair.name.text)))
        scr_read_problem(l->r, mark_of(l, l->at), "one value was expected for",
                         pair.name.text);
}

static size_t skip_mark(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* Control characters would be shown to people, and a NUL would end the text. */
static const char *find_control(const char *line, size_t n)
{
    for (const char *c = line; c < line + n; c++)
        if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f) return c;
    return NULL;
}

int scr_read_lines(const scr_reader *r, const char *text, size_t size)
{
    const char *end = text + size;
    struct line l = {.r = r};
    for (text += skip_mark(text, size); text < end && !scr_problems_full(r->problems);) {
        const char *next = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((next ? next : end) - text);
        size_t keep = n > 0 && text[n - 1] == '\r' ? n - 1 : n;
        l.number++;
        l.begin = l.at = strndup(text, keep);
        const char *control = find_control(text, keep);
        if (!l.begin) {
            scr_read_no_memory(r, (scr_mark){l.number, 1});
            return -ENOMEM;
        }
        if (control)
            scr_problems_add(r->problems, "%s:%zu:%zu: a control character", r->path,
                             l.number, (size_t)(control - text) + 1);
        else
            read_line(&l);
        free(l.begin);
        text = next ? next + 1 : end;
    }
    return 0;
}

int scr_is_lines(const char *text, size_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    const char *end = text + size, *name;
    text += skip_mark(text, size);
    for (;;) {
        while (text < end && memchr(" \t\r\n", *text, 4))
            text++;
        if (text == end || *text != '#') break;
        text = memchr(text, '\n', (size_t)(end - text));
        if (!text) return 0;
    }
    for (name = text; text < end && memchr(letters, *text, sizeof letters - 1);)
        text++;
    if (text == name) return 0;
    while (text < end && (*text == ' ' || *text == '\t'))
        text++;
    return text < end && *text == '=';
}

/* ---- of SCR_Config ---- */

/* A copy of text as a line; 0 or -ENOMEM. */
static int begin_line(struct line *l, const scr_reader *r, const char *text)
{
    *l = (struct line){.r = r, .number = 1, .begin = strdup(text)};
    l->at = l->begin;
    return l->begin ? 0 : -ENOMEM;
}

/* The kind of the descriptor that text is about, if it is about one. */
static scr_desc_kind kind_of(const char *text)
{
    char name[16] = "";
    text += strspn(text, " \t");
    size_t n = strcspn(text, "= \t");
    if (n < sizeof name) memcpy(name, text, n);
    return scr_desc_kind_find(name);
}

/* "CKPT", or "CKPT=0 TYPE"; the words are left in the line. */
static int take_question(struct line *l, const char **key, const char **field)
{
    struct pair first, second, third;
    const char *why;
    *key = *field = NULL;
    if (take_pair(l, &first, &why) <= 0) return -EINVAL;
    if (!first.value) return is_at_end(l) ? 0 : -EINVAL;
    if (take_pair(l, &second, &why) <= 0 || second.value) return -EINVAL;
    *key = first.value;
    *field = second.name.text;
    return take_pair(l, &third, &why) == 0 ? 0 : -EINVAL;
}

int scr_config_question(const char *text, scr_question *question)
{
    struct line l;
    const char *key, *field;
    scr_question q = {.kind = kind_of(text)};
    if (q.kind == SCR_DESC_KINDS) return -EINVAL;
    if (begin_line(&l, NULL, text) != 0) return -ENOMEM;
    int rc = take_question(&l, &key, &field);
    if (!rc && key) {
        q.key = scr_desc_key(q.kind, key);
        q.field = strdup(field);
        rc = !q.key ? -ENOENT : !q.field ? -ENOMEM : 0;
    }
    free(l.begin);
    if (rc)
        scr_question_done(&q);
    else
        *question = q;
    return rc;
}

void scr_question_done(scr_question *question)
{
    free(question->key);
    free(question->field);
    question->key = question->field = NULL;
}

int scr_config_is_question(const char *text)
{
    scr_question q = {.key = NULL};
    if (!strchr(text, '=')) return 1;
    int rc = scr_config_question(text, &q);
    scr_question_done(&q);
    return rc == 0 || rc == -ENOENT;
}

/* Puts what stands in from into the descriptor of the same key in layer; an empty value
 * takes the field away, and with the last field the descriptor. */
static int put_desc(kvtree *layer, scr_desc_kind kind, const kvtree_elem *from)
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

static int set_desc(scr_config *config, scr_desc_kind kind, const char *text, char *err)
{
    struct line l;
    struct pair first;
    scr_problems problems = {0, NULL};
    scr_reader r = {"SCR_Config", kvtree_new(), &problems, .plain = 1};
    int rc = r.layer ? begin_line(&l, &r, text) : -ENOMEM;
    if (rc) return rc;
    int found = next_pair(&l, &first), all = found && !*first.value && is_at_end(&l);
    if (found && !all) read_desc(&l, kind, &first);
    const kvtree *read = kvtree_get(r.layer, scr_desc_kind_name(kind));
    if (problems.count > 0)
        rc = err_set(err, -EINVAL, "%.*s",
                     (int)strcspn(problems.text ? problems.text : "", "\n"),
                     problems.text ? problems.text : "no memory");
    else if (all)
        kvtree_unset(config->set, scr_desc_kind_name(kind));
    else if (read)
        rc = put_desc(config->set, kind, kvtree_elem_first(read));
    free(l.begin);
    kvtree_delete(&r.layer);
    scr_problems_done(&problems);
    return rc;
}

/* The n bytes at text without blanks around them, to be freed. */
static char *trimmed(const char *text, size_t n)
{
    for (; n > 0 && strchr(" \t", *text); n--)
        text++;
    while (n > 0 && strchr(" \t", text[n - 1]))
        n--;
    return strndup(text, n);
}

int scr_config_set(scr_config *config, const char *text, char *err)
{
    const char *equals = strchr(text, '=');
    scr_desc_kind kind = kind_of(text);
    int rc = 0;
    if (!equals) return err_set(err, -EINVAL, "no \"=\" in \"%.100s\"", text);
    if (kind != SCR_DESC_KINDS) return set_desc(config, kind, text, err);
    char *name = trimmed(text, (size_t)(equals - text));
    char *value = trimmed(equals + 1, strlen(equals + 1));
    if (!name || !value)
        rc = -ENOMEM;
    else if (strcmp(name, SCR_LOCKED) == 0)
        rc = err_set(err, -EINVAL, "SCR_Config: only the system file may have %s", name);
    else if (!scr_param_find(name))
        rc = err_set(err, -EINVAL,
                     "SCR_Config: unknown parameter \"%.200s\"; did you mean %s?", name,
                     scr_desc_nearest(name));
    else if (*value)
        rc = scr_layer_set(config->set, name, value, "SCR_Config");
    else
        kvtree_unset(config->set, name);
    free(name);
    free(value);
    return rc;
}
