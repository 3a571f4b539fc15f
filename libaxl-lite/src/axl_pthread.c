/* SPDX-License-Identifier: BSD-3-Clause */
/* Method "pthread": threads of this process share the files, and the pieces of large
 * ones, while the program continues. */
#include "src/axl_private.h"

#include <sched.h>
#include <unistd.h>

/* More threads would only wait for each other. */
enum { MOST = 8 };

/* Returns the number of processors that this process may use. */
static int pthread_count_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
}

static int pthread_start(axl_transfer *transfer, axl_error *err)
{
    int threads = transfer->workers;
    if (threads == 0) {
        threads = pthread_count_processors();
        if (threads > MOST) threads = MOST;
    }
    return axl_work_start(transfer, threads, err);
}

const axl_method axl_pthread = {
    .name = "pthread",
    .start = pthread_start,
    .test = axl_work_test,
    .wait = axl_work_wait,
    .stop = axl_work_stop,
    .look = axl_work_look,
};
