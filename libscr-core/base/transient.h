/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_TRANSIENT_H
#define SCR_TRANSIENT_H

/* Transient errors, which may not occur at the next attempt. */

#include <stdbool.h>

/* Whether the operation that failed with error (-errno) may succeed later, or with
 * another version of SCR. The file may be intact and must not count as lost. */
bool scr_is_transient(int error);

#endif
