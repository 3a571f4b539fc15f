/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

/* Shared by the fuzz targets. A target is one function that accepts any bytes, and checks
 * what the library makes of them:
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *     {
 *         char *bytes = fuzz_copy(data, size);
 *         REQUIRE(...);
 *         free(bytes);
 *         return 0;
 *     }
 *
 * libFuzzer calls it; in every test run, replay.c does. */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                               \
    do {                                                                                 \
        if (!(condition)) fuzz_fail(__FILE__, __LINE__, #condition);                     \
    } while (0)

/* Prints and aborts. */
_Noreturn void fuzz_fail(const char *file, int line, const char *condition);

/* Copies the bytes to a block of exactly size bytes, so that the address sanitizer
 * detects reads beyond the end. The caller frees it. */
char *fuzz_copy(const void *bytes, size_t size);

/* Returns a number that depends on all bytes. */
uint32_t fuzz_hash(const void *bytes, size_t size);

/* Returns a directory for files, the same in each call. It is in TMPDIR, and is removed
 * with its content at the end of the program. */
const char *fuzz_folder(void);

/* ---- memory: malloc, calloc, realloc and aligned_alloc of all that is linked
 * statically ---- */

struct fuzz_memory {
    size_t bytes; /* requested since fuzz_memory_begin; freed bytes stay counted */
    size_t calls;
};

/* Starts to count. After `succeed` more successful calls all calls fail; SIZE_MAX: no
 * call fails. */
void fuzz_memory_begin(size_t succeed);

/* Ends the counting and the failures. */
struct fuzz_memory fuzz_memory_end(void);

#endif
