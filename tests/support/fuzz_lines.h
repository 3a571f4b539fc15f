/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_LINES_H
#define TESTS_FUZZ_LINES_H

/* For fuzz targets that get trees: parses any text as a tree, and reads values without
 * code of the libraries.
 *
 * A line is a key, indented by as many blanks as its depth. Therefore every text is a
 * tree, and small changes of the text are small changes of the tree. */

#include "fuzz.h"

#include <ctype.h>
#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_DEPTH_MOST 64

/* Returns a tree or a copy, to be freed by the caller. */
static inline kvtree *fuzz_tree(const char *text, size_t size)
{
    kvtree *open[FUZZ_DEPTH_MOST + 1] = {kvtree_new()};
    int depth = 0; /* open[depth] is the value of the previous line */
    for (const char *line = text, *end = text + size, *next; line < end; line = next) {
        char key[2048] = "";
        int blanks = 0;
        next = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((next ? next : end) - line);
        next = next ? next + 1 : end;
        while (length && *line == ' ' && blanks < depth && blanks < FUZZ_DEPTH_MOST - 1)
            line++, length--, blanks++;
        memcpy(key, line, length < sizeof key ? length : sizeof key - 1);
        kvtree *value = kvtree_get(open[blanks], key);
        if (!value) value = kvtree_set(open[blanks], key, NULL);
        REQUIRE(value != NULL);
        depth = blanks + 1;
        open[depth] = value;
    }
    return open[0];
}

static inline kvtree *fuzz_tree_copy(const kvtree *tree)
{
    kvtree *copy = kvtree_new();
    REQUIRE(copy && kvtree_merge(copy, tree) == 0);
    return copy;
}

/* Whether both trees have the same packed bytes. */
static inline bool fuzz_tree_same(const kvtree *a, const kvtree *b)
{
    size_t size = kvtree_pack_size(a);
    char *p = malloc(2 * size);
    REQUIRE(p != NULL);
    bool equal = kvtree_pack_size(b) == size;
    if (equal) {
        kvtree_pack(p, a);
        kvtree_pack(p + size, b);
        equal = memcmp(p, p + size, size) == 0;
    }
    free(p);
    return equal;
}

/* Forms of numbers: with an optional sign; digits only; digits, or hexadecimal after
 * 0x. */
enum fuzz_form { FUZZ_SIGN, FUZZ_DIGITS, FUZZ_CHECKSUM };

/* Returns the only key below tree/key. */
static inline const char *fuzz_value(const kvtree *tree, const char *key)
{
    const kvtree *values = kvtree_get(tree, key);
    return kvtree_size(values) == 1 ? kvtree_elem_key(kvtree_elem_first(values)) : NULL;
}

static inline int fuzz_digit(char c, int base)
{
    if (isdigit((unsigned char)c)) return c - '0';
    return base == 16 && isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10 : base;
}

/* Whether the value below tree/key is a number of that form, at most `most`. */
static inline bool fuzz_number(const kvtree *tree, const char *key, enum fuzz_form form,
                               uint64_t most, uint64_t *value)
{
    const char *text = fuzz_value(tree, key);
    if (!text) return false;
    unsigned base = form == FUZZ_CHECKSUM && strncmp(text, "0x", 2) == 0 ? 16 : 10;
    if (base == 16) text += 2;
    bool minus = form == FUZZ_SIGN && *text == '-';
    if (minus || (form == FUZZ_SIGN && *text == '+')) text++;
    if (!*text) return false;
    for (*value = 0; *text; text++) {
        unsigned digit = (unsigned)fuzz_digit(*text, (int)base);
        if (digit >= base || digit > most || *value > (most - digit) / base) return false;
        *value = *value * base + digit;
    }
    return !minus || *value == 0;
}

static inline bool fuzz_integer(const kvtree *tree, const char *key, int low, int high,
                                int *value)
{
    uint64_t n;
    if (!fuzz_number(tree, key, FUZZ_SIGN, (uint64_t)high, &n)) return false;
    *value = (int)n;
    return *value >= low;
}

#endif
