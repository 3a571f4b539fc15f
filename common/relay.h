/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_RELAY_H
#define COMMON_RELAY_H

/* Two processes that share no open file: the one behind works as another user, and its
 * output goes through pipes to the one in front, which alone has the terminal, the logs
 * and other open files. For programs only. */

#include "common/prefix.h"
#include <sys/types.h>

#define relay_split COMMON(relay_split)
#define relay_depend COMMON(relay_depend)

/* Returns 0 in a new process in a session of its own: standard input is empty, standard
 * output and error are pipes, and nothing else is open; *front is the process in front.
 * That one does not return: it prints the output, on a terminal without control
 * characters, forwards signals, and ends as the process behind does, even if others still
 * hold the pipes. It kills a process behind that is stopped. -errno: there is no new
 * process. */
int relay_split(pid_t *front);

/* For the process behind, after its change of user: it leaves the keyring of its session,
 * and gets SIGTERM when the process in front is gone. -ECHILD: it is gone already. */
int relay_depend(pid_t front);

#endif
