/* SPDX-License-Identifier: BSD-3-Clause */
/* Announcements of long waits; see wait.h. */
#include "report/wait.h"

#include <stdarg.h>

static void wait_announce(void *arg)
{
    const scr_wait *w = arg;
    scr_print_message(w->message, w->text);
}

void scr_wait_begin(const scr_report *report, scr_wait *w, scr_message message,
                    const char *format, ...)
{
    va_list args;
    w->start = scr_clock();
    w->message = message;
    w->alarm = (scr_alarm){.first = SCR_WAIT_SECONDS, .ring = wait_announce, .arg = w};
    if (report->rank != 0) return;
    va_start(args, format);
    message_format(w->text, sizeof w->text, &scr_messages[message], format, args);
    va_end(args);
    scr_alarm_begin(&w->alarm);
}

double scr_wait_end(scr_wait *w)
{
    scr_alarm_end(&w->alarm);
    return scr_clock() - w->start;
}
