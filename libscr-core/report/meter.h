/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_METER_H
#define SCR_METER_H

/* How far a long operation is, for people: as a line for a log, and as a bar for a
 * terminal. Pure: the caller has the numbers and the clock.
 *
 *     scr_meter m;
 *     scr_meter_begin(&m, NULL, now);
 *     scr_meter_update(&m, done, total, now);
 *     scr_meter_line(&m, text);      "31%, 1.2 GB of 4.0 GB, 120 MB/s, 23 s left"
 */

#include <stddef.h>
#include <stdint.h>

typedef struct scr_meter {
    const char *unit; /* what is counted: "files"; NULL: bytes */
    double start, last;
    uint64_t done, total; /* total 0: unknown */
    double rate;          /* per second, of late; 0: nothing is done yet */
} scr_meter;

enum { SCR_METER_SIZE = 128, SCR_METER_BAR_MAX = 512, SCR_AMOUNT_SIZE = 64 };

void scr_meter_begin(scr_meter *meter, const char *unit, double now);

/* now: in seconds, of the same clock. The rate is that of about the last 20 seconds. Less
 * than before is done when an operation begins again. */
void scr_meter_update(scr_meter *meter, uint64_t done, uint64_t total, double now);

/* Bytes done of all, rate, and time left; of these, what is known. Returns text. */
const char *scr_meter_line(const scr_meter *meter, char text[SCR_METER_SIZE]);

/* "what [=====>    ]  31%, ..." of at most that number of columns, without a bar where
 * few are left. what is ASCII. Returns text. */
const char *scr_meter_bar(const scr_meter *meter, const char *what, int columns,
                          char text[SCR_METER_BAR_MAX]);

/* Time spans and amounts for people: "2 h 3 min", "3.1 GB". Return text. */
const char *scr_text_span(double seconds, char text[SCR_AMOUNT_SIZE]);
const char *scr_text_bytes(double bytes, char text[SCR_AMOUNT_SIZE]);

#endif
