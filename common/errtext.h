/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_ERRTEXT_H
#define COMMON_ERRTEXT_H

/* Error texts that accompany error codes.
 *
 * Every function that can fail in an interesting way has `kvtree_error *err` as its last
 * parameter: NULL, or written only on failure. The functions below fill err and return
 * the code, so that a failure is one statement:
 *
 *     if (fd < 0) return err_sys(err, -errno, "open %s", path);
 *     rc = load(dir, err);
 *     if (rc) return err_wrap(err, rc, "read");   // "read: open x: No such file" */

#include "common/prefix.h"
#include <kvtree/kvtree_error.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#define err_set COMMON(err_set)
#define err_sys COMMON(err_sys)
#define err_wrap COMMON(err_wrap)
#define err_is_damage COMMON(err_is_damage)
#define err_shorten COMMON(err_shorten)

/* Stores the formatted text in err, shortened to fit and with '?' for control characters,
 * and returns code. */
int err_set(kvtree_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Like err_set, followed by ": " and the system's text for -code. */
int err_sys(kvtree_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts the formatted text and ": " before the text in err, and returns code. */
int err_wrap(kvtree_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Interprets the code of a function that reads. true: the data is missing or altered, or
 * something else is in its place. false: no error, or a lack of permission, memory or a
 * working disk, so that a later attempt may succeed. */
bool err_is_damage(int code);

/* As vsnprintf, but what does not fit is left out of the middle: long names come first,
 * and the reason last. */
void err_shorten(char *text, size_t size, const char *format, va_list args);

#endif
