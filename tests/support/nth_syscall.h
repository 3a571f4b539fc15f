/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NTH_SYSCALL_H
#define TESTS_NTH_SYSCALL_H

/* A function of a test, monitored at every system call that it makes: for proofs such as
 * "wherever the process is killed, the file is the old one or the new one".
 *
 *     static nth_result result;                  (large)
 *     nth_fault fault = {.at = 3, .answer = EIO};
 *     int rc = nth_run(save, NULL, nth_at, &fault, &result);
 *     if (rc) skip();                            (the kernel refuses; strerror(rc))
 *     result.calls[2].name                       ("fsync")
 *
 * The function runs in a child process. A seccomp filter stops the child before each call
 * and asks this process for a decision: let the call happen, answer it with an errno
 * instead, or kill the child before the call begins. All calls count, including memory
 * calls; only the end of the process does not. The function stores its findings in shared
 * memory (mmap), or in its return value, which is the exit status of the child.
 *
 * While the child stands still, the decision may do other things, such as changing the
 * file that the child is about to lock. It must not wait for the child. Works on every
 * architecture with seccomp, on Linux 5.5 or later, and without privileges. */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Linux 6.6: both processes take turns on one processor, which is faster. */
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

enum { NTH_GO = 0, NTH_KILL = -1, NTH_CALLS = 1024 };

#if defined(__SANITIZE_ADDRESS__)
#define NTH_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define NTH_SANITIZED 1
#endif
#endif
#ifndef NTH_SANITIZED
#define NTH_SANITIZED 0
#endif

typedef struct nth_call {
    const char *name; /* the same for all variants: "rename" for renameat2; "?": see
                       * number */
    int number;
    unsigned long long
        args[6]; /* as the kernel gets them: as for "openat", "renameat" ... */
    int answer;  /* the decision */
} nth_call;

typedef struct nth_result {
    unsigned count;            /* number of system calls, of which ... */
    nth_call calls[NTH_CALLS]; /* ... the first ones are here */
    int status;                /* status of the child, as from waitpid */
} nth_result;

/* Called before each call, the n-th one from 1; returns NTH_GO, NTH_KILL, or an errno. */
typedef int nth_decide(void *arg, unsigned n, const nth_call *call);

/* ---- names ---- */

#define NTH_NAME(call)                                                                   \
    {                                                                                    \
        __NR_##call, #call                                                               \
    }

/* Calls that a library for files makes. Which variants exist depends on the
 * architecture. */
static const struct {
    int number;
    const char *name;
} nth_names[] = {
    NTH_NAME(brk),
    NTH_NAME(close),
    NTH_NAME(fchmod),
    NTH_NAME(fdatasync),
    NTH_NAME(fsync),
    NTH_NAME(futex),
    NTH_NAME(getdents64),
    NTH_NAME(getrandom),
    NTH_NAME(ioctl),
    NTH_NAME(madvise),
    NTH_NAME(mprotect),
    NTH_NAME(mremap),
    NTH_NAME(munmap),
    NTH_NAME(read),
    NTH_NAME(readv),
    NTH_NAME(sync),
    NTH_NAME(syncfs),
    NTH_NAME(write),
    NTH_NAME(writev),
    {__NR_openat, "open"},
    {__NR_mkdirat, "mkdir"},
    {__NR_linkat, "link"},
    {__NR_symlinkat, "symlink"},
    {__NR_unlinkat, "unlink"},
    {__NR_renameat2, "rename"},
    {__NR_pread64, "pread"},
    {__NR_pwrite64, "pwrite"},
    {__NR_statx, "stat"},
#ifdef __NR_open
    NTH_NAME(open),
    NTH_NAME(mkdir),
    NTH_NAME(rmdir),
    NTH_NAME(link),
    NTH_NAME(unlink),
    NTH_NAME(rename),
#endif
#ifdef __NR_renameat
    {__NR_renameat, "rename"},
#endif
#ifdef __NR_mmap
    NTH_NAME(mmap),
#endif
#ifdef __NR_mmap2
    {__NR_mmap2, "mmap"},
#endif
#ifdef __NR_fcntl
    NTH_NAME(fcntl),
#endif
#ifdef __NR_fcntl64
    {__NR_fcntl64, "fcntl"},
#endif
#ifdef __NR_lseek
    NTH_NAME(lseek),
#endif
#ifdef __NR__llseek
    {__NR__llseek, "lseek"},
#endif
#ifdef __NR_ftruncate
    NTH_NAME(ftruncate),
#endif
#ifdef __NR_fstat
    {__NR_fstat, "stat"},
#endif
#ifdef __NR_newfstatat
    {__NR_newfstatat, "stat"},
#endif
#ifdef __NR_fstatat64
    {__NR_fstatat64, "stat"},
#endif
};

