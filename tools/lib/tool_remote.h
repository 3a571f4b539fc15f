/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_REMOTE_H
#define TOOL_REMOTE_H

/* Runs a command on several nodes at once, by a remote method:
 *
 *     tool_remote remote = {.seconds = 30, .bytes = 1 << 16, .joined = 1};
 *     int code = tool_remote_choose(&remote, &prefix, nodes);
 *     if (code == COMMAND_GOOD &&
 *         tool_remote_run(&remote, nodes, argv, report, arg, err) != 0) ...
 *     tool_remote_done(&remote);
 *
 * The parameter SCR_REMOTE names the method. The default is SCR_SIMULATE for simulated
 * nodes, srun or flux in an allocation, else pdsh or a remote shell, whichever exists.
 * Commands for this machine run locally.
 *
 * The command has the SCR_ variables of this environment, except SCR_NODE_NAME, which
 * differs on each node. It starts in the current directory; with pdsh and a remote shell,
 * in the home directory. */

#include "lib/hostlist.h"
#include "lib/tool_prefix.h"
#include "lib/tool_process.h"
#include "lib/tool_words.h"

typedef struct tool_remote {
    double seconds;   /* timeout of the command on a node */
    double silence;   /* maximum seconds without output; 0: no limit */
    size_t bytes;     /* maximum output of the command on one node */
    int most;         /* nodes side by side; 0: 64 */
    int joined;       /* 1: standard error goes to the output */
    tool_heard heard; /* as in tool_limits; NULL: no reports */
    /* set by tool_remote_choose: */
    const char *way;          /* "local", "simulate", "srun", "flux", "pdsh" or "shell" */
    char *shell;              /* the remote shell, for "shell" */
    int is_ssh;               /* the remote shell has the options of ssh */
    char *simulated;          /* the directory of simulated nodes, for "simulate" */
    char self[SCR_NODE_SIZE]; /* the name of this node */
    hostlist brokers;         /* of Flux, by rank */
} tool_remote;

/* Chooses the method. prefix must be configured. An exit code, after a message. */
int tool_remote_choose(tool_remote *remote, const tool_prefix *prefix,
                       const hostlist *nodes);

/* Whether the code of a program (tool_end) means that its node is lost or did not answer
 * in time. */
bool tool_remote_is_gone(int code);

/* Makes the command line that runs argv on node. 0; -EHOSTDOWN for a simulated node that
 * was lost, and for a node that Flux does not know; -ENOMEM. Reads only the directory of
 * the simulated node. */
int tool_remote_words(const tool_remote *remote, const char *node,
                      const char *const argv[], tool_words *words);

/* Runs argv on each of the nodes; argv[0] is a path, or a name that is found in the PATH
 * of the node. Each end is reported with the index of the node; code is as in
 * tool_process.h, or -EHOSTDOWN, or -EHOSTUNREACH if the remote shell (exit code 255) or
 * pdsh (254, or 255 of the ssh below it) did not reach the node. Returns as
 * tool_process_run. */
int tool_remote_run(const tool_remote *remote, const hostlist *nodes,
                    const char *const argv[], tool_report report, void *arg,
                    kvtree_error *err);

/* Finds why a command of this project failed: the first line of its output that begins
 * with its name, without the name; else the first line, which comes from a launcher or
 * remote shell; "" without output. True if the line is the command's own, that is, the
 * node answered. */
bool tool_remote_reason(const tool_end *end, const char *name, char *line, size_t size);

/* Returns the path of another command of this project beside this one, or only its name
 * if it is not there. To be freed; NULL without memory. */
char *tool_remote_command(const char *name);

void tool_remote_done(tool_remote *remote);

#endif
