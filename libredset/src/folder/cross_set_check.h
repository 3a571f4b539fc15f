/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_FOLDER_CROSS_SET_CHECK_H
#define REDSET_FOLDER_CROSS_SET_CHECK_H

/* Whether sets with all members in this process belong together. */

#include "src/set/set_recovery.h"

/* REDSET_UNRECOVERABLE if they are not of one encode. */
int redset_check_one_encode(redset_recovery *const sets[], int count, char *err);

/* -EINVAL if two processes claim the name of a file. */
int redset_check_distinct_names(redset_recovery *const sets[], int count, char *err);

#endif
