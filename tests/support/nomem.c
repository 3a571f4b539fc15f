/* SPDX-License-Identifier: BSD-3-Clause */
/* nomem.so, for LD_PRELOAD: the n-th allocation of a process fails, whichever code
 * requests it, including the C library.
 *
 *   NOMEM_PROGRAM=name     only in programs of that name
 *   NOMEM_AT=n             from 1, beginning just before main; 0: none fails
 *   NOMEM_MARK=file        is made when the allocation fails
 *   NOMEM_COUNT=file       gets a line with the number of allocations when a process ends
 *
 * Counting continues when a process executes another program or forks. Does not work with
 * sanitizers, which have their own allocator. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_long count, at;
static const char *mark, *total;

__attribute__((constructor)) static void begin(void)
{
    const char *program = getenv("NOMEM_PROGRAM"), *number = getenv("NOMEM_AT");
    if (!program || strcmp(program, program_invocation_short_name) != 0) return;
    mark = getenv("NOMEM_MARK");
    total = getenv("NOMEM_COUNT");
    atomic_store(&count, 0);
    atomic_store(&at, number ? atol(number) : 0);
}

__attribute__((destructor)) static void end(void)
{
    char line[32];
    if (!total) return;
    int fd = open(total, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int n = snprintf(line, sizeof line, "%ld\n", atomic_load(&count));
    if (fd < 0 || write(fd, line, (size_t)n) != n) abort();
    close(fd);
}

static int fails(void)
{
    if (atomic_fetch_add(&count, 1) + 1 != atomic_load(&at)) return 0;
    int fd = mark ? open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) close(fd);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *block, size_t size)
{
    return fails() ? NULL : __libc_realloc(block, size);
}

void *reallocarray(void *block, size_t n, size_t size)
{
    size_t all;
    if (__builtin_mul_overflow(n, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, all);
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}
