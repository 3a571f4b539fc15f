/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

/* Text to numbers, whole or not at all: surrounding junk, an empty text or a value out of
 * range is -EINVAL (-ERANGE), and the output stays as it was. */

#include "common/prefix.h"
#include <stdint.h>

#define number_int64 COMMON(number_int64)
#define number_uint64 COMMON(number_uint64)
#define number_double COMMON(number_double)

/* Decimal, with an optional sign. */
int number_int64(const char *text, int64_t *value);

/* Decimal, or hexadecimal after 0x. */
int number_uint64(const char *text, uint64_t *value);

/* A finite decimal number. */
int number_double(const char *text, double *value);

#endif
