/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeat of a command; see tool_heartbeat.h. */
#include "lib/tool_heartbeat.h"

#include "common/io.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void heartbeat_print(union sigval ignored)
{
    (void)ignored;
    (void)io_write(STDOUT_FILENO, "\n", 1);
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
    if (h->runs) timer_delete(h->timer);
    h->runs = false;
}
