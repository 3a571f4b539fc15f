/* SPDX-License-Identifier: BSD-3-Clause */
/* What all commands say in the same way; see command.h. */
#include "common/command.h"

#include <errno.h>
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
