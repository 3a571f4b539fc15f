/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for users: the only place in the libraries that writes to stderr. */
#include "report/report.h"

#include "common/io.h"
#include "common/utf8.h"
#include <stdio.h>
#include <unistd.h>

void scr_print_message(scr_message message, const char *text)
{
    char line[SCR_MESSAGE_SIZE + 20];
    /* one write per line, so that lines of several processes do not mix */
    int n = snprintf(line, sizeof line, "SCR: %s%s", message_word(&scr_messages[message]),
                     text);
    /* names and reasons may come from other users */
    utf8_mask(line, utf8_is_narrow(stderr));
    line[n++] = '\n';
    if (io_write(STDERR_FILENO, line, (size_t)n) != 0) {
        /* stderr is the last resort, so this failure cannot be reported */
    }
}

void scr_say(const scr_report *report, scr_message message, const char *format, ...)
{
    const message_kind *kind = &scr_messages[message];
    char text[SCR_MESSAGE_SIZE];
    if (report->rank != 0 || message_level(kind) > report->debug) return;
    va_list args;
    va_start(args, format);
    message_format(text, sizeof text, kind, format, args);
    va_end(args);
    scr_print_message(message, text);
}
