/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t utf8_length(const char *text, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    size_t length = s[0] < 0x80         ? 1
                    : s[0] >> 5 == 0x6  ? 2
                    : s[0] >> 4 == 0xe  ? 3
                    : s[0] >> 3 == 0x1e ? 4
                                        : 0;
    if (length == 0) return 0;
    uint32_t c = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (s[i] >> 6 != 2) return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (c < least[length] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff) return 0;
    *character = c;
    return length;
}

bool utf8_is_hidden(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0x1, 0x1f},       {0x7f, 0xa0},     {0xad, 0xad},     {0x61c, 0x61c},
                  {0x1680, 0x1680},  {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f},
                  {0x205f, 0x206f},  {0x3000, 0x3000}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
                  {0xe0000, 0xe007f}};
    if (c >= 0x20 && c < 0x7f) return false;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (c >= hidden[i].first && c <= hidden[i].last) return true;
    return false;
}

bool utf8_is_shown(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *value = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && (!value || !*value); i++)
        value = getenv(names[i]);
    return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

bool utf8_is_narrow(FILE *out)
{
    return isatty(fileno(out)) && !utf8_is_shown();
}

void utf8_mask(char *text, bool is_narrow)
{
    while (*text) {
        uint32_t c;
        size_t length = utf8_length(text, &c);
        bool is_shown = length == 1 || (length && !is_narrow);
        if (is_shown && !utf8_is_hidden(c)) {
            text += length;
            continue;
        }
        for (size_t i = 0; i < (length ? length : 1); i++)
            *text++ = '?';
    }
}
