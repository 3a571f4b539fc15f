/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_HALT_H
#define SCR_HALT_H

#include "base/versions.h"

/* The halt file .scr/halt.scr: when a run should end (SCR Developer Guide 1.2,
 * section 2.20). */

#include "base/record_change.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <stdint.h>

/* Reasons that SCR records itself. They keep scripts from starting another run in this
 * allocation. The next SCR_Init or scr_prerun removes these reasons, but no others. A
 * colon and a text follow the last two. */
#define SCR_HALT_FINALIZED "SCR_FINALIZE_CALLED"
#define SCR_HALT_SIGNAL "SCR_SIGNAL"
#define SCR_HALT_EXITED "SCR_HALT_EXIT"

enum { SCR_HALT_REASON_SIZE = 128 };

/* The conditions: keys with one value each. */
#define SCR_HALT_KEY_REASON "ExitReason"
#define SCR_HALT_KEY_LEFT "CheckpointsLeft"
#define SCR_HALT_KEY_AFTER "ExitAfter"     /* seconds since 1970 */
#define SCR_HALT_KEY_BEFORE "ExitBefore"   /* seconds since 1970 */
#define SCR_HALT_KEY_SECONDS "HaltSeconds" /* before ExitBefore, or the end */
#define SCR_HALT_KEY_OF_RUN                                                              \
    "HaltSecondsOfRun"             /* HaltSeconds comes from SCR_HALT_SECONDS */
#define SCR_HALT_KEY_NOW "ExitNow" /* 1: scr_run ends the job step, and removes it */

/* Reads the halt file below the open prefix directory into the empty tree halt; a missing
 * file counts as empty. */
int scr_halt_read(int prefix, kvtree *halt, kvtree_error *err);
int scr_halt_write(int prefix, const kvtree *halt, kvtree_error *err);

/* Changes the halt file under its lock (base/record_change.h); a missing file counts as
 * empty. */
int scr_halt_change(int prefix, scr_changer *change, void *arg, kvtree *halt,
                    kvtree_error *err);

/* The end of the allocation, and its source: a parameter or an environment variable. */
typedef struct scr_halt_end {
    int64_t time; /* seconds since 1970; 0: unknown */
    const char *source;
} scr_halt_end;

/* Reads the end from the environment of the batch system. 0 (*end stays unchanged if
 * there is none), or -EINVAL with a text if the value is not a time. */
int scr_halt_find_end(scr_halt_end *end, kvtree_error *err);

/* Whether HaltSeconds is set, but no end is known. */
bool scr_halt_lacks_end(const kvtree *halt, const scr_halt_end *end);

/* Whether one of the conditions in halt holds at now (seconds since 1970), or at most
 * HaltSeconds remain until end; reason gets a text. A pure function. */
bool scr_halt_check(const kvtree *halt, const scr_halt_end *end, int64_t now,
                    char reason[SCR_HALT_REASON_SIZE]);

/* Whether a condition holds that a person or a script set in the file. */
bool scr_halt_is_request(const kvtree *halt, int64_t now);

/* Sets HaltSeconds for a new run (0: none), and removes the value of an earlier run
 * unless it was changed since. 1 if halt was changed, 0, or -errno. */
int scr_halt_begin_seconds(kvtree *halt, int64_t seconds);

/* Records why the run ends. An existing reason stays: it is a request, or the first
 * cause. 1 if halt was changed, 0, or -errno. */
int scr_halt_add_reason(kvtree *halt, const char *reason);

/* Removes a reason that SCR recorded itself. 1 if halt was changed. */
int scr_halt_drop_own_reason(kvtree *halt);

/* Decrements CheckpointsLeft, if set, for a completed checkpoint. 1 if halt was
 * changed. */
int scr_halt_count_checkpoint(kvtree *halt);

#endif
