/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_STOP_H
#define SCR_STOP_H

/* When to write a checkpoint, and when to stop: see ops/context.h for what holds for all
 * functions. */

#include "ops/context.h"

/* ---- ops/halt_exit.c ---- */

/* With SCR_HALT_EXIT=1, and when a halt condition holds, ends the process as after
 * SCR_Finalize and MPI_Finalize. Collective; in state idle. */
void scr_halt_exit(struct scr *scr);

/* ---- ops/pace.c ---- */

/* Asks all ranks: *halt is 1 everywhere when a halt condition holds, or a signal came to
 * any rank; *need (or NULL) when it is time for a checkpoint. One operation of MPI; a
 * second one the first time any rank reports a signal. */
int scr_look(struct scr *scr, int *need, int *halt);

/* SCR_Init is done: the application begins to compute. */
void scr_advise_begin(struct scr *scr);

/* A checkpoint is complete, and SCR_Complete_output about to return. */
void scr_advise_cost(struct scr *scr);

#endif
