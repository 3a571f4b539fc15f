/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCRATCH_H
#define SCRATCH_H

/* A directory for each test, in memory if /dev/shm exists, so that thousands of fsyncs
 * take no time. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static inline int make_folder(void **state)
{
    strcpy(folder, "/dev/shm/scr-test-XXXXXX");
    if (mkdtemp(folder)) return 0;
    strcpy(folder, "/tmp/scr-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* The result is valid for the next seven calls. */
static inline const char *in_folder(const char *name)
{
    static char path[8][128];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* Returns the number of files in the directory; empty: removes them. */
static inline int files_in_folder(int empty)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return -1;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        count++;
        if (empty) unlinkat(dirfd(dir), e->d_name, 0);
    }
    closedir(dir);
    return count;
}

#endif
