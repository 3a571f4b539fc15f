/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOSTLIST_H
#define HOSTLIST_H

/* Lists of hosts in short form, as batch systems write them (SCR Developer Guide 1.2,
 * section 2.23.1): "atlas[3,5-7,009-011]-ib,login1 login2". Commas and blanks separate
 * items; each pair of brackets in an item stands for each of its numbers in turn, the
 * last one fastest. A range has as many digits as its first number, where that begins
 * with 0.
 *
 *     hostlist list = {0};
 *     int rc = hostlist_parse("atlas[3,5-7]", &list, err);
 *     char *text = hostlist_compress(&list);
 *     hostlist_done(&list);
 *
 * Pure functions. Names have letters, digits, '-', '_' and '.', and do not begin with
 * '-'. */

#include <kvtree/kvtree_error.h>

/* Most hosts in a list, and most bytes of one name with its NUL. */
#define HOSTLIST_MAX 262144
#define HOSTLIST_NAME_SIZE 256

/* Begins as {0}. Order and duplicates count. */
typedef struct hostlist {
    int count;
    char **names;
} hostlist;

void hostlist_done(hostlist *list);

/* Adds the hosts that text names behind those in list. 0; -EINVAL with a text that says
 * what is wrong at which byte, -E2BIG for too many, or -ENOMEM, with list as it was. */
int hostlist_parse(const char *text, hostlist *list, kvtree_error *err);

/* The short form, to be freed; NULL without memory. Names are sorted: by what is before
 * the last number in them, by that number, and by what is behind; duplicates stay. */
char *hostlist_compress(const hostlist *list);

/* Adds to result what is in a and not in b; what is in both, as often as in a; and all of
 * a and then what only b has. 0 or -ENOMEM. */
int hostlist_minus(const hostlist *a, const hostlist *b, hostlist *result);
int hostlist_intersect(const hostlist *a, const hostlist *b, hostlist *result);
int hostlist_unite(const hostlist *a, const hostlist *b, hostlist *result);

/* Adds each host of list once, in the order of first occurrence. 0 or -ENOMEM. */
int hostlist_once(const hostlist *list, hostlist *result);

#endif
