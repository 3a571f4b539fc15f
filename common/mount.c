/* SPDX-License-Identifier: BSD-3-Clause */
/* Who mounted a file system; see mount.h. */
#include "common/mount.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

/* The options of the file system in a line of /proc/self/mountinfo, which is of that
 * device: "... <major>:<minor> ... - <type> <source> <options>". Users choose the source,
 * and a part of the type. */
static const char *mount_options(const char *line, dev_t device)
{
    char id[32];
    snprintf(id, sizeof id, " %u:%u ", major(device), minor(device));
    const char *found = strstr(line, id), *options = strstr(line, " - ");
    if (!found || !options || found > options) return NULL;
    options = strchr(options + 3, ' ');
    return options ? strchr(options + 1, ' ') : NULL;
}

static uid_t mount_user(dev_t device)
{
    char *line = NULL;
    size_t size = 0;
    uid_t user = (uid_t)-1;
    unsigned long number;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    while (user == (uid_t)-1 && mounts && getline(&line, &size, mounts) >= 0) {
        const char *options = mount_options(line, device);
        const char *option = options ? strstr(options, ",user_id=") : NULL;
        if (option && sscanf(option, ",user_id=%lu", &number) == 1) user = (uid_t)number;
    }
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
