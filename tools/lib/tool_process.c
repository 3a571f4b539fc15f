/* SPDX-License-Identifier: BSD-3-Clause */
/* Supervision of other programs; see tool_process.h.
 *
 * A program is identified by its process group and reaped last, so that its id cannot be
 * reused while the program is signalled. Processes that a program starts in other groups
 * (as pdsh does) are found by a variable in their environment and by their parents; see
 * processes.h. */
#include "lib/tool_process.h"

#include "common/errtext.h"
#include "common/io.h"
#include "lib/processes.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 4096 /* minimum free bytes before a read */, MOMENT = 10 /* ms */ };

static const double task_grace = 1; /* seconds between the phases of captured programs */
static const double signal_grace = 2; /* seconds from another signal to SIGTERM */
static const double give_up = 10;     /* seconds from SIGKILL until a program is
                                       * abandoned */
static const double beat = 0.05;      /* longest wait between two checks of a launcher */

double tool_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- signals ---- */

int tool_signals_catch(tool_signals *s, bool all)
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGALRM, SIGUSR1, SIGUSR2, SIGCHLD};
    struct sigaction action;
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < (all ? 8 : 5); i++)
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, numbers[i]);
    *s = (tool_signals){.fd = -1};
    if (sigprocmask(SIG_BLOCK, &set, &s->before) != 0) return -errno;
    s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd >= 0) return 0;
    int rc = -errno;
    sigprocmask(SIG_SETMASK, &s->before, NULL);
    return rc;
}

void tool_signals_release(tool_signals *s)
{
    if (s->fd < 0) return;
    io_close(&s->fd);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

/* Reads all signals that arrived. */
static bool process_read_signals(tool_signals *s, pid_t pid)
{
    struct signalfd_siginfo info;
    bool ends = false;
    while (read(s->fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD) continue;
        /* Flux sends it at the end of an allocation; launchers know SIGTERM */
        if (number == SIGALRM) number = SIGTERM;
        bool asks = number != SIGUSR1 && number != SIGUSR2;
        if (pid > 0 && !(asks && s->held)) kill(pid, number);
        if (!asks) continue;
        if (!s->stop) s->stop = number;
        s->last = number;
        ends = true;
    }
    return ends;
}

bool tool_signals_wait(tool_signals *s, double seconds, pid_t pid)
{
    struct pollfd ready = {.fd = s->fd, .events = POLLIN};
    double until = tool_now() + seconds;
    for (;;) {
        double left = until - tool_now();
        int rc = poll(&ready, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        if (rc < 0 && errno == EINTR) continue;
        if (rc > 0 && process_read_signals(s, pid)) return true;
        /* SIGCHLD ends the wait only while a program runs */
        if (rc <= 0 || pid > 0 || tool_now() >= until) return false;
    }
}

/* ---- start ---- */

typedef struct process_start {
    const char *const *argv;
    const sigset_t *mask;
    int out;                        /* its standard output; -1: that of this process */
    bool joined;                    /* standard error goes to the same place */
    bool input;                     /* it has the standard input of this process;
                                     * otherwise an empty one */
    char mark[PROCESSES_MARK_SIZE]; /* NAME=VALUE that is added to its environment; or
                                     * "" */
} process_start;

static bool process_is_usable(int fd, int mode)
{
    int has = fcntl(fd, F_GETFL) & O_ACCMODE;
    return has == mode || has == O_RDWR;
}

/* A standard descriptor that is closed in this process is /dev/null in the program. */
static int process_redirect(const process_start *how, posix_spawn_file_actions_t *actions)
{
    int rc = 0, out = how->out >= 0 ? how->out : 1, error = how->joined ? out : 2;
    if (!how->input || !process_is_usable(0, O_RDONLY))
        rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    for (int to = 1; to <= 2 && !rc; to++) {
        int from = to == 1 ? out : error;
        if (!process_is_usable(from, O_WRONLY))
            rc = posix_spawn_file_actions_addopen(actions, to, "/dev/null", O_WRONLY, 0);
        else if (from != to)
            rc = posix_spawn_file_actions_adddup2(actions, from, to);
    }
    return rc;
}

static int process_spawn(const process_start *how,
                         const posix_spawn_file_actions_t *actions, pid_t *pid)
{
    posix_spawnattr_t attributes;
    int rc = posix_spawnattr_init(&attributes);
    if (rc) return rc;
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, how->mask);
    char name[PROCESSES_MARK_SIZE];
    size_t n = strcspn(how->mark, "=");
    snprintf(name, sizeof name, "%.*s", (int)n, how->mark);
    if (n && setenv(name, how->mark + n + 1, 1) != 0) rc = ENOMEM;
    if (!rc)
        rc = posix_spawnp(pid, how->argv[0], actions, &attributes,
                          (char *const *)how->argv, environ);
    if (n) unsetenv(name);
    posix_spawnattr_destroy(&attributes);
    return rc;
}

/* Starts a program in a process group of its own. 0 or -errno. */
static int process_begin(const process_start *how, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc) return -rc;
    rc = process_redirect(how, &actions);
    if (!rc) rc = process_spawn(how, &actions, pid);
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

/* ---- phases ---- */

typedef enum phase { FREE, RUNNING, SIGNALLED, TERMINATED, KILLED } phase;

/* One program under supervision. */
typedef struct process {
    phase phase;
    pid_t pid;
    double deadline;  /* end of the phase, except for RUNNING */
    double patience;  /* seconds from SIGTERM to SIGKILL */
    double abandoned; /* seconds from SIGKILL until the program is abandoned */
    bool alone;       /* SIGTERM goes to the process only, not to its group */
    bool tree;        /* all processes that carry the mark are ended, too */
    char mark[PROCESSES_MARK_SIZE];
    void (*end)(void *arg); /* called before SIGKILL; or NULL */
    void *arg;
} process;

static bool process_has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == pid;
}

