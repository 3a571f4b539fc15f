/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of keys given by a format, as in kvtree_getf(tree, "RANK %d FILE %s", rank,
 * name). All keys are made before the tree is touched, so a bad format changes nothing.
 */
#include "src/kvtree_private.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kvtree_double_text(char text[KVTREE_DOUBLE_SIZE], double value)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    snprintf(text, KVTREE_DOUBLE_SIZE, "%f", value);
    uselocale(before);
    freelocale(plain);
}

/* The keys of a path, each with its NUL, one behind the other. */
struct path {
    char *keys;
    size_t used, size;
    int count;
};

static int path_append(struct path *path, const char *text, size_t len)
{
    if (len == 0) return 0;
    if (path->used + len > path->size) {
        size_t size = 2 * path->size + len + 64;
        char *keys = realloc(path->keys, size);
        if (!keys) return -ENOMEM;
        path->keys = keys;
        path->size = size;
    }
    memcpy(path->keys + path->used, text, len);
    path->used += len;
    return 0;
}

/* va_list may be an array type, which loses its address as a parameter; a struct does
 * not. */
struct arguments {
    va_list list;
};

enum conversion {
    STRING,
    INT,
    UNSIGNED,
    HEX,
    LONG,
    ULONG,
    LHEX,
    LLONG,
    ULLONG,
    SIZE,
    REAL
};

static int find_conversion(const char *spec, enum conversion *which, size_t *len)
{
    static const struct {
        const char *text;
        enum conversion which;
    } known[] = {{"%s", STRING}, {"%d", INT},      {"%u", UNSIGNED}, {"%x", HEX},
                 {"%ld", LONG},  {"%lu", ULONG},   {"%lx", LHEX},    {"%lld", LLONG},
                 {"%zu", SIZE},  {"%llu", ULLONG}, {"%f", REAL},     {"%lf", REAL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        *len = strlen(known[i].text);
        *which = known[i].which;
        if (strncmp(spec, known[i].text, *len) == 0) return 0;
    }
    return -EINVAL;
}

static int append_argument(struct path *path, enum conversion which,
                           struct arguments *args)
{
    char text[KVTREE_DOUBLE_SIZE];
    const char *string = text;
#define PRINT(format, type) snprintf(text, sizeof text, format, va_arg(args->list, type))
    switch (which) {
    case STRING:
        string = va_arg(args->list, const char *);
        break;
    case INT:
        PRINT("%d", int);
        break;
    case UNSIGNED:
        PRINT("%u", unsigned);
        break;
    case HEX:
        PRINT("%x", unsigned);
        break;
    case LONG:
        PRINT("%ld", long);
        break;
    case ULONG:
        PRINT("%lu", unsigned long);
        break;
    case LHEX:
        PRINT("%lx", unsigned long);
        break;
    case LLONG:
        PRINT("%lld", long long);
        break;
    case ULLONG:
        PRINT("%llu", unsigned long long);
        break;
    case SIZE:
        PRINT("%zu", size_t);
        break;
    case REAL:
        kvtree_double_text(text, va_arg(args->list, double));
        break;
    }
#undef PRINT
    return string ? path_append(path, string, strlen(string)) : -EINVAL;
}

/* Appends the key of one word, in which any part may be a conversion. */
static int append_word(struct path *path, const char *word, size_t len,
                       struct arguments *args)
{
    const char *end = word + len;
    int rc = len ? 0 : -EINVAL;
    while (!rc && word < end) {
        enum conversion which;
        const char *percent = memchr(word, '%', (size_t)(end - word));
        const char *stop = percent ? percent : end;
        rc = path_append(path, word, (size_t)(stop - word));
        word = stop;
        if (rc || !percent) continue;
        rc = find_conversion(word, &which, &len);
        if (!rc) rc = append_argument(path, which, args);
        word += len;
    }
    path->count++;
    return rc ? rc : path_append(path, "", 1);
}

static int path_make(struct path *path, const char *format, struct arguments *args)
{
    for (;;) {
        size_t len = strcspn(format, " ");
        int rc = append_word(path, format, len, args);
        if (rc || !format[len]) return rc;
        format += len + 1;
    }
}

/* Makes the elements of path but the last, and sets that one to value. What was made is
 * removed again when memory ends on the way. */
static kvtree *set_path(kvtree *tree, kvtree *value, const struct path *path)
{
    kvtree *made_in = NULL;
    const char *made = NULL, *key = path->keys;
    for (int i = 1; tree && i < path->count; i++, key += strlen(key) + 1) {
        kvtree *next = kvtree_get(tree, key);
        if (!next) {
            next = kvtree_set(tree, key, NULL);
            made_in = made ? made_in : tree;
            made = made ? made : key;
        }
        tree = next;
    }
    kvtree *set = kvtree_set(tree, key, value);
    if (!set && made) kvtree_unset(made_in, made);
    return set;
}

kvtree *kvtree_setf(kvtree *tree, kvtree *value, const char *format, ...)
{
    struct path path = {0};
    struct arguments args;
    kvtree *set = NULL;
    if (!tree || !format) return NULL;
    va_start(args.list, format);
    if (path_make(&path, format, &args) == 0) set = set_path(tree, value, &path);
    va_end(args.list);
    free(path.keys);
    return set;
}

kvtree *kvtree_getf(const kvtree *tree, const char *format, ...)
{
    struct path path = {0};
    struct arguments args;
    kvtree *found = NULL;
    if (!tree || !format) return NULL;
    va_start(args.list, format);
    if (path_make(&path, format, &args) == 0) {
        const char *key = path.keys;
        found = kvtree_get(tree, key);
        for (int i = 1; i < path.count; i++) {
            key += strlen(key) + 1;
            found = kvtree_get(found, key);
        }
    }
    va_end(args.list);
    free(path.keys);
    return found;
}
