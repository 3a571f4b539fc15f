/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_FOLDER_FOLDER_H
#define REDSET_FOLDER_FOLDER_H

/* Sets in one directory. This process has all members of each set. */

#include "src/set/set_recovery.h"

/* cross_set_check.c: REDSET_UNRECOVERABLE if the sets are not of one encode. */
int redset_check_one_encode(redset_recovery *const sets[], int count, redset_error *err);

/* cross_set_check.c: -EINVAL if two processes claim the same file name. */
int redset_check_distinct_names(redset_recovery *const sets[], int count,
                                redset_error *err);

/* report.c: a copy for callers; NULL without memory. */
redset_found *redset_report_new(int count, redset_recovery *const sets[]);

#endif
