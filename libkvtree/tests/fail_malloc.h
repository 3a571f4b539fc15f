/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAIL_MALLOC_H
#define FAIL_MALLOC_H

/* A malloc that has no memory for blocks of certain sizes, for one source file of a test
 * program under MPI. Sizes tell the trees of a test from whatever MPI allocates. */

#include <errno.h>
#include <stdlib.h>

static size_t fail_from, fail_to; /* sizes without memory; 0, 0: none */
static int fail_spared;           /* so many blocks of these sizes can still be had */

#if defined(__SANITIZE_ADDRESS__)
#define CAN_FAIL_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAN_FAIL_MALLOC 0
#endif
#endif

#ifndef CAN_FAIL_MALLOC
#define CAN_FAIL_MALLOC 1
void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
    if (size && size >= fail_from && size <= fail_to && fail_spared-- <= 0) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}
#endif

static inline void fail_sizes(size_t from, size_t to)
{
    fail_from = from;
    fail_to = to;
    fail_spared = 0;
}

#endif
