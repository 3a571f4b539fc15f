/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DOCUMENT_H
#define DOCUMENT_H

/* Documents of which a part, between two marks, is made by the code: a test compares, and
 * the same program with the argument "write" puts it there. */

#include "records.h"
#include <errno.h>

struct document {
    const char *path, *begin, *end; /* marks: whole lines */
    void (*make)(FILE *out);
};

/* The whole file, to be freed; NULL: said why. */
static inline char *document_read(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    char *text =
        fd >= 0 && fstat(fd, &st) == 0 ? calloc(1, (size_t)st.st_size + 1) : NULL;
    if (text && read(fd, text, (size_t)st.st_size) != st.st_size) {
        free(text);
        text = NULL;
    }
    if (!text) fprintf(stderr, "%s: %s\n", path, strerror(errno));
    if (fd >= 0) close(fd);
    return text;
}

/* The block after "<!-- example: name -->", to be freed. *rest is the document behind it.
 */
static inline char *document_example(const char *document, const char *name,
                                     const char **rest)
{
    char mark[64];
    snprintf(mark, sizeof mark, "<!-- example: %s -->\n\n```", name);
    const char *begin = strstr(document, mark);
    if (!begin) fail_msg("no example %s", name);
    begin = strchr(begin + strlen(mark), '\n') + 1;
    const char *end = strstr(begin, "```\n");
    assert_non_null(end);
    if (rest) *rest = end + strlen("```\n");
    return strndup(begin, (size_t)(end - begin));
}

/* What belongs between the two marks; to be freed. */
static inline char *document_made(const struct document *d)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    d->make(out);
    fclose(out);
    return text;
}

static inline void document_check(const struct document *d)
{
    char *text = document_read(d->path), *wanted = document_made(d);
    assert_non_null(text);
    char *begin = strstr(text, d->begin), *end = strstr(text, d->end);
    assert_true(begin && end && begin < end);
    *end = 0;
    if (strcmp(begin + strlen(d->begin), wanted) != 0)
        fail_msg("%s is out of date; \"write\" as argument of this test mends it",
                 d->path);
    free(text);
    free(wanted);
}

/* 0, or 1 and said why. */
static inline int document_write(const struct document *d)
{
    char *text = document_read(d->path), *made = document_made(d);
    char *begin = text ? strstr(text, d->begin) : NULL,
         *end = text ? strstr(text, d->end) : NULL;
    FILE *out = begin && end ? fopen(d->path, "w") : NULL;
    int bad = !out;
    if (out) {
        begin += strlen(d->begin);
        bad = fprintf(out, "%.*s%s%s", (int)(begin - text), text, made, end) < 0;
        bad = fclose(out) != 0 || bad;
    }
    if (bad) fprintf(stderr, "%s could not be written\n", d->path);
    free(text);
    free(made);
    return bad;
}

#endif
