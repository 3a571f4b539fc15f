/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_METRICS_H
#define SCR_METRICS_H

/* Figures of a ledger in the text format of OpenMetrics, which node_exporter reads as a
 * textfile: the metrics of scr_report, and the file SCR_METRICS, which is written at each
 * event of the log. */

#include "report/ledger.h"
#include <stdio.h>

/* Writes all metrics. prefix: path of the prefix directory, which labels all metrics. */
void scr_metrics_write(FILE *out, const char *prefix, const scr_ledger *l,
                       const scr_ledger_sum *sum);

typedef struct scr_metrics scr_metrics;

/* Reads the log below the open prefix directory, if there is one. path: the file to
 * write. Returns 0, or -errno with a text. The caller closes *metrics in both cases. */
int scr_metrics_open(const char *path, int prefix, const char *prefix_path,
                     scr_metrics **metrics, kvtree_error *err);

/* Adds an event and replaces the file by a complete new one. Returns 0, or -errno with a
 * text. */
int scr_metrics_add(scr_metrics *metrics, const scr_log_event *event, kvtree_error *err);

/* metrics may be NULL; returns NULL. */
scr_metrics *scr_metrics_close(scr_metrics *metrics);

#endif
