/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_HALT_RUN_H
#define SCR_HALT_RUN_H

/* The halt conditions of an active run: its copy of the halt file, the end of its
 * allocation, and signals. Rank 0 works on the file; failures are reported, and the run
 * continues. All functions are local. */

#include "halt/halt.h"
#include "job/job.h"
#include <stdbool.h>

typedef struct scr_halt {
    const scr_job *job;
    int prefix;              /* open prefix directory */
    const char *prefix_path; /* for messages */
    kvtree *file;            /* rank 0's copy counts */
    bool is_reported;        /* the condition that holds was reported */
    bool is_unusable;        /* the unusable halt file was reported */
    int signal;              /* signal that some rank received; 0: none */
    scr_halt_end end;        /* of the allocation; on rank 0 */
} scr_halt;

/* Rank 0, at start: removes the reason why the last run ended, and enters the number of
 * seconds before the end of the allocation at which this run should stop (0: none).
 * end_time: SCR_END_TIME; 0: from the batch system. A damaged file is replaced, as its
 * conditions are lost. 0 or -errno with a text. */
int scr_halt_run_begin(scr_halt *halt, int64_t seconds, int64_t end_time,
                       kvtree_error *err);

/* Rank 0 changes the halt file under its lock, and keeps the result in halt->file. */
void scr_halt_run_change(scr_halt *halt, scr_changer *change, void *arg);

/* Rank 0 records why the run ends, unless there is a reason already. */
void scr_halt_run_record(scr_halt *halt, const char *reason);

/* Rank 0 reads the file again, because scripts change it during the run. Returns whether
 * a condition holds; this is reported the first time. */
bool scr_halt_run_check(scr_halt *halt);

/* Rank 0: describes the condition that holds. */
void scr_halt_run_reason(const scr_halt *halt, char reason[SCR_HALT_REASON_SIZE]);

/* Notes that a rank on a node received a signal; rank 0 records and reports it. */
void scr_halt_run_signal(scr_halt *halt, int number, int rank, const char *node);

/* ---- halt/signal.c: signals of the process ---- */

/* Begins to record these signals (a set of config/signals.h). */
void scr_signal_catch(unsigned set);

/* The number of a recorded signal; 0: none. From the first call on, a signal that is
 * recorded for the first time does not end the process. */
int scr_signal_seen(void);

/* Restores the earlier handlers, unless the application has changed them since. */
void scr_signal_release(void);

#endif
