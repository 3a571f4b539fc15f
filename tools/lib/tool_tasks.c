/* SPDX-License-Identifier: BSD-3-Clause */
/* Other programs side by side; see tool_tasks.h.
 *
 * One loop waits for output, for ends and for signals. A program is known by its process
 * group, and is reaped last, so that its number means nobody else while it is used. What
 * it started in other groups (pdsh does so) is looked for when it is ended, while the
 * parents still tell whose it is. */
#include "lib/tool_tasks.h"

#include "common/errtext.h"
#include "common/io.h"
#include "lib/processes.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 65536, MOMENT = 10 /* ms */, LOOKS = 100 };

static const double grace = 1; /* seconds between SIGTERM, SIGKILL, and giving up */

typedef enum state { FREE, RUNNING, TOLD_TO_END, KILLED } state;

/* A place for one program. */
typedef struct slot {
    state state;
    int task, out; /* out -1: it has said all */
    pid_t pid;
    double deadline; /* of the state */
    double heard;    /* when it printed something, or began */
    int code;        /* why it was told to end; 0: it was not */
    int silent;      /* 1: that is because it printed nothing */
    char *text;
    size_t size, room;
    processes_below below; /* what it started, from when it was told to end */
} slot;

typedef struct crowd {
    const tool_task *tasks;
    int count, next, running;
    const tool_limits *limits;
    slot *slots;
    struct pollfd *polled; /* one per slot, and that of signals */
    sigset_t caught, before, none;
    int signals, signal; /* signal: the one that came */
    tool_told told;
    void *arg;
} crowd;

double tool_tasks_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- begin ---- */

/* Whether one of our descriptors 0 to 2 can be used so. */
static int serves(int fd, int mode)
{
    int has = fcntl(fd, F_GETFL) & O_ACCMODE;
    return has == mode || has == O_RDWR;
}

/* What was closed when we were started is empty for the program, and takes what it says.
 */
static int set_up(const tool_start_of *how, posix_spawn_file_actions_t *actions)
{
    int rc = 0;
    if (!how->input || !serves(0, O_RDONLY))
        rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    int out = how->out >= 0 ? how->out : 1;
    if (!rc && out != 1 && serves(out, O_WRONLY))
        rc = posix_spawn_file_actions_adddup2(actions, out, 1);
    else if (!rc && !serves(out, O_WRONLY))
        rc = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
    if (!rc && how->out >= 0 && how->joined)
        rc = posix_spawn_file_actions_adddup2(actions, how->out, 2);
    else if (!rc && !serves(2, O_WRONLY))
        rc = posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0);
    return rc;
}

