/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits the lines per node about failures that ranks see alone; see report/once.h. Each
 * line is claimed by a symbolic link whose target is the reason, so that name and content
 * appear atomically. */
#include "report/once.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ONCE_REASON 8 /* characters */

/* Returns a number for the reason: a hash of the text without digits (FNV-1a, 32
 * bits). */
static uint32_t once_reason(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        if (!isdigit((unsigned char)*text))
            hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static void once_name(const scr_once *once, unsigned line, char name[40])
{
    snprintf(name, 40, SCR_ONCE_PREFIX "%u.%u", once->claimed_in, line);
}

bool scr_once_take(scr_once *once, const char *text)
{
    char name[40], reason[ONCE_REASON + 1], other[ONCE_REASON];
    if (!once || !once->folder || *once->folder < 0) return true;
    if (once->claimed_in != once->phase) scr_once_end(once);
    once->claimed_in = once->phase;
    snprintf(reason, sizeof reason, "%08x", once_reason(text));
    for (unsigned line = 0; line < SCR_ONCE_LINES; line++) {
        if (once->claimed & 1u << line) continue;
        once_name(once, line, name);
        if (symlinkat(reason, *once->folder, name) == 0) {
            once->claimed |= 1u << line;
            return true;
        }
        if (errno != EEXIST) return true;
        if (readlinkat(*once->folder, name, other, sizeof other) == ONCE_REASON &&
            memcmp(other, reason, ONCE_REASON) == 0)
            return false;
    }
    return false;
}

void scr_once_end(scr_once *once)
{
    char name[40];
    for (unsigned line = 0; once->claimed && line < SCR_ONCE_LINES; line++) {
        once_name(once, line, name);
        if (once->claimed & 1u << line) unlinkat(*once->folder, name, 0);
    }
    once->claimed = 0;
}
