/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROGRAM_H
#define PROGRAM_H

/* The program that a job consists of, as somebody typed it: no launcher, since scr_run
 * starts the launcher itself. */

#include "lib/tool.h"
#include "lib/tool_words.h"

/* 1 when words, a program and its arguments, begin with a launcher: mpirun, srun, flux
 * run. Only the base name of the program counts. Pure. */
int program_is_launcher(const char *const words[]);

/* Adds the command line that somebody means who typed own, the name of a command and its
 * options, ended by NULL, and then these words, which begin with a launcher. ranked: 1
 * when own tells the number of ranks. What the launcher's options say and nobody here
 * understands stays open: PROGRAM. Pure. */
void program_advise(const char *const own[], int ranked, const char *const words[],
                    tool_words *line);

/* What was typed, argv as tool_start had it: -1 when it is no launcher, and, where it is
 * to run on this machine (here), can be run; elsewhere that is a warning. Otherwise says
 * what is wrong, and what to do, and gives an exit code. Touches nothing. */
int program_check(const tool *t, char **argv, const tool_args *args, int ranked,
                  int here);

#endif