int tool_tasks_start(const tool_start_of *how, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc) return -rc;
    rc = posix_spawnattr_init(&attributes);
    if (!rc) {
        posix_spawnattr_setflags(&attributes,
                                 POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigmask(&attributes, how->mask);
        rc = set_up(how, &actions);
        if (!rc)
            rc = posix_spawnp(pid, how->argv[0], &actions, &attributes,
                              (char *const *)how->argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

/* 0, or -errno: the program did not begin. */
static int begin(crowd *c, slot *s, int task)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
    const tool_start_of how = {.argv = c->tasks[task].argv,
                               .mask = &c->none, /* whatever the caller blocks */
                               .out = ends[1],
                               .joined = c->tasks[task].joined};
    int rc = tool_tasks_start(&how, &s->pid);
    io_close(&ends[1]);
    if (!rc && fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        rc = -errno;
        kill(-s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    if (rc) {
        io_close(&ends[0]);
        return rc;
    }
    s->state = RUNNING;
    s->task = task;
    s->out = ends[0];
    s->heard = tool_tasks_now();
    s->deadline = s->heard + c->limits->seconds;
    s->code = s->silent = 0;
    s->size = 0;
    if (s->text) *s->text = 0;
    c->running++;
    return 0;
}

/* ---- end ---- */

static void tell(const crowd *c, int task, int code, const char *why, const slot *s)
{
    const char *name = c->tasks[task].argv[0];
    char text[ERRTEXT_SIZE] = "";
    tool_end end = {code, text, s && s->text ? s->text : "", s && s->text ? s->size : 0};
    if (code == -ETIMEDOUT && s->silent)
        snprintf(text, sizeof text, "%.200s: there was no sign of it for %g seconds",
                 name, c->limits->silence);
    else if (code == -ETIMEDOUT)
        snprintf(text, sizeof text, "%.200s: it did not end within %g seconds", name,
                 c->limits->seconds);
    else if (code < 0 && !why)
        err_sys(text, code, "%s", name);
    else if (code)
        snprintf(text, sizeof text, "%.200s: %s", name, why);
    c->told(task, &end, c->arg);
}

/* Signals it and all that is below it; whether there was something new. */
static int signal_all(const crowd *c, slot *s, int number)
{
    int added = c->limits->group_only ? 0 : processes_look_below(s->pid, &s->below);
    kill(-s->pid, number);
    processes_signal_below(&s->below, number);
    return added;
}

/* They are stopped first, so that none can start another one that nobody looks for. */
static void kill_all(const crowd *c, slot *s)
{
    for (int i = 0; i < LOOKS && signal_all(c, s, SIGSTOP) > 0; i++)
        continue;
    signal_all(c, s, SIGKILL);
}

/* Nothing more comes of it: reaps it and tells. */
static void close_slot(crowd *c, slot *s, int reaped_late)
{
    int status = 0;
    char why[64];
    if (s->code) kill_all(c, s);
    processes_forget_below(&s->below);
    io_close(&s->out);
    /* a process that not even SIGKILL ends waits for a device, and who knows how long */
    pid_t done = waitpid(s->pid, &status, reaped_late ? WNOHANG : 0);
    s->state = FREE;
    c->running--;
    if (c->signal) return;
    if (s->code) {
        tell(c, s->task, s->code, NULL, s);
    } else if (done != s->pid) {
        tell(c, s->task, -ECHILD, NULL, s);
    } else if (WIFEXITED(status)) {
        snprintf(why, sizeof why, "exit code %d", WEXITSTATUS(status));
        tell(c, s->task, WEXITSTATUS(status), why, s);
    } else {
        snprintf(why, sizeof why, "ended by signal %d", WTERMSIG(status));
        tell(c, s->task, -EIO, why, s);
    }
}

/* For that reason, unless there was an earlier one. */
static void end_early(const crowd *c, slot *s, int code)
{
    if (s->state != RUNNING) return;
    s->code = code;
    s->state = TOLD_TO_END;
    s->deadline = tool_tasks_now() + grace;
    signal_all(c, s, SIGTERM);
}

/* ---- meanwhile ---- */

static int has_ended(const slot *s)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == s->pid;
}

/* Keeps what came. 0 or -errno. */
static int keep(const crowd *c, slot *s, const char *piece, size_t n)
{
    if (s->code) return 0;
    size_t left = c->limits->bytes - s->size, taken = n < left ? n : left;
    if (s->size + taken + 1 > s->room) {
        size_t room = 2 * (s->size + taken) + 1;
        char *text = realloc(s->text, room);
        if (!text) return -ENOMEM;
        s->text = text;
        s->room = room;
    }
    memcpy(s->text + s->size, piece, taken);
    s->size += taken;
    s->text[s->size] = 0;
    return taken < n ? -EFBIG : 0;
}

static void read_slot(const crowd *c, slot *s, char *piece)
{
    ssize_t n = read(s->out, piece, PIECE);
    int rc = 0;
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n > 0) s->heard = tool_tasks_now();
    if (n > 0) rc = keep(c, s, piece, (size_t)n);
    if (n < 0) rc = -errno;
    if (n <= 0) io_close(&s->out);
    if (rc) end_early(c, s, rc);
}

/* When something has to be done about it, if it does not end or print anything. */
static double limit_of(const crowd *c, const slot *s)
{
    double limit = s->heard + c->limits->silence;
    int counts = c->limits->silence > 0 && s->state == RUNNING;
    return counts && limit < s->deadline ? limit : s->deadline;
}

static void look_at(crowd *c, slot *s)
{
    int ended = has_ended(s);
    double now = tool_tasks_now();
    if (ended && (s->out < 0 || s->state == KILLED)) {
        close_slot(c, s, 0);
    } else if (now <= limit_of(c, s)) {
        return;
    } else if (s->state == RUNNING) {
        s->silent = now <= s->deadline;
        end_early(c, s, -ETIMEDOUT);
    } else if (s->state == TOLD_TO_END) {
        kill_all(c, s);
        s->state = KILLED;
        s->deadline = tool_tasks_now() + grace;
    } else {
        close_slot(c, s, 1);
    }
}

/* Milliseconds until something has to be looked at. */
static int patience(const crowd *c)
{
    double first = 1e9, t = tool_tasks_now();
    for (int i = 0; i < c->limits->most; i++) {
        const slot *s = &c->slots[i];
        if (s->state == FREE) continue;
        if (s->out < 0 || s->state != RUNNING) return MOMENT;
        double limit = limit_of(c, s);
        if (limit < first) first = limit;
    }
    if (first < t) return 0;
    return first - t > 1e6 ? 1000000 : (int)((first - t) * 1000) + 1;
}

static void take_signal(crowd *c)
{
    struct signalfd_siginfo info;
    if (read(c->signals, &info, sizeof info) != (ssize_t)sizeof info || c->signal) return;
    c->signal = (int)info.ssi_signo;
    for (int i = 0; i < c->limits->most; i++)
        if (c->slots[i].state != FREE) end_early(c, &c->slots[i], -EINTR);
}

/* Fills free slots; programs that do not begin are told of at once. */
static void fill(crowd *c)
{
    for (int i = 0; i < c->limits->most && !c->signal; i++) {
        while (c->slots[i].state == FREE && c->next < c->count) {
            int task = c->next++, rc = begin(c, &c->slots[i], task);
            if (rc) tell(c, task, rc, NULL, NULL);
        }
    }
}

static int loop(crowd *c, char *piece)
{
    int n = c->limits->most;
    for (fill(c); c->running; fill(c)) {
        for (int i = 0; i < n; i++)
            c->polled[i] = (struct pollfd){
                .fd = c->slots[i].state == FREE ? -1 : c->slots[i].out, .events = POLLIN};
        c->polled[n] = (struct pollfd){.fd = c->signals, .events = POLLIN};
        if (poll(c->polled, (nfds_t)n + 1, patience(c)) < 0 && errno != EINTR)
            return -errno;
        if (c->polled[n].revents) take_signal(c);
        for (int i = 0; i < n; i++) {
            slot *s = &c->slots[i];
            if (s->state != FREE && s->out >= 0 && c->polled[i].revents)
                read_slot(c, s, piece);
            if (s->state != FREE) look_at(c, s);
        }
    }
    return c->signal ? -EINTR : 0;
}

/* ---- the whole ---- */

/* Signals that end programs come to a descriptor, unless they are ignored. */
static int catch_signals(crowd *c)
{
    static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action;
    sigemptyset(&c->caught);
    sigemptyset(&c->none);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (sigaction(all[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&c->caught, all[i]);
    if (sigprocmask(SIG_BLOCK, &c->caught, &c->before) != 0) return -errno;
    c->signals = signalfd(-1, &c->caught, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->signals >= 0) return 0;
    int rc = -errno;
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    return rc;
}

static void leave_signals(crowd *c)
{
    io_close(&c->signals);
    if (c->signal) raise(c->signal); /* waits until the mask is the caller's again */
    sigprocmask(SIG_SETMASK, &c->before, NULL);
}

static void end_all(crowd *c)
{
    for (int i = 0; i < c->limits->most; i++) {
        slot *s = &c->slots[i];
        if (s->state != FREE) {
            kill_all(c, s);
            processes_forget_below(&s->below);
            io_close(&s->out);
            waitpid(s->pid, NULL, 0);
        }
        free(s->text);
    }
}

int tool_tasks_run(const tool_task *tasks, int count, const tool_limits *limits,
                   tool_told told, void *arg, char *err)
{
    tool_limits bounded = *limits;
    if (bounded.most > count) bounded.most = count;
    if (bounded.most < 1) return 0;
    crowd c = {.tasks = tasks,
               .count = count,
               .limits = &bounded,
               .told = told,
               .arg = arg,
               .signals = -1};
    size_t n = (size_t)bounded.most;
    c.slots = calloc(n, sizeof *c.slots);
    c.polled = calloc(n + 1, sizeof *c.polled);
    char *piece = malloc(PIECE);
    int rc = c.slots && c.polled && piece ? catch_signals(&c) : -ENOMEM;
    if (!rc) {
        rc = loop(&c, piece);
        if (c.signal)
            err_set(err, rc, "signal %d came, and ended %s", c.signal, tasks[0].argv[0]);
        else if (rc)
            err_sys(err, rc, "%s", tasks[0].argv[0]);
        end_all(&c);
        leave_signals(&c);
    } else {
        err_sys(err, rc, "%s", tasks[0].argv[0]);
    }
    free(piece);
    free(c.polled);
    free(c.slots);
    return rc;
}
