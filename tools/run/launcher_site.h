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

/* Adds the mistakes in all descriptors to problems. 0 or -ENOMEM. */
int launcher_site_check(const scr_config *config, scr_problems *problems);

/* Makes the row of a descriptor without mistakes; the descriptor owns the texts of the
 * row. */
void launcher_site_row(const kvtree_elem *desc, launcher *row);

/* Checks all programs of a descriptor; path becomes that of RUN. An exit code, after a
 * message. */
int launcher_site_find_programs(const kvtree_elem *desc, char path[PATH_MAX]);

/* Finds and checks a program by its name; to be freed. -ENOENT, or as tool_user_program,
 * with a text. */
int launcher_site_program(const char *name, char **program, kvtree_error *err);

#endif
