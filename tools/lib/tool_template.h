/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TEMPLATE_H
#define TOOL_TEMPLATE_H

/* Command lines as data: the tables of launchers and of batch systems have them, and a
 * site writes them in its configuration.
 *
 *     srun --nodes={nodes} [--ntasks={ranks}] --nodelist={hostlist}
 *
 * Blanks separate words.
 *   {name}    a value; {name?}: nothing, where there is that value
 *   '...'     a literal text, which may have blanks, braces and brackets
 *   [...]     words that are left out where one of their values is missing; [a|b]: the
 *             first alternative that has all its values
 *   (...)     words that are repeated for each element of the lists among their values;
 *             (a|b): with the words b between two of them
 *   {command} the program and its arguments, as words of their own; they follow at the
 *             end of a template that does not have them */

#include "lib/tool_words.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>

/* A value: a text, a list, or, for "command", words; NULL: it is missing. */
typedef struct tool_value {
    const char *name;
    const char *text;
    const char *const *list; /* for (...): count elements; not NULL for an empty list */
    int count;
    const char *const *words; /* ended by NULL */
} tool_value;

/* Where values come from: an array that is ended by an element without a name. */

/* Checks a template against the names and kinds of values, which need not be there. 0, or
 * -EINVAL with a text that has the nearest valid name for an unknown one. */
int tool_template_check(const char *text, const tool_value *values, kvtree_error *err);

/* Adds the words of a template. 0; -EINVAL with a text where a value outside of brackets
 * is missing, or the template is wrong; -ENOMEM. */
int tool_template_expand(const char *text, const tool_value *values, tool_words *words,
                         kvtree_error *err);

/* The first word of a template, to be freed: "srun". NULL without memory. */
char *tool_template_program(const char *text);

#endif