static inline const char *nth_name(int number)
{
    for (size_t i = 0; i < sizeof nth_names / sizeof *nth_names; i++)
        if (nth_names[i].number == number) return nth_names[i].name;
    return "?";
}

static inline int nth_is(const nth_call *call, const char *name)
{
    return strcmp(call->name, name) == 0;
}

/* Whether the call belongs to malloc, free or a sanitizer rather than to the function
 * itself. */
static inline int nth_is_memory(const nth_call *call)
{
    return nth_is(call, "brk") || nth_is(call, "mmap") || nth_is(call, "munmap") ||
           nth_is(call, "mremap") || nth_is(call, "mprotect") || nth_is(call, "madvise");
}

/* ---- the common decision ---- */

/* The call number `at` (0: none) gets the answer; all others happen. */
typedef struct nth_fault {
    unsigned at;
    int answer;
} nth_fault;

/* A sanitizer ends the program if its own memory calls fail, so these are let through if
 * there is a sanitizer; result.calls[at - 1].answer shows that. */
static inline int nth_at(void *arg, unsigned n, const nth_call *call)
{
    const nth_fault *fault = arg;
    if (n != fault->at) return NTH_GO;
    return NTH_SANITIZED && fault->answer > 0 && nth_is_memory(call) ? NTH_GO
                                                                     : fault->answer;
}

/* The number of the first call of that name after call number n; 0 if there is none. */
static inline unsigned nth_next(const nth_result *result, const char *name, unsigned n)
{
    for (; n < result->count && n < NTH_CALLS; n++)
        if (nth_is(&result->calls[n], name)) return n + 1;
    return 0;
}

/* ---- the child ---- */

/* A message between the processes: the descriptor of the listener, or the reason why
 * there is none. */
typedef struct nth_message {
    int failed;
    struct iovec part;
    struct msghdr header;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
} nth_message;

static inline void nth_message_init(nth_message *m, int failed, int with_descriptor)
{
    memset(m, 0, sizeof *m);
    m->failed = failed;
    m->part.iov_base = &m->failed;
    m->part.iov_len = sizeof m->failed;
    m->header.msg_iov = &m->part;
    m->header.msg_iovlen = 1;
    m->header.msg_control = with_descriptor ? m->control : NULL;
    m->header.msg_controllen = with_descriptor ? sizeof m->control : 0;
}

/* Installs the filter: all calls ask for a decision, except the end of the process and
 * the message that passes on the listener, which could not be answered. */
static inline int nth_install(int sock)
{
    const unsigned low = offsetof(struct seccomp_data, args) +
                         (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(unsigned) : 0);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sendmsg, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)sock, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
    long fd = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
                      SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return fd < 0 ? -errno : (int)fd;
}

/* Runs the function. The close of sock, the last call made here, starts the counting in
 * the parent. */
static inline void nth_child(int (*function)(void *), void *arg, int sock)
{
    nth_message m;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int listener = nth_install(sock);
    nth_message_init(&m, listener < 0 ? -listener : 0, listener >= 0);
    if (listener >= 0) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&m.header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof listener);
        memcpy(CMSG_DATA(c), &listener, sizeof listener);
    }
    syscall(__NR_sendmsg, sock, &m.header, 0);
    if (listener < 0) _exit(0);
    close(listener);
    close(sock);
    int status = function(arg);
    syscall(__NR_exit_group, status); /* a sanitizer's _exit makes its own calls */
}

/* ---- the parent ---- */

typedef struct nth_watch {
    pid_t child;
    int listener;
    int sock; /* socket to the child; -1 after it was closed, when calls count */
    struct seccomp_notif *request;
    struct seccomp_notif_resp *response;
    size_t request_size, response_size;
    nth_decide *decide;
    void *arg;
    nth_result *result;
} nth_watch;

