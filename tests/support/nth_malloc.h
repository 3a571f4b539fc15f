/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NTH_MALLOC_H
#define TESTS_NTH_MALLOC_H

/* Memory whose n-th allocation fails, and a count of blocks that were not freed, for one
 * source file of a test program. meson.build lists the program under 'memory_tests', so
 * that the linker redirects (--wrap) the allocations of the test and of its parts to this
 * file, but not those of MPI and the C library; sanitizers are not affected.
 *
 *     countdown = 3;
 *     rc = kvtree_file_write(...);          the third allocation fails
 *     left = countdown, countdown = 0;      left is 0 if there were at least three
 *
 * An internal allocation of the C library, such as the buffer of open_memstream, counts
 * as one allocation; it is not known later whether it was freed. */

#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree_error.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int countdown; /* the allocation that fails, 1: the next one; 0: none */
static long live;     /* allocated blocks that were not freed */

/* ---- allocated blocks ---- */

enum { NTH_BLOCKS = 1 << 19 };

static void *nth_block[NTH_BLOCKS]; /* a hash table without gaps between the home of a
                                     * block and the block */
static pthread_mutex_t nth_lock = PTHREAD_MUTEX_INITIALIZER;

static inline size_t nth_home(const void *block)
{
    return ((uintptr_t)block * 0x9e3779b97f4a7c15u >> 40) % NTH_BLOCKS;
}

static inline void *nth_add(void *block)
{
    if (!block) return NULL;
    pthread_mutex_lock(&nth_lock);
    size_t i = nth_home(block);
    while (nth_block[i])
        i = (i + 1) % NTH_BLOCKS;
    nth_block[i] = block;
    if (++live > NTH_BLOCKS / 2) abort();
    pthread_mutex_unlock(&nth_lock);
    return block;
}

static inline void nth_drop(const void *block)
{
    pthread_mutex_lock(&nth_lock);
    size_t i = nth_home(block);
    while (nth_block[i] && nth_block[i] != block)
        i = (i + 1) % NTH_BLOCKS;
    if (nth_block[i]) live--;
    for (size_t next = i; nth_block[i];) {
        next = (next + 1) % NTH_BLOCKS;
        size_t home = nth_home(nth_block[next]);
        if (nth_block[next] && (next - home) % NTH_BLOCKS < (next - i) % NTH_BLOCKS)
            continue; /* it would precede its home */
        nth_block[i] = nth_block[next];
        i = next;
    }
    pthread_mutex_unlock(&nth_lock);
}

static inline int nth_fails(void)
{
    pthread_mutex_lock(&nth_lock);
    int fails = countdown && --countdown == 0;
    pthread_mutex_unlock(&nth_lock);
    if (fails) errno = ENOMEM;
    return fails;
}

/* ---- wrappers of the C library ---- */

#define NTH_WRAP(type, name, types, args, failure)                                       \
    type __real_##name types;                                                            \
    type __wrap_##name types;                                                            \
    type __wrap_##name types                                                             \
    {                                                                                    \
        return nth_fails() ? failure : __real_##name args;                               \
    }
#define NTH_WRAP_BLOCK(type, name, types, args)                                          \
    type __real_##name types;                                                            \
    type __wrap_##name types;                                                            \
    type __wrap_##name types                                                             \
    {                                                                                    \
        return nth_fails() ? NULL : nth_add(__real_##name args);                         \
    }

NTH_WRAP_BLOCK(void *, malloc, (size_t size), (size))
NTH_WRAP_BLOCK(void *, calloc, (size_t count, size_t size), (count, size))
NTH_WRAP_BLOCK(void *, aligned_alloc, (size_t to, size_t size), (to, size))
NTH_WRAP_BLOCK(char *, strdup, (const char *text), (text))
NTH_WRAP_BLOCK(char *, strndup, (const char *text, size_t most), (text, most))
NTH_WRAP(FILE *, open_memstream, (char **text, size_t *size), (text, size), NULL)
NTH_WRAP(DIR *, fdopendir, (int fd), (fd), NULL)

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block)
{
    if (block) nth_drop(block);
    __real_free(block);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    if (nth_fails()) return NULL;
    if (old) nth_drop(old); /* before another thread can get it */
    void *block = __real_realloc(old, size);
    if (block) return nth_add(block);
    if (size) nth_add(old);
    return NULL;
}

void *__wrap_reallocarray(void *old, size_t count, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    size_t all;
    if (!__builtin_mul_overflow(count, size, &all)) return __wrap_realloc(old, all);
    errno = ENOMEM;
    return NULL;
}

char *__real_realpath(const char *path, char *to);
char *__wrap_realpath(const char *path, char *to);
char *__wrap_realpath(const char *path, char *to)
{
    if (to) return __real_realpath(path, to);
    return nth_fails() ? NULL : nth_add(__real_realpath(path, to));
}

int __wrap_vasprintf(char **text, const char *format, va_list args);
__attribute__((format(printf, 2, 0))) int
__wrap_vasprintf(char **text, const char *format, va_list args)
{
    if (nth_fails()) return -1;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text = n < 0 ? NULL : nth_add(__real_malloc((size_t)n + 1));
    return *text ? vsnprintf(*text, (size_t)n + 1, format, args) : -1;
}

int __wrap_asprintf(char **text, const char *format, ...);
__attribute__((format(printf, 2, 3))) int __wrap_asprintf(char **text, const char *format,
                                                          ...)
{
    va_list args;
    va_start(args, format);
    int n = __wrap_vasprintf(text, format, args);
    va_end(args);
    return n;
}

/* ---- tries, one after the other ---- */

static kvtree_error nth_text; /* for the error text of a failed try */

/* A try: returns 0, or the error of the library. */
typedef int nth_try(void *arg);

/* Distance between failing allocations that gives that number of tries; 1 with NTH_ALL in
 * the environment. */
static inline int nth_stride(int allocations, int tries)
{
    return getenv("NTH_ALL") || allocations <= tries ? 1
                                                     : (allocations + tries - 1) / tries;
}

static inline int nth_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir) abort();
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* Prevents failures while a try prepares and checks: set countdown = held afterwards. */
static inline int nth_hold(void)
{
    int held = countdown;
    countdown = 0;
    return held;
}

static inline int nth_again(nth_try *work, void *arg)
{
    nth_text.text[0] = 0;
    return work(arg);
}

/* Makes one try without allocation number n. *fired: the try had that number of
 * allocations. */
static inline int nth_without(nth_try *work, void *arg, int n, int *fired)
{
    countdown = n;
    int rc = nth_again(work, arg), left = countdown;
    countdown = 0;
    *fired = left == 0;
    return rc;
}

/* Returns the number of allocations of a try. */
static inline int nth_count(nth_try *work, void *arg)
{
    const int most = 1 << 30;
    countdown = most;
    nth_again(work, arg);
    int made = most - countdown;
    countdown = 0;
    return made;
}

#endif
