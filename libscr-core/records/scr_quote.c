/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that fool neither terminals nor readers of JSON; see scr_quote.h. */
#include "records/scr_quote.h"

#include <stdint.h>
#include <string.h>

/* Length of the UTF-8 character at text that a terminal shows as such; 0: a control, or
 * no UTF-8. */
static size_t shown_length(const char *text, int *utf8)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    size_t length = s[0] < 0x80         ? 1
                    : s[0] >> 5 == 0x6  ? 2
                    : s[0] >> 4 == 0xe  ? 3
                    : s[0] >> 3 == 0x1e ? 4
                                        : 0;
    uint32_t c = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    *utf8 = length > 0;
    for (size_t i = 1; i < length && *utf8; i++) {
        *utf8 = s[i] >> 6 == 2;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (*utf8) *utf8 = c >= least[length] && (c < 0xd800 || c >= 0xe000) && c <= 0x10ffff;
    /* controls, line separators, and marks that turn the direction of writing */
    int hidden = c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
                 (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
                 c == 0xfeff;
    return *utf8 && !hidden ? length : 0;
}

void scr_quote_text(FILE *out, const char *text, const char *marks)
{
    int utf8;
    while (*text) {
        size_t length = shown_length(text, &utf8);
        if (*text == '\\' || strchr(marks, *text)) fputc('\\', out);
        if (length)
            fwrite(text, 1, length, out);
        else if (*text == '\n')
            fputs("\\n", out);
        else
            fprintf(out, "\\x%02x", (unsigned char)*text);
        text += length ? length : 1;
    }
}

/* A hidden character of n bytes as JSON has it. All of them are below U+10000. */
static size_t put_hidden(FILE *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned c = s[0] < 0x80 ? s[0]
                 : s[0] < 0xe0
                     ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
                     : (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    fprintf(out, "\\u%04x", c);
    return s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : 3;
}

int scr_quote_json(FILE *out, const char *text)
{
    int utf8, all = 1;
    fputc('"', out);
    while (*text) {
        size_t length = shown_length(text, &utf8);
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if (length)
            fwrite(text, 1, length, out);
        else if (utf8)
            length = put_hidden(out, text);
        else
            fprintf(out, "\\u%04x", (unsigned char)*text);
        all = all && utf8;
        text += length ? length : 1;
    }
    fputc('"', out);
    return all;
}
