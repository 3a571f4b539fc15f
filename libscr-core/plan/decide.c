/* SPDX-License-Identifier: BSD-3-Clause */
/* Pure decisions; see plan/decide.h. */
#include "plan/decide.h"

#include <errno.h>
#include <stddef.h>

int scr_decide_checkpoint(const scr_advice *a)
{
    if (a->halt) return 1;
    if (a->interval > 0 && a->calls > 0 && a->calls % a->interval == 0) return 1;
    if (a->seconds > 0 && a->since_last >= a->seconds) return 1;
    if (a->automatic && a->since_last >= a->optimum) return 1;
    if (a->overhead > 0)
        return a->cost <= 0 || a->cost * 100 <= a->overhead * (a->since_last + a->cost);
    return 0;
}

int scr_decide_flush(int n, int every)
{
    return every > 0 && n % every == 0;
}

int scr_decide_may_pass(int error)
{
    static const int passing[] = {EIO,     ENOMEM,    EMFILE,         ENFILE,
                                  EINTR,   EAGAIN,    EBUSY,          ESTALE,
                                  ENOBUFS, ETIMEDOUT, EPROTONOSUPPORT};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (error == -passing[i]) return 1;
    return 0;
}
