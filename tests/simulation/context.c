/* SPDX-License-Identifier: BSD-3-Clause */
/* Each simulated process has its own context of the SCR_* calls. */
#include "api/context.h"
#include "ops/context.h"

#include "context.h"

struct scr *scr_default(void)
{
    return simulated_context(sizeof(struct scr));
}
