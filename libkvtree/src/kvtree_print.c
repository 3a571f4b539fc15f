/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing a tree as text (docs/formats/kvtree.md, "As text"): indented, with pairs, with
 * guide lines, or as JSON.
 *
 * Keys may come from a file of another user. Therefore no character of a key that could
 * move the cursor of a terminal, hide, or look like another line is printed as it is; and
 * in the TREE form, two different trees never have the same text. */
#include "src/kvtree_private.h"

#include "common/utf8.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Lines below this level are not indented further, so that the text of a deep tree grows
 * with the number of its elements and not with the square of it. */
#define DEEPEST 64
#define LEVEL_TEXT "(level "

struct printer {
    FILE *out;
    int form;
    size_t indent;
    size_t margin;  /* columns before each line */
    bool is_narrow; /* for a terminal without UTF-8 */
    uint64_t more;  /* bit i: the current path has later siblings at level i */
    int rc;
};

_Static_assert(DEEPEST <= 64, "a bit per level");

/* ---- writing ---- */

static void printer_put(struct printer *p, const char *text, size_t size)
{
    if (p->rc || size == 0) return;
    errno = 0;
    if (fwrite(text, 1, size, p->out) != size) p->rc = errno ? -errno : -EIO;
}

static void printer_put_text(struct printer *p, const char *text)
{
    printer_put(p, text, strlen(text));
}

static void printer_put_blanks(struct printer *p, size_t count)
{
    static const char blanks[] = "                                ";
    for (; count >= sizeof blanks && !p->rc; count -= sizeof blanks - 1)
        printer_put(p, blanks, sizeof blanks - 1);
    printer_put(p, blanks, count);
}

static int printer_finish(struct printer *p)
{
    errno = 0;
    if (!p->rc && fflush(p->out) != 0) p->rc = errno ? -errno : -EIO;
    if (!p->rc && ferror(p->out)) p->rc = -EIO;
    return p->rc;
}

/* ---- keys ---- */

/* Whether the character at `at` could be mistaken for something outside of the key:
 * indentation, a blank at the end of the line, a level, or the sign between key and
 * value. */
static bool printer_is_mark(const struct printer *p, const char *key, const char *at)
{
    bool first = at == key, last = at[1] == '\0';
    switch (*at) {
    case ' ':
        return first || last;
    case '(': /* the blank after it may be that of a sign */
        return first && strncmp(key, LEVEL_TEXT, strlen(LEVEL_TEXT) - 1) == 0;
    case '=':
        return p->form != KVTREE_FORM_TREE && (first || at[-1] == ' ') &&
               (last || at[1] == ' ');
    default:
        return 0;
    }
}

/* Longest escape: "\xNN" for each of four bytes, NUL. */
#define ESCAPE_SIZE 17

