/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOOKS_H
#define HOOKS_H

/* Programs that a site adds to all jobs, in the directory SCR_SITE_HOOKS; each is
 * optional. They run as the user, with SCR_PREFIX in their environment, for at most a
 * minute. */

#include "lib/tool_prefix.h"

#define HOOK_PRERUN "prerun"       /* before the first run, which a failure prevents */
#define HOOK_NODE_DOWN "node_down" /* a node is down; gets its name and the reason */
#define HOOK_POSTRUN "postrun"     /* after the last run; gets the exit code of saving */

/* Runs the program of that name with two arguments, which may be NULL, and prints its
 * output to standard error. An exit code, after a message; COMMAND_GOOD if there is no
 * such program. */
int hooks_call(const tool_prefix *prefix, const char *name, const char *first,
               const char *second);

#endif
