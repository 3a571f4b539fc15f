/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_FOLDER_REPORT_H
#define REDSET_FOLDER_REPORT_H

#include "src/set/set_recovery.h"

/* A copy, for callers, of what is known of sets with all members in this process; NULL
 * without memory. */
redset_found *redset_report_new(int count, redset_recovery *const sets[]);

#endif
