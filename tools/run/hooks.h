/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOOKS_H
#define HOOKS_H

/* Programs that a site adds to all jobs: in the directory SCR_SITE_HOOKS, each of them
 * optional. They run as the user, with SCR_PREFIX in their environment, for at most a
 * minute. */

#include "lib/tool_prefix.h"

#define HOOK_PRERUN "prerun"       /* before the first run: a failure keeps it from it */
#define HOOK_NODE_DOWN "node_down" /* of a node, with its name and the reason */
#define HOOK_POSTRUN "postrun"     /* after the last, with the exit code of saving */

/* Calls the program of that name with two arguments, which may be NULL, and prints its
 * output to standard error. An exit code, after a message; COMMAND_GOOD where there is
 * none. */
int hooks_call(const tool_prefix *prefix, const char *name, const char *first,
               const char *second);

#endif