/* Excludes the group of the program: its members get the signal anyway. */
static processes_filter process_tree(const process *p)
{
    return (processes_filter){{p->mark, NULL}, NULL, p->pid};
}

static void process_kill(process *p)
{
    const processes_filter tree = process_tree(p);
    if (p->end) p->end(p->arg);
    kill(-p->pid, SIGKILL);
    if (p->tree) processes_end(&tree, task_grace);
}

static void process_enter(process *p, phase next)
{
    const processes_filter tree = process_tree(p);
    p->phase = next;
    if (next == KILLED) {
        process_kill(p);
    } else if (next == TERMINATED) {
        kill(p->alone ? p->pid : -p->pid, SIGTERM);
        if (p->tree) processes_signal(&tree, SIGTERM);
    }
    p->deadline = tool_now() + (next == KILLED       ? p->abandoned
                                : next == TERMINATED ? p->patience
                                                     : signal_grace);
}

/* Enters the next phase when it is due. True when the program has ended and all its
 * output was read, or when the program is abandoned because it hangs in the kernel. */
static bool process_is_over(process *p, bool more)
{
    if (process_has_ended(p->pid) && (!more || p->phase == KILLED)) return true;
    if (p->phase == RUNNING || tool_now() <= p->deadline) return false;
    if (p->phase == KILLED) return true;
    process_enter(p, p->phase == SIGNALLED ? TERMINATED : KILLED);
    return false;
}

/* ---- programs side by side: one program ---- */

typedef struct slot {
    process process;
    int task, out;       /* out -1: all output was read */
    double begun, heard; /* time of its start; of its last output or its start */
    int code;            /* why the program is ended; 0: it is not */
    bool silent;         /* it is ended because it printed nothing */
    char *text;
    size_t size, room;
} slot;

