/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FAIL_MALLOC_H
#define FAIL_MALLOC_H

/* A malloc that has no memory for blocks of certain sizes, and a calloc that fails once,
 * for one source file of a test program under MPI. Only calls of this program and of
 * libkvtree count, wherever they come from, and not those of MPI. */

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t fail_from, fail_to; /* sizes without memory; 0, 0: none */
static int fail_spared;           /* number of blocks of these sizes that are still
                                   * granted */
static int fail_calloc; /* number of calls until the failing one; 0: none fails */

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
void *__libc_calloc(size_t count, size_t size);

extern const char __executable_start, etext; /* from the linker */

static inline int is_of_kvtree(const char *caller)
{
    Dl_info object;
    if (caller >= &__executable_start && caller < &etext) return 1;
    return dladdr(caller, &object) && strstr(object.dli_fname, "libscr-kvtree");
}

void *malloc(size_t size)
{
    const char *caller = __builtin_return_address(0);
    if (size && size >= fail_from && size <= fail_to && is_of_kvtree(caller) &&
        fail_spared-- <= 0) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    const char *caller = __builtin_return_address(0);
    if (fail_calloc && is_of_kvtree(caller) && --fail_calloc == 0) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, size);
}
#endif

/* valgrind replaces this malloc by its own, and reports so. */
static inline int can_fail_malloc(void)
{
    const char *loaded = getenv("LD_PRELOAD");
    return CAN_FAIL_MALLOC && !(loaded && strstr(loaded, "vgpreload"));
}

static inline void fail_sizes(size_t from, size_t to)
{
    fail_from = from;
    fail_to = to;
    fail_spared = 0;
}

#endif
