/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_INSPECT_H
#define SCR_INSPECT_H

/* Shared by the sources of scr_inspect. */

#include "lib/tool_prefix.h"

typedef struct inspect_request {
    const char *dir, *control, *up;
    int id, brief, json, all;
} inspect_request;

/* scr_inspect_nodes.c: prints the combined datasets of the requested nodes or, with
 * `all`, of the nodes of the allocation; an exit code. */
int inspect_nodes(const inspect_request *r, const tool_prefix *prefix);

#endif
