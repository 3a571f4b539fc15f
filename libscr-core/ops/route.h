/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ROUTE_H
#define SCR_ROUTE_H

/* SCR_Route_file: where a file is written to and read from. All of this is local. */

#include "ops/context.h"
#include "plan/file_match.h"

/* ---- ops/route.c: in an output, in a restart, and outside of both ---- */

int scr_route_output(struct scr *scr, const char *name, char *file);
int scr_route_restart(struct scr *scr, const char *name, char *file);
int scr_route_idle(struct scr *scr, const char *name, char *file);

/* The part of a name below the prefix directory, inside *path, which is to be freed. 0,
 * or -errno with a text. */
int scr_route_place(const struct scr *scr, const char *name, char **path,
                    const char **below, kvtree_error *err);

/* Local. Notes that SCR_Route_file refused name ("": there was none that can be noted).
 */
void scr_route_refused(struct scr *scr, const char *name);

/* Local. 0 when the files of this rank are valid, and all that it asked for have a place;
 * -EINVAL with a text. */
int scr_routed_check(const struct scr *scr, int valid, kvtree_error *err);

/* The same for the number of files of all ranks. */
int scr_routed_any(int files, kvtree_error *err);

#endif
