/* SPDX-License-Identifier: BSD-3-Clause */
/* Shows trees of libkvtree in TotalView as described in SCR Developer Guide 1.2, section
 * 2.3.3: a key that has one value is a row KEY = VALUE, any other key is a row to dive
 * into.
 *
 * This file is not a part of the library. Compile it into your program, together with the
 * files tv_data_display.h and tv_data_display.c, which are in the include directory of
 * TotalView:
 *
 *     cc -g -I$TV/include -c kvtree_totalview.c $TV/include/tv_data_display.c
 *
 * TotalView then calls TV_ttf_display_type in the stopped program whenever it shows a
 * kvtree. This does not work on core files, in which nothing can be called. */
#include "tv_data_display.h"

#include <kvtree/kvtree.h>
#include <stdio.h>

/* TotalView's buffer is limited. */
#define MOST_ROWS 500

/* Longest name of a row, with its NUL. */
#define NAME_SIZE 256

/* TotalView refuses control characters in the name of a row, so they are shown as \xNN. A
 * name that is too long ends in "...". */
static void totalview_name_row(char name[NAME_SIZE], const char *key)
{
    char *at = name, *end = name + NAME_SIZE - sizeof "\\xNN...";
    if (!*key) snprintf(name, NAME_SIZE, "\\0");
    for (; *key && at < end; key++) {
        unsigned char c = (unsigned char)*key;
        if (c == '\\')
            at += snprintf(at, 5, "\\\\");
        else if (c < 0x20 || c > 0x7e)
            at += snprintf(at, 5, "\\x%02x", c);
        else
            at += snprintf(at, 5, "%c", c);
    }
    if (*key) snprintf(at, 4, "...");
}

/* A row of the type "$string" takes the address of the first character. */
static int totalview_add_row(kvtree_elem *elem)
{
    char name[NAME_SIZE];
    kvtree *value = kvtree_elem_hash(elem);
    kvtree_elem *only = kvtree_size(value) == 1 ? kvtree_elem_first(value) : NULL;
    totalview_name_row(name, kvtree_elem_key(elem));
    if (only && kvtree_size(kvtree_elem_hash(only)) == 0)
        return TV_ttf_add_row(name, TV_ttf_type_ascii_string, kvtree_elem_key(only));
    return TV_ttf_add_row(name, "kvtree", value);
}

int TV_ttf_display_type(const kvtree *tree);

int TV_ttf_display_type(const kvtree *tree)
{
    int rows = 0, rc = TV_ttf_ec_ok;
    if (!tree) return TV_ttf_format_failed;
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = kvtree_elem_next(e)) {
        if (rows++ < MOST_ROWS)
            rc = totalview_add_row(e);
        else
            rc = TV_ttf_add_row("...", TV_ttf_type_ascii_string, "there are more");
        if (rc != TV_ttf_ec_ok) return TV_ttf_format_failed;
        if (rows > MOST_ROWS) break;
    }
    return TV_ttf_format_ok;
}
