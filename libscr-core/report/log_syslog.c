/* SPDX-License-Identifier: BSD-3-Clause */
/* Syslog; see report/log.h. This file sends the datagrams itself: syslog(3) waits for a
 * daemon that does not keep up, and its openlog is reserved for the application. */
#include "report/log_private.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int scr_log_syslog_open(scr_log_syslog *target, const char *path, kvtree_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    target->path = path;
    target->fd = -1;
    if (strlen(path) >= sizeof address.sun_path)
        return err_sys(err, -ENAMETOOLONG, "connect %.200s", path);
    strcpy(address.sun_path, path);
    target->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (target->fd < 0) return err_sys(err, -errno, "socket");
    if (connect(target->fd, (struct sockaddr *)&address, sizeof address) == 0) return 0;
    int rc = err_sys(err, -errno, "connect %s", path);
    io_close(&target->fd);
    return rc;
}

/* Writes "<190>Nov 21 21:40:27 SCR[77]: ", the form that daemons expect on their
 * socket. */
static int log_syslog_header(const scr_log_settings *set, char *header, size_t size)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm = {0};
    time_t now = time(NULL);
    localtime_r(&now, &tm);
    return snprintf(header, size,
                    "<%d>%s %2d %02d:%02d:%02d %s[%ld]: ", set->syslog_priority,
                    months[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                    set->syslog_prefix, (long)getpid());
}

static int log_syslog_send(int fd, struct iovec parts[2])
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n;
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int scr_log_syslog_write(scr_log_syslog *target, const scr_log_settings *set,
                         const char *line, size_t size, kvtree_error *err)
{
    char header[256];
    int n = log_syslog_header(set, header, sizeof header), rc = -ENOTCONN;
    const char *space = memchr(line, ' ', size); /* after the time */
    size_t skipped = space ? (size_t)(space + 1 - line) : 0;
    struct iovec parts[2] = {{header, (size_t)n},
                             {(void *)(uintptr_t)(line + skipped), size - skipped - 1}};
    if (target->fd >= 0) rc = log_syslog_send(target->fd, parts);
    if (rc && rc != -EAGAIN && rc != -EMSGSIZE) { /* the daemon was restarted */
        io_close(&target->fd);
        rc = scr_log_syslog_open(target, target->path, err);
        if (rc) return rc;
        rc = log_syslog_send(target->fd, parts);
    }
    return rc ? err_sys(err, rc, "send to %s", target->path) : 0;
}
