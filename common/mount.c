/* SPDX-License-Identifier: BSD-3-Clause */
/* The user who mounted a file system; see mount.h. */
#include "common/mount.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

/* Format of a line: "... <major>:<minor> ... - <type> <source> <options>". Users choose
 * the source, and the part of the type after "fuse.". */
uid_t mount_user_of(const char *line, dev_t device)
{
    char id[32];
    unsigned long user;
    snprintf(id, sizeof id, " %u:%u ", major(device), minor(device));
    const char *found = strstr(line, id), *type = strstr(line, " - ");
    if (!found || !type || found > type) return (uid_t)-1;
    if (strncmp(type, " - virtiofs ", strlen(" - virtiofs ")) == 0) return 0;
    const char *options = strchr(type + 3, ' ');
    options = options ? strchr(options + 1, ' ') : NULL;
    const char *option = options ? strstr(options, ",user_id=") : NULL;
    return option && sscanf(option, ",user_id=%lu", &user) == 1 ? (uid_t)user : (uid_t)-1;
}

static uid_t mount_user(dev_t device)
{
    char *line = NULL;
    size_t size = 0;
    uid_t user = (uid_t)-1;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    while (user == (uid_t)-1 && mounts && getline(&line, &size, mounts) >= 0)
        user = mount_user_of(line, device);
    if (mounts) fclose(mounts);
    free(line);
    return user;
}

int mount_owner(int fd, const struct stat *st, uid_t *owner)
{
    enum { FUSE = 0x65735546 }; /* statfs(2) */
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0) return -errno;
    *owner = fs.f_type == FUSE ? mount_user(st->st_dev) : 0;
    if (*owner == 0) *owner = st->st_uid;
    return 0;
}
