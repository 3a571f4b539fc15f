/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

/* Conversion of text to numbers, all or nothing: surrounding characters, an empty text or
 * a value out of range is -EINVAL (-ERANGE), and the output is unchanged. And conversion
 * of integers to text, in a tenth of the time of snprintf. */

#include "common/prefix.h"
#include <stdint.h>

#define number_int64 COMMON(number_int64)
#define number_uint64 COMMON(number_uint64)
#define number_double COMMON(number_double)
#define number_text_int64 COMMON(number_text_int64)
#define number_text_uint64 COMMON(number_text_uint64)

/* Decimal, with an optional sign. */
int number_int64(const char *text, int64_t *value);

/* Decimal, or hexadecimal after 0x. */
int number_uint64(const char *text, uint64_t *value);

/* A finite decimal number with a decimal point, whatever the locale of the program. A
 * number too close to 0 for a double becomes the nearest double. */
int number_double(const char *text, double *value);

/* Sign, 20 digits, NUL. */
#define NUMBER_TEXT_SIZE 22

/* Decimal. The text ends at the end of buffer and begins at the returned pointer. */
const char *number_text_int64(char buffer[NUMBER_TEXT_SIZE], int64_t value);
const char *number_text_uint64(char buffer[NUMBER_TEXT_SIZE], uint64_t value);

#endif
