/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_LIBC_H
#define SIMULATION_LIBC_H

/* Functions that the product uses instead of the C library: redirected.txt lists the
 * names, and each name becomes simulated_<name>. */

#include <ctime>
#include <sys/types.h>

extern "C" {
extern char **simulated_environ; /* environment of the current process */
int simulated_clock_gettime(clockid_t clock, struct timespec *time);
int simulated_usleep(useconds_t microseconds);
}

#endif
