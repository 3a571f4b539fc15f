/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of a long operation; see meter.h. */
#include "report/meter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RATE_SECONDS 20.0 /* time span of the rate */
#define SHORTEST 10       /* minimum number of columns of a bar */

/* ---- amounts ---- */

const char *scr_text_span(double seconds, char text[SCR_AMOUNT_SIZE])
{
    const int64_t s = (int64_t)(seconds + 0.5);
    if (seconds < 9.95)
        snprintf(text, SCR_AMOUNT_SIZE, "%.1f s", seconds);
    else if (s < 60)
        snprintf(text, SCR_AMOUNT_SIZE, "%d s", (int)s);
    else if (s < 3600)
        snprintf(text, SCR_AMOUNT_SIZE, "%d min %d s", (int)(s / 60), (int)(s % 60));
    else if (s < 86400)
        snprintf(text, SCR_AMOUNT_SIZE, "%d h %d min", (int)(s / 3600),
                 (int)(s / 60 % 60));
    else
        snprintf(text, SCR_AMOUNT_SIZE, "%" PRId64 " d %d h", s / 86400,
                 (int)(s / 3600 % 24));
    return text;
}

const char *scr_text_bytes(double bytes, char text[SCR_AMOUNT_SIZE])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0;
    while (bytes >= 999.5 && unit < 6) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, SCR_AMOUNT_SIZE, unit && bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes,
             units[unit]);
    return text;
}

/* ---- numbers ---- */

void scr_meter_begin(scr_meter *meter, const char *unit, double now)
{
    *meter = (scr_meter){.unit = unit, .start = now, .last = now};
}

void scr_meter_update(scr_meter *m, uint64_t done, uint64_t total, double now)
{
    const double seconds = now - m->last, since = now - m->start;
    m->total = total;
    if (done < m->done) { /* the operation began again */
        scr_meter_begin(m, m->unit, now);
        m->total = total;
        m->done = done;
        return;
    }
    if (seconds <= 0) return;
    /* at first the overall mean, later a mean in which older times have less and less
     * weight */
    const double span = since < RATE_SECONDS ? since : RATE_SECONDS;
    const double weight = seconds < span ? seconds / span : 1;
    m->rate += weight * ((double)(done - m->done) / seconds - m->rate);
    m->done = done;
    m->last = now;
}

static int meter_percent(const scr_meter *m)
{
    if (m->done >= m->total) return 100;
    return (int)(100.0 * (double)m->done / (double)m->total);
}

/* ---- text ---- */

/* Adds a part, with a comma before it unless it is the first. */
static void meter_add(char *text, const char *part)
{
    const size_t used = strlen(text);
    snprintf(text + used, SCR_METER_SIZE - used, "%s%s", used ? ", " : "", part);
}

static void meter_add_amount(const scr_meter *m, char *text)
{
    char done[SCR_AMOUNT_SIZE], total[SCR_AMOUNT_SIZE], part[2 * SCR_AMOUNT_SIZE + 8];
    if (m->unit && m->total)
        snprintf(part, sizeof part, "%" PRIu64 " of %" PRIu64 " %.20s", m->done, m->total,
                 m->unit);
    else if (m->unit)
        snprintf(part, sizeof part, "%" PRIu64 " %.20s", m->done, m->unit);
    else if (m->total)
        snprintf(part, sizeof part, "%s of %s", scr_text_bytes((double)m->done, done),
                 scr_text_bytes((double)m->total, total));
    else
        scr_text_bytes((double)m->done, part);
    meter_add(text, part);
}

const char *scr_meter_line(const scr_meter *m, char text[SCR_METER_SIZE])
{
    char amount[SCR_AMOUNT_SIZE], part[SCR_AMOUNT_SIZE + 16];
    text[0] = 0;
    if (m->total) {
        snprintf(part, sizeof part, "%d%%", meter_percent(m));
        meter_add(text, part);
    }
    if (m->total || m->done) meter_add_amount(m, text);
    if (m->rate > 0 && !m->unit) {
        snprintf(part, sizeof part, "%s/s", scr_text_bytes(m->rate, amount));
        meter_add(text, part);
    }
    if (m->rate > 0 && m->done < m->total) {
        const double left = (double)(m->total - m->done) / m->rate;
        snprintf(part, sizeof part, "%s left", scr_text_span(left, amount));
        meter_add(text, part);
    } else {
        snprintf(part, sizeof part, "%s so far",
                 scr_text_span(m->last - m->start, amount));
        meter_add(text, part);
    }
    return text;
}

const char *scr_meter_bar(const scr_meter *m, const char *what, int columns,
                          char text[SCR_METER_BAR_MAX])
{
    static const char full[] = "==================================================";
    char line[SCR_METER_SIZE];
    if (columns >= SCR_METER_BAR_MAX) columns = SCR_METER_BAR_MAX - 1;
    if (columns < 0) columns = 0;
    scr_meter_line(m, line);
    int room = columns - (int)strlen(what) - (int)strlen(line) - 4;
    if (room > (int)sizeof full - 1) room = (int)sizeof full - 1;
    if (room >= SHORTEST && m->total) {
        const int done = room * meter_percent(m) / 100;
        snprintf(text, SCR_METER_BAR_MAX, "%s [%.*s%s%*s] %s", what, done, full,
                 done < room ? ">" : "", done < room ? room - done - 1 : 0, "", line);
    } else {
        snprintf(text, SCR_METER_BAR_MAX, "%s %s", what, line);
    }
    text[columns] = 0;
    return text;
}
