/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COUNTER_H
#define COUNTER_H

/* A number in a file that several processes increment under its lock. Include after
 * cmocka.h. */

#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* 0 for an empty tree. */
static inline int number_of(const kvtree *tree)
{
    int number = 0;
    kvtree_util_get_int(tree, "NUMBER", &number);
    return number;
}

static inline kvtree *tree_of(int number)
{
    kvtree *tree = kvtree_new();
    kvtree_util_set_int(tree, "NUMBER", number);
    return tree;
}

/* The number, or -errno. */
static inline int number_in(const char *path)
{
    kvtree *tree = kvtree_new();
    int rc = kvtree_read_file(path, tree);
    int number = rc ? rc : number_of(tree);
    kvtree_delete(&tree);
    return number;
}

/* Writes the number without the lock. */
static inline int put_number(const char *path, int number)
{
    kvtree *tree = tree_of(number);
    int rc = kvtree_write_file(path, tree);
    kvtree_delete(&tree);
    return rc;
}

/* Adds one to the number in the file, which may be missing. */
static inline int increment(const char *path)
{
    int fd = -1;
    kvtree *tree = kvtree_new();
    int rc = kvtree_lock_open_read(path, &fd, tree);
    if (!rc) {
        kvtree_util_set_int(tree, "NUMBER", number_of(tree) + 1);
        rc = kvtree_write_close_unlock(path, &fd, tree);
    }
    kvtree_delete(&tree);
    return rc;
}

/* Locks the file. Returns the descriptor, or -1. */
static inline int lock(const char *path)
{
    int fd = -1;
    kvtree *tree = kvtree_new();
    kvtree_lock_open_read(path, &fd, tree);
    kvtree_delete(&tree);
    return fd;
}

/* Returns 0, or -EAGAIN if another process has a conflicting lock. */
static inline int try_lock(const char *path, short type)
{
    struct flock all = {.l_type = type, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int rc = fd < 0 || fcntl(fd, F_OFD_SETLK, &all) != 0 ? -errno : 0;
    if (fd >= 0) close(fd);
    return rc;
}

/* ---- processes ---- */

static inline pid_t start_incrementing(const char *path, int times)
{
    pid_t child = fork();
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (times > 0 && increment(path) == 0)
        times--;
    _exit(times != 0);
}

/* Waits for the end of a child, which must succeed. */
static inline void join(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Returns 1 if the kernel lists a process that waits for a lock on that file. */
static inline int is_waited_for(ino_t inode)
{
    char line[256], number[32];
    int found = 0;
    FILE *locks = fopen("/proc/locks", "r");
    snprintf(number, sizeof number, ":%llu ", (unsigned long long)inode);
    while (locks && !found && fgets(line, sizeof line, locks))
        found = strstr(line, "->") && strstr(line, number);
    if (locks) fclose(locks);
    return found;
}

/* Waits until the child waits for the lock on that file, or has ended. */
static inline void until_waiting(pid_t child, ino_t inode)
{
    const struct timespec nap = {0, 200000};
    siginfo_t info = {0};
    while (access("/proc/locks", R_OK) == 0 && !is_waited_for(inode) && !info.si_pid) {
        nanosleep(&nap, NULL);
        waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
    }
}

static inline ino_t inode_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? st.st_ino : 0;
}

#endif
