/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TEMPLATE_H
#define TOOL_TEMPLATE_H

/* Command lines as data. The tables of launchers and of batch systems contain templates,
 * and a site writes them in its configuration.
 *
 *     srun --nodes={nodes} [--ntasks={ranks}] --nodelist={hostlist}
 *
 * Blanks separate words.
 *   {name}    a value; {name?}: nothing, but requires that the value exists
 *   '...'     a literal text, which may have blanks, braces and brackets
 *   [...]     words that are left out if one of their values is missing; [a|b]: the
 *             first alternative that has all its values
 *   (...)     words that are repeated for each element of the lists among their values;
 *             (a|b): with the words b between two repetitions
 *   {command} the program and its arguments, as separate words; without {command}, they
 *             follow at the end of the template */

#include "lib/tool_words.h"
#include <kvtree/kvtree_error.h>
#include <stdbool.h>

/* A value: a text, a list, or, for "command", words. All NULL: the value is missing. */
typedef struct tool_value {
    const char *name;
    const char *text;
    const char *const *list; /* for (...): count elements; an empty list is not NULL */
    int count;
    const char *const *words; /* ended by NULL */
} tool_value;

/* Values are an array that is ended by an element without a name. */

/* Checks a template against the names and kinds of values, which may be missing. 0, or
 * -EINVAL with a text; for an unknown name, the text suggests the nearest valid one. */
int tool_template_check(const char *text, const tool_value *values, kvtree_error *err);

/* Adds the words of a template. 0; -EINVAL with a text if a value outside of brackets is
 * missing or the template is wrong; -ENOMEM. */
int tool_template_expand(const char *text, const tool_value *values, tool_words *words,
                         kvtree_error *err);

/* Returns the first word of a template, such as "srun", to be freed. NULL without
 * memory. */
char *tool_template_program(const char *text);

#endif
