/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals as a wish to end (SCR_HALT_SIGNALS). A handler only notes that a signal came;
 * SCR_Need_checkpoint and SCR_Should_exit tell all ranks of it.
 *
 * Handlers are of the process, not of a context, so this is the one place besides the
 * default context that has variables. Nothing of the application is lost: its own handler
 * is called, too, and a signal that it ignores stays ignored. A signal that would end the
 * process still does so before the application asks for the first time: one that never
 * asks would not end otherwise. The first signal after that takes our handler away, so
 * that a second one does what it would do without SCR. All that the handler calls is
 * async-signal-safe. */
#include "halt/halt_run.h"

#include "config/signals.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct slot {
    struct sigaction before; /* what was in force when SCR came */
    atomic_int caught;       /* our handler was installed, since SCR_Init, */
    atomic_int seen;         /* and a signal came */
    atomic_int inside;       /* the handler runs */
} slots[SCR_SIGNALS];

static atomic_int is_up, is_asked;

static int has_function(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void handle(int number, siginfo_t *info, void *where);

/* 1 unless the application has installed its own since. */
static int is_ours(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
           now.sa_sigaction == handle;
}

static void put_back(int number, const struct sigaction *before)
{
    struct sigaction next = *before;
    if (before->sa_flags & (int)SA_RESETHAND) { /* it has had its one signal */
        memset(&next, 0, sizeof next);
        next.sa_handler = SIG_DFL;
    }
    sigaction(number, &next, NULL);
}

/* The handler in force at a signal may be the application's, which calls us because we
 * were there before, or which we call and which calls us in turn; and the application may
 * have put us back after SCR_Finalize. */
static void handle(int number, siginfo_t *info, void *where)
{
    int kept = errno, i = 0, installed = is_ours(number);
    while (i < SCR_SIGNALS - 1 && scr_signal_names[i].number != number)
        i++;
    struct slot *slot = &slots[i];
    int first = is_up && slot->caught && !atomic_exchange(&slot->seen, 1);
    if (atomic_exchange(&slot->inside, 1)) return;
    struct sigaction before = slot->before;
    if (installed) put_back(number, &before);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, where);
    else if (has_function(&before))
        before.sa_handler(number);
    else if (installed && !(first && is_asked) && before.sa_handler == SIG_DFL)
        kill(getpid(), number); /* does now what is in force again */
    slot->inside = 0;
    errno = kept;
}

/* A handler that is there keeps its flags and its mask; where there is none, system calls
 * of the application go on as they do without a signal. */
static void catch_one(int number, struct slot *slot)
{
    struct sigaction ours;
    slot->seen = slot->inside = 0;
    if (is_ours(number)) { /* an application put it back; what was before it is known */
        slot->caught = 1;
        return;
    }
    if (sigaction(number, NULL, &slot->before) != 0) return;
    ours = slot->before;
    if (has_function(&ours)) {
        ours.sa_flags &= ~(int)SA_RESETHAND;
    } else {
        if (ours.sa_handler == SIG_IGN) return;
        memset(&ours, 0, sizeof ours);
        ours.sa_flags = SA_RESTART;
    }
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = handle;
    slot->caught = 1;
    if (sigaction(number, &ours, NULL) != 0) slot->caught = 0;
}

void scr_signal_catch(unsigned set)
{
    is_asked = 0;
    is_up = 1;
    for (int i = 0; i < SCR_SIGNALS; i++)
        if (set >> i & 1) catch_one(scr_signal_names[i].number, &slots[i]);
}

int scr_signal_seen(void)
{
    is_asked = 1;
    for (int i = 0; i < SCR_SIGNALS; i++)
        if (slots[i].caught && slots[i].seen) return scr_signal_names[i].number;
    return 0;
}

void scr_signal_release(void)
{
    is_up = 0;
    for (int i = 0; i < SCR_SIGNALS; i++) {
        int number = scr_signal_names[i].number;
        if (slots[i].caught && is_ours(number)) sigaction(number, &slots[i].before, NULL);
        slots[i].caught = 0;
    }
}
