/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_RELAY_H
#define COMMON_RELAY_H

/* Two processes that share no open file. The process behind works as another user, and
 * its output passes through pipes to the process in front, which alone has the terminal,
 * the logs and other open files. For programs only. */

#include "common/prefix.h"
#include <sys/types.h>

#define relay_split COMMON(relay_split)
#define relay_depend COMMON(relay_depend)

/* Returns 0 in a new process in its own session: standard input is empty, standard output
 * and error are pipes, and nothing else is open; *front is the process in front. The
 * process in front does not return: it prints the output, on a terminal without control
 * characters, forwards signals, and ends like the process behind, even if others still
 * hold the pipes. It kills a process behind that is stopped. -errno: no new process was
 * created. */
int relay_split(pid_t *front);

/* For the process behind, after its change of user: leaves the keyring of its session,
 * and requests SIGTERM when the process in front ends. -ECHILD: that process has already
 * ended. */
int relay_depend(pid_t front);

#endif
