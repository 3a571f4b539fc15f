/* SPDX-License-Identifier: BSD-3-Clause */
/* Removal of temporary files of processes that died before the commit; see batch.h. */
#include "common/batch.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool batch_is_drawn(const char *name)
{
    return name[0] == '.' && strspn(name + 1, "0123456789abcdef") == 16 &&
           strcmp(name + 17, ".tmp") == 0;
}

int batch_remove_abandoned(int dir, const char *name)
{
    if (!batch_is_drawn(name)) return 0;
    int fd = io_open(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) return fd == -ENOENT || fd == -ELOOP ? 0 : fd;
    struct stat st;
    bool abandoned = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                     io_lock(fd, F_OFD_SETLK, F_WRLCK) == 0;
    int rc = !abandoned ? 0 : unlinkat(dir, name, 0) == 0 ? 1 : -errno;
    io_close(&fd);
    return rc == -ENOENT ? 0 : rc;
}

int batch_sweep(int dir, kvtree_error *err)
{
    int first = 0;
    DIR *stream = beneath_list(dir);
    if (!stream) return err_sys(err, -errno, "list the directory");
    const struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        int rc = batch_remove_abandoned(dir, entry->d_name);
        if (rc < 0 && !first) first = err_sys(err, rc, "remove %s", entry->d_name);
    }
    closedir(stream);
    return first;
}
