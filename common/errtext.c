/* SPDX-License-Identifier: BSD-3-Clause */
/* Error texts; see errtext.h. */
#include "common/errtext.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool err_is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

void err_shorten(char *text, size_t size, const char *format, va_list args)
{
    static const char gap[] = "...";
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(text, size, format, args);
    const size_t full = length > 0 ? (size_t)length : 0;
    char *all = full >= size && size > sizeof gap ? malloc(full + 1) : NULL;
    if (all && vsnprintf(all, full + 1, format, again) == length) {
        size_t head = (size - sizeof gap) / 2, tail = full - (size - sizeof gap - head);
        while (head && err_is_inside_character(all[head]))
            head--;
        while (err_is_inside_character(all[tail]))
            tail++;
        memcpy(text + head, gap, sizeof gap - 1);
        strcpy(text + head + sizeof gap - 1, all + tail);
    }
    free(all);
    va_end(again);
}

/* Parts of the text may come from a file: no control character may reach a terminal. */
static void err_put(kvtree_error *err, const char *format, va_list args)
{
    err_shorten(err->text, sizeof err->text, format, args);
    for (char *c = err->text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

static void err_append(kvtree_error *err, const char *text)
{
    const kvtree_error before = *err;
    err_set(err, 0, "%s: %s", before.text, text);
}

int err_set(kvtree_error *err, int code, const char *format, ...)
{
    if (!err) return code;
    va_list args;
    va_start(args, format);
    err_put(err, format, args);
    va_end(args);
    return code;
}

/* Files are opened with O_NOFOLLOW, which the system's text for ELOOP does not describe.
 */
static const char *err_reason_of(int number, char *buffer, size_t size)
{
    return number == ELOOP ? "a symbolic link, which is not followed"
                           : strerror_r(number, buffer, size);
}

int err_sys(kvtree_error *err, int code, const char *format, ...)
{
    if (!err) return code;
    char reason[128];
    va_list args;
    va_start(args, format);
    err_put(err, format, args);
    va_end(args);
    err_append(err, err_reason_of(code < 0 ? -code : code, reason, sizeof reason));
    return code;
}

int err_wrap(kvtree_error *err, int code, const char *format, ...)
{
    if (!err) return code;
    kvtree_error cause = *err;
    va_list args;
    va_start(args, format);
    err_put(err, format, args);
    va_end(args);
    err_append(err, cause.text);
    return code;
}

bool err_is_damage(int code)
{
    switch (code) {
    case -EBADMSG:
    case -ENOENT:
    case -ENOTDIR:
    case -EISDIR:
    case -ELOOP:
    case -EINVAL: /* not a regular file */
    case -ENXIO:
        return true;
    default:
        return code > 0; /* a verdict */
    }
}
