/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_METRICS_H
#define SCR_METRICS_H

/* Figures of a ledger in the text format of OpenMetrics, which node_exporter reads as a
 * textfile: those of scr_report, and the file SCR_METRICS, which is written at each event
 * of the log. */

#include "report/ledger.h"
#include <stdio.h>

/* prefix: the path of the prefix directory, a label of all metrics. */
void scr_metrics_write(FILE *out, const char *prefix, const scr_ledger *l,
                       const scr_ledger_sum *sum);

typedef struct scr_metrics scr_metrics;

/* Reads the log below the open prefix directory, if there is one. path: the file. 0, or
 * -errno with a text; *metrics is to be closed in both cases. */
int scr_metrics_open(const char *path, int prefix, const char *prefix_path,
                     scr_metrics **metrics, kvtree_error *err);

/* Replaces the file by a complete new one, with this event. 0, or -errno with a text. */
int scr_metrics_add(scr_metrics *metrics, const scr_log_event *event, kvtree_error *err);

/* metrics may be NULL; returns NULL. */
scr_metrics *scr_metrics_close(scr_metrics *metrics);

#endif
