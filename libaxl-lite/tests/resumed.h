/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_TESTS_RESUMED_H
#define AXL_TESTS_RESUMED_H

/* Transfers with a state file, run by another process that may be killed: its report in
 * shared memory, and how the transfers are resumed. */

#include "nth_syscall.h"
#include "scratch.h"
#include "src/axl_private.h"

#include <sys/mman.h>

enum { PIECE = 65536, BUFFER = 32768 };

/* Sanitizers are too slow for testing every call. */
enum { STEP = NTH_SANITIZED ? 7 : 1 };

static nth_result result;
static char state_path[160];
static struct told {
    int rc;
    axl_error err;
} * told;

#define WRONG(...) (print_error(__VA_ARGS__), ++wrong)

/* Sets small pieces, and writes the state file after each of them. */
static inline void tune(axl_transfer *t)
{
    t->piece = PIECE;
    t->buffer = BUFFER;
    t->interval = 0;
}

/* Dispatches a transfer, unless rc is an error, and frees it after its end. */
static inline int end_transfer(axl_transfer *t, int rc)
{
    if (!rc) {
        tune(t);
        rc = axl_dispatch(t, &told->err);
    }
    if (!rc) rc = axl_wait(t, &told->err);
    axl_free(t);
    return told->rc = rc;
}

static inline int resume(void)
{
    axl_transfer *t = NULL;
    told->err.text[0] = 0;
    int rc = axl_resume(state_path, "sync", &t, &told->err);
    return end_transfer(t, rc);
}

/* Runs a transfer in its own process, in which one call fails or is the last. */
static inline void run_with_fault(int (*transfer)(void *), nth_fault fault)
{
    memset(told, 0, sizeof *told);
    int rc = nth_run(transfer, NULL, nth_at, &fault, &result);
    if (rc == 0) return;
    print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
    skip();
}

#endif
