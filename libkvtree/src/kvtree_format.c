/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of keys given by a format, as in kvtree_getf(tree, "RANK %d FILE %s", rank,
 * name). All keys are built before the tree is changed, so a wrong format changes
 * nothing. */
#include "src/kvtree_private.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kvtree_double_text(char text[KVTREE_DOUBLE_SIZE], bool is_exact, double value)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    snprintf(text, KVTREE_DOUBLE_SIZE, is_exact ? "%.17g" : "%f", value);
    uselocale(before);
    freelocale(plain);
}

/* The keys of a path, each with its NUL, one after the other. */
struct format_path {
    char *keys;
    size_t used, size;
    int count;
};

static int format_append(struct format_path *path, const char *text, size_t len)
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

/* va_list may be an array type, which cannot be passed by address as a parameter; a
 * struct can. */
struct format_arguments {
    va_list list;
};

static int format_print(struct format_path *path, const char *conversion, ...)
{
    char text[32];
    va_list args;
    va_start(args, conversion);
    int length = vsnprintf(text, sizeof text, conversion, args);
    va_end(args);
    return format_append(path, text, (size_t)length);
}

static int format_string(struct format_path *path, const char *string)
{
    return string ? format_append(path, string, strlen(string)) : -EINVAL;
}

static int format_double(struct format_path *path, double value)
{
    char text[KVTREE_DOUBLE_SIZE];
    kvtree_double_text(text, false, value);
    return format_append(path, text, strlen(text));
}

/* Appends the argument of the conversion at spec. *len becomes the length of the
 * conversion. */
static int format_argument(struct format_path *path, const char *spec, size_t *len,
                           struct format_arguments *args)
{
#define FORMAT_IS(text) (strncmp(spec, text, *len = sizeof text - 1) == 0)
#define FORMAT_PRINT(text, type)                                                         \
    if (FORMAT_IS(text)) return format_print(path, text, va_arg(args->list, type))
    if (FORMAT_IS("%s")) return format_string(path, va_arg(args->list, const char *));
    FORMAT_PRINT("%d", int);
    FORMAT_PRINT("%u", unsigned);
    FORMAT_PRINT("%x", unsigned);
    FORMAT_PRINT("%ld", long);
    FORMAT_PRINT("%lu", unsigned long);
    FORMAT_PRINT("%lx", unsigned long);
    FORMAT_PRINT("%lld", long long);
    FORMAT_PRINT("%llu", unsigned long long);
    FORMAT_PRINT("%zu", size_t);
    FORMAT_PRINT("%#x", unsigned);
    FORMAT_PRINT("%#lx", unsigned long);
    FORMAT_PRINT("%p", void *);
    if (FORMAT_IS("%f") || FORMAT_IS("%lf"))
        return format_double(path, va_arg(args->list, double));
    return -EINVAL;
#undef FORMAT_IS
#undef FORMAT_PRINT
}

/* Appends the key of one word, in which any part may be a conversion. */
static int format_append_word(struct format_path *path, const char *word, size_t len,
                              struct format_arguments *args)
{
    const char *end = word + len;
    int rc = len ? 0 : -EINVAL;
    while (!rc && word < end) {
        const char *percent = memchr(word, '%', (size_t)(end - word));
        const char *stop = percent ? percent : end;
        rc = format_append(path, word, (size_t)(stop - word));
        word = stop;
        if (rc || !percent) continue;
        rc = format_argument(path, word, &len, args);
        word += len;
    }
    path->count++;
    return rc ? rc : format_append(path, "", 1);
}

static int format_make_path(struct format_path *path, const char *format,
                            struct format_arguments *args)
{
    for (;;) {
        size_t len = strcspn(format, " ");
        int rc = format_append_word(path, format, len, args);
        if (rc || !format[len]) return rc;
        format += len + 1;
    }
}

/* Creates all elements of path except the last, and sets the last to value. If memory
 * runs out, the created elements are removed. */
static kvtree *format_set_path(kvtree *tree, kvtree *value,
                               const struct format_path *path)
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
    struct format_path path = {0};
    struct format_arguments args;
    kvtree *set = NULL;
    if (!tree || !format) return NULL;
    va_start(args.list, format);
    if (format_make_path(&path, format, &args) == 0)
        set = format_set_path(tree, value, &path);
    va_end(args.list);
    free(path.keys);
    return set;
}

kvtree *kvtree_getf(const kvtree *tree, const char *format, ...)
{
    struct format_path path = {0};
    struct format_arguments args;
    kvtree *found = NULL;
    if (!tree || !format) return NULL;
    va_start(args.list, format);
    if (format_make_path(&path, format, &args) == 0) {
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
