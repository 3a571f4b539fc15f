/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_THREAD_H
#define COMMON_THREAD_H

/* Threads of a library. They take no signals, so handlers of the application run in its
 * own threads. */

#include "common/prefix.h"
#include <pthread.h>

#define thread_start COMMON(thread_start)

/* Starts a thread with all signals blocked; the caller joins or detaches it. Returns 0 or
 * -errno. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
