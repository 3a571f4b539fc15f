/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROGRAM_CHECK_H
#define PROGRAM_CHECK_H

/* Checks the program of a job as the user typed it. scr_run starts the launcher itself,
 * so a launcher in place of the program is a mistake. */

#include "lib/tool.h"
#include "lib/tool_words.h"
#include <stdbool.h>

/* Whether words, a program and its arguments, begin with a launcher: mpirun, srun, flux
 * run. Only the base name of the program counts. Pure. */
bool program_is_launcher(const char *const words[]);

/* Adds the command line that the user should type. own: a command and its options; words:
 * follow own, and begin with a launcher. The result is scr_srun or scr_mpirun with the
 * launcher's arguments, or own and PROGRAM. Pure. */
void program_advise(const char *const own[], const char *const words[], tool_words *line);

/* Checks argv, as tool_start got it. -1 if the program is not a launcher and can be run
 * on this machine; if it runs on other machines (here false), a program that cannot be
 * run here causes only a warning. Otherwise an exit code, after a message with the
 * remedy. */
int program_check(const tool *t, char **argv, const tool_args *args, bool here);

#endif
