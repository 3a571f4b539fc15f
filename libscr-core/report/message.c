/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for people: the only place in the libraries that writes to stderr. */
#include "report/report.h"

#include "common/io.h"
#include "common/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void scr_print_line(const char *line)
{
    char text[1200];
    int n = snprintf(text, sizeof text - 1, "SCR: %s", line);
    if (n >= (int)sizeof text - 1) n = (int)sizeof text - 2;
    /* names and reasons may come from other users */
    utf8_mask(text, utf8_is_narrow(stderr));
    /* one write per line, so that lines of several processes do not mix */
    text[n++] = '\n';
    if (io_write(STDERR_FILENO, text, (size_t)n) != 0) {
        /* stderr is the last place for reports */
    }
}

void scr_say(const scr_report *report, int level, const char *format, ...)
{
    char line[1100];
    if (report->rank != 0 || level > report->debug) return;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    scr_print_line(line);
}
