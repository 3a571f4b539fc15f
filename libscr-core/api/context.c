/* SPDX-License-Identifier: BSD-3-Clause */
/* The context of the SCR_* calls. A program that runs several ranks in one process, such
 * as a simulator, links its own definition. */
#include "api/context.h"

#include "ops/context.h"

struct scr *scr_default(void)
{
    static struct scr context; /* the only variable of the library */
    return &context;
}
