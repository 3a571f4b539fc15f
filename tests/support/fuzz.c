/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the fuzz targets; see fuzz.h. The build links each target with --wrap, so
 * that the functions at the end of this file precede those of the C library or of a
 * sanitizer. */
#include "fuzz.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fuzz_fail(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
    abort();
}

char *fuzz_copy(const void *bytes, size_t size)
{
    char *copy = malloc(size ? size : 1);
    REQUIRE(copy != NULL);
    if (size) memcpy(copy, bytes, size);
    return copy;
}

uint32_t fuzz_hash(const void *bytes, size_t size)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    return hash;
}

static char folder[256];

static int remove_one(const char *path, const struct stat *st, int kind,
                      struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    remove(path);
    return 0;
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    if (folder[0]) return folder;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/scr-test-XXXXXX", base ? base : "/tmp");
    REQUIRE(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    return folder;
}

/* ---- memory ---- */

static int counting;
static size_t left;
static struct fuzz_memory count;

void fuzz_memory_begin(size_t succeed)
{
    count = (struct fuzz_memory){0, 0};
    left = succeed;
    counting = 1;
}

struct fuzz_memory fuzz_memory_end(void)
{
    counting = 0;
    return count;
}

static int is_there(size_t size)
{
    if (!counting) return 1;
    count.calls++;
    count.bytes += size;
    if (left == SIZE_MAX || left-- > 0) return 1;
    left = 0;
    errno = ENOMEM;
    return 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    return is_there(size) ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t number, size_t size)
{
    return is_there(number * size) ? __real_calloc(number, size) : NULL;
}

void *__wrap_realloc(void *block, size_t size)
{
    return is_there(size) ? __real_realloc(block, size) : NULL;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return is_there(size) ? __real_aligned_alloc(alignment, size) : NULL;
}
