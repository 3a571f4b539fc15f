/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

/* A ledger as a report: text, JSON, and an HTML page, all with the same figures. */

#include "report/ledger.h"
#include <stdio.h>

typedef struct report {
    const char *prefix; /* path of the prefix directory */
    scr_ledger *ledger;
    scr_ledger_sum sum;
} report;

/* Print to standard output; an exit code. JSON: an object per line, whose key "kind" is
 * summary, level, run or span. */
int report_print(const report *r);
int report_print_json(const report *r);

/* Writes a page that needs no other file and no network. */
void report_write_html(FILE *out, const report *r);

/* Joins consecutive spans of a run until they last at least `least` seconds; the last
 * result may be shorter. Calls draw for each result, in order, with the kind that has the
 * most time in it, and with seconds from the start of the run. */
typedef void report_draw(void *arg, scr_ledger_kind kind, double from, double to);
void report_join_spans(const scr_ledger *l, int run, double least, report_draw *draw,
                       void *arg);

#endif
