/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a process behind another one; see relay.h. */
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
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 65536 };

/* One of the two output streams. */
typedef struct stream {
    int from, to;              /* from -1: everything was read */
    bool is_terminal, is_wide; /* is_wide: the terminal shows UTF-8 */
    char held[4];              /* bytes of an incomplete character */
    size_t held_size;
    int lost; /* errno of output that could not be printed */
} stream;

typedef struct relay {
    pid_t child;
    int signals;
    sigset_t before; /* the original signal mask */
    stream streams[2];
} relay;

/* ---- the process in front ---- */

/* Terminals interpret bytes below the space. */
static bool relay_is_control(unsigned char c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

/* Whether the bytes may be the start of a character that continues after them. */
static bool relay_is_begun(const char *bytes, size_t size)
{
    unsigned char c = (unsigned char)*bytes;
    size_t length = c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 1;
    for (size_t i = 1; i < size; i++)
        if ((unsigned char)bytes[i] >> 6 != 2) return false;
    return size < length;
}

/* Masks bytes that a terminal may interpret, including C1: the characters U+0080 to
 * U+009f, and bytes of these values outside of characters. Some terminals interpret each
 * byte of invalid UTF-8. Returns the number of complete bytes. bytes[size] is 0. ended:
 * nothing follows. */
static size_t relay_mask_controls(const stream *s, char *bytes, size_t size, bool ended)
{
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t c = 0;
        length = utf8_length(bytes + i, &c);
        if (!length && s->is_wide && !ended && relay_is_begun(bytes + i, size - i))
            return i;
        bool is_wide = length > 1 && s->is_wide && c >= 0xa0;
        if (!length) length = 1;
        for (size_t k = i; k < i + length && !is_wide; k++)
            if (relay_is_control((unsigned char)bytes[k]) ||
                (bytes[k] & 0x80 && (s->is_wide || !(bytes[k] & 0x60))))
                bytes[k] = '?';
    }
    return size;
}

static void relay_print(stream *s, const char *bytes, size_t size)
{
    int rc = s->lost || size == 0 ? 0 : io_write(s->to, bytes, size);
    if (rc == -EPIPE)
        io_close(&s->from);
    else if (rc)
        s->lost = -rc;
}

/* A process that writes to a pipe without a reader gets SIGPIPE. The process behind gets
 * it when the reader of this process has ended. Other losses are reported at the end. */
static void relay_forward(stream *s)
{
    char bytes[sizeof s->held + PIECE + 1];
    memcpy(bytes, s->held, s->held_size);
    ssize_t n = read(s->from, bytes + s->held_size, PIECE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    size_t size = s->held_size + (n > 0 ? (size_t)n : 0), done = size;
    bytes[size] = 0;
    if (s->is_terminal) done = relay_mask_controls(s, bytes, size, n <= 0);
    s->held_size = size - done;
    memcpy(s->held, bytes + done, s->held_size);
    relay_print(s, bytes, done);
    if (n <= 0) io_close(&s->from);
}

/* Forwards signals. Returns whether the child has ended. A child that its user has
 * stopped is killed: otherwise this process would wait forever. */
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

/* Forwards output until the child has ended, including what is then left in the pipes. */
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
    if (WIFSIGNALED(status)) { /* the child's user chose the signal: no core file of this
                                * process */
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
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

/* Prepares the process behind. Output is flushed line by line, which keeps the order of
 * both streams. */
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

/* Leaves the session keyring. All processes of a session can read its keys (such as
 * Kerberos tickets), even under another user ID. */
static int relay_leave_keyring(void)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0) return 0;
    /* no keyrings here, or they cannot be used */
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

/* Opens a pipe per stream, or one pipe for both if they have the same destination, to
 * keep their order. */
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
