/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ROUTE_H
#define SCR_ROUTE_H

/* SCR_Route_file: where a file is written to and read from. All of this is local. */

#include "ops/context.h"
#include "plan/file_match.h"
#include "plan/part_list.h"

/* ---- ops/route.c: in an output, in a restart, and outside of both ---- */

/* call is for messages. part: the bytes of the file that name means, which is the name of
 * a part in the cache, and of a file on the prefix directory; NULL: it is a file. */
int scr_route_output(struct scr *scr, const char *name, scr_call call,
                     const scr_part *part, char *file);
int scr_route_restart(struct scr *scr, const char *name, char *file);
int scr_route_idle(struct scr *scr, const char *name, char *file);

/* The path of a file of any rank in the open restart: 0, or -errno with a text. */
int scr_route_find(struct scr *scr, const char *name, char path[SCR_MAX_FILENAME],
                   kvtree_error *err);

/* Ends a call in a restart that found a file, or failed with rc; an SCR code. */
int scr_route_answer(struct scr *scr, scr_call call, const char *name, int rc,
                     const kvtree_error *err);

/* Reports a failure; returns code. */
int scr_route_refuse(const struct scr *scr, scr_call call, int code, const char *text);

/* The absolute path of name, to be freed, and its part below the prefix directory, as
 * given or without links, or NULL. 0, -EXDEV when it is not below the prefix directory,
 * or -errno. */
int scr_route_below(const struct scr *scr, const char *name, char **path,
                    const char **below);

/* Where the file of that name below the directory of the dataset is in the cache. 0,
 * -ENOMEM or -ENAMETOOLONG. */
int scr_route_cached_path(const scr_cache *cache, int id, const char *below,
                          char file[SCR_MAX_FILENAME]);

/* ---- ops/route_names.c: the files of this process in a cached dataset, by name ---- */

/* The file that the name means: its name below the directory of the dataset, as *found;
 * NULL: there is none. match->files says whether it is the only one. Takes the same time
 * however many files there are, unless many have the same last component. 0 or -ENOMEM.
 */
int scr_route_look_up(struct scr *scr, int id, scr_file_match *match, const char **found);

/* Whether there is a file of that name below the directory of the dataset: 1, 0 or
 * -ENOMEM. */
int scr_route_has(struct scr *scr, int id, const char *file);

/* The same as scr_route_look_up for a part of a file that ranks wrote together, which has
 * all wanted bytes: its path, and in *at where in it they begin. 0, -ENOENT, -ENOTUNIQ,
 * -ENOMEM. */
int scr_route_look_up_part(struct scr *scr, int id, scr_file_match *match,
                           const scr_part *wanted, const char **path, uint64_t *at);

/* Frees what these keep: the files of the dataset may change from here on. */
void scr_route_forget(struct scr *scr);

/* ---- ops/route_part.c: the same for parts of files ---- */

/* Keys in the list of routed files: LENGTH, the bytes of a part in the cache;
 * PART/<offset>/LENGTH, of each part of a file on the prefix directory. */
#define SCR_ROUTED_LENGTH "LENGTH"
#define SCR_ROUTED_PART "PART"

/* *at, which is the offset before: where in file the part begins. */
int scr_route_output_part(struct scr *scr, const char *name, const scr_part *part,
                          char *file, uint64_t *at);
int scr_route_restart_part(struct scr *scr, const char *name, const scr_part *part,
                           char *file, uint64_t *at);

/* The part of a name below the prefix directory, inside *path, which is to be freed. 0,
 * or -errno with a text. */
int scr_route_place(const struct scr *scr, const char *name, char **path,
                    const char **below, kvtree_error *err);

/* Local. Notes that SCR_Route_file refused name ("": there was none that can be noted),
 * and why. */
void scr_route_refused(struct scr *scr, const char *name, const char *why);

/* Local. Notes that a file is missing though its name was a good one; rc: -errno. */
void scr_route_failed(struct scr *scr, int rc, const char *why);

/* Local. 0 when the files of this rank are valid, and all that it asked for have a place;
 * -EINVAL with a text. */
int scr_routed_check(const struct scr *scr, int valid, kvtree_error *err);

/* The same for the number of files of all ranks. */
int scr_routed_any(long files, kvtree_error *err);

/* Local. *parts: number of parts of files on the prefix directory that this rank has. 0
 * when each of these files is long enough; -EINVAL, or another -errno, with a text. */
int scr_routed_check_ends(const struct scr *scr, int64_t *parts, kvtree_error *err);

/* Collective, agreed. count: number of parts of this rank. 0 when no two parts have the
 * same byte; -EEXIST with a text. */
int scr_routed_check_parts(const struct scr *scr, int count, kvtree_error *err);

#endif
