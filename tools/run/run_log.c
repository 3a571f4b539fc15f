/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of runs; see run_log.h. */
#include "run/run_log.h"

#include "common/beneath.h"
#include "common/io.h"
#include "common/utf8.h"
#include "lib/tool_time.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

int run_log_open(run_log *log, int prefix, kvtree_error *err)
{
    int fd;
    log->fd = -1;
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int rc = beneath_open_log(prefix, RUN_LOG_NAME, O_RDWR, &fd, err);
    if (!rc) log->fd = fd;
    /* without locks, other processes cannot know the state of the run */
    if (!rc) (void)fcntl(fd, F_SETLK, &lock);
    return rc;
}

void run_log_add(run_log *log, tool_message message, const char *format, ...)
{
    const message_kind *kind = &tool_messages[message];
    const char *word = tool_message_word(message);
    char text[2048], line[2048 + TOOL_TIME_SIZE + 16], when[TOOL_TIME_SIZE];
    va_list args;
    va_start(args, format);
    if (!log->quiet || kind->severity == MESSAGE_ERROR) {
        va_list copy;
        va_copy(copy, args);
        command_complain_list(kind->identifier, word, format, copy);
        va_end(copy);
    }
    message_format(text, sizeof text, kind, format, args);
    va_end(args);
    if (log->fd < 0) return;
    utf8_mask(text, false);
    tool_time_text((int64_t)time(NULL), when);
    int n = snprintf(line, sizeof line, "%s  %s%s\n", when, word, text);
    /* a single write, so that lines of several processes do not mix */
    if (io_write(log->fd, line, (size_t)n) < 0) io_close(&log->fd);
}

void run_log_close(run_log *log)
{
    if (log->fd >= 0) io_close(&log->fd);
}
