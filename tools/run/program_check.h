/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROGRAM_CHECK_H
#define PROGRAM_CHECK_H

/* Checks the program of a job as it was typed: scr_run starts the launcher itself, so
 * that a launcher in its place is a mistake. */

#include "lib/tool.h"
#include "lib/tool_words.h"
#include <stdbool.h>

/* Whether words, a program and its arguments, begin with a launcher: mpirun, srun, flux
 * run. Only the base name of the program counts. Pure. */
bool program_is_launcher(const char *const words[]);

/* Adds the command line to type instead of `own`, a command and its options, followed by
 * these words, which begin with a launcher: scr_srun or scr_mpirun with the launcher's
 * arguments, or own and PROGRAM. Pure. */
void program_advise(const char *const own[], const char *const words[], tool_words *line);

/* Checks argv, as tool_start had it: -1 when the program is no launcher and can be run on
 * this machine; where it runs on others (here false), the latter is only a warning.
 * Otherwise an exit code, after a message with the remedy. */
int program_check(const tool *t, char **argv, const tool_args *args, bool here);

#endif
