/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_REMOTE_H
#define TOOL_REMOTE_H

/* Runs a command on each of several nodes at once, by the way there is to reach them:
 *
 *     tool_remote remote = {.seconds = 30, .bytes = 1 << 16, .joined = 1};
 *     int code = tool_remote_choose(&remote, &prefix, nodes);
 *     if (code == COMMAND_GOOD &&
 *         tool_remote_run(&remote, nodes, argv, told, arg, err) != 0) ...
 *     tool_remote_done(&remote);
 *
 * The parameter SCR_REMOTE names the way; without it, simulated nodes are reached as such
 * (SCR_SIMULATE), those of an allocation by srun or flux, others by pdsh or a remote
 * shell, whichever is there. A node that is this machine needs none.
 *
 * The command has the SCR_ variables of this environment, but for SCR_NODE_NAME, which
 * each node has of its own. It begins in the current folder, or, by pdsh and a remote
 * shell, in the user's. */

#include "lib/hostlist.h"
#include "lib/tool_prefix.h"
#include "lib/tool_tasks.h"
#include "lib/tool_words.h"

typedef struct tool_remote {
    double seconds; /* that a node has; afterwards its command is ended */
    double silence; /* likewise, that it may print nothing; 0: any time */
    size_t bytes;   /* that the command on one node may print */
    int most;       /* nodes asked side by side; 0: 64 */
    int joined;     /* 1: what it says on standard error goes to its output, too */
    /* what tool_remote_choose finds: */
    const char *way;          /* "local", "simulate", "srun", "flux", "pdsh" or "shell" */
    char *shell;              /* the remote shell, for "shell"; */
    int is_ssh;               /* its options are those of ssh */
    char *simulated;          /* the folder of simulated nodes, for "simulate" */
    char self[SCR_NODE_SIZE]; /* the name of this node */
    hostlist brokers;         /* of Flux, by rank */
} tool_remote;

/* Finds the way. prefix was configured. An exit code, after a complaint. */
int tool_remote_choose(tool_remote *remote, const tool_prefix *prefix,
                       const hostlist *nodes);

/* 1 for the code of a program (tool_end) that says that its node is not there, or did not
 * answer in time: nothing can be had of it. */
int tool_remote_is_gone(int code);

/* The words that run argv on node. 0; -EHOSTDOWN for a simulated node that was lost, and
 * for one that Flux has not; -ENOMEM. Looks at nothing but the folder of that node. */
int tool_remote_words(const tool_remote *remote, const char *node,
                      const char *const argv[], tool_words *words);

/* Runs argv on each of the nodes; argv[0] is a name, found there in PATH, or a path. Each
 * is told of as it ends, by its number among the nodes; code is as in tool_tasks.h, or
 * -EHOSTDOWN, or -EHOSTUNREACH where the remote shell (exit code 255) or pdsh (254, or
 * 255 of the ssh below it) did not reach the node. 0, -EINTR, -ENOMEM or another -errno
 * as tool_tasks_run gives it. */
int tool_remote_run(const tool_remote *remote, const hostlist *nodes,
                    const char *const argv[], tool_told told, void *arg, char *err);

/* Why a command of ours did not do it: of what it printed there, the first line that has
 * its name in front, without that; or else the first line, as launchers and remote shells
 * add lines of their own. "" where nothing was printed. 1 when the command said it: then
 * the node answered, and it was not a launcher or remote shell that failed. */
int tool_remote_reason(const tool_end *end, const char *name, char *line, size_t size);

/* The path of another command of ours, which lies beside this one; only its name where
 * it does not. To be freed; NULL without memory. */
char *tool_remote_command(const char *name);

void tool_remote_done(tool_remote *remote);

#endif
