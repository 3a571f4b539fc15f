/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of several nodes in one text; see config/host_range.h. */
#include "config/host_range.h"

#include <string.h>

enum { DIGITS_MAX = 9 };

/* An entry within the brackets. */
typedef struct host_entry {
    long from, to;
    int width; /* digits of from */
} host_entry;

bool scr_host_range_is(const char *text)
{
    return strpbrk(text, "[]") != NULL;
}

/* Reads the number at *text, of at most that number of digits, and advances *text.
 * Returns the number of digits. */
static int host_read_number(const char **text, int most, long *number)
{
    int digits = 0;
    for (*number = 0; **text >= '0' && **text <= '9' && digits < most; digits++)
        *number = *number * 10 + (*(*text)++ - '0');
    return digits;
}

/* Reads the entry at *text, and advances *text to the ',' or ']' after it. Returns false
 * for anything else. */
static bool host_read_entry(const char **text, host_entry *entry)
{
    entry->width = host_read_number(text, DIGITS_MAX, &entry->from);
    entry->to = entry->from;
    if (entry->width == 0) return false;
    if (**text == '-') {
        ++*text;
        if (host_read_number(text, DIGITS_MAX, &entry->to) < entry->width) return false;
    }
    return entry->from <= entry->to && (**text == ',' || **text == ']');
}

bool scr_host_range_is_valid(const char *text)
{
    host_entry entry;
    if (!scr_host_range_is(text)) return true;
    const char *at = strpbrk(text, "[]");
    if (*at != '[') return false;
    do {
        at++;
        if (!host_read_entry(&at, &entry)) return false;
    } while (*at == ',');
    return !scr_host_range_is(at + 1);
}

static bool host_entry_has(const host_entry *entry, long number, int digits)
{
    if (number < entry->from || number > entry->to || digits < entry->width) return false;
    long least = 1; /* smallest number with that many digits */
    for (int i = 1; i < digits; i++)
        least *= 10;
    return digits == entry->width || number >= least;
}

bool scr_host_range_has(const char *text, const char *node)
{
    const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    if (!close) return strcmp(text, node) == 0;
    const size_t before = (size_t)(open - text), after = strlen(close + 1);
    const size_t length = strlen(node);
    const int digits = (int)length - (int)(before + after);
    long number;
    if (digits < 1 || digits > DIGITS_MAX || strncmp(text, node, before) != 0 ||
        strcmp(close + 1, node + length - after) != 0)
        return false;
    const char *at = node + before;
    if (host_read_number(&at, digits, &number) != digits) return false;
    bool has = false;
    do {
        host_entry entry;
        open++;
        has = host_read_entry(&open, &entry) && host_entry_has(&entry, number, digits);
    } while (!has && *open == ',');
    return has;
}
