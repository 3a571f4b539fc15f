/* SPDX-License-Identifier: BSD-3-Clause */
/* Any packed tree as text and as JSON, read back by parsers written from
 * docs/formats/kvtree.md: every form shows all elements in their order, and nothing in it
 * can do harm on a terminal. */
#include "fuzz_text.h"

#include "src/kvtree_private.h"
#include <stdio.h>

#define DEEPEST 64 /* the last level that is indented */

/* A tree that was printed. */
struct printed {
    int form;
    size_t indent;
    const char *text, *end;
    const char *at; /* the reading position */
    const struct list *tree;
    size_t item; /* the next item of tree */
};

/* ---- what is printed ---- */

static void list_tree(const kvtree *tree, struct list *list)
{
    size_t level = 0;
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, &level));) {
        const char *key = kvtree_elem_key(e);
        list_add(list, level, key, strlen(key));
        list->items[list->count - 1].more = kvtree_elem_next(e) != NULL;
    }
}

/* Returns the maximum size: an element takes an indentation, a few signs, and at most six
 * bytes for each byte of a key. */
static size_t size_most(const struct printed *p)
{
    size_t most = 16;
    for (size_t i = 0; i < p->tree->count; i++)
        most += 2 * (DEEPEST + 2) * p->indent + 48 + 6 * strlen(p->tree->items[i].key);
    return most;
}

static char *print(const kvtree *tree, struct printed *p, int indent)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    REQUIRE(out != NULL);
    REQUIRE(kvtree_fprint(out, tree, p->form, indent) == 0);
    REQUIRE(fclose(out) == 0);
    p->text = p->at = text;
    p->end = text + size;
    require_showable(text, size);
    REQUIRE(size <= size_most(p));
    return text;
}

/* ---- reading ---- */

static const struct item *next_item(struct printed *p, size_t level)
{
    REQUIRE(p->item < p->tree->count);
    const struct item *item = &p->tree->items[p->item++];
    REQUIRE(item->level == level);
    return item;
}

static int is_next(const struct printed *p, const char *what)
{
    return strncmp(p->at, what, strlen(what)) == 0;
}

static void take(struct printed *p, const char *what)
{
    REQUIRE(is_next(p, what));
    p->at += strlen(what);
}

/* Takes a key from the line, up to end. */
static void take_key(struct printed *p, const char *end, const char *expected)
{
    char *key = malloc((size_t)(end - p->at) + 1), *to = key;
    REQUIRE(key && end > p->at && end[-1] != ' ' && *p->at != ' ');
    if (end - p->at == 2 && is_next(p, "\\0")) p->at = end;
    while (p->at < end) {
        if (*p->at != '\\') {
            *to++ = *p->at++;
        } else if (p->at[1] == '\\') {
            *to++ = '\\';
            p->at += 2;
        } else {
            take(p, "\\x");
            *to++ = (char)hex_digits(p->at, 2);
            p->at += 2;
        }
    }
    REQUIRE(p->at == end);
    *to = 0;
    REQUIRE(strlen(key) == (size_t)(to - key) && strcmp(key, expected) == 0);
    free(key);
}

/* Takes the signs before a key, and returns its level. more: bit i is set if the tree of
 * level i continues. */
static size_t take_margin(struct printed *p, uint64_t more)
{
    const char *start = p->at;
    size_t columns = strspn(start, p->form == KVTREE_FORM_LINES ? " |" : " ");
    size_t level = columns / p->indent;
    REQUIRE(columns % p->indent == 0 && level <= DEEPEST);
    for (size_t i = 0; p->form == KVTREE_FORM_LINES && i < columns; i++) {
        int guide = i % p->indent == 0 && (more >> i / p->indent & 1);
        REQUIRE(start[i] == (guide ? '|' : ' '));
    }
    p->at += columns;
    if (is_next(p, "(level ")) {
        char *end;
        REQUIRE(level == DEEPEST);
        level = strtoul(p->at + 7, &end, 10);
        REQUIRE(level > DEEPEST);
        p->at = end;
        take(p, ") ");
    }
    if (p->form == KVTREE_FORM_LINES) take(p, "+- ");
    return level;
}

