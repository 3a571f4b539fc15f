/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_HEADER_NAME_H
#define REDSET_HEADER_NAME_H

#include <redset/redset.h>
#include <stddef.h>

/* folder/name, or the one of them that is not NULL; -ENAMETOOLONG. */
int redset_join(char *path, size_t size, const char *folder, const char *name);

#endif
