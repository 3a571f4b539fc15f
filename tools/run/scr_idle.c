/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_idle.so: lets idle ranks yield to others. scr_run --simulate preloads it if a
 * program has more ranks than processors (simulate.h).
 *
 * MPICH over UCX waits by polling and never yields: with more ranks than processors a
 * barrier takes 40 ms. With this module a rank sleeps for 50 microseconds after 20 polls
 * that found nothing. The module changes nothing else, and has no effect without UCX. */
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

enum { POLLS = 20, NAP = 50000 /* ns */ };

unsigned ucp_worker_progress(void *worker);

typedef unsigned (*progress_fn)(void *);

unsigned ucp_worker_progress(void *worker)
{
    static const struct timespec nap = {.tv_nsec = NAP};
    static __thread progress_fn real;
    static __thread unsigned idle;
    /* the program, such as Python, may load MPI late */
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (!real) return 0;
    unsigned events = real(worker);
    idle = events ? 0 : idle + 1;
    if (idle > POLLS) {
        idle = 0;
        nanosleep(&nap, NULL);
    }
    return events;
}
