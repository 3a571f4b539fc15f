/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls of the product for processes, and other facilities of a node besides files
 * and clocks; see libc.cpp. */
#include "libc.h"

#include "engine.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using sim::Fate;
using sim::Machine;
using sim::Process;

static Process &me()
{
    return Machine::self();
}

extern "C" {

/* ---- processes ---- */

pid_t simulated_getpid(void)
{
    return me().pid;
}

uid_t simulated_geteuid(void)
{
    return 1000;
}

ssize_t simulated_getrandom(void *buf, size_t size, unsigned)
{
    auto *byte = static_cast<unsigned char *>(buf);
    for (size_t i = 0; i < size; i++)
        byte[i] = static_cast<unsigned char>(me().machine->random.next() >> 40);
    return static_cast<ssize_t>(size);
}

struct passwd *simulated_getpwuid(uid_t user)
{
    static char name[] = "user", home[] = "/home", shell[] = "/bin/sh", none[] = "";
    static struct passwd entry;
    entry = {name, none, user, 1000, none, home, shell};
    return &entry;
}

struct passwd *simulated_getpwnam(const char *)
{
    return simulated_getpwuid(1000);
}

int simulated_getpwuid_r(uid_t user, struct passwd *entry, char *, size_t,
                         struct passwd **found)
{
    *entry = *simulated_getpwuid(user);
    *found = entry;
    return 0;
}

int simulated_getgrgid_r(gid_t group, struct group *entry, char *, size_t,
                         struct group **found)
{
    static char name[] = "group", none[] = "";
    static char *members[] = {nullptr};
    *entry = {name, none, group, members};
    *found = entry;
    return 0;
}

int simulated_getgrouplist(const char *, gid_t group, gid_t *groups, int *count)
{
    *groups = group;
    return *count = 1;
}

/* There is no /etc/passwd: no other user has the group. */
FILE *simulated_fopen64(const char *, const char *)
{
    errno = ENOENT;
    return nullptr;
}

int simulated_fgetpwent_r(FILE *, struct passwd *, char *, size_t, struct passwd **found)
{
    *found = nullptr;
    return ENOENT;
}

int simulated_sigaction(int, const struct sigaction *, struct sigaction *before)
{
    if (before) memset(before, 0, sizeof *before);
    return 0;
}

int simulated_pthread_sigmask(int, const sigset_t *, sigset_t *)
{
    return 0;
}

long simulated_sysconf(int name)
{
    return name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? 4
                                                                        : sysconf(name);
}

int simulated_sched_getaffinity(pid_t, size_t, cpu_set_t *)
{
    errno = ENOSYS;
    return -1;
}

int simulated_memfd_create(const char *, unsigned)
{
    errno = ENOSYS;
    return -1;
}

/* A process may keep created files open below 512, half of FD_SETSIZE, if half of the
 * limit is more: from Files::FIRST on these are a few. */
int simulated_getrlimit64(int, struct rlimit *limit)
{
    *limit = {2048, 2048};
    return 0;
}

/* The actor becomes the child; its starter sees the parent end successfully. */
pid_t simulated_fork(void)
{
    me().detached = true;
    return 0;
}

int simulated_posix_spawnp(pid_t *pid, const char *path,
                           const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const arguments[], char *const *)
{
    Process &p = me();
    std::vector<std::string> words;
    for (char *const *a = arguments; *a; a++)
        words.push_back(*a);
    Fate fate = p.machine->enter({"spawn", path, false, false, false});
    if (fate.error) return -fate.error;
    Process &child =
        p.machine->spawn(*p.node, words[0], p.environment, p.job, -1,
                         [words](Process &) { return sim::run_command(words); });
    *pid = child.pid;
    return 0;
}

pid_t simulated_waitpid(pid_t pid, int *status, int options)
{
    for (;;) {
        for (const auto &child : me().machine->processes) {
            if (child->pid != pid) continue;
            if (!child->ended && !child->detached) continue;
            *status = child->detached ? 0 : child->status;
            return pid;
        }
        if (options & WNOHANG) return 0;
        simulated_usleep(1000);
    }
}

int simulated_kill(pid_t pid, int)
{
    for (const auto &p : me().machine->processes)
        if (p->pid == pid && p->node == me().node) {
            p->machine->kill(*p);
            return 0;
        }
    errno = ESRCH;
    return -1;
}

void simulated_exit(int status)
{
    me().status = status << 8;
    me().machine->end(me());
    simgrid::s4u::this_actor::exit();
}

/* ---- facilities that a node does not have ---- */

int simulated_socket(int, int, int)
{
    errno = EAFNOSUPPORT;
    return -1;
}

int simulated_connect(int, const struct sockaddr *, socklen_t)
{
    errno = ENOTSOCK;
    return -1;
}

ssize_t simulated_sendmsg(int, const struct msghdr *, int)
{
    errno = ENOTSOCK;
    return -1;
}

int simulated_fileno(FILE *)
{
    return 2;
}

int simulated_isatty(int)
{
    return 0;
}

/* ---- the environment ---- */

char *simulated_getenv(const char *name)
{
    const size_t length = strlen(name);
    for (char *entry : me().environ)
        if (entry && strncmp(entry, name, length) == 0 && entry[length] == '=')
            return entry + length + 1;
    return nullptr;
}

int simulated_gethostname(char *name, size_t size)
{
    snprintf(name, size, "%s", me().node->name.c_str());
    return 0;
}

} // extern "C"
