/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NODE_CHECK_H
#define NODE_CHECK_H

/* Tests whether this node can be used: directories of SCR on it, and tests of the site
 * (SCR Developer Guide 1.2, sections 2.24.5 and 2.34.2). A device may hang, so the
 * process that waits for this one must impose a time limit. */

#include <kvtree/kvtree_error.h>
#include <stdint.h>

/* Exit code of scr_check_node besides 0 and 1: the configuration has mistakes, so the
 * node was not checked. */
enum { NODE_UNCHECKED = 3 };

typedef struct node_folder {
    const char *path;
    uint64_t bytes;   /* minimum size of its file system, used or not; 0: any */
    int free;         /* 1: `bytes` is the minimum free space instead */
    int made;         /* 1: SCR makes the directory if it is missing */
    const char *user; /* user whose directories a run makes in it; or NULL */
} node_folder;

/* One check of a directory. */
typedef struct node_check {
    const char *name;
    const char *help; /* what the check does, for people */
    /* 0, or -errno with a text */
    int (*run)(const node_folder *folder, const char *path, kvtree_error *err);
} node_check;

/* All checks in order, ended by an element without a name. */
extern const node_check node_checks[];

/* Performs the checks of a directory up to the first one that fails: -errno with a text.
 * If the directory is missing but SCR would make it, checks its parent. */
int node_check_folder(const node_folder *folder, kvtree_error *err);

/* Runs each program in a directory in the order of names, each with a time limit in
 * seconds. -ENOENT: no such directory; otherwise -errno for the first program that fails,
 * with its name and the last line of its output. */
int node_check_programs(const char *folder, double seconds, kvtree_error *err);

#endif
