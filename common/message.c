/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with identifiers; see common/message.h. */
#include "common/message.h"

#include "common/errtext.h"
#include <stdio.h>
#include <string.h>

void message_format(char *line, size_t size, const message_kind *kind, const char *format,
                    va_list args)
{
    err_shorten(line, size - strlen(kind->identifier) - 3, format, args);
    const size_t length = strlen(line);
    snprintf(line + length, size - length, " [%s]", kind->identifier);
}

int message_level(const message_kind *kind)
{
    return kind->severity > MESSAGE_NOTICE ? (int)(kind->severity - MESSAGE_NOTICE) : 0;
}

const char *message_word(const message_kind *kind)
{
    return kind->severity == MESSAGE_ERROR     ? "error: "
           : kind->severity == MESSAGE_WARNING ? "warning: "
                                               : "";
}
