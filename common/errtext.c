/* SPDX-License-Identifier: BSD-3-Clause */
/* Error texts; see errtext.h. */
#include "common/errtext.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Parts of the text may come from a file: no control character reaches a terminal. */
static void err_put(char *err, const char *format, va_list args)
{
    vsnprintf(err, ERRTEXT_SIZE, format, args);
    for (char *c = err; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

static void err_append(char *err, const char *text)
{
    size_t used = strlen(err);
    strncat(err, ": ", ERRTEXT_SIZE - 1 - used);
    used = strlen(err);
    strncat(err, text, ERRTEXT_SIZE - 1 - used);
}

int err_set(char *err, int code, const char *format, ...)
{
    if (!err) return code;
    va_list args;
    va_start(args, format);
    err_put(err, format, args);
    va_end(args);
    return code;
}

/* Files are opened with O_NOFOLLOW: the system's text for ELOOP does not describe that.
 */
static const char *err_reason_of(int number, char *buffer, size_t size)
{
    return number == ELOOP ? "a symbolic link, which is not followed"
                           : strerror_r(number, buffer, size);
}

int err_sys(char *err, int code, const char *format, ...)
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

int err_wrap(char *err, int code, const char *format, ...)
{
    if (!err) return code;
    char cause[ERRTEXT_SIZE];
    snprintf(cause, sizeof cause, "%s", err);
    va_list args;
    va_start(args, format);
    err_put(err, format, args);
    va_end(args);
    err_append(err, cause);
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
    case -EINVAL: /* no regular file */
    case -ENXIO:
        return true;
    default:
        return code > 0; /* a verdict */
    }
}