typedef struct crowd {
    const char *const *const *argv;
    int count, next, running;
    const tool_limits *limits;
    slot *slots;
    struct pollfd *polled; /* one per slot, then the signals */
    tool_signals signals;
    tool_report report;
    void *arg;
} crowd;

static void slot_report(const crowd *c, const slot *s, int code, int number)
{
    const char *name = c->argv[s->task][0];
    kvtree_error err = {""};
    const tool_end end = {code, err.text, s->text ? s->text : "", s->size};
    if (code == -ETIMEDOUT && s->silent)
        snprintf(err.text, sizeof err.text,
                 "%.200s: there was no sign of it for %g seconds", name,
                 c->limits->silence);
    else if (code == -ETIMEDOUT)
        snprintf(err.text, sizeof err.text, "%.200s: it did not end within %g seconds",
                 name, c->limits->seconds);
    else if (number)
        snprintf(err.text, sizeof err.text, "%.200s: ended by signal %d", name, number);
    else if (code < 0)
        err_sys(&err, code, "%s", name);
    else if (code)
        snprintf(err.text, sizeof err.text, "%.200s: exit code %d", name, code);
    c->report(s->task, &end, c->arg);
}

/* 0, or -errno: the program did not start. */
static int slot_start(crowd *c, slot *s, const sigset_t *mask)
{
    int ends[2];
    s->size = 0;
    if (s->text) *s->text = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
    process_start how = {.argv = c->argv[s->task],
                         .mask = mask,
                         .out = ends[1],
                         .joined = c->limits->joined};
    snprintf(how.mark, sizeof how.mark, "TOOL_TASK_%ld=%d", (long)getpid(), s->task);
    double grace = c->limits->grace;
    s->process = (process){.patience = grace > 0 ? grace : task_grace,
                           .abandoned = task_grace,
                           .tree = !c->limits->group_only};
    strcpy(s->process.mark, how.mark);
    int rc = process_begin(&how, &s->process.pid);
    io_close(&ends[1]);
    if (!rc && fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        rc = -errno;
        kill(-s->process.pid, SIGKILL);
        waitpid(s->process.pid, NULL, 0);
    }
    if (rc) {
        io_close(&ends[0]);
        return rc;
    }
    s->process.phase = RUNNING;
    s->out = ends[0];
    s->begun = s->heard = tool_now();
    s->code = 0;
    s->silent = false;
    c->running++;
    return 0;
}

/* Ends the program for the reason code, unless it is being ended already. */
static void slot_stop(slot *s, int code)
{
    if (s->process.phase != RUNNING) return;
    s->code = code;
    process_enter(&s->process, TERMINATED);
}

/* Reaps and reports the program. A process that survives SIGKILL hangs in the kernel, so
 * nothing waits for it. */
static void slot_close(crowd *c, slot *s)
{
    int status = 0;
    if (s->code && s->process.phase != KILLED) process_kill(&s->process);
    io_close(&s->out);
    pid_t done = waitpid(s->process.pid, &status, s->code ? WNOHANG : 0);
    s->process.phase = FREE;
    c->running--;
    if (c->signals.stop) return;
    if (s->code || done != s->process.pid)
        slot_report(c, s, s->code ? s->code : -ECHILD, 0);
    else if (WIFEXITED(status))
        slot_report(c, s, WEXITSTATUS(status), 0);
    else
        slot_report(c, s, -EIO, WTERMSIG(status));
}

/* Reads output. Once the program is being ended, further output is dropped. */
static void slot_read(const crowd *c, slot *s)
{
    if (s->room - s->size < PIECE) {
        char *text = realloc(s->text, 2 * s->room + PIECE);
        if (!text) {
            slot_stop(s, -ENOMEM);
            io_close(&s->out);
            return;
        }
        s->text = text;
        s->room = 2 * s->room + PIECE;
    }
    ssize_t n = read(s->out, s->text + s->size, s->room - s->size - 1);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n < 0) slot_stop(s, -errno);
    if (n <= 0) io_close(&s->out);
    if (n > 0) s->heard = tool_now();
    if (n > 0 && !s->code) s->size += (size_t)n;
    s->text[s->size < c->limits->bytes ? s->size : c->limits->bytes] = 0;
    if (n > 0 && c->limits->heard) c->limits->heard(s->task, s->text, c->arg);
    if (s->size <= c->limits->bytes) return;
    s->size = c->limits->bytes;
    slot_stop(s, -EFBIG);
}

