/* SPDX-License-Identifier: BSD-3-Clause */
/* Text to numbers; see number.h. */
#include "common/number.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int number_check_end(const char *text, const char *end)
{
    if (errno == ERANGE) return -ERANGE;
    return end == text || *end ? -EINVAL : 0;
}

int number_int64(const char *text, int64_t *value)
{
    char *end;
    if (!text || !(isdigit((unsigned char)*text) || *text == '-' || *text == '+'))
        return -EINVAL;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    int rc = number_check_end(text, end);
    if (!rc) *value = v;
    return rc;
}

int number_uint64(const char *text, uint64_t *value)
{
    char *end;
    if (!text || !isdigit((unsigned char)*text)) return -EINVAL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    int rc = number_check_end(text, end);
    if (!rc) *value = v;
    return rc;
}

int number_double(const char *text, double *value)
{
    char *end;
    /* strtod would also accept hexadecimal numbers, nan, and blanks before a number; and
     * the locale of the program determines its decimal point */
    if (!text || text[strspn(text, "+-.0123456789eE")]) return -EINVAL;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return -ENOMEM;
    errno = 0;
    double v = strtod_l(text, &end, plain);
    if (errno == ERANGE && fabs(v) < 1) errno = 0; /* underflow: the nearest double */
    int rc = number_check_end(text, end);
    freelocale(plain);
    if (!rc && !isfinite(v)) rc = -EINVAL;
    if (!rc) *value = v;
    return rc;
}

const char *number_text_uint64(char buffer[NUMBER_TEXT_SIZE], uint64_t value)
{
    char *at = buffer + NUMBER_TEXT_SIZE - 1;
    *at = 0;
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    return at;
}

const char *number_text_int64(char buffer[NUMBER_TEXT_SIZE], int64_t value)
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char *at = (char *)number_text_uint64(buffer, size);
    if (value < 0) *--at = '-';
    return at;
}
