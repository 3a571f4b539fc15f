/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that fool no terminal; see quote.h. */
#include "common/quote.h"

#include "common/utf8.h"
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Without UTF-8 a part of a character may be a control of the terminal. */
static bool quote_is_narrow(FILE *out)
{
    return isatty(fileno(out)) && !utf8_is_shown();
}

void quote_text(FILE *out, const char *text, const char *marks)
{
    while (*text) {
        uint32_t c;
        size_t length = utf8_length(text, &c);
        if (length && utf8_is_hidden(c)) length = 0; /* byte by byte */
        if (length > 1 && quote_is_narrow(out)) length = 0;
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
