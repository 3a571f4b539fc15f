/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_HOST_RANGE_H
#define SCR_HOST_RANGE_H

/* Names of several nodes in one text, as resource managers write them: "atlas[1-48]",
 * "n[007,010-012]-ib". At most one pair of brackets, which has numbers and ranges of up
 * to nine digits. A number has at least as many digits as the first one of its range:
 * [007-120] has 007 and 120, and not 7. Other texts name one node, themselves. */

#include <stdbool.h>

/* Whether the text has brackets, ... */
bool scr_host_range_is(const char *text);

/* ... and whether these, if there are any, are of the form above. */
bool scr_host_range_is_valid(const char *text);

/* Whether node is one of them; text is valid. */
bool scr_host_range_has(const char *text, const char *node);

#endif
