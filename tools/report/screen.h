/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPORT_SCREEN_H
#define REPORT_SCREEN_H

/* A text that is shown again and again: in place on a terminal, of which nothing is left
 * afterwards; one after the other elsewhere.
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
    int events; /* a signalfd: sizes and ends */
    struct termios former;
} screen;

typedef enum screen_event { SCREEN_TIME, SCREEN_RESIZED, SCREEN_ENDED } screen_event;

/* Whether standard output takes colors: a terminal, without NO_COLOR. */
bool screen_has_colors(void);

/* wanted false: no terminal is taken. Signals that end programs end the waiting. */
void screen_begin(screen *s, bool wanted);

/* Shows lines, cut to the size of the terminal. */
void screen_show(screen *s, const char *text);

/* Waits until the time is over (SCREEN_TIME), the terminal has another size, or a signal
 * or the key q came. */
screen_event screen_wait(screen *s, double seconds);

/* Gives the terminal back as it was. */
void screen_end(screen *s);

#endif
