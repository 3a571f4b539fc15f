/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAVENGE_NODE_COMMAND_H
#define SCAVENGE_NODE_COMMAND_H

/* Commands of this project that other commands start, on this node or on others: their
 * words, their failures, and the output of scr_inspect --brief. */

#include "lib/tool_fold.h"
#include "lib/tool_remote.h"
#include "plan/dataset.h"
#include <stdbool.h>
#include <stdint.h>

/* Exit code of scr_inspect and scr_copy on a node that has nothing to report or copy. */
enum { SCAVENGE_NOTHING_HERE = 3 };

/* Begins the words of a command: its path and --prefix. */
void scavenge_command_begin(tool_words *words, const char *name,
                            const tool_prefix *prefix);

/* Returns the command line that saves the content of the caches, for a message; the
 * caller frees it. NULL without memory. */
char *scavenge_postrun_line(const char *prefix);

/* Runs words on the nodes, as tool_remote_run, and frees them; then reports the
 * `failures` that `told` collected. An exit code. */
int scavenge_command_run(const tool_remote *remote, const hostlist *nodes,
                         tool_words *words, tool_report told, void *arg,
                         tool_fold *failures);

/* Records in failures that the command failed on the node. */
void scavenge_command_failed(tool_fold *failures, const char *node, const char *command,
                             const tool_end *end);

/* The part of a dataset in the cache of a node. */
typedef struct scavenge_answer {
    int id, ranks, here, whole, run; /* numbers of ranks: all; on the node; with all
                                      * files */
    int64_t created;                 /* microseconds since 1970 */
    char name[SCR_NAME_SIZE];
} scavenge_answer;

/* Prints "4 1795257190731827 8 2 2 0 ckpt.4" and a newline; the name quoted. */
void scavenge_answer_print(const scavenge_answer *answer);

/* Reads the next such line and moves *output behind it; false: there is none. Skips other
 * lines, which launchers and remote shells may print. */
bool scavenge_answer_next(const char **output, scavenge_answer *answer);

#endif
