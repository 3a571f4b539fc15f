/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NODE_CHECK_H
#define NODE_CHECK_H

/* Whether the node on which this runs can be used: SCR's folders on it, and tests of the
 * site (SCR Developer Guide 1.2, sections 2.24.5 and 2.34.2). A device may hang: the
 * caller is given up by who asks. */

#include <stdint.h>

/* Exit code of scr_check_node, beside 0 and 1: the configuration has mistakes, so that
 * nothing is known of the node. */
enum { NODE_UNCHECKED = 3 };

typedef struct node_folder {
    const char *path;
    uint64_t bytes;   /* its file system should have, used or not; 0: any number */
    int made;         /* 1: SCR makes it when it is not there */
    const char *user; /* whose folders a run makes in it; NULL: nobody's */
} node_folder;

/* One check of a folder. */
typedef struct node_check {
    const char *name;
    const char *help; /* what it does, for people */
    /* 0, or -errno with a text */
    int (*run)(const node_folder *folder, const char *path, char *err);
} node_check;

/* All, in their order, ended by one without a name. */
extern const node_check node_checks[];

/* Makes all checks of a folder, up to the first that fails: -errno with a text. A folder
 * that SCR would make is checked by the one in which it would be made. */
int node_check_folder(const node_folder *folder, char *err);

/* Runs each program in a folder, by the order of names, in so many seconds each. -ENOENT
 * for no such folder; otherwise -errno for the first that does not exit with 0, with its
 * name and what it said last. */
int node_check_programs(const char *folder, double seconds, char *err);

#endif
