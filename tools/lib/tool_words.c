/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of a command line; see tool_words.h. */
#include "lib/tool_words.h"
#include "common/io.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes ownership of the word. */
static void words_append(tool_words *words, char *word)
{
    char **list = NULL;
    if (word && !words->failed)
        list = realloc(words->list, ((size_t)words->count + 2) * sizeof *list);
    if (!list) {
        words->failed = 1;
        free(word);
        return;
    }
    words->list = list;
    list[words->count++] = word;
    list[words->count] = NULL;
}

void tool_words_add(tool_words *words, const char *format, ...)
{
    char *word;
    va_list args;
    va_start(args, format);
    if (vasprintf(&word, format, args) < 0) word = NULL;
    va_end(args);
    words_append(words, word);
}

void tool_words_add_all(tool_words *words, const char *const *list)
{
    for (; *list; list++)
        words_append(words, strdup(*list));
}

/* Whether a shell takes all characters literally. */
static bool words_is_plain(const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_@%+=:,./-";
    return *word && strspn(word, plain) == strlen(word);
}

static void words_put_quoted(FILE *out, const char *word)
{
    if (words_is_plain(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    }
    fputc('\'', out);
}

void tool_words_add_quoted(tool_words *words, const char *const *list)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; out && list[i]; i++) {
        if (i) fputc(' ', out);
        words_put_quoted(out, list[i]);
    }
    words_append(words, out ? io_text_end(out, &text) : NULL);
}

char *tool_words_line(tool_words *words)
{
    tool_words line = {0};
    char *text = NULL;
    if (words->list && !words->failed)
        tool_words_add_quoted(&line, tool_words_list(words));
    if (line.count && !line.failed) text = strdup(line.list[0]);
    tool_words_done(&line);
    tool_words_done(words);
    return text;
}

const char *const *tool_words_list(const tool_words *words)
{
    return (const char *const *)words->list;
}

void tool_words_done(tool_words *words)
{
    for (int i = 0; i < words->count; i++)
        free(words->list[i]);
    free(words->list);
    *words = (tool_words){0};
}