/* Receives the descriptor of the listener; or -errno. */
static inline int nth_receive(int sock)
{
    nth_message m;
    int fd = -EPROTO;
    nth_message_init(&m, 0, 1);
    ssize_t n;
    do
        n = recvmsg(sock, &m.header, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof m.failed) return n < 0 ? -errno : -EPROTO;
    if (m.failed) return -m.failed;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m.header);
    if (c && c->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

static inline int nth_judge(nth_watch *w, const struct seccomp_data *data)
{
    if (w->sock >= 0) {
        if (data->nr == __NR_close && (int)data->args[0] == w->sock) w->sock = -1;
        return NTH_GO;
    }
    nth_call call = {.name = nth_name(data->nr), .number = data->nr};
    for (int i = 0; i < 6; i++)
        call.args[i] = data->args[i];
    call.answer = w->decide(w->arg, ++w->result->count, &call);
    if (w->result->count <= NTH_CALLS) w->result->calls[w->result->count - 1] = call;
    return call.answer;
}

/* Answers one request. 0, or an errno if the kernel does not support this. */
static inline int nth_answer(nth_watch *w)
{
    memset(w->request, 0, w->request_size);
    if (ioctl(w->listener, SECCOMP_IOCTL_NOTIF_RECV, w->request) != 0)
        return errno == ENOENT || errno == EINTR ? 0 : errno; /* the requester is gone */
    int answer = nth_judge(w, &w->request->data);
    if (answer == NTH_KILL) {
        kill(w->child, SIGKILL);
        return 0;
    }
    memset(w->response, 0, w->response_size);
    w->response->id = w->request->id;
    /* brk has no errors: it returns the current break, which is too low here, too. */
    w->response->error = w->request->data.nr == __NR_brk ? 0 : -answer;
    w->response->flags = answer == NTH_GO ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    if (ioctl(w->listener, SECCOMP_IOCTL_NOTIF_SEND, w->response) != 0 && errno != ENOENT)
        return errno;
    return 0;
}

/* Watches until the child has ended. The listener reports that only since Linux 5.9; on
 * older kernels, the status is polled. */
static inline int nth_watch_child(nth_watch *w)
{
    struct pollfd p = {w->listener, POLLIN, 0};
    for (;;) {
        int n = poll(&p, 1, 100), rc = 0;
        if (n > 0 && p.revents & POLLIN) rc = nth_answer(w);
        if (rc) {
            kill(w->child, SIGKILL);
            waitpid(w->child, &w->result->status, 0);
            return rc;
        }
        if (n > 0 && !(p.revents & POLLIN)) {
            waitpid(w->child, &w->result->status, 0);
            return 0;
        }
        if (n == 0 && waitpid(w->child, &w->result->status, WNOHANG) == w->child)
            return 0;
    }
}

static inline int nth_watch_alloc(nth_watch *w)
{
    struct seccomp_notif_sizes sizes;
    if (syscall(__NR_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return errno;
    /* The kernel's structures may be shorter or longer than those of this program. */
    w->request_size = sizes.seccomp_notif > sizeof *w->request ? sizes.seccomp_notif
                                                               : sizeof *w->request;
    w->response_size = sizes.seccomp_notif_resp > sizeof *w->response
                           ? sizes.seccomp_notif_resp
                           : sizeof *w->response;
    w->request = malloc(w->request_size);
    w->response = malloc(w->response_size);
    return w->request && w->response ? 0 : ENOMEM;
}

static inline int nth_start(nth_watch *w, int (*function)(void *), void *arg)
{
    int sock[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) != 0) return errno;
    w->sock = sock[1];
    w->child = fork();
    if (w->child == 0) {
        close(sock[0]);
        nth_child(function, arg, sock[1]);
    }
    int rc = w->child < 0 ? errno : 0;
    close(sock[1]);
    w->listener = rc ? -1 : nth_receive(sock[0]);
    close(sock[0]);
    ioctl(w->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    if (rc || w->listener >= 0) return rc;
    waitpid(w->child, NULL, 0);
    return -w->listener;
}

/* Runs function(arg), which returns 0 to 255, to its end. 0, or an errno if this is not
 * possible here: the test must be skipped. */
static inline int nth_run(int (*function)(void *), void *arg, nth_decide *decide,
                          void *decide_arg, nth_result *result)
{
    nth_watch w = {.decide = decide, .arg = decide_arg, .result = result};
    memset(result, 0, sizeof *result);
    int rc = nth_watch_alloc(&w);
    if (!rc) rc = nth_start(&w, function, arg);
    if (!rc) {
        rc = nth_watch_child(&w);
        close(w.listener);
    }
    free(w.request);
    free(w.response);
    return rc;
}

/* Whether the child was killed. */
static inline int nth_was_killed(const nth_result *result)
{
    return WIFSIGNALED(result->status) && WTERMSIG(result->status) == SIGKILL;
}

/* Returns the return value of the function, or -1. */
static inline int nth_returned(const nth_result *result)
{
    return WIFEXITED(result->status) ? WEXITSTATUS(result->status) : -1;
}

#endif
