/* SPDX-License-Identifier: BSD-3-Clause */
/* The claim is a socket with an abstract name, which the kernel gives to one process, and
 * takes back when that has ended; see sole.h. */
#include "run/sole.h"

#include "common/crc32.h"
#include "common/io.h"
#include "lib/tool.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ATTEMPTS = 10 }; /* the other one may be about to begin, or to end */

static socklen_t make_name(const tool_prefix *prefix, const tool_owner *owner,
                           struct sockaddr_un *name)
{
    char folder[TOOL_PATH_SIZE];
    snprintf(folder, sizeof folder, "%s/%s/scr.%s",
             scr_config_get(&prefix->config, "SCR_CNTL_BASE", NULL), owner->user,
             owner->job);
    uint32_t crc = crc32_add(0, folder, strlen(folder) + 1);
    crc = crc32_add(crc, prefix->path, strlen(prefix->path));
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(name->sun_path + 1, sizeof name->sun_path - 1,
                     "scr_run.%lu.%08x.%.64s", (unsigned long)geteuid(), crc, owner->job);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* The process that has the claim; 0: none, or one of somebody else, who cannot stop us.
 */
static pid_t find_holder(const struct sockaddr_un *name, socklen_t size)
{
    struct ucred other = {.pid = 0};
    socklen_t length = sizeof other;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)name, size) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length) != 0 ||
        other.uid != geteuid())
        other.pid = 0;
    io_close(&fd);
    return other.pid;
}

int sole_claim(const tool_prefix *prefix, const tool_owner *owner, int *claim)
{
    struct sockaddr_un name;
    socklen_t size = make_name(prefix, owner, &name);
    *claim = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && bind(fd, (const struct sockaddr *)&name, size) == 0 &&
            listen(fd, 1) == 0) {
            *claim = fd;
            return COMMAND_GOOD;
        }
        io_close(&fd);
        pid_t holder = find_holder(&name, size);
        if (holder)
            return tool_complain("process %ld is a scr_run of job %s in this prefix "
                                 "folder, and may still save what its program left in "
                                 "the caches; start this one when that has ended",
                                 (long)holder, owner->job);
        usleep(1000);
    }
    return COMMAND_GOOD;
}
