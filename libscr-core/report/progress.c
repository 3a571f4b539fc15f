/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress lines of long operations; see progress.h. */
#include "report/progress.h"

#include <stdarg.h>
#include <stdio.h>

static void progress_print(void *arg)
{
    scr_progress *p = arg;
    char text[SCR_METER_SIZE];
    uint64_t done = 0, total = 0;
    p->source.read(p->source.arg, &done, &total);
    scr_meter_update(&p->meter, done, total, scr_clock());
    scr_say(p->report, p->message, "%s: %s", p->what, scr_meter_line(&p->meter, text));
}

void scr_progress_begin(const scr_report *report, scr_progress *p,
                        scr_progress_source source, const char *unit, scr_message message,
                        const char *format, ...)
{
    va_list args;
    p->alarm = (scr_alarm){.first = SCR_PROGRESS_SECONDS,
                           .every = SCR_PROGRESS_SECONDS,
                           .ring = progress_print,
                           .arg = p};
    if (report->rank != 0 || !source.read) return;
    p->source = source;
    p->report = report;
    p->message = message;
    va_start(args, format);
    vsnprintf(p->what, sizeof p->what, format, args);
    va_end(args);
    scr_meter_begin(&p->meter, unit, scr_clock());
    scr_alarm_begin(&p->alarm);
}

void scr_progress_end(scr_progress *p)
{
    scr_alarm_end(&p->alarm);
}
