/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

/* What fuzz targets share. A target is one function that may be given any bytes, and that
 * checks what the library makes of them:
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *     {
 *         char *bytes = fuzz_copy(data, size);
 *         REQUIRE(...);
 *         free(bytes);
 *         return 0;
 *     }
 *
 * libFuzzer calls it, and in every test run replay.c. */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                               \
    do {                                                                                 \
        if (!(condition)) fuzz_fail(__FILE__, __LINE__, #condition);                     \
    } while (0)

/* Prints and aborts. */
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* Copies size bytes to a block that ends where they end, so that the address sanitizer
 * sees any reading beyond. free() it. */
char *fuzz_copy(const void *bytes, size_t size);

/* A number that depends on all bytes. */
uint32_t fuzz_hash(const void *bytes, size_t size);

/* A directory for files, the same in each call. It lies in TMPDIR, and goes at the end of
 * the program with all that is in it. */
const char *fuzz_folder(void);

/* ---- memory: malloc, calloc, realloc and aligned_alloc of all that is linked
 * statically ---- */

struct fuzz_memory {
    size_t bytes; /* asked for since fuzz_memory_begin; what was freed stays counted */
    size_t calls;
};

/* Starts to count. All calls after the next `succeed` ones find no memory; SIZE_MAX:
 * every call finds some. */
void fuzz_memory_begin(size_t succeed);

/* Ends counting, and failing. */
struct fuzz_memory fuzz_memory_end(void);

#endif
