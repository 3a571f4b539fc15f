/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_API_CONTEXT_H
#define SCR_API_CONTEXT_H

struct scr;

/* The context of the SCR_* calls in this process; never NULL. */
struct scr *scr_default(void);

#endif