static void read_line(struct printed *p, uint64_t *more)
{
    size_t level = take_margin(p, *more);
    int pair = p->form != KVTREE_FORM_TREE && is_pair(p->tree, p->item);
    const struct item *item = next_item(p, level);
    const char *end = strchr(p->at, '\n');
    REQUIRE(end != NULL);
    const char *sign = p->form == KVTREE_FORM_TREE ? NULL : strstr(p->at, " = ");
    REQUIRE((sign && sign < end) == pair);
    if (level < DEEPEST) {
        *more &= ~(UINT64_C(1) << level);
        *more |= (uint64_t)item->more << level;
    }
    take_key(p, pair ? sign : end, item->key);
    if (pair) {
        take(p, " = ");
        take_key(p, end, next_item(p, level + 1)->key);
    }
    take(p, "\n");
}

static void read_text(struct printed *p)
{
    uint64_t more = 0;
    while (p->at < p->end)
        read_line(p, &more);
}

/* ---- JSON (RFC 8259), as far as needed ---- */

/* Returns the key as a string of a JSON text: invalid UTF-8 is interpreted as Latin-1. */
static char *as_unicode(const char *key)
{
    char *text = malloc(2 * strlen(key) + 1), *to = text;
    REQUIRE(text != NULL);
    while (*key) {
        size_t size = utf8_size(key);
        uint32_t c = size ? utf8_value(key, size) : (unsigned char)*key;
        to = put_utf8(to, c);
        key += size ? size : 1;
    }
    *to = 0;
    return text;
}

static uint32_t take_escape(struct printed *p)
{
    take(p, "\\");
    char c = *p->at++;
    if (c != 'u') {
        REQUIRE(c == '"' || c == '\\');
        return (uint32_t)c;
    }
    uint32_t code = hex_digits(p->at, 4);
    p->at += 4;
    REQUIRE(code != 0 && (code < 0xdc00 || code > 0xdfff));
    if (code < 0xd800 || code > 0xdbff) return code;
    take(p, "\\u");
    uint32_t low = hex_digits(p->at, 4);
    p->at += 4;
    REQUIRE(low >= 0xdc00 && low <= 0xdfff);
    return 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
}

static void take_string(struct printed *p, const char *key)
{
    char *expected = as_unicode(key), *want = expected, utf8[5];
    take(p, "\"");
    while (*p->at != '"') {
        size_t size = utf8_size(p->at);
        REQUIRE(size && *p->at != '\n');
        uint32_t c = utf8_value(p->at, size);
        if (c == '\\')
            c = take_escape(p);
        else
            p->at += size;
        *put_utf8(utf8, c) = 0;
        REQUIRE(strncmp(want, utf8, strlen(utf8)) == 0);
        want += strlen(utf8);
    }
    REQUIRE(*want == 0);
    take(p, "\"");
    free(expected);
}

static void take_blanks(struct printed *p)
{
    p->at += strspn(p->at, " \n");
}

/* Takes the name of a member, and its value if that is a string. Returns 1 if it is an
 * object, which is then open. */
static int take_member(struct printed *p, size_t level)
{
    int pair = is_pair(p->tree, p->item);
    take_string(p, next_item(p, level)->key);
    take(p, ": ");
    if (!pair) take(p, "{");
    if (pair) take_string(p, next_item(p, level + 1)->key);
    return !pair;
}

static void read_json(struct printed *p)
{
    size_t open = 1;
    int fresh = 1; /* this object has no member yet */
    take(p, "{");
    while (open) {
        take_blanks(p);
        if (is_next(p, "}")) {
            take(p, "}");
            open--;
            fresh = 0;
            continue;
        }
        if (!fresh) take(p, ",");
        take_blanks(p);
        fresh = take_member(p, open - 1);
        open += (size_t)fresh;
    }
    take(p, "\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kvtree *tree = kvtree_new();
    struct list list = {NULL, 0, 0};
    int indent = (int)(fuzz_hash(data, size) % 5);
    char *bytes = fuzz_copy(data, size);
    if (kvtree_unpack_n(bytes, size, tree) >= 0) {
        list_tree(tree, &list);
        for (int form = KVTREE_FORM_TREE; form <= KVTREE_FORM_JSON; form++) {
            struct printed p = {.form = form, .tree = &list};
            p.indent = indent ? (size_t)indent : 2;
            char *text = print(tree, &p, indent);
            if (form == KVTREE_FORM_JSON)
                read_json(&p);
            else
                read_text(&p);
            REQUIRE(p.at == p.end && p.item == list.count);
            free(text);
        }
    }
    list_free(&list);
    kvtree_delete(&tree);
    free(bytes);
    return 0;
}
