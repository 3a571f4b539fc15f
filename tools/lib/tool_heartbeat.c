/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeat of a command; see tool_heartbeat.h. */
#include "lib/tool_heartbeat.h"

#include "common/io.h"
#include "lib/tool_progress.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void heartbeat_print(union sigval ignored)
{
    uint64_t done, total;
    char line[64] = "\n";
    (void)ignored;
    tool_progress_get(&done, &total);
    if (total) snprintf(line, sizeof line, " %" PRIu64 " %" PRIu64 "\n", done, total);
    (void)io_write(STDOUT_FILENO, line, strlen(line));
}

void tool_heartbeat_begin(tool_heartbeat *h, int seconds)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                             .sigev_notify_function = heartbeat_print};
    const struct itimerspec every = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    h->runs = seconds > 0 && timer_create(CLOCK_MONOTONIC, &event, &h->timer) == 0;
    if (!h->runs) return;
    fflush(stdout);
    timer_settime(h->timer, 0, &every, NULL);
}

void tool_heartbeat_end(tool_heartbeat *h)
{
    if (!h->runs) return;
    timer_delete(h->timer);
    h->runs = false;
    heartbeat_print((union sigval){0});
}

const char *tool_heartbeat_skip(const char *output)
{
    while (*output == ' ' || *output == '\n') {
        output += strcspn(output, "\n");
        output += *output != 0;
    }
    return output;
}

bool tool_heartbeat_read(const char *output, uint64_t *done, uint64_t *total)
{
    for (const char *end = strrchr(output, '\n'), *line = end; line > output;
         end = line) {
        for (line = end; line > output && line[-1] != '\n';)
            line--;
        if (*line == ' ' && sscanf(line, "%" SCNu64 "%" SCNu64, done, total) == 2)
            return true;
        line -= line > output;
    }
    return false;
}
