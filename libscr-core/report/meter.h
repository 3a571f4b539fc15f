/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_METER_H
#define SCR_METER_H

/* Progress of a long operation for users: as a line for a log, and as a bar for a
 * terminal. Pure functions: the caller provides the numbers and the time.
 *
 *     scr_meter m;
 *     scr_meter_begin(&m, NULL, now);
 *     scr_meter_update(&m, done, total, now);
 *     scr_meter_line(&m, text);      "31%, 1.2 GB of 4.0 GB, 120 MB/s, 23 s left" */

#include <stddef.h>
#include <stdint.h>

typedef struct scr_meter {
    const char *unit; /* the unit of done and total, such as "files"; NULL: bytes */
    double start, last;
    uint64_t done, total; /* total 0: unknown */
    double rate;          /* recent rate per second; 0: nothing is done yet */
} scr_meter;

enum { SCR_METER_SIZE = 128, SCR_METER_BAR_MAX = 512, SCR_AMOUNT_SIZE = 64 };

void scr_meter_begin(scr_meter *meter, const char *unit, double now);

/* Updates the numbers. now: in seconds, always of the same clock. The rate covers about
 * the last 20 seconds. If done decreases, the operation has begun again. */
void scr_meter_update(scr_meter *meter, uint64_t done, uint64_t total, double now);

/* Writes done, total, rate and time left, as far as they are known. Returns text. */
const char *scr_meter_line(const scr_meter *meter, char text[SCR_METER_SIZE]);

/* Writes "what [=====>    ]  31%, ..." with at most that number of columns, without a bar
 * if only few are left. what is ASCII. Returns text. */
const char *scr_meter_bar(const scr_meter *meter, const char *what, int columns,
                          char text[SCR_METER_BAR_MAX]);

/* Write time spans and amounts for users: "2 h 3 min", "3.1 GB". Return text. */
const char *scr_text_span(double seconds, char text[SCR_AMOUNT_SIZE]);
const char *scr_text_bytes(double bytes, char text[SCR_AMOUNT_SIZE]);

#endif
