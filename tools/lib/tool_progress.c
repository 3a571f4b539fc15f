/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of a command; see tool_progress.h. A thread draws, since the command may be
 * inside a system call; a signal that ends the command removes the bar. */
#include "lib/tool_progress.h"

#include "common/io.h"
#include "lib/tool.h"
#include "report/alarm.h"
#include "report/meter.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FIRST_BAR 2.0   /* seconds until the first bar ... */
#define REDRAWN 0.25    /* ... and between two drawings */
#define LINE_EVERY 10.0 /* the same for lines */
#define CLEAR "\r\033[K"

enum { WHAT_SIZE = 64, SIGNALS = 4, TRIES = 100 };

static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static struct {
    bool is_begun, on_terminal;
    char what[WHAT_SIZE];
    const char *turned; /* the text in what, if it comes from tool_progress_turn */
    scr_alarm alarm;
    scr_meter meter;
    atomic_bool is_taken; /* a thread is writing to the terminal */
    atomic_bool is_shown;
    struct sigaction before[SIGNALS];
} shown;

static void progress_update(void)
{
    uint64_t done, total;
    double since;
    const char *unit, *turned = tool_progress_turned(&unit, &since);
    if (turned != shown.turned) {
        snprintf(shown.what, sizeof shown.what, "%s", turned ? turned : "");
        scr_meter_begin(&shown.meter, unit, since);
        shown.turned = turned;
    }
    tool_progress_get(&done, &total);
    scr_meter_update(&shown.meter, done, total, scr_clock());
}

/* ---- a terminal ---- */

/* Takes the terminal; false: the attempt timed out. This is not a lock, because a signal
 * handler takes the terminal, too, and may interrupt the thread that holds it. */
static bool progress_take(void)
{
    const struct timespec nap = {0, 1000000};
    for (int tries = 0; tries < TRIES; tries++) {
        if (!atomic_exchange(&shown.is_taken, true)) return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

static void progress_clear(void)
{
    if (atomic_exchange(&shown.is_shown, false) &&
        write(STDERR_FILENO, CLEAR, strlen(CLEAR)) < 0) {
        /* the terminal is gone; nothing to do */
    }
}

/* Keeps the terminal, so that nothing is drawn any more. */
static void progress_interrupted(int number)
{
    progress_take();
    progress_clear();
    signal(number, SIG_DFL);
    raise(number);
}

static void progress_catch(void)
{
    struct sigaction action = {.sa_handler = progress_interrupted};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &shown.before[i]);
        if (shown.before[i].sa_handler == SIG_DFL) sigaction(signals[i], &action, NULL);
    }
}

static void progress_release(void)
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &shown.before[i], NULL);
}

static int progress_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

static void progress_draw(void *ignored)
{
    char bar[SCR_METER_BAR_MAX], line[SCR_METER_BAR_MAX + 16];
    (void)ignored;
    progress_update();
    /* a line that fills the last column could wrap */
    scr_meter_bar(&shown.meter, shown.what, progress_columns() - 1, bar);
    const int n = snprintf(line, sizeof line, "%s%s", CLEAR, bar);
    if (!progress_take()) return;
    atomic_store(&shown.is_shown, true);
    if (io_write(STDERR_FILENO, line, (size_t)n) != 0) {
        /* standard error failed; there is no place to report it */
    }
    atomic_store(&shown.is_taken, false);
}

/* ---- lines of a log ---- */

static void progress_print(void *ignored)
{
    char line[SCR_METER_SIZE];
    (void)ignored;
    progress_update();
    tool_say(COMMAND_PROGRESS, "%s: %s", shown.what, scr_meter_line(&shown.meter, line));
}

/* ---- both forms ---- */

static bool progress_has_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void tool_progress_begin(const char *what, const char *unit)
{
    tool_progress_end();
    snprintf(shown.what, sizeof shown.what, "%s", what);
    for (char *c = shown.what; *c; c++) /* names may come from other users */
        if (*c < ' ' || *c > '~') *c = '?';
    tool_progress_turn(NULL, NULL);
    shown.turned = NULL;
    shown.on_terminal = progress_has_terminal();
    scr_meter_begin(&shown.meter, unit, scr_clock());
    shown.alarm = (scr_alarm){.first = shown.on_terminal ? FIRST_BAR : LINE_EVERY,
                              .every = shown.on_terminal ? REDRAWN : LINE_EVERY,
                              .ring = shown.on_terminal ? progress_draw : progress_print};
    if (shown.on_terminal) {
        progress_catch();
        tool_set_hide(tool_progress_hide);
    }
    shown.is_begun = true;
    scr_alarm_begin(&shown.alarm);
}

void tool_progress_hide(void)
{
    if (!progress_take()) return;
    progress_clear();
    atomic_store(&shown.is_taken, false);
}

void tool_progress_end(void)
{
    if (!shown.is_begun) return;
    scr_alarm_end(&shown.alarm);
    tool_progress_hide();
    if (shown.on_terminal) progress_release();
    tool_set_hide(NULL);
    shown.is_begun = false;
}
