/* SPDX-License-Identifier: BSD-3-Clause */
/* Syslog; see report/log.h. The datagrams are sent from here rather than by syslog(3):
 * that waits for a daemon that does not keep up, and its openlog belongs to the
 * application.
 */
#include "report/log_private.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* Set by -Dc_args of the build. */
#ifndef SCR_LOG_SYSLOG_FACILITY
#define SCR_LOG_SYSLOG_FACILITY LOG_LOCAL7
#endif
#ifndef SCR_LOG_SYSLOG_LEVEL
#define SCR_LOG_SYSLOG_LEVEL LOG_INFO
#endif
#ifndef SCR_LOG_SYSLOG_PREFIX
#define SCR_LOG_SYSLOG_PREFIX "SCR"
#endif

int scr_log_syslog_open(scr_log_syslog *target, const char *path, char *err)
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

/* "<190>Nov 21 21:40:27 SCR[77]: ", as daemons expect it on their socket. */
static int make_header(char *header, size_t size)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm = {0};
    time_t now = time(NULL);
    localtime_r(&now, &tm);
    return snprintf(header, size, "<%d>%s %2d %02d:%02d:%02d %s[%ld]: ",
                    SCR_LOG_SYSLOG_FACILITY | SCR_LOG_SYSLOG_LEVEL, months[tm.tm_mon],
                    tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, SCR_LOG_SYSLOG_PREFIX,
                    (long)getpid());
}

static int send_parts(int fd, struct iovec parts[2])
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n;
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int scr_log_syslog_write(scr_log_syslog *target, const char *line, size_t size, char *err)
{
    char header[256];
    int n = make_header(header, sizeof header), fresh = target->fd < 0;
    int rc = fresh ? scr_log_syslog_open(target, target->path, err) : 0;
    if (rc) return rc;
    const char *space = memchr(line, ' ', size); /* behind the time */
    if (space) {
        size -= (size_t)(space + 1 - line);
        line = space + 1;
    }
    struct iovec parts[2] = {{header, (size_t)n}, {(void *)(uintptr_t)line, size - 1}};
    rc = send_parts(target->fd, parts);
    if (rc && rc != -EAGAIN && rc != -EMSGSIZE && !fresh) {
        io_close(&target->fd); /* the daemon was started anew */
        rc = scr_log_syslog_open(target, target->path, err);
        if (rc) return rc;
        rc = send_parts(target->fd, parts);
    }
    return rc ? err_sys(err, rc, "send to %s", target->path) : 0;
}

void scr_log_syslog_close(scr_log_syslog *target)
{
    io_close(&target->fd);
}
