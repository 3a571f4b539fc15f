/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines as data; see tool_template.h. */
#include "lib/tool_template.h"

#include "common/errtext.h"
#include "common/io.h"
#include "config/problems.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND "command"

enum { NAME_SIZE = 64, NESTING = 8 };

/* Part of a template, from begin to end. */
typedef struct piece {
    const char *begin, *end;
} piece;

typedef struct expansion {
    const tool_value *values;
    kvtree_error *err;
    int index;           /* of the repetition in a group; -1: not repeated */
    bool command;        /* {command} was found */
    const char *missing; /* the name of a missing value; or NULL */
} expansion;

/* name: n bytes, with or without a "?". */
static const tool_value *template_find(const tool_value *values, const char *name,
                                       size_t n)
{
    if (n > 1 && name[n - 1] == '?') n--;
    for (; values->name; values++)
        if (strlen(values->name) == n && strncmp(values->name, name, n) == 0)
            return values;
    return NULL;
}

/* Returns the end of the quoted text or of the name in braces that begins at `at`; or
 * NULL. */
static const char *template_close(const char *at, const char *end)
{
    char closing = *at == '{' ? '}' : '\'';
    return at + 1 < end ? memchr(at + 1, closing, (size_t)(end - at - 1)) : NULL;
}

/* Returns the first | outside of groups; with group, the end of the group that begins at
 * `at`. NULL: there is none. */
static const char *template_seek(const char *at, const char *end, bool group)
{
    int depth = 0;
    for (; at < end; at++) {
        if (*at == '\'' || *at == '{') {
            at = template_close(at, end);
            if (!at) return NULL;
        }
        depth += *at == '[' || *at == '(';
        depth -= *at == ']' || *at == ')';
        if (depth == 0 && (group || *at == '|')) return at;
    }
    return NULL;
}

/* ---- check ---- */

static int template_check_name(const char *at, const char *close,
                               const tool_value *values, kvtree_error *err)
{
    char name[NAME_SIZE];
    scr_nearest nearest = {.name = name};
    size_t n = (size_t)(close - at - 1);
    if (template_find(values, at + 1, n)) return 0;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1),
             at + 1);
    for (; values->name; values++)
        scr_nearest_try(&nearest, values->name);
    return err_set(err, -EINVAL, "unknown value {%s}; did you mean {%s}?", name,
                   nearest.best);
}

/* Whether a group may begin after, or end before, that character: a group has whole
 * words. */
static bool template_is_border(char before)
{
    return !before || strchr(" []()|", before);
}

/* The open brackets. */
typedef struct nesting {
    char open[NESTING];
    bool lists[NESTING]; /* the group has a list among its values */
    int depth;
} nesting;

static int template_check_bracket(nesting *n, const char *text, const char *at,
                                  kvtree_error *err)
{
    bool opens = *at == '[' || *at == '(';
    if (!template_is_border(opens ? at == text ? 0 : at[-1] : at[1]))
        return err_set(err, -EINVAL, "a group must have whole words: \"%.30s\"", at);
    if (opens) {
        if (n->depth == NESTING) return err_set(err, -EINVAL, "nested too deeply");
        n->lists[n->depth] = false;
        n->open[n->depth++] = *at;
        return 0;
    }
    if (n->depth == 0 || n->open[n->depth - 1] != (*at == ']' ? '[' : '('))
        return err_set(err, -EINVAL, "%c without its beginning: \"%.30s\"", *at, at);
    n->depth--;
    return *at == ')' && !n->lists[n->depth]
               ? err_set(err, -EINVAL, "a group in ( ) has no list: \"%.30s\"", text)
               : 0;
}

/* Checks {name} or '...' at *at, and moves *at to its end. */
static int template_check_closed(nesting *n, const char **at, const tool_value *values,
                                 kvtree_error *err)
{
    const char *begin = *at, *close = template_close(begin, begin + strlen(begin));
    if (!close)
        return err_set(err, -EINVAL, "%c without its end: \"%.30s\"", *begin, begin);
    *at = close;
    if (*begin == '\'') return 0;
    int rc = template_check_name(begin, close, values, err);
    if (rc) return rc;
    const tool_value *v = template_find(values, begin + 1, (size_t)(close - begin - 1));
    bool repeated = false;
    for (int i = 0; i < n->depth; i++) {
        n->lists[i] |= v->list != NULL;
        repeated |= n->open[i] == '(';
    }
    return v->list && !repeated
               ? err_set(err, -EINVAL, "{%s} is a list: it belongs in ( )", v->name)
               : 0;
}

int tool_template_check(const char *text, const tool_value *values, kvtree_error *err)
{
    nesting n = {.depth = 0};
    int rc = *text ? 0 : err_set(err, -EINVAL, "it is empty");
    for (const char *at = text; *at && !rc; at++) {
        if (*at == '{' || *at == '\'')
            rc = template_check_closed(&n, &at, values, err);
        else if (strchr("[](", *at) || *at == ')')
            rc = template_check_bracket(&n, text, at, err);
        else if ((*at == '|' && n.depth == 0) || *at == '}')
            rc = err_set(err, -EINVAL, "%c in no group, or without quotes: \"%.30s\"",
                         *at, at);
    }
    if (!rc && n.depth)
        rc = err_set(err, -EINVAL, "%c without its end: \"%.30s\"", n.open[n.depth - 1],
                     text);
    return rc;
}

/* ---- words ---- */

