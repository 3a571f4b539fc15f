/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals as requests to end the run (SCR_HALT_SIGNALS). The handler only records a
 * signal; SCR_Need_checkpoint and SCR_Should_exit report it to all ranks.
 *
 * Handlers belong to the process, not to a context, so only this file and the default
 * context have variables. The behavior of the application stays the same: its own handler
 * is called too, and a signal that it ignores stays ignored. Until the application asks
 * for the first time, a signal that would end the process still does so: otherwise a
 * program that never asks would not end. The first signal after that removes the handler
 * of SCR, so a second signal acts as it would without SCR. The handler calls only
 * async-signal-safe functions. */
#include "halt/halt_run.h"

#include "config/signals.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static struct signal_slot {
    struct sigaction before; /* action in force before SCR */
    atomic_int caught;       /* our handler is installed, since SCR_Init */
    atomic_int seen;         /* a signal was received */
    atomic_int inside;       /* the handler is running */
} signal_slots[SCR_SIGNALS];

static atomic_int signal_is_up, signal_is_asked;

static bool signal_has_function(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void signal_handle(int number, siginfo_t *info, void *where);

/* Whether our handler is still installed, and not another one of the application. */
static bool signal_is_ours(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
           now.sa_sigaction == signal_handle;
}

static void signal_put_back(int number, const struct sigaction *before)
{
    struct sigaction next = *before;
    if (before->sa_flags & (int)SA_RESETHAND) { /* a handler for one signal only */
        memset(&next, 0, sizeof next);
        next.sa_handler = SIG_DFL;
    }
    sigaction(number, &next, NULL);
}

/* Handles a signal. The handler in force may be one of the application: one that calls
 * this handler as its predecessor, or one that this handler calls and that calls it in
 * turn. The application may also have restored this handler after SCR_Finalize. */
static void signal_handle(int number, siginfo_t *info, void *where)
{
    int kept = errno, i = 0;
    bool is_installed = signal_is_ours(number);
    while (i < SCR_SIGNALS - 1 && scr_signal_names[i].number != number)
        i++;
    struct signal_slot *slot = &signal_slots[i];
    bool is_first = signal_is_up && slot->caught && !atomic_exchange(&slot->seen, 1);
    if (atomic_exchange(&slot->inside, 1)) return;
    struct sigaction before = slot->before;
    if (is_installed) signal_put_back(number, &before);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, where);
    else if (signal_has_function(&before))
        before.sa_handler(number);
    else if (is_installed && !(is_first && signal_is_asked) &&
             before.sa_handler == SIG_DFL)
        kill(getpid(), number); /* now has the restored effect */
    slot->inside = 0;
    errno = kept;
}

/* Installs the handler. An existing handler keeps its flags and its mask; without one,
 * system calls of the application are restarted as if there were no signal. */
static void signal_catch_one(int number, struct signal_slot *slot)
{
    struct sigaction ours;
    slot->seen = slot->inside = 0;
    if (signal_is_ours(
            number)) { /* the application restored it; its predecessor is known */
        slot->caught = 1;
        return;
    }
    if (sigaction(number, NULL, &slot->before) != 0) return;
    ours = slot->before;
    if (signal_has_function(&ours)) {
        ours.sa_flags &= ~(int)SA_RESETHAND;
    } else {
        if (ours.sa_handler == SIG_IGN) return;
        memset(&ours, 0, sizeof ours);
        ours.sa_flags = SA_RESTART;
    }
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = signal_handle;
    slot->caught = 1;
    if (sigaction(number, &ours, NULL) != 0) slot->caught = 0;
}

void scr_signal_catch(unsigned set)
{
    signal_is_asked = 0;
    signal_is_up = 1;
    for (int i = 0; i < SCR_SIGNALS; i++)
        if (set >> i & 1) signal_catch_one(scr_signal_names[i].number, &signal_slots[i]);
}

int scr_signal_seen(void)
{
    signal_is_asked = 1;
    for (int i = 0; i < SCR_SIGNALS; i++)
        if (signal_slots[i].caught && signal_slots[i].seen)
            return scr_signal_names[i].number;
    return 0;
}

void scr_signal_release(void)
{
    signal_is_up = 0;
    for (int i = 0; i < SCR_SIGNALS; i++) {
        int number = scr_signal_names[i].number;
        if (signal_slots[i].caught && signal_is_ours(number))
            sigaction(number, &signal_slots[i].before, NULL);
        signal_slots[i].caught = 0;
    }
}
