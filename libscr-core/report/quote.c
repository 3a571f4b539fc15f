/* SPDX-License-Identifier: BSD-3-Clause */
/* Quotes texts for terminals and JSON; see report/quote.h. */
#include "report/quote.h"

#include "common/quote.h"
#include "common/utf8.h"

void scr_quote_text(FILE *out, const char *text, const char *marks)
{
    quote_text(out, text, marks);
}

void scr_quote_text_for(FILE *out, FILE *reader, const char *text)
{
    quote_text_for(out, reader, text, "");
}

static void quote_json_char(FILE *out, uint32_t c)
{
    if (c < 0x10000)
        fprintf(out, "\\u%04x", (unsigned)c);
    else
        fprintf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                (unsigned)(0xdc00 + (c & 0x3ff)));
}

bool scr_quote_json(FILE *out, const char *text)
{
    return scr_quote_json_for(out, out, text);
}

bool scr_quote_json_for(FILE *out, FILE *reader, const char *text)
{
    bool is_utf8 = true;
    const bool is_narrow = utf8_is_narrow(reader);
    fputc('"', out);
    while (*text) {
        uint32_t c = (unsigned char)*text;
        size_t length = utf8_length(text, &c);
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if (length && !utf8_is_hidden(c) && (length == 1 || !is_narrow))
            fwrite(text, 1, length, out);
        else
            quote_json_char(out, c);
        is_utf8 = is_utf8 && length;
        text += length ? length : 1;
    }
    fputc('"', out);
    return is_utf8;
}
