/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

/* A ledger as a report: text, JSON, and a page of HTML. Each has the same
 * figures. */

#include "report/ledger.h"
#include <stdio.h>

typedef struct report {
    const char *prefix; /* the path */
    scr_ledger *ledger;
    scr_ledger_sum sum;
} report;

/* To standard output; an exit code. JSON: an object per line, whose key "kind" is
 * summary, level, run or span. */
int report_print(const report *r);
int report_print_json(const report *r);

/* A page that needs no other file and no network. */
void report_write_html(FILE *out, const report *r);

/* Spans drawn one after the other need not be narrower than that share of a row: those
 * that are narrower are joined to one of the kind that has the most time. Calls draw for
 * each, in order; seconds from the begin of the run. */
typedef void report_draw(void *arg, scr_ledger_kind kind, double from, double to);
void report_join_spans(const scr_ledger *l, int run, double least, report_draw *draw,
                       void *arg);

#endif
