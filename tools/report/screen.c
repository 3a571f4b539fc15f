/* SPDX-License-Identifier: BSD-3-Clause */
/* A refreshed screen; see screen.h. */
#include "report/screen.h"

#include "common/io.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Enter the alternate screen, without a cursor; leave it. */
#define ENTER "\033[?1049h\033[?25l\033[2J"
#define LEAVE "\033[?25h\033[?1049l"

static bool screen_is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

bool screen_has_colors(void)
{
    const char *off = getenv("NO_COLOR");
    return screen_is_terminal() && !(off && *off);
}

/* Makes keys arrive one by one without an echo. */
static void screen_take_keys(screen *s)
{
    s->has_keys = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
                  tcgetattr(STDIN_FILENO, &s->former) == 0;
    if (!s->has_keys) return;
    struct termios now = s->former;
    now.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    now.c_cc[VSUSP] = _POSIX_VDISABLE; /* a stopped process would not restore the
                                        * terminal */
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

void screen_begin(screen *s, bool wanted)
{
    sigset_t set;
    *s = (screen){.on_terminal = wanted && screen_is_terminal()};
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGWINCH);
    s->events = signalfd(-1, &set, SFD_CLOEXEC);
    if (s->events >= 0) sigprocmask(SIG_BLOCK, &set, NULL);
    if (!s->on_terminal) return;
    screen_take_keys(s);
    fputs(ENTER, stdout);
}

/* Returns the number of bytes of the line that fit into the columns; escape sequences
 * need no column. */
static size_t screen_fit(const char *line, size_t length, int columns)
{
    size_t i = 0;
    while (i < length) {
        if (line[i] == '\033') {
            while (i < length && line[i] != 'm')
                i++;
            i += i < length;
            continue;
        }
        if (((unsigned char)line[i] & 0xc0) != 0x80 && columns-- == 0) break;
        i++;
    }
    return i;
}

void screen_show(screen *s, const char *text)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    if (!s->on_terminal) {
        printf("%s%s", s->shown++ ? "\n" : "", text);
        return;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_row || !size.ws_col)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    fputs("\033[H", stdout);
    for (int row = 0; *text && row < size.ws_row; row++) {
        size_t length = strcspn(text, "\n");
        /* no newline after the last line, since the screen would scroll */
        printf("%s%.*s\033[0m\033[K", row ? "\n" : "",
               (int)screen_fit(text, length, size.ws_col), text);
        text += length + (text[length] == '\n');
    }
    fputs("\033[J", stdout);
    fflush(stdout);
    s->shown++;
}

/* Handles a signal or a key. */
static screen_event screen_take(screen *s, const struct pollfd *fds)
{
    struct signalfd_siginfo info;
    char key = 0;
    if (fds[0].revents && read(s->events, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGWINCH) return SCREEN_RESIZED;
        s->is_ended = true;
    }
    if (fds[1].revents && read(STDIN_FILENO, &key, 1) <= 0) s->has_keys = false;
    if (key == 'q') s->is_ended = true;
    return s->is_ended ? SCREEN_ENDED : SCREEN_TIME;
}

screen_event screen_wait(screen *s, double seconds)
{
    double until = tool_now() + seconds;
    for (double left = seconds; left > 0; left = until - tool_now()) {
        struct pollfd fds[] = {{.fd = s->events, .events = POLLIN},
                               {.fd = s->has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
        if (poll(fds, 2, (int)(left * 1000) + 1) <= 0) continue;
        screen_event event = screen_take(s, fds);
        if (event != SCREEN_TIME) return event;
    }
    return SCREEN_TIME;
}

void screen_end(screen *s)
{
    if (s->on_terminal) fputs(LEAVE, stdout);
    fflush(stdout);
    if (s->has_keys) tcsetattr(STDIN_FILENO, TCSANOW, &s->former);
    io_close(&s->events);
}
