/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NODE_CHECK_H
#define NODE_CHECK_H

/* Tests whether this node can be used: directories of SCR on it, and tests of the site
 * (SCR Developer Guide 1.2, sections 2.24.5 and 2.34.2). A device may hang: time limits
 * are up to the process that waits for this one. */

#include <kvtree/kvtree_error.h>
#include <stdint.h>

/* Exit code of scr_check_node besides 0 and 1: the configuration has mistakes, and the
 * node was not checked. */
enum { NODE_UNCHECKED = 3 };

typedef struct node_folder {
    const char *path;
    uint64_t bytes;   /* least size of its file system, used or not; 0: any */
    int free;         /* 1: least free space of it, instead */
    int made;         /* 1: SCR makes it when it is missing */
    const char *user; /* a run makes directories of that user in it; NULL: none */
} node_folder;

/* One check of a directory. */
typedef struct node_check {
    const char *name;
    const char *help; /* what it does, for people */
    /* 0, or -errno with a text */
    int (*run)(const node_folder *folder, const char *path, kvtree_error *err);
} node_check;

/* All, in their order, ended by one without a name. */
extern const node_check node_checks[];

/* Makes all checks of a directory, up to the first that fails: -errno with a text. For a
 * missing directory that SCR would make, its parent is checked. */
int node_check_folder(const node_folder *folder, kvtree_error *err);

/* Runs each program in a directory, in the order of names, with a time limit in seconds.
 * -ENOENT: no such directory; otherwise -errno for the first that fails, with its name
 * and the last line of its output. */
int node_check_programs(const char *folder, double seconds, kvtree_error *err);

#endif
