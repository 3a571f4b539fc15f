/* SPDX-License-Identifier: BSD-3-Clause */
/* Method "sync": the files are moved one after the other, by the thread that dispatches,
 * before axl_dispatch returns. The first failure ends the transfer. */
#include "src/axl_private.h"

static int sync_start(axl_transfer *transfer, char *err)
{
    char text[AXL_ERROR_SIZE] = "";
    int rc = 0;
    for (size_t i = 0; i < transfer->count && rc == 0; i++) {
        axl_file *file = &transfer->files[i];
        rc = axl_copy(file->source, file->destination, transfer->flags, &file->size,
                      &file->crc, text);
        file->done = rc == 0;
    }
    axl_transfer_finish(transfer, rc, text);
    return 0;
}

static int sync_test(axl_transfer *transfer)
{
    return 0;
}

static void sync_wait(axl_transfer *transfer)
{
}

static void sync_stop(axl_transfer *transfer)
{
}

const axl_method axl_sync = {
    .name = "sync",
    .start = sync_start,
    .test = sync_test,
    .wait = sync_wait,
    .stop = sync_stop,
};
