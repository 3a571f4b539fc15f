/* SPDX-License-Identifier: BSD-3-Clause */
/* Descendants of this process, as /proc lists them; see processes.h. */
#include "lib/processes.h"

#include "common/array.h"
#include "common/io.h"
#include "lib/tool_process.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENVIRONMENT = 1 << 20 /* maximum bytes of an environment that are read */ };

typedef struct process {
    pid_t pid, parent, group;
    uint64_t start;
    bool selected, dead;
    char name[32];
} process;

typedef struct processes {
    int count;
    process *list;
} processes;

int processes_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? 0 : -errno;
}

void processes_reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

/* ---- what /proc lists ---- */

static ssize_t processes_read(pid_t pid, const char *what, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
    int fd = io_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return fd;
    ssize_t n = io_read(fd, text, size - 1);
    io_close(&fd);
    if (n >= 0) text[n] = 0;
    return n;
}

/* Parses "17 (name) S 16 15 ..."; false if the process has ended meanwhile. The name may
 * contain any character. */
static bool processes_parse(pid_t pid, process *p)
{
    char text[1024], state;
    long parent, group;
    unsigned long long start;
    if (processes_read(pid, "stat", text, sizeof text) <= 0) return false;
    char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || end < name ||
        sscanf(end + 1,
               " %c %ld %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%*s %llu",
               &state, &parent, &group, &start) != 4)
        return false;
    *end = 0;
    *p = (process){.pid = pid,
                   .parent = (pid_t)parent,
                   .group = (pid_t)group,
                   .start = start,
                   .dead = state == 'Z' || state == 'X'};
    snprintf(p->name, sizeof p->name, "%s", name + 1);
    return true;
}

int processes_start_time(pid_t pid, uint64_t *start)
{
    process p;
    if (!processes_parse(pid, &p) || p.dead) return -ESRCH;
    *start = p.start;
    return 0;
}

static int processes_add(processes *all, pid_t pid)
{
    process *list = array_grow(all->list, (size_t)all->count, sizeof *list);
    if (!list) return -ENOMEM;
    all->list = list;
    all->count += processes_parse(pid, &all->list[all->count]);
    return 0;
}

static int processes_list(processes *all)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    int rc = proc ? 0 : -errno;
    while (proc && !rc && (entry = readdir(proc)) != NULL) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 1 && pid != getpid()) rc = processes_add(all, (pid_t)pid);
    }
    if (proc) closedir(proc);
    return rc;
}

/* ---- selection ---- */

static bool processes_has_variable(const char *environment, size_t size,
                                   const char *wanted)
{
    for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
        if (strcmp(at, wanted) == 0) return true;
    return false;
}

/* Whether the filter selects the process itself, regardless of its ancestors. */
static bool processes_is_named(const process *p, const processes_filter *filter,
                               char *buffer)
{
    if (!filter->variables[0]) return p->parent == getpid();
    ssize_t n = processes_read(p->pid, "environ", buffer, ENVIRONMENT);
    for (int i = 0; filter->variables[i]; i++)
        if (n <= 0 || !processes_has_variable(buffer, (size_t)n, filter->variables[i]))
            return false;
    return true;
}

static void processes_select(processes *all, const processes_filter *filter, char *buffer)
{
    for (int i = 0; i < all->count; i++)
        all->list[i].selected = processes_is_named(&all->list[i], filter, buffer);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < all->count; i++) {
            process *p = &all->list[i];
            for (int k = 0; k < all->count && !p->selected; k++)
                changed |= p->selected =
                    all->list[k].selected && all->list[k].pid == p->parent;
        }
    }
}

int processes_signal(const processes_filter *filter, int signal)
{
    processes all = {.list = NULL};
    char *buffer = malloc(ENVIRONMENT);
    int rc = buffer ? processes_list(&all) : -ENOMEM, count = 0;
    if (!rc) processes_select(&all, filter, buffer);
    for (int i = 0; i < all.count && !rc; i++) {
        const process *p = &all.list[i];
        if (!p->selected || p->dead || p->group == filter->group) continue;
        /* the kernel truncates names to 15 bytes */
        if (filter->spared && strncmp(p->name, filter->spared, 15) == 0) continue;
        count += kill(p->pid, signal) == 0;
    }
    free(all.list);
    free(buffer);
    return rc ? rc : count;
}

const char *processes_reason(int rc)
{
    return rc == -ETIMEDOUT ? "they do not end" : strerror(-rc);
}

int processes_end(const processes_filter *filter, double seconds)
{
    static const struct timespec moment = {.tv_nsec = 10000000};
    double until = tool_now() + seconds;
    for (;;) {
        int n = processes_signal(filter, SIGKILL);
        if (n <= 0) return n;
        if (tool_now() > until) return -ETIMEDOUT;
        nanosleep(&moment, NULL);
    }
}
