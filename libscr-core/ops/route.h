/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_ROUTE_H
#define SCR_ROUTE_H

/* SCR_Route_file: the path to which a file is written, or from which it is read. All
 * functions are local unless stated otherwise. */

#include "ops/context.h"
#include "plan/file_match.h"
#include "plan/part_list.h"

/* ---- ops/route.c: in an output, in a restart, and outside of both ---- */

/* Return the path of a file. call: for messages. part: if not NULL, name is a part of a
 * file in the cache, or, on the prefix directory, the file itself, and *part its
 * bytes. */
int scr_route_output(struct scr *scr, const char *name, scr_call call,
                     const scr_part *part, char *file);
int scr_route_restart(struct scr *scr, const char *name, char *file);
int scr_route_idle(struct scr *scr, const char *name, char *file);

/* The path of a file of any rank in the open restart: 0, or -errno with a text. */
int scr_route_find(struct scr *scr, const char *name, char path[SCR_MAX_FILENAME],
                   kvtree_error *err);

/* Concludes a call in a restart that found a file, or failed with rc; an SCR code. */
int scr_route_answer(struct scr *scr, scr_call call, const char *name, int rc,
                     const kvtree_error *err);

/* Reports a failure; returns code. */
int scr_route_refuse(const struct scr *scr, scr_call call, int code, const char *text);

/* The absolute path of name, which the caller frees, and in *below its part below the
 * prefix directory, as given or without links, or NULL. 0, -EXDEV if it is not below the
 * prefix directory, or another -errno. */
int scr_route_below(const struct scr *scr, const char *name, char **path,
                    const char **below);

/* The path in the cache of a file whose name is relative to the directory of the dataset.
 * 0, -ENOMEM or -ENAMETOOLONG. */
int scr_route_cached_path(const scr_cache *cache, int id, const char *below,
                          char file[SCR_MAX_FILENAME]);

/* ---- ops/route_names.c: the files of this process in a cached dataset, by name ---- */

/* Finds the file that the name refers to: *found is its name below the directory of the
 * dataset; NULL: there is none. match->files is the number of files that fit equally
 * well. The time does not depend on the number of files, unless many have the same last
 * component. 0 or -ENOMEM. */
int scr_route_look_up(struct scr *scr, int id, scr_file_match *match, const char **found);

/* Whether a file of that name exists below the directory of the dataset: 1, 0 or
 * -ENOMEM. */
int scr_route_has(struct scr *scr, int id, const char *file);

/* Like scr_route_look_up, for a part that contains all wanted bytes of a file that ranks
 * wrote together: its path, and in *at the offset of these bytes in it. 0, -ENOENT,
 * -ENOTUNIQ, -ENOMEM. */
int scr_route_look_up_part(struct scr *scr, int id, scr_file_match *match,
                           const scr_part *wanted, const char **path, uint64_t *at);

/* Frees what these functions keep: the files of the dataset may change from here on. */
void scr_route_forget(struct scr *scr);

/* ---- ops/route_part.c: the same for parts of files ---- */

/* Keys in the list of routed files: LENGTH, the size of a part in the cache;
 * PART/<offset>/LENGTH, the size of each part of a file on the prefix directory. */
#define SCR_ROUTED_LENGTH "LENGTH"
#define SCR_ROUTED_PART "PART"

/* *at: on entry the offset of the part; on return the place in file where it begins. */
int scr_route_output_part(struct scr *scr, const char *name, const scr_part *part,
                          char *file, uint64_t *at);
int scr_route_restart_part(struct scr *scr, const char *name, const scr_part *part,
                           char *file, uint64_t *at);

/* The part of a name below the prefix directory, inside *path, which the caller frees. 0,
 * or -errno with a text. */
int scr_route_place(const struct scr *scr, const char *name, char **path,
                    const char **below, kvtree_error *err);

/* Local. Notes that SCR_Route_file refused name ("": no name that can be noted), and
 * why. */
void scr_route_refused(struct scr *scr, const char *name, const char *why);

/* Local. Notes that a file is missing although its name was valid; rc: -errno. */
void scr_route_failed(struct scr *scr, int rc, const char *why);

/* Local. 0 if the files of this rank are valid, and SCR_Route_file gave a path for all
 * that it asked for; -EINVAL or another -errno, with a text. */
int scr_routed_check(const struct scr *scr, int valid, kvtree_error *err);

/* 0 if any rank has routed a file; -EINVAL with a text. files: the number on all
 * ranks. */
int scr_routed_any(long files, kvtree_error *err);

/* Local. 0 if each file on the prefix directory contains all parts that this rank routed
 * in it; -EINVAL, or another -errno, with a text. *parts: the number of these parts. */
int scr_routed_check_ends(const struct scr *scr, int64_t *parts, kvtree_error *err);

/* Collective, agreed. 0 if no two parts have a byte in common; -EEXIST with a text.
 * count: the number of parts of this rank. */
int scr_routed_check_parts(const struct scr *scr, int count, kvtree_error *err);

#endif
