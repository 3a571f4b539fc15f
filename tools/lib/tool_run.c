/* SPDX-License-Identifier: BSD-3-Clause */
/* Another program, with a time limit; see tool_run.h. */
#include "lib/tool_run.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE 65536

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In a process group of its own, so that all of it can be killed. Gives -errno. */
static int start(const char *const argv[], int out, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc) return -rc;
    rc = posix_spawnattr_init(&attributes);
    if (!rc) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setpgroup(&attributes, 0);
        rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        if (!rc) rc = posix_spawn_file_actions_adddup2(&actions, out, 1);
        if (!rc)
            rc = posix_spawnp(child, argv[0], &actions, &attributes, (char *const *)argv,
                              environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

/* All that comes, until its end. 0, -ETIMEDOUT or another -errno. */
static int collect(int in, double deadline, FILE *text)
{
    char piece[PIECE];
    size_t size = 0;
    for (;;) {
        struct pollfd ready = {.fd = in, .events = POLLIN};
        double left = deadline - now();
        int rc = left > 0 ? poll(&ready, 1, (int)(left * 1000) + 1) : 0;
        if (rc < 0 && errno == EINTR) continue;
        if (rc <= 0) return rc ? -errno : -ETIMEDOUT;
        ssize_t n = read(in, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? -errno : 0;
        size += (size_t)n;
        if (size > TOOL_RUN_OUTPUT) return -EFBIG;
        if (fwrite(piece, 1, (size_t)n, text) != (size_t)n) return -ENOMEM;
    }
}

/* Its status; -ETIMEDOUT while it goes on. */
static int await(pid_t child, double deadline, int *status)
{
    static const struct timespec moment = {.tv_nsec = 2000000};
    for (;;) {
        pid_t done = waitpid(child, status, WNOHANG);
        if (done == child) return 0;
        if (done < 0 && errno != EINTR) return -errno;
        if (now() > deadline) return -ETIMEDOUT;
        nanosleep(&moment, NULL);
    }
}

static int finish(pid_t child, int rc, double deadline, const char *name, char *err)
{
    int status = 0;
    if (!rc) rc = await(child, deadline, &status);
    if (rc) {
        kill(-child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        return err_sys(err, rc, "%s", name);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    if (WIFEXITED(status))
        return err_set(err, -EIO, "%s: exit code %d", name, WEXITSTATUS(status));
    return err_set(err, -EIO, "%s: ended by signal %d", name, WTERMSIG(status));
}

int tool_run(const char *const argv[], double seconds, char **output, char *err)
{
    int ends[2];
    char *text = NULL;
    size_t size;
    pid_t child;
    double deadline = now() + seconds;
    if (pipe2(ends, O_CLOEXEC) != 0) return err_sys(err, -errno, "%s: pipe", argv[0]);
    FILE *memory = open_memstream(&text, &size);
    int rc = memory ? start(argv, ends[1], &child) : -ENOMEM;
    io_close(&ends[1]);
    if (rc) {
        err_sys(err, rc, "%s", argv[0]);
    } else {
        rc = collect(ends[0], deadline, memory);
        rc = finish(child, rc, deadline, argv[0], err);
    }
    io_close(&ends[0]);
    if (memory && fclose(memory) != 0 && !rc) rc = err_set(err, -ENOMEM, "no memory");
    if (rc)
        free(text);
    else
        *output = text;
    return rc;
}
