/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_STOP_H
#define SCR_STOP_H

/* When to write a checkpoint, and when to stop: see ops/context.h for what holds for all
 * functions. */

#include "ops/context.h"

/* ---- ops/halt_check.c ---- */

/* Rank 0 reads the halt file again: scripts change it while the program runs, and nothing
 * of that is to be overwritten. One that cannot be read leaves what was known before in
 * force. Local. */
void scr_halt_refresh(struct scr *scr);

/* Rank 0 changes the halt file, under its lock, and has what it says then. A failure is
 * told and no more. */
void scr_halt_update(struct scr *scr, scr_changer *change, void *arg);

/* Rank 0 says why the run should end, if it should, and what to do about it. Local. */
void scr_halt_tell(struct scr *scr);

/* Rank 0 records why the run ends, unless a reason is there. Local. */
void scr_halt_record(struct scr *scr, const char *reason);

/* Seconds since 1970: only for times that people and batch systems give. */
int64_t scr_halt_today(void);

/* *halt is 1 everywhere when a halt condition holds, or a signal came to any rank; *need
 * (or NULL) when it is time for a checkpoint. One operation of MPI; a second one when a
 * signal is heard of for the first time. */
int scr_look(struct scr *scr, int *need, int *halt);

/* ---- ops/halt_exit.c ---- */

/* With SCR_HALT_EXIT=1, and when a halt condition holds, ends the process as after
 * SCR_Finalize and MPI_Finalize. Collective; in state idle. */
void scr_halt_exit(struct scr *scr);

/* ---- ops/signal.c: local, of the process ---- */

/* From now on these signals (a set of config/signals.h) are noted. */
void scr_signal_catch(unsigned set);

/* The number of one that came; 0: none. From the first call on they do not end the
 * process any more. */
int scr_signal_seen(void);

/* What was in force before is again, unless the application has changed it since. */
void scr_signal_release(void);

/* ---- ops/advise.c ---- */

/* SCR_Init is done: the application begins to compute. */
void scr_advise_begin(struct scr *scr);

/* A checkpoint is complete, and SCR_Complete_output about to return. */
void scr_advise_cost(struct scr *scr);

/* On rank 0: 1 when it is time for a checkpoint. */
int scr_advise(struct scr *scr, int halt);

#endif
