/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree as indented text, for people. */
#include "src/kvtree_private.h"

#include <errno.h>
#include <stdio.h>

/* Keys may come out of a file that somebody else wrote: control characters would reach
 * the reader's terminal, so they appear as \xNN, and a backslash as two. */
static void print_key(FILE *out, const char *key)
{
    for (; *key; key++) {
        unsigned char c = (unsigned char)*key;
        if (c == '\\')
            fputs("\\\\", out);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\x%02x", c);
        else
            putc(c, out);
    }
}

int kvtree_print(const kvtree *tree, int indent)
{
    size_t depth = 0, margin = indent > 0 ? (size_t)indent : 0;
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, &depth));) {
        for (size_t column = 0; column < margin + 2 * depth; column++)
            putc(' ', stdout);
        print_key(stdout, e->key);
        if (putc('\n', stdout) == EOF) return -EIO;
    }
    return ferror(stdout) ? -EIO : KVTREE_SUCCESS;
}
