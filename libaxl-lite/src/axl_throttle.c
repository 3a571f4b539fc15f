/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of a transfer: a pure function of the bytes moved and the times.
 *
 * Every byte has a price in seconds. The bytes moved so far are paid for until a certain
 * time, and more bytes may be moved when that time has come. A transfer that was slower
 * than the limit saves a little time for later, but not more: no burst follows a pause.
 */
#include "src/axl_private.h"

/* Seconds that can be saved. Several workers that pay at the same time, each for a tenth
 * of a second, must not wait for work that they did in parallel. */
#define SAVED 0.5

void axl_throttle_begin(axl_throttle *throttle, double bandwidth, double percent,
                        double now)
{
    *throttle = (axl_throttle){.bandwidth = bandwidth,
                               .share = percent / 100,
                               .paid_bytes = now,
                               .paid_time = now,
                               .last = now};
}

/* Pays for work since the time last. Returns the seconds until work may continue. */
static double throttle_pay(double *paid, double last, double now, double seconds)
{
    if (*paid < last - SAVED) *paid = last - SAVED;
    *paid += seconds;
    return *paid > now ? *paid - now : 0;
}

double axl_throttle_pay(axl_throttle *throttle, double now, uint64_t bytes, double cpu)
{
    double by_bytes = 0, by_time = 0, last = throttle->last;
    throttle->last = now;
    if (throttle->bandwidth > 0)
        by_bytes = throttle_pay(&throttle->paid_bytes, last, now,
                                (double)bytes / throttle->bandwidth);
    if (throttle->share > 0)
        by_time = throttle_pay(&throttle->paid_time, last, now, cpu / throttle->share);
    return by_bytes > by_time ? by_bytes : by_time;
}
