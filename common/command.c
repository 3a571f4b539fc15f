/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and exit codes of all commands; see command.h. */
#include "common/command.h"

#include "common/quote.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 2048 };

const char *command_self(void)
{
    return program_invocation_short_name;
}

void command_open_streams(void)
{
    /* open returns the lowest free number */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* ---- readers ---- */

static void command_ignore_signal(int number)
{
    (void)number;
}

void command_outlive_reader(void)
{
    struct sigaction action = {.sa_handler = command_ignore_signal,
                               .sa_flags = SA_RESTART};
    sigaction(SIGPIPE, &action, NULL);
}

/* Whether standard output has no reader, and needs none. */
static bool command_is_outlived(void)
{
    struct sigaction action;
    struct pollfd out = {.fd = STDOUT_FILENO};
    return sigaction(SIGPIPE, NULL, &action) == 0 &&
           action.sa_handler == command_ignore_signal && poll(&out, 1, 0) == 1 &&
           (out.revents & (POLLERR | POLLHUP)) != 0;
}

/* ---- messages and usage ---- */

int command_complain_list(const char *identifier, const char *word, const char *format,
                          va_list list)
{
    char text[LINE_SIZE];
    vsnprintf(text, sizeof text, format, list);
    fprintf(stderr, "%s: %s", command_self(), word);
    quote_text(stderr, text, "");
    fprintf(stderr, " [%s]\n", identifier);
    return COMMAND_BAD;
}

int command_complain(const char *identifier, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int code = command_complain_list(identifier, "", format, list);
    va_end(list);
    return code;
}

int command_write_failed(int error)
{
    if (command_is_outlived()) return COMMAND_GOOD;
    return command_complain("OUTPUT_LOST", "write: %s", strerror(error));
}

int command_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return COMMAND_GOOD;
    return command_write_failed(errno ? errno : EIO);
}

void command_usage(FILE *out, const char *arguments)
{
    fprintf(out, "usage: %s %s\n", command_self(), arguments);
}

/* The identifier is on this line, or on a line before it. */
static int command_show_usage(const char *arguments, const char *identifier)
{
    command_usage(stderr, arguments);
    fprintf(stderr, "Try '%s --help'.%s\n", command_self(), identifier);
    return COMMAND_WRONG_USAGE;
}

int command_wrong_usage(const char *arguments)
{
    return command_show_usage(arguments, " [USAGE_WRONG]");
}

int command_misused(const char *arguments, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    command_complain_list("USAGE_WRONG", "", format, list);
    va_end(list);
    return command_show_usage(arguments, "");
}

int command_count(const char *usage, int count, int least, int most)
{
    if (count >= least && (most < 0 || count <= most)) return COMMAND_GOOD;
    if (count < least)
        return command_misused(usage, "%s%d argument%s needed, and %d %s given",
                               least == most ? "" : "at least ", least,
                               least == 1 ? " is" : "s are", count,
                               count == 1 ? "is" : "are");
    return command_misused(usage, "at most %d argument%s taken, and %d are given", most,
                           most == 1 ? " is" : "s are", count);
}

int command_names(const char *usage, int count, char **list)
{
    for (int i = 0; i < count; i++)
        if (!*list[i]) return command_misused(usage, "an argument is empty");
    return COMMAND_GOOD;
}

int command_version(void)
{
    printf("%s %s\n", command_self(), PROJECT_VERSION);
    return command_flush();
}

int command_number(const char *usage, const char *option, const char *text, int *number)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < 0 || value > INT_MAX)
        return command_misused(usage, "%s takes a number from 0 on, not '%s'", option,
                               text);
    *number = (int)value;
    return COMMAND_GOOD;
}
