/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

/* The rules of fuzz_kvtree_print about characters and lines, from RFC 3629 and from the
 * section "As text" of docs/formats/kvtree.md. */

#include "fuzz_tree.h"

/* ---- characters ---- */

static inline int in_range(unsigned char c, int first, int last)
{
    return c >= first && c <= last;
}

/* Returns the size of the UTF-8 character at text, which ends with a NUL; 0 if it is
 * invalid (the grammar at the end of section 4 of RFC 3629). */
static inline size_t utf8_size(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (in_range(s[0], 0x01, 0x7f)) return 1;
    if (in_range(s[0], 0xc2, 0xdf)) return in_range(s[1], 0x80, 0xbf) ? 2 : 0;
    if (in_range(s[0], 0xe0, 0xef)) {
        int first = s[0] == 0xe0 ? 0xa0 : 0x80, last = s[0] == 0xed ? 0x9f : 0xbf;
        return in_range(s[1], first, last) && in_range(s[2], 0x80, 0xbf) ? 3 : 0;
    }
    if (in_range(s[0], 0xf0, 0xf4)) {
        int first = s[0] == 0xf0 ? 0x90 : 0x80, last = s[0] == 0xf4 ? 0x8f : 0xbf;
        return in_range(s[1], first, last) && in_range(s[2], 0x80, 0xbf) &&
                       in_range(s[3], 0x80, 0xbf)
                   ? 4
                   : 0;
    }
    return 0;
}

static inline uint32_t utf8_value(const char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    if (size == 2) return (s[0] & 31u) << 6 | (s[1] & 63u);
    if (size == 3) return (s[0] & 15u) << 12 | (s[1] & 63u) << 6 | (s[2] & 63u);
    if (size == 4)
        return (s[0] & 7u) << 18 | (s[1] & 63u) << 12 | (s[2] & 63u) << 6 | (s[3] & 63u);
    return s[0];
}

static inline char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char mark[] = {0, 0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(mark[size] | c >> 6 * (size - 1));
    for (int i = size - 2; i >= 0; i--)
        *to++ = (char)(0x80 | (c >> 6 * i & 63));
    return to;
}

/* Whether a reader cannot see the character, or it affects a terminal or the text around
 * it. */
static inline int may_not_be_shown(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || c == 0x61c) return 1;
    if (c == 0x1680 || c == 0x180e || c == 0x3000 || c == 0xfeff) return 1;
    if ((c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f)) return 1;
    return (c >= 0x205f && c <= 0x206f) || (c >= 0xfff9 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe007f);
}

/* All printed characters may appear on a terminal. */
static inline void require_showable(const char *text, size_t size)
{
    REQUIRE(strlen(text) == size);
    while (*text) {
        size_t n = utf8_size(text);
        REQUIRE(n != 0);
        REQUIRE(*text == '\n' || !may_not_be_shown(utf8_value(text, n)));
        text += n;
    }
}

static inline int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *digit = c ? strchr(digits, c) : NULL;
    REQUIRE(digit != NULL);
    return (int)(digit - digits);
}

static inline unsigned hex_digits(const char *text, int count)
{
    unsigned value = 0;
    for (int i = 0; i < count; i++)
        value = value << 4 | (unsigned)hex_digit(text[i]);
    return value;
}

/* ---- a tree as a list: level and key of each element, parents first ---- */

struct item {
    size_t level;
    char *key;
    int more; /* another element of the same tree follows */
};

struct list {
    struct item *items;
    size_t count, room;
};

static inline void list_add(struct list *list, size_t level, const char *key, size_t size)
{
    if (list->count == list->room) {
        list->room = 2 * list->room + 16;
        list->items = realloc(list->items, list->room * sizeof *list->items);
        REQUIRE(list->items != NULL);
    }
    char *copy = strndup(key, size);
    REQUIRE(copy && strlen(copy) == size);
    list->items[list->count++] = (struct item){level, copy, 0};
}

static inline void list_free(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].key);
    free(list->items);
}

/* Whether element i has exactly one child, and that child has none. */
static inline int is_pair(const struct list *list, size_t i)
{
    const struct item *items = list->items;
    if (i + 1 == list->count || items[i + 1].level != items[i].level + 1) return 0;
    return i + 2 == list->count || items[i + 2].level <= items[i].level;
}

#endif
