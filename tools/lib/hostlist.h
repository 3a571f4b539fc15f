/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOSTLIST_H
#define HOSTLIST_H

/* Lists of hosts in short form, as batch systems write them (SCR Developer Guide 1.2,
 * section 2.23.1): "atlas[3,5-7,009-011]-ib,login1 login2". Commas and blanks separate
 * items. A pair of brackets stands for each of its numbers in turn; the last pair of an
 * item varies fastest. If the first number of a range begins with 0, its digits are the
 * minimum width of all numbers of the range.
 *
 *     hostlist list = {0};
 *     int rc = hostlist_parse("atlas[3,5-7]", &list, err);
 *     char *text = hostlist_compress(&list);
 *     hostlist_done(&list);
 *
 * All functions are pure. Names consist of letters, digits, '-', '_' and '.', and do not
 * begin with '-'. */

#include <kvtree/kvtree_error.h>

/* Maximum number of hosts in a list, and maximum size of a name with its NUL. */
#define HOSTLIST_MAX 262144
#define HOSTLIST_NAME_SIZE 256

/* Initialized to {0}. Order and duplicates matter. */
typedef struct hostlist {
    int count;
    char **names;
} hostlist;

void hostlist_done(hostlist *list);

/* Appends the hosts in text to list. 0; -EINVAL with a text that names the mistake and
 * its byte, -E2BIG for too many hosts, or -ENOMEM; list is unchanged on errors. */
int hostlist_parse(const char *text, hostlist *list, kvtree_error *err);

/* Returns the short form, to be freed; NULL without memory. Names are sorted by the text
 * before their last number, by that number, and by the text behind it; duplicates
 * stay. */
char *hostlist_compress(const hostlist *list);

/* Adds to result: the hosts of a that are not in b; the hosts of a that are also in b, as
 * often as in a; or all of a, then the hosts that only b has. 0 or -ENOMEM. */
int hostlist_minus(const hostlist *a, const hostlist *b, hostlist *result);
int hostlist_intersect(const hostlist *a, const hostlist *b, hostlist *result);
int hostlist_unite(const hostlist *a, const hostlist *b, hostlist *result);

/* Adds each host of list once, in the order of first occurrence. 0 or -ENOMEM. */
int hostlist_once(const hostlist *list, hostlist *result);

#endif