/* The time at which the next phase begins, if the program neither ends nor prints. */
static double slot_deadline(const crowd *c, const slot *s)
{
    if (s->process.phase != RUNNING) return s->process.deadline;
    double limit = s->begun + c->limits->seconds;
    double silence = s->heard + c->limits->silence;
    return c->limits->silence > 0 && silence < limit ? silence : limit;
}

static void slot_step(crowd *c, slot *s)
{
    if (process_is_over(&s->process, s->out >= 0)) {
        slot_close(c, s);
    } else if (s->process.phase == RUNNING && tool_now() > slot_deadline(c, s)) {
        s->silent = tool_now() <= s->begun + c->limits->seconds;
        slot_stop(s, -ETIMEDOUT);
    }
}

/* ---- programs side by side: all programs ---- */

/* Fills free slots; programs that fail to start are reported at once. */
static void crowd_fill(crowd *c)
{
    sigset_t none; /* independent of the signals that the caller blocks */
    sigemptyset(&none);
    for (int i = 0; i < c->limits->most && !c->signals.stop; i++) {
        slot *s = &c->slots[i];
        while (s->process.phase == FREE && c->next < c->count) {
            s->task = c->next++;
            int rc = slot_start(c, s, &none);
            if (rc) slot_report(c, s, rc, 0);
        }
    }
}

/* Milliseconds until a slot must be checked. */
static int crowd_patience(const crowd *c)
{
    double first = 1e3; /* seconds */
    for (int i = 0; i < c->limits->most; i++) {
        const slot *s = &c->slots[i];
        if (s->process.phase == FREE) continue;
        if (s->out < 0 || s->process.phase != RUNNING) return MOMENT;
        double left = slot_deadline(c, s) - tool_now();
        if (left < first) first = left;
    }
    return first > 0 ? (int)(first * 1000) + 1 : 0;
}

static int crowd_loop(crowd *c)
{
    int n = c->limits->most;
    for (crowd_fill(c); c->running; crowd_fill(c)) {
        for (int i = 0; i < n; i++)
            c->polled[i] = (struct pollfd){
                .fd = c->slots[i].process.phase == FREE ? -1 : c->slots[i].out,
                .events = POLLIN};
        c->polled[n] = (struct pollfd){.fd = c->signals.fd, .events = POLLIN};
        if (poll(c->polled, (nfds_t)n + 1, crowd_patience(c)) < 0 && errno != EINTR)
            return -errno;
        if (c->polled[n].revents) process_read_signals(&c->signals, 0);
        for (int i = 0; i < n; i++) {
            slot *s = &c->slots[i];
            if (s->process.phase == FREE) continue;
            if (c->signals.stop) slot_stop(s, -EINTR);
            if (s->out >= 0 && c->polled[i].revents) slot_read(c, s);
            slot_step(c, s);
        }
    }
    return c->signals.stop ? -EINTR : 0;
}

static void crowd_end(crowd *c)
{
    for (int i = 0; i < c->limits->most; i++) {
        slot *s = &c->slots[i];
        if (s->process.phase != FREE) {
            process_kill(&s->process);
            io_close(&s->out);
            waitpid(s->process.pid, NULL, 0);
        }
        free(s->text);
    }
    /* the signal stays pending until the caller's mask is restored */
    if (c->signals.stop) raise(c->signals.stop);
    tool_signals_release(&c->signals);
}

