/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_CONTEXT_H
#define SIMULATION_CONTEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the context of the current process: size bytes, initially zero. */
struct scr *simulated_context(size_t size);

#ifdef __cplusplus
}
#endif

#endif
