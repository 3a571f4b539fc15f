/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NTH_MALLOC_H
#define TESTS_NTH_MALLOC_H

/* A malloc that has no memory the n-th time, and counts what was not freed, for one
 * source file of a test program: it stands before that of the C library. With the address
 * sanitizer, which has a malloc of its own, OWN_MALLOC is 0 and nothing fails. */

#include <errno.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

static int countdown; /* the allocation that fails, 1 being the next; 0: none does */
static long live;     /* blocks that were allocated and not freed */

#if OWN_MALLOC
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);

static int fails(void)
{
    if (countdown && --countdown == 0) {
        errno = ENOMEM;
        return 1;
    }
    return 0;
}

void *malloc(size_t size)
{
    if (fails()) return NULL;
    live++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (fails()) return NULL;
    live++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (fails()) return NULL;
    if (!old) live++;
    return __libc_realloc(old, size);
}

void free(void *block)
{
    if (block) live--;
    __libc_free(block);
}
#endif

#endif
