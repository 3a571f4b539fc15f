/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_HOST_RANGE_H
#define SCR_HOST_RANGE_H

/* Names of several nodes in one text, as resource managers write them: "atlas[1-48]",
 * "n[007,010-012]-ib". A text has at most one pair of brackets, which holds numbers and
 * ranges of up to nine digits. A number has at least as many digits as the first number
 * of its range: [007-120] contains 007 and 120, but not 7. A text without brackets names
 * one node. */

#include <stdbool.h>

/* Whether the text has brackets. */
bool scr_host_range_is(const char *text);

/* Whether the text has no brackets, or brackets of the form above. */
bool scr_host_range_is_valid(const char *text);

/* Whether the text, which is valid, includes node. */
bool scr_host_range_has(const char *text, const char *node);

#endif
