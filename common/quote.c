/* SPDX-License-Identifier: BSD-3-Clause */
/* Quoting of texts for terminals; see quote.h. */
#include "common/quote.h"

#include "common/utf8.h"
#include <stdbool.h>
#include <string.h>

void quote_text(FILE *out, const char *text, const char *marks)
{
    quote_text_for(out, out, text, marks);
}

void quote_text_for(FILE *out, FILE *reader, const char *text, const char *marks)
{
    const bool is_narrow = utf8_is_narrow(reader);
    while (*text) {
        uint32_t c;
        size_t length = utf8_length(text, &c);
        if (length && utf8_is_hidden(c)) length = 0; /* escaped byte by byte */
        if (length > 1 && is_narrow) length = 0;
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
