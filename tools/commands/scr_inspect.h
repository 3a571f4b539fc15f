/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_INSPECT_H
#define SCR_INSPECT_H

/* The parts of the command scr_inspect. */

#include "lib/tool_prefix.h"

enum { INSPECT_NOTHING = 3 }; /* exit code: no run was here */

typedef struct inspect_request {
    const char *dir, *control, *up;
    int id, brief, json, all;
} inspect_request;

/* scr_inspect_nodes.c: asks the nodes that the request names, or with `all` those of the
 * allocation, and prints what they have together; an exit code. */
int inspect_nodes(const inspect_request *r, const tool_prefix *prefix);

#endif
