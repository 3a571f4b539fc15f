/* SPDX-License-Identifier: BSD-3-Clause */
/* A launcher from its start to its end; see execute.h. */
#include "run/execute.h"

#include "common/io.h"
#include "lib/tool_tasks.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const double hint = 2;     /* seconds after which other signals become SIGTERM */
static const double give_up = 10; /* seconds for what SIGKILL should have ended */
static const double beat = 0.05;  /* longest wait between two looks at the process */

/* ---- signals ---- */

int execute_catch(execute_signals *s)
{
    static const int all[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
                              SIGUSR1, SIGUSR2, SIGCHLD};
    struct sigaction action;
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (sigaction(all[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, all[i]);
    *s = (execute_signals){.fd = -1, .out = -1};
    if (sigprocmask(SIG_BLOCK, &set, &s->before) != 0) return -errno;
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->fd < 0 ? -errno : 0;
}

void execute_release(execute_signals *s)
{
    if (s->fd < 0) return;
    io_close(&s->fd);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

/* Takes all that came. */
static int take(execute_signals *s, int pid)
{
    struct signalfd_siginfo info;
    int wish = 0;
    while (read(s->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD) continue;
        if (pid > 0) kill(pid, number);
        if (number == SIGUSR1 || number == SIGUSR2) continue;
        if (!s->stop) s->stop = number;
        s->last = number;
        wish = 1;
    }
    return wish;
}

int execute_wait(execute_signals *s, double seconds, int pid)
{
    struct pollfd ready = {.fd = s->fd, .events = POLLIN};
    double until = tool_tasks_now() + seconds;
    for (;;) {
        double left = until - tool_tasks_now();
        int rc = poll(&ready, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        if (rc > 0 && take(s, pid)) return 1;
        /* SIGCHLD is worth a look, where a program runs */
        if (rc <= 0 || pid > 0 || tool_tasks_now() >= until) {
            if (rc < 0 && errno == EINTR) continue;
            return 0;
        }
    }
}

/* ---- start ---- */

int execute_start(const char *const *argv, const execute_signals *signals, int out)
{
    /* a process group in the background is stopped when it reads from a terminal */
    const tool_start_of how = {.argv = argv,
                               .mask = &signals->before,
                               .out = out,
                               .input = out < 0 && !isatty(0)};
    pid_t pid;
    int rc = tool_tasks_start(&how, &pid);
    return rc ? rc : (int)pid;
}

/* ---- watch ---- */

typedef enum phase { RUNNING, SIGNALLED, TERMINATED, KILLED } phase;

typedef struct watch {
    const execute_job *job;
    execute_signals *signals;
    execute_result *result;
    pid_t pid;
    phase phase;
    double since, next_look; /* times: of the phase; of the next look */
    int status;
    int warned; /* 1: job->first was called */
} watch;

static void enter(watch *w, phase next)
{
    w->phase = next;
    w->since = tool_tasks_now();
    if (next == TERMINATED) kill(w->pid, SIGTERM);
    if (next == KILLED) {
        if (w->job->end) w->job->end(w->job->arg);
        kill(-w->pid, SIGKILL);
    }
}

/* The program was told to end by a signal that was passed on, perhaps once more. */
static void take_wish(watch *w)
{
    w->result->signalled = 1;
    enter(w, w->phase == RUNNING ? SIGNALLED : KILLED);
}

/* Waits for a moment, and for signals. */
static void attend(watch *w)
{
    const execute_job *job = w->job;
    double pause = job->interval < beat ? job->interval : beat;
    if (!execute_wait(w->signals, pause, job->ours ? 0 : w->pid)) return;
    if (job->first && !w->warned) {
        w->warned = 1;
        job->first(job->arg);
        return;
    }
    if (job->ours) kill(w->pid, w->signals->last);
    take_wish(w);
}

static void look(watch *w)
{
    double now = tool_tasks_now();
    if (w->phase != RUNNING || !w->job->look || now < w->next_look) return;
    w->next_look = now + w->job->interval;
    if (!w->job->look(w->job->arg, w->result->why)) return;
    w->result->ended = 1;
    if (w->job->end) w->job->end(w->job->arg);
    enter(w, TERMINATED);
}

/* 1 when nothing more is to be waited for. */
static int advance(watch *w)
{
    double waited = tool_tasks_now() - w->since;
    if (waitpid(w->pid, &w->status, WNOHANG) == w->pid) return 1;
    int told = w->phase == TERMINATED || (w->phase == SIGNALLED && w->job->ours);
    if (w->phase == SIGNALLED && !told && waited > hint) enter(w, TERMINATED);
    double most = w->result->ended ? w->job->grace : w->job->patience;
    if (told && waited > most) enter(w, KILLED);
    if (w->phase == KILLED && waited > give_up) {
        w->status = SIGKILL; /* it hangs in the kernel */
        return 1;
    }
    return 0;
}

int execute(const execute_job *job, execute_signals *signals, execute_result *result)
{
    watch w = {.job = job, .signals = signals, .result = result};
    double begin = tool_tasks_now();
    *result = (execute_result){0};
    w.pid = execute_start(job->argv, signals, job->ours ? signals->out : -1);
    if (w.pid < 0) return w.pid;
    w.since = begin;
    w.next_look = begin;
    while (!advance(&w)) {
        attend(&w);
        look(&w);
    }
    result->seconds = tool_tasks_now() - begin;
    result->code = WIFEXITED(w.status) ? WEXITSTATUS(w.status) : 128 + WTERMSIG(w.status);
    return 0;
}