int tool_process_run(const char *const *const *argv, int count, const tool_limits *limits,
                     tool_report report, void *arg, kvtree_error *err)
{
    tool_limits bounded = *limits;
    if (bounded.most > count) bounded.most = count;
    if (bounded.most < 1) return 0;
    crowd c = {
        .argv = argv, .count = count, .limits = &bounded, .report = report, .arg = arg};
    c.slots = calloc((size_t)bounded.most, sizeof *c.slots);
    c.polled = calloc((size_t)bounded.most + 1, sizeof *c.polled);
    int rc = c.slots && c.polled ? tool_signals_catch(&c.signals, false) : -ENOMEM;
    if (!rc) {
        rc = crowd_loop(&c);
        crowd_end(&c);
    }
    if (c.signals.stop)
        err_set(err, rc, "signal %d came, and ended %s", c.signals.stop, argv[0][0]);
    else if (rc)
        err_sys(err, rc, "start %s", argv[0][0]);
    free(c.polled);
    free(c.slots);
    return rc;
}

/* ---- one launcher ---- */

typedef struct watch {
    const tool_job *job;
    tool_signals *signals;
    tool_job_result *result;
    process process;
    double next_check; /* time of the next check */
    bool warned;       /* job->first was called */
    double notice;     /* time until which the program may end by itself after that */
} watch;

/* Handles a signal that asks to end: the program has received it already, or receives it
 * now. */
static void watch_take_signal(watch *w)
{
    const tool_job *job = w->job;
    process *p = &w->process;
    if (job->first && !w->warned) {
        w->warned = true;
        w->notice = tool_now() + job->notice;
        job->first(job->arg);
        return;
    }
    if (job->ours || w->signals->held) kill(p->pid, w->signals->last);
    w->signals->held = false;
    w->result->signalled = true;
    process_enter(p, p->phase == RUNNING ? SIGNALLED : KILLED);
    if (!job->ours || p->phase == KILLED) return;
    p->phase = TERMINATED;
    p->deadline = tool_now() + p->patience;
}

/* Forwards the signal when the program has had its notice. */
static void watch_end_notice(watch *w)
{
    if (w->warned && w->signals->held && tool_now() > w->notice) watch_take_signal(w);
}

static void watch_check(watch *w)
{
    const tool_job *job = w->job;
    double now = tool_now();
    if (w->process.phase != RUNNING || !job->check || now < w->next_check) return;
    w->next_check = now + job->interval;
    if (!job->check(job->arg, w->result->why)) return;
    w->result->ended = true;
    w->process.patience = job->grace;
    if (job->end) job->end(job->arg);
    process_enter(&w->process, TERMINATED);
}

int tool_process_watch(const tool_job *job, tool_signals *signals,
                       tool_job_result *result)
{
    watch w = {.job = job, .signals = signals, .result = result};
    process *p = &w.process;
    /* a background process group is stopped when it reads from a terminal */
    const process_start how = {.argv = job->argv,
                               .mask = &signals->before,
                               .out = job->ours ? job->out : -1,
                               .input = !job->ours && !isatty(0)};
    double begin = tool_now(), pause = job->interval < beat ? job->interval : beat;
    int status = SIGKILL; /* the status of an abandoned program */
    *result = (tool_job_result){0};
    *p = (process){.phase = RUNNING,
                   .patience = job->patience,
                   .abandoned = give_up,
                   .alone = true,
                   .end = job->end,
                   .arg = job->arg};
    int rc = process_begin(&how, &p->pid);
    if (rc) return rc;
    signals->held = job->first && !job->ours;
    while (!process_is_over(p, false)) {
        if (tool_signals_wait(signals, pause, job->ours ? 0 : p->pid))
            watch_take_signal(&w);
        watch_end_notice(&w);
        watch_check(&w);
    }
    signals->held = false;
    waitpid(p->pid, &status, WNOHANG);
    result->seconds = tool_now() - begin;
    result->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 0;
}
