/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes below this one; see processes.h. */
#include "lib/processes.h"

#include "common/io.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENVIRONMENT = 1 << 20 /* bytes of one that is read */ };

typedef struct process {
    pid_t pid, parent;
    int ours, known, dead;
    char name[32];
} process;

typedef struct processes {
    int count, room;
    process *list;
} processes;

int processes_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? 0 : -errno;
}

/* ---- what /proc tells ---- */

static ssize_t read_proc(pid_t pid, const char *what, char *text, size_t size)
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

/* "17 (name) S 16 ..."; 0 when it has ended meanwhile. */
static int parse(pid_t pid, process *p)
{
    char text[512], state;
    long parent;
    if (read_proc(pid, "stat", text, sizeof text) <= 0) return 0;
    char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || end < name || sscanf(end + 1, " %c %ld", &state, &parent) != 2)
        return 0;
    *end = 0;
    *p = (process){.pid = pid, .parent = (pid_t)parent, .dead = state == 'Z'};
    snprintf(p->name, sizeof p->name, "%s", name + 1);
    return 1;
}

static int add(processes *all, pid_t pid)
{
    if (all->count == all->room) {
        int room = 2 * all->room + 64;
        process *list = realloc(all->list, (size_t)room * sizeof *list);
        if (!list) return -ENOMEM;
        all->list = list;
        all->room = room;
    }
    all->count += parse(pid, &all->list[all->count]);
    return 0;
}

/* Those below that one, and below those that are marked already. */
static void mark_ours(processes *all, pid_t self)
{
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 0; i < all->count; i++) {
            process *p = &all->list[i];
            if (p->ours) continue;
            p->ours = p->parent == self;
            for (int k = 0; k < all->count && !p->ours; k++)
                p->ours = all->list[k].ours && all->list[k].pid == p->parent;
            changed |= p->ours;
        }
    }
}

/* All processes that one can see. */
static int list_all(processes *all)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    int rc = proc ? 0 : -errno;
    while (proc && !rc && (entry = readdir(proc)) != NULL) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 1) rc = add(all, (pid_t)pid);
    }
    if (proc) closedir(proc);
    return rc;
}

/* ---- which are meant ---- */

static int has_variable(const char *environment, size_t size, const char *wanted)
{
    for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
        if (strcmp(at, wanted) == 0) return 1;
    return 0;
}

static int is_meant(const process *p, const processes_filter *filter, char *buffer)
{
    if (!p->ours || p->dead) return 0;
    /* the kernel cuts names */
    if (filter->spared && strncmp(p->name, filter->spared, 15) == 0) return 0;
    if (!filter->variables[0]) return 1;
    ssize_t n = read_proc(p->pid, "environ", buffer, ENVIRONMENT);
    for (int i = 0; filter->variables[i]; i++)
        if (n <= 0 || !has_variable(buffer, (size_t)n, filter->variables[i])) return 0;
    return 1;
}

int processes_signal(const processes_filter *filter, int signal)
{
    processes all = {0, 0, NULL};
    char *buffer = malloc(ENVIRONMENT);
    int rc = buffer ? list_all(&all) : -ENOMEM, count = 0;
    mark_ours(&all, getpid());
    for (int i = 0; i < all.count && !rc; i++)
        if (is_meant(&all.list[i], filter, buffer))
            count += kill(all.list[i].pid, signal) == 0;
    free(all.list);
    free(buffer);
    return rc ? rc : count;
}

/* ---- below another one ---- */

/* Those that have not ended, whose numbers are still their own. */
static void mark_known(processes *all, const processes_below *below)
{
    for (int k = 0; k < below->count; k++) {
        struct pollfd ended = {.fd = below->list[k].fd, .events = POLLIN};
        if (poll(&ended, 1, 0) != 0) continue;
        for (int i = 0; i < all->count; i++)
            if (all->list[i].pid == below->list[k].pid)
                all->list[i].ours = all->list[i].known = 1;
    }
}

static int add_below(processes_below *below, pid_t pid)
{
    if (below->count == below->room) {
        int room = 2 * below->room + 16;
        void *list = realloc(below->list, (size_t)room * sizeof *below->list);
        if (!list) return 0;
        below->list = list;
        below->room = room;
    }
    long fd = syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) return 0;
    below->list[below->count++] = (struct process_below){pid, (int)fd};
    return 1;
}

int processes_look_below(pid_t pid, processes_below *below)
{
    processes all = {0, 0, NULL};
    int added = 0;
    list_all(&all);
    mark_known(&all, below);
    mark_ours(&all, pid);
    for (int i = 0; i < all.count; i++) {
        const process *p = &all.list[i];
        if (p->ours && !p->known && !p->dead) added += add_below(below, p->pid);
    }
    free(all.list);
    return added;
}

void processes_signal_below(const processes_below *below, int signal)
{
    for (int i = 0; i < below->count; i++)
        syscall(SYS_pidfd_send_signal, below->list[i].fd, signal, NULL, 0);
}

void processes_forget_below(processes_below *below)
{
    for (int i = 0; i < below->count; i++)
        io_close(&below->list[i].fd);
    free(below->list);
    *below = (processes_below){0};
}

void processes_reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

int processes_end(const processes_filter *filter, double seconds)
{
    static const struct timespec moment = {.tv_nsec = 10000000};
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        int n = processes_signal(filter, SIGKILL);
        if (n <= 0) return n;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)(now.tv_sec - begin.tv_sec) > seconds) return -ETIMEDOUT;
        nanosleep(&moment, NULL);
    }
}
