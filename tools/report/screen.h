/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPORT_SCREEN_H
#define REPORT_SCREEN_H

/* A text that is shown repeatedly: in place on a terminal, where nothing remains
 * afterwards; elsewhere one copy after the other.
 *
 *     screen s;
 *     screen_begin(&s, true);
 *     do screen_show(&s, text); while (screen_wait(&s, 2) != SCREEN_ENDED);
 *     screen_end(&s); */

#include "lib/tool_process.h"
#include <stdbool.h>
#include <termios.h>

typedef struct screen {
    bool on_terminal, has_keys, is_ended;
    int shown;
    int events; /* a signalfd for changes of size and requests to end */
    struct termios former;
} screen;

typedef enum screen_event { SCREEN_TIME, SCREEN_RESIZED, SCREEN_ENDED } screen_event;

/* Whether standard output may have colors: it is a terminal, and NO_COLOR is not set. */
bool screen_has_colors(void);

/* Takes the terminal; wanted false: no terminal is used. Signals that end programs end
 * screen_wait instead. */
void screen_begin(screen *s, bool wanted);

/* Shows lines, truncated to the size of the terminal. */
void screen_show(screen *s, const char *text);

/* Waits until the time is over (SCREEN_TIME), the size of the terminal changes, or a
 * signal or the key q arrives. */
screen_event screen_wait(screen *s, double seconds);

/* Restores the terminal. */
void screen_end(screen *s);

#endif
