/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_STOP_H
#define SCR_STOP_H

/* When to write a checkpoint, and when to stop. ops/context.h describes what holds for
 * all functions. */

#include "ops/context.h"

/* ---- ops/halt_exit.c ---- */

/* With SCR_HALT_EXIT=1, if a halt condition holds, ends the process as after SCR_Finalize
 * and MPI_Finalize. Collective; in state idle. */
void scr_halt_exit(struct scr *scr);

/* ---- ops/pace.c ---- */

/* Asks all ranks. *halt is 1 on every rank if a halt condition holds, or any rank
 * received a signal; *need (or NULL) is 1 if a checkpoint is due. Takes one MPI
 * operation; a second one the first time any rank reports a signal. */
int scr_look(struct scr *scr, int *need, int *halt);

/* At the end of SCR_Init, when the application begins to compute. */
void scr_advise_begin(struct scr *scr);

/* After a complete checkpoint, before SCR_Complete_output returns. */
void scr_advise_cost(struct scr *scr);

#endif
