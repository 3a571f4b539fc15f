/* SPDX-License-Identifier: BSD-3-Clause */
/* What all commands say in the same way; see command.h. */
#include "common/command.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char *command_self(void)
{
    return program_invocation_short_name;
}

int command_write_failed(int error)
{
    fprintf(stderr, "%s: write: %s\n", command_self(), strerror(error));
    return COMMAND_BAD;
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

int command_wrong_usage(const char *arguments)
{
    command_usage(stderr, arguments);
    fprintf(stderr, "Try '%s --help'.\n", command_self());
    return COMMAND_WRONG_USAGE;
}

int command_version(void)
{
    printf("%s %s\n", command_self(), PROJECT_VERSION);
    return command_flush();
}

int command_number(const char *option, const char *text, int *number)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < 0 || value > INT_MAX) {
        fprintf(stderr, "%s: %s takes a number from 0 on, not '%s'\n", command_self(),
                option, text);
        return COMMAND_WRONG_USAGE;
    }
    *number = (int)value;
    return COMMAND_GOOD;
}
