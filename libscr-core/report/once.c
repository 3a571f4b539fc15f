/* SPDX-License-Identifier: BSD-3-Clause */
/* One line per node for what ranks meet alone; see report/once.h. */
#include "report/once.h"

#include "common/io.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A number for the reason: of the text without what is quoted, and without digits (FNV-1a
 * of 32 bits). */
static uint32_t once_reason(const char *text)
{
    uint32_t hash = 2166136261u;
    bool quoted = false;
    for (; *text; text++) {
        if (*text == '"') quoted = !quoted;
        if (!quoted && !isdigit((unsigned char)*text))
            hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return hash;
}

bool scr_once_take(scr_once *once, const char *text)
{
    char name[sizeof once->claimed];
    if (!once || !once->folder || *once->folder < 0) return true;
    snprintf(name, sizeof name, SCR_ONCE_PREFIX "%u.%08x", once->phase,
             once_reason(text));
    if (strcmp(name, once->claimed) == 0) return true;
    int fd = io_open(*once->folder, name,
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd == -EEXIST) return false;
    if (fd < 0) return true;
    io_close(&fd);
    scr_once_end(once); /* the claim before: a rank has one file at most */
    strcpy(once->claimed, name);
    return true;
}

void scr_once_end(scr_once *once)
{
    if (once->claimed[0]) unlinkat(*once->folder, once->claimed, 0);
    once->claimed[0] = 0;
}
