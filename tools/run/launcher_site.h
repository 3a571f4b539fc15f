/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAUNCHER_SITE_H
#define LAUNCHER_SITE_H

/* Launchers that a site describes in its configuration (docs/configuration.md):
 *
 *     LAUNCHER: {NAME: palsrun, RUN: "mpiexec -n {ranks} --hosts {hosts}"}
 *
 * Their programs are started only if root and the user alone can change them
 * (docs/security.md). */

#include "run/launcher.h"

/* Adds the mistakes in all of them to problems. 0 or -ENOMEM. */
int launcher_site_check(const scr_config *config, scr_problems *problems);

/* The row of a descriptor that has no mistakes, which owns its texts. */
void launcher_site_row(const kvtree_elem *desc, launcher *row);

/* Checks all programs of a descriptor; path is that of RUN. An exit code, after a
 * message. */
int launcher_site_find_programs(const kvtree_elem *desc, char path[PATH_MAX]);

/* A program by its name, to be freed; -ENOENT, or as tool_user_program, with a text. */
int launcher_site_program(const char *name, char **program, kvtree_error *err);

#endif