/* Writes the value; true if there is one. */
static bool template_put_value(expansion *x, const char *at, const char *close, FILE *out)
{
    const tool_value *v = template_find(x->values, at + 1, (size_t)(close - at - 1));
    const char *text = NULL;
    if (v) text = v->list && x->index >= 0 ? v->list[x->index] : v->text;
    if (!text) x->missing = v ? v->name : "";
    fputs(text && close[-1] != '?' ? text : "", out);
    return text != NULL;
}

/* Adds the word that begins at *at, and moves *at to its end. */
static int template_add_word(expansion *x, const char **at, const char *end,
                             tool_words *words)
{
    char *word = NULL;
    size_t size;
    FILE *out = open_memstream(&word, &size);
    if (!out) return -ENOMEM;
    for (; *at < end && !strchr(" [](|", **at) && **at != ')'; (*at)++) {
        const char *close = **at == '{' || **at == '\'' ? template_close(*at, end) : NULL;
        if (!close)
            fputc(**at, out);
        else if (**at == '{')
            template_put_value(x, *at, close, out);
        else
            fwrite(*at + 1, 1, (size_t)(close - *at - 1), out);
        if (close) *at = close;
    }
    if (!io_text_end(out, &word)) return -ENOMEM;
    tool_words_add(words, "%s", word);
    free(word);
    return words->failed ? -ENOMEM : 0;
}

static int template_add(expansion *x, piece p, tool_words *words);

/* Adds the first alternative whose values are all there. */
static int template_add_optional(expansion *x, piece p, tool_words *words)
{
    const char *missing = x->missing;
    for (;;) {
        const char *bar = template_seek(p.begin, p.end, false);
        tool_words some = {0};
        x->missing = NULL;
        int rc = template_add(x, (piece){p.begin, bar ? bar : p.end}, &some);
        bool there = !x->missing;
        if (!rc && there && some.count) tool_words_add_all(words, tool_words_list(&some));
        tool_words_done(&some);
        x->missing = missing;
        if (rc || there || !bar) return rc ? rc : words->failed ? -ENOMEM : 0;
        p.begin = bar + 1;
    }
}

/* The number of elements of the first list in the piece. */
static int template_count(const expansion *x, piece p)
{
    for (const char *at = p.begin; at < p.end; at++) {
        if (*at != '{') continue;
        const char *close = template_close(at, p.end);
        const tool_value *v =
            close ? template_find(x->values, at + 1, (size_t)(close - at - 1)) : NULL;
        if (v && v->list) return v->count;
    }
    return 0;
}

static int template_add_repeated(expansion *x, piece p, tool_words *words)
{
    const char *bar = template_seek(p.begin, p.end, false);
    piece body = {p.begin, bar ? bar : p.end};
    int count = template_count(x, p), rc = 0;
    for (int i = 0; i < count && !rc; i++) {
        x->index = i;
        if (i && bar) rc = template_add(x, (piece){bar + 1, p.end}, words);
        if (!rc) rc = template_add(x, body, words);
    }
    x->index = -1;
    return rc;
}

/* Adds the words of the program if {command} stands at *at; false: it does not. */
static bool template_is_command(expansion *x, const char **at, const char *end,
                                tool_words *words)
{
    static const char mark[] = "{" COMMAND "}";
    size_t n = sizeof mark - 1;
    if ((size_t)(end - *at) < n || strncmp(*at, mark, n) != 0) return false;
    const tool_value *v = template_find(x->values, COMMAND, n - 2);
    if (!v || !v->words) return false;
    tool_words_add_all(words, v->words);
    x->command = true;
    *at += n;
    return true;
}

static int template_add(expansion *x, piece p, tool_words *words)
{
    int rc = 0;
    for (const char *at = p.begin; at < p.end && !rc;) {
        if (*at == ' ') {
            at++;
        } else if (*at == '[' || *at == '(') {
            const char *close = template_seek(at, p.end, true);
            if (!close) return err_set(x->err, -EINVAL, "wrong: \"%.60s\"", at);
            piece inside = {at + 1, close};
            rc = *at == '[' ? template_add_optional(x, inside, words)
                            : template_add_repeated(x, inside, words);
            at = close + 1;
        } else if (strchr("])|", *at)) {
            return err_set(x->err, -EINVAL, "wrong: \"%.60s\"", at);
        } else if (!template_is_command(x, &at, p.end, words)) {
            rc = template_add_word(x, &at, p.end, words);
        }
    }
    return rc ? rc : words->failed ? -ENOMEM : 0;
}

int tool_template_expand(const char *text, const tool_value *values, tool_words *words,
                         kvtree_error *err)
{
    expansion x = {values, err, -1, false, NULL};
    const tool_value *command = template_find(values, COMMAND, strlen(COMMAND));
    int rc = template_add(&x, (piece){text, text + strlen(text)}, words);
    if (rc == -ENOMEM) return err_set(err, rc, "no memory");
    if (rc) return rc;
    if (x.missing)
        return err_set(err, -EINVAL, "{%s} has no value here: \"%.200s\"", x.missing,
                       text);
    if (command && command->words && !x.command)
        tool_words_add_all(words, command->words);
    return words->failed ? err_set(err, -ENOMEM, "no memory") : 0;
}

char *tool_template_program(const char *text)
{
    static const tool_value none[] = {{.name = NULL}};
    tool_words words = {0};
    expansion x = {none, NULL, -1, false, NULL};
    text += strspn(text, " ");
    const char *end = text + strlen(text);
    char *program = NULL;
    if (template_add_word(&x, &text, end, &words) == 0) program = strdup(words.list[0]);
    tool_words_done(&words);
    return program;
}
