/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_transfer: moves files in the background, controlled by a transfer file (SCR
 * Developer Guide 1.2, section 2.22). */
#include "common/command.h"
#include "common/owner.h"
#include "src/axl_private.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define ARGUMENTS "[OPTION]... FILE"

/* Most seconds between two looks at the file. */
#define INTERVAL_MAX 3600.0

typedef struct request {
    const char *file;
    double interval;
    int background, leave;
} request;

static volatile int stop;

static void on_signal(int number)
{
    stop = number;
}

/* ---- work ---- */

/* A request to end leaves the transfer so that it can be resumed. SIGXFSZ is ignored: a
 * file that may not grow is then an error, like a full disk. */
static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGXFSZ, SIG_IGN);
    command_outlive_reader();
}

static int serve(const request *r)
{
    axl_error err = {""};
    axl_service service = {.path = r->file,
                           .interval = r->interval,
                           .leave = r->leave != 0,
                           .background = r->background != 0,
                           .stop = &stop,
                           .owner = -1};
    handle_signals();
    int rc = axl_serve(&service, &err);
    if (rc) command_complain("TRANSFER_FAILED", "%s", err.text);
    if (rc == -EBUSY) return AXL_ATTENDED;
    return rc ? COMMAND_BAD : COMMAND_GOOD;
}

/* ---- arguments ---- */

static int help(void)
{
    command_usage(stdout, ARGUMENTS);
    printf("Attends the transfer file FILE: copies the files that are listed there when "
           "its\n"
           "COMMAND is RUN, stops when it is STOP, and ends when it is EXIT.\n"
           "\n"
           "  -b, --background        go into the background\n"
           "  -i, --interval SECONDS  between two looks at FILE (default: 1)\n"
           "  -l, --leave             end when there is nothing to do\n"
           "  -h, --help              print this text\n"
           "  -V, --version           print the version\n"
           "\n"
           "On SIGTERM it ends so that another %s can go on.\n"
           "\n"
           "Exit code: 0 it was told to end, 1 FILE cannot be read or written, 2 wrong\n"
           "usage, 3 another process attends FILE.\n",
           command_self());
    return command_flush();
}

static int parse_interval(const char *text, double *interval)
{
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value > 0 && value <= INTERVAL_MAX))
        return command_misused(ARGUMENTS,
                               "--interval takes seconds above 0, at most %g, not '%s'",
                               INTERVAL_MAX, text);
    *interval = value;
    return COMMAND_GOOD;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"background", no_argument, NULL, 'b'},
                                            {"interval", required_argument, NULL, 'i'},
                                            {"leave", no_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    request r = {.interval = 1};
    command_open_streams();
    for (int c; (c = getopt_long(argc, argv, "bi:lhV", options, NULL)) != -1;) {
        if (c == 'b')
            r.background = 1;
        else if (c == 'l')
            r.leave = 1;
        else if (c == 'h')
            return help();
        else if (c == 'V')
            return command_version();
        else if (c != 'i')
            return command_wrong_usage(ARGUMENTS);
        else if (parse_interval(optarg, &r.interval) != COMMAND_GOOD)
            return COMMAND_WRONG_USAGE;
    }
    if (command_count(ARGUMENTS, argc - optind, 1, 1) != COMMAND_GOOD ||
        command_names(ARGUMENTS, 1, argv + optind) != COMMAND_GOOD)
        return COMMAND_WRONG_USAGE;
    r.file = argv[optind];
    int code = owner_enter_of(r.file);
    if (code == COMMAND_GOOD) code = owner_keep_folder_of(&r.file);
    return code == COMMAND_GOOD ? serve(&r) : code;
}
