/* SPDX-License-Identifier: BSD-3-Clause */
/* Method "sync": the files are moved one after the other, by the thread that dispatches,
 * before axl_dispatch returns. */
#include "src/axl_private.h"

static int sync_start(axl_transfer *transfer, axl_error *err)
{
    return axl_work_start(transfer, 0, err);
}

const axl_method axl_sync = {
    .name = "sync",
    .start = sync_start,
    .test = axl_work_test,
    .wait = axl_work_wait,
    .stop = axl_work_stop,
    .look = axl_work_look,
};
