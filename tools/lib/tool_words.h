/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_WORDS_H
#define TOOL_WORDS_H

/* A command line that grows word by word. Lack of memory is checked once, at the end:
 *
 *     tool_words words = {0};
 *     tool_words_add(&words, "srun");
 *     tool_words_add(&words, "--nodes=%d", count);
 *     if (words.failed) ...
 *     tool_words_done(&words); */

typedef struct tool_words {
    char **list; /* ended by NULL; NULL if there are no words */
    int count, failed;
} tool_words;

void tool_words_add(tool_words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds all words of a list that is ended by NULL. */
void tool_words_add_all(tool_words *words, const char *const *list);

/* Adds the list as one word: a command line for a shell, quoted where necessary. */
void tool_words_add_quoted(tool_words *words, const char *const *list);

/* The words as a command line for a shell, to be freed; NULL without memory. Frees them.
 */
char *tool_words_line(tool_words *words);

/* The words, ended by NULL. */
const char *const *tool_words_list(const tool_words *words);

/* Frees the words; accepts {0}. */
void tool_words_done(tool_words *words);

#endif
