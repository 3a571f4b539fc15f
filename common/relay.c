/* SPDX-License-Identifier: BSD-3-Clause */
/* A process behind another one; see relay.h. */
#include "common/relay.h"

#include "common/command.h"
#include "common/io.h"
#include "common/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 65536 };

/* One of the streams. */
typedef struct stream {
    int from, to;              /* from -1: all was read */
    bool is_terminal, is_wide; /* wide: the terminal shows UTF-8 */
    unsigned char last;        /* byte that was printed */
    int rest;                  /* bytes that the last character lacks */
    int lost;                  /* errno of what could not be printed */
} stream;

typedef struct relay {
    pid_t child;
    int signals;
    sigset_t before; /* the mask */
    stream streams[2];
} relay;

/* ---- the process in front ---- */

/* Whether a byte from 0x80 to 0x9f, which is a control (C1) by itself and behind 0xc2, is
 * none here: it continues another character. */
static bool relay_continues(const stream *s)
{
    return s->is_wide && s->rest > 0 && s->last != 0xc2;
}

/* Terminals interpret bytes below blank, and C1. */
static void relay_mask_controls(stream *s, unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = bytes[i];
        bool is_control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ||
                          (c >= 0x80 && c < 0xa0 && !relay_continues(s));
        if (c >> 6 == 2)
            s->rest -= s->rest > 0;
        else
            s->rest = c < 0xc2 || c > 0xf4 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        s->last = c;
        if (is_control) bytes[i] = '?';
    }
}

/* A process that prints into a pipe without a reader gets SIGPIPE: so does the process
 * behind when the reader of this one is gone. Other losses are reported at the end. */
static void relay_forward(stream *s)
{
    unsigned char bytes[PIECE];
    ssize_t n = read(s->from, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
        io_close(&s->from);
        return;
    }
    if (s->is_terminal) relay_mask_controls(s, bytes, (size_t)n);
    int rc = s->lost ? 0 : io_write(s->to, bytes, (size_t)n);
    if (rc == -EPIPE)
        io_close(&s->from);
    else if (rc)
        s->lost = -rc;
}

/* Forwards signals; whether the child has ended. Its user can stop it, and this process
 * would wait forever. */
static int relay_read_signal(const relay *r)
{
    struct signalfd_siginfo info;
    siginfo_t news = {.si_pid = 0};
    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD) kill(r->child, (int)info.ssi_signo);
    const int events = WEXITED | WSTOPPED | WNOHANG | WNOWAIT;
    if (waitid(P_PID, (id_t)r->child, &news, events) != 0 || news.si_pid != r->child)
        return 0;
    if (news.si_code != CLD_STOPPED) return 1;
    command_complain("PROCESS_STOPPED",
                     "process %ld was stopped by another one, and is killed",
                     (long)r->child);
    kill(r->child, SIGKILL);
    return waitid(P_PID, (id_t)r->child, &news, WEXITED | WNOWAIT) == 0;
}

/* Until the child has ended; its remaining output is in the pipes then. */
static void relay_forward_all(relay *r)
{
    for (int ended = 0; !ended;) {
        struct pollfd polled[3] = {{.fd = r->signals, .events = POLLIN}};
        for (int i = 0; i < 2; i++)
            polled[1 + i] = (struct pollfd){.fd = r->streams[i].from, .events = POLLIN};
        if (poll(polled, 3, -1) < 0 && errno != EINTR) break;
        ended = relay_read_signal(r);
        for (int i = 0; i < 2; i++)
            if (ended || polled[1 + i].revents)
                if (r->streams[i].from >= 0) relay_forward(&r->streams[i]);
    }
}

static void relay_exit_as_child(relay *r)
{
    int status = 0, code;
    while (waitpid(r->child, &status, 0) < 0 && errno == EINTR)
        continue;
    sigprocmask(SIG_SETMASK, &r->before, NULL);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    code = WIFEXITED(status) ? WEXITSTATUS(status) : COMMAND_BAD;
    if (r->streams[0].lost) {
        command_complain("OUTPUT_LOST", "write: %s", strerror(r->streams[0].lost));
        if (code == COMMAND_GOOD) code = COMMAND_BAD;
    }
    _exit(code);
}

/* ---- the process behind ---- */

/* Output is flushed line by line, which keeps the order of both streams. */
static int relay_detach(const relay *r, const int ends[2])
{
    int null = io_open(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
    if (null < 0) return null;
    if (dup2(null, 0) < 0 || dup2(ends[0], 1) < 0 || dup2(ends[1], 2) < 0) return -errno;
    closefrom(3);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (sigprocmask(SIG_SETMASK, &r->before, NULL) != 0 || setsid() < 0) return -errno;
    return 0;
}

/* All processes of a session can read the keys of its keyring (such as Kerberos tickets),
 * also those that run under another user id. */
static int relay_leave_keyring(void)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0) return 0;
    /* there are no keyrings here, or they cannot be used */
    return errno == ENOSYS || errno == EPERM ? 0 : -errno;
}

int relay_depend(pid_t front)
{
    int rc = relay_leave_keyring();
    if (rc) return rc;
    if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0) return -errno;
    return getppid() == front ? 0 : -ECHILD;
}

/* ---- both ---- */

static bool relay_is_same(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && io_is_same_file(&x, &y);
}

/* One pipe where both streams go to one place, so that their order is kept. */
static int relay_open_pipes(relay *r, int ends[2])
{
    const int together = relay_is_same(1, 2);
    for (int i = 0; i < 2; i++) {
        int pair[2] = {-1, together && i ? ends[0] : -1};
        if (pair[1] < 0 && pipe2(pair, O_CLOEXEC) != 0) return -errno;
        if (pair[0] >= 0 && fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0) return -errno;
        r->streams[i] = (stream){.from = pair[0],
                                 .to = 1 + i,
                                 .is_terminal = isatty(1 + i),
                                 .is_wide = utf8_is_shown()};
        ends[i] = pair[1];
    }
    return 0;
}

static int relay_catch_signals(relay *r)
{
    static const int all[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                              SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sigaddset(&set, all[i]);
    signal(SIGCHLD, SIG_DFL);
    if (sigprocmask(SIG_BLOCK, &set, &r->before) != 0) return -errno;
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return r->signals < 0 ? -errno : 0;
}

int relay_split(pid_t *front)
{
    relay r = {.signals = -1};
    int ends[2] = {-1, -1};
    int rc = relay_open_pipes(&r, ends);
    if (!rc) rc = relay_catch_signals(&r);
    if (rc) return rc;
    fflush(NULL);
    *front = getpid();
    r.child = fork();
    if (r.child < 0) return -errno;
    if (r.child == 0) return relay_detach(&r, ends);
    if (ends[1] != ends[0]) io_close(&ends[1]);
    io_close(&ends[0]);
    signal(SIGPIPE, SIG_IGN);
    relay_forward_all(&r);
    relay_exit_as_child(&r);
    return -ECHILD;
}