static void printer_escape_json(char escape[ESCAPE_SIZE], uint32_t c)
{
    if (c == '"' || c == '\\')
        snprintf(escape, ESCAPE_SIZE, "\\%c", (char)c);
    else if (c < 0x10000)
        snprintf(escape, ESCAPE_SIZE, "\\u%04x", (unsigned)c);
    else
        snprintf(escape, ESCAPE_SIZE, "\\u%04x\\u%04x",
                 (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                 (unsigned)(0xdc00 + (c & 0x3ff)));
}

/* Returns the length of the next piece at `at`. escape becomes the text to write instead,
 * or "". */
static size_t printer_next_piece(const struct printer *p, const char *key, const char *at,
                                 char escape[ESCAPE_SIZE])
{
    uint32_t c = (unsigned char)*at;
    size_t valid = utf8_length(at, &c), length = valid ? valid : 1;
    bool json = p->form == KVTREE_FORM_JSON;
    bool strange = !valid || utf8_is_hidden(c) || (valid > 1 && p->is_narrow);
    escape[0] = '\0';
    if (json && (strange || c == '"' || c == '\\'))
        printer_escape_json(escape, c);
    else if (!json && c == '\\')
        strcpy(escape, "\\\\");
    else if (!json && (strange || printer_is_mark(p, key, at)))
        for (size_t i = 0; i < length; i++)
            snprintf(escape + 4 * i, 5, "\\x%02x", (unsigned char)at[i]);
    return length;
}

static void printer_put_escaped(struct printer *p, const char *key)
{
    char escape[ESCAPE_SIZE];
    const char *plain = key, *at = key;
    while (*at) {
        size_t length = printer_next_piece(p, key, at, escape);
        if (escape[0]) {
            printer_put(p, plain, (size_t)(at - plain));
            printer_put_text(p, escape);
            plain = at + length;
        }
        at += length;
    }
    printer_put(p, plain, (size_t)(at - plain));
}

static void printer_put_key(struct printer *p, const char *key)
{
    if (p->form == KVTREE_FORM_JSON) {
        printer_put(p, "\"", 1);
        printer_put_escaped(p, key);
        printer_put(p, "\"", 1);
    } else if (*key) {
        printer_put_escaped(p, key);
    } else {
        printer_put_text(p, "\\0");
    }
}

int kvtree_fprint_key(FILE *out, const char *key)
{
    struct printer p = {
        .out = out, .form = KVTREE_FORM_TREE, .is_narrow = utf8_is_narrow(out)};
    printer_put_key(&p, key);
    return p.rc;
}

/* ---- trees ---- */

/* Returns the only child of elem, if that child has no children: the value of a pair. */
static kvtree_elem *printer_value_of(const kvtree_elem *elem)
{
    const kvtree *below = kvtree_elem_hash(elem);
    kvtree_elem *value = kvtree_size(below) == 1 ? kvtree_elem_first(below) : NULL;
    return value && kvtree_size(kvtree_elem_hash(value)) == 0 ? value : NULL;
}

static void printer_put_guides(struct printer *p, size_t levels)
{
    size_t blanks = 0;
    for (size_t i = 0; i < levels; i++) {
        blanks += p->indent;
        if (!(p->more >> i & 1)) continue;
        printer_put_blanks(p, blanks - p->indent);
        printer_put(p, "|", 1);
        blanks = p->indent - 1;
    }
    printer_put_blanks(p, blanks);
}

/* Prints the line of elem, and its value if given. */
static void printer_put_line(struct printer *p, const kvtree_elem *elem,
                             const kvtree_elem *value, size_t depth)
{
    size_t levels = depth < DEEPEST ? depth : DEEPEST;
    printer_put_blanks(p, p->margin);
    if (p->form == KVTREE_FORM_LINES)
        printer_put_guides(p, levels);
    else
        printer_put_blanks(p, levels * p->indent);
    if (depth > DEEPEST) {
        char text[40];
        snprintf(text, sizeof text, LEVEL_TEXT "%zu) ", depth);
        printer_put_text(p, text);
    }
    if (p->form == KVTREE_FORM_LINES) printer_put_text(p, "+- ");
    printer_put_key(p, kvtree_elem_key(elem));
    if (value) {
        printer_put_text(p, " = ");
        printer_put_key(p, kvtree_elem_key(value));
    }
    printer_put(p, "\n", 1);
}

static void printer_put_lines(struct printer *p, const kvtree *tree)
{
    size_t depth = 0;
    for (kvtree_elem *e = NULL; !p->rc && (e = kvtree_walk(tree, e, &depth));) {
        kvtree_elem *value = p->form == KVTREE_FORM_TREE ? NULL : printer_value_of(e);
        if (depth < DEEPEST) {
            p->more &= ~(UINT64_C(1) << depth);
            p->more |= (uint64_t)(kvtree_elem_next(e) != NULL) << depth;
        }
        printer_put_line(p, e, value, depth);
        if (!value) continue;
        e = value;
        depth++;
    }
}

/* Starts a new line for an entry at this depth. */
static void printer_put_json_line(struct printer *p, size_t depth)
{
    printer_put(p, "\n", 1);
    printer_put_blanks(p, (depth < DEEPEST ? depth : DEEPEST) * p->indent);
}

/* Closes objects until only `open` are open. */
static void printer_close_json(struct printer *p, size_t *depth, size_t open)
{
    for (; *depth > open && !p->rc; --*depth) {
        printer_put_json_line(p, *depth - 1);
        printer_put(p, "}", 1);
    }
}

static void printer_put_json(struct printer *p, const kvtree *tree)
{
    size_t depth = 0, open = 1; /* open: objects, of which the tree itself is one */
    int first = 1;              /* the next element is the first of its object */
    printer_put(p, "{", 1);
    for (kvtree_elem *e = NULL; !p->rc && (e = kvtree_walk(tree, e, &depth));) {
        kvtree_elem *value = printer_value_of(e);
        int empty = kvtree_size(kvtree_elem_hash(e)) == 0;
        printer_close_json(p, &open, depth + 1);
        if (!first) printer_put(p, ",", 1);
        printer_put_json_line(p, open);
        printer_put_key(p, kvtree_elem_key(e));
        printer_put_text(p, value ? ": " : empty ? ": {}" : ": {");
        first = !value && !empty;
        open += (size_t)first;
        if (!value) continue;
        printer_put_key(p, kvtree_elem_key(value));
        e = value;
        depth++;
    }
    if (kvtree_size(tree) == 0)
        printer_put(p, "}", 1);
    else
        printer_close_json(p, &open, 0);
    printer_put(p, "\n", 1);
}

int kvtree_fprint_at(FILE *out, const kvtree *tree, int form, int indent, size_t margin)
{
    struct printer p = {.out = out, .form = form, .indent = 2, .margin = margin};
    if (indent > 0) p.indent = (size_t)indent;
    if (!out || form < KVTREE_FORM_TREE || form > KVTREE_FORM_JSON) return -EINVAL;
    p.is_narrow = utf8_is_narrow(out);
    if (form == KVTREE_FORM_JSON)
        printer_put_json(&p, tree);
    else
        printer_put_lines(&p, tree);
    return printer_finish(&p);
}

int kvtree_fprint(FILE *out, const kvtree *tree, int form, int indent)
{
    return kvtree_fprint_at(out, tree, form, indent, 0);
}

/* ---- as in KVTree ---- */

static int printer_put_null(size_t margin)
{
    struct printer p = {.out = stdout};
    printer_put_blanks(&p, margin);
    printer_put_text(&p, "NULL LIST\n");
    return printer_finish(&p);
}

int kvtree_print_mode(const kvtree *tree, int indent, int mode)
{
    size_t margin = indent > 0 ? (size_t)indent : 0;
    int form = mode == KVTREE_PRINT_KEYVAL ? KVTREE_FORM_PAIRS : KVTREE_FORM_TREE;
    if (mode != KVTREE_PRINT_TREE && mode != KVTREE_PRINT_KEYVAL) return -EINVAL;
    return tree ? kvtree_fprint_at(stdout, tree, form, 2, margin + 2)
                : printer_put_null(margin);
}

int kvtree_print(const kvtree *tree, int indent)
{
    return kvtree_print_mode(tree, indent, KVTREE_PRINT_TREE);
}

int kvtree_log(const kvtree *tree, int level, int indent)
{
    (void)level;
    return kvtree_print(tree, indent);
}
