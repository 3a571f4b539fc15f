/* SPDX-License-Identifier: BSD-3-Clause */
/* redset_rebuild: verifies or rebuilds redundancy sets in a directory that holds the
 * files of all processes. */
#include "common/command.h"
#include "common/errtext.h"
#include "common/io.h"
#include "common/owner.h"
#include "common/quote.h"
#include <redset/redset.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { CAN_BE_REBUILT = 3 }; /* exit code */

#define ARGUMENTS "[OPTION]... DIRECTORY"

typedef struct request {
    const char *folder, *redundancy;
    int id;
    int verify, quiet;
} request;

/* ---- output ---- */

static void rebuild_print_member(const redset_found_member *member)
{
    uint64_t bytes = 0;
    const redset_manifest *m = member->manifest;
    for (int i = 0; m && i < m->count; i++)
        bytes += m->files[i].size;
    printf("  rank %d was lost: ", member->rank);
    quote_text(stdout, member->reason, "");
    if (m)
        printf(" (%d file%s, %" PRIu64 " bytes)", m->count, m->count == 1 ? "" : "s",
               bytes);
    printf("\n");
}

/* failed: nothing was changed, and some files may not have been read. */
static const char *rebuild_state(const redset_found_set *set, int failed)
{
    if (set->verdict == REDSET_UNRECOVERABLE) return "cannot be rebuilt";
    if (set->verdict == REDSET_RECOVERABLE) return "can be rebuilt";
    if (failed) return "left as it is";
    return set->lost ? "rebuilt" : "all there";
}

static void rebuild_print_set(const redset_found_set *set, int failed)
{
    const redset_place *place = &set->place;
    printf("set %d: %s over %d rank%s: %s\n", place->id,
           redset_scheme_name(place->scheme), place->members,
           place->members == 1 ? "" : "s", rebuild_state(set, failed));
    for (int m = 0; m < place->members; m++)
        if (set->members[m].lost) rebuild_print_member(&set->members[m]);
}

/* ---- work ---- */

/* Raises the limit of open files: many members need many descriptors. */
static void rebuild_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Opens the directory, and checks that others have not replaced it since this process,
 * started by root, became its owner. */
static int rebuild_open_folder(const request *r, int *dir, redset_error *err)
{
    *dir =
        io_open(AT_FDCWD, r->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (*dir < 0) return err_sys(err, *dir, "open directory");
    if (owner_is_entered(*dir)) return 0;
    io_close(dir);
    return err_set(err, -EPERM, "another directory is in its place now");
}

static int rebuild_work(const request *r)
{
    redset_error err = {""};
    redset_found *found = NULL;
    int dir;
    rebuild_raise_limit();
    if (!r->verify) command_outlive_reader();
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error, like a full disk */
    int rc = rebuild_open_folder(r, &dir, &err);
    if (!rc) {
        rc = (r->verify ? redset_verify_folder : redset_rebuild_folder)(
            dir, r->folder, r->redundancy, r->id, &found, &err);
        io_close(&dir);
    }
    for (int i = 0; found && i < found->count && !r->quiet; i++)
        rebuild_print_set(&found->sets[i], rc == REDSET_UNRECOVERABLE);
    redset_found_free(found);
    int flushed = command_flush();
    if (rc) command_complain("REDUNDANCY_REBUILD_FAILED", "%s: %s", r->folder, err.text);
    if (rc == REDSET_RECOVERABLE)
        return flushed == COMMAND_GOOD ? CAN_BE_REBUILT : COMMAND_BAD;
    return rc ? COMMAND_BAD : flushed;
}

/* ---- arguments ---- */

static int rebuild_help(void)
{
    command_usage(stdout, ARGUMENTS);
    printf("Rebuilds the files of lost processes from those of the others, by the "
           "redundancy\n"
           "files in DIRECTORY, which holds the files of all processes, under the names "
           "that\n"
           "they had in the encode. Nothing is changed unless all can be rebuilt.\n"
           "\n"
           "  -n, --verify           only report what is lost; reads all files\n"
           "  -r, --redundancy NAME  the directory below DIRECTORY with the redundancy "
           "files\n"
           "                         (default: DIRECTORY itself)\n"
           "  -s, --set ID           only the set with redundancy files *_in_ID.*\n"
           "  -q, --quiet            print nothing about sets\n"
           "  -h, --help             print this text\n"
           "  -V, --version          print the version\n"
           "\n"
           "Exit code: 0 all is there (now), 1 more is lost than can be rebuilt, or an\n"
           "error, 2 wrong usage, 3 with --verify: something is lost that can be "
           "rebuilt.\n");
    return command_flush();
}

/* Processes one option. Returns -1 to continue, or an exit code. */
static int rebuild_take_option(int c, request *r)
{
    switch (c) {
    case 'n':
        r->verify = 1;
        return -1;
    case 'q':
        r->quiet = 1;
        return -1;
    case 'r':
        r->redundancy = optarg;
        return -1;
    case 's':
        return command_number(ARGUMENTS, "--set", optarg, &r->id) == COMMAND_GOOD
                   ? -1
                   : COMMAND_WRONG_USAGE;
    case 'h':
        return rebuild_help();
    case 'V':
        return command_version();
    default:
        return command_wrong_usage(ARGUMENTS);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"verify", no_argument, NULL, 'n'},
                                            {"redundancy", required_argument, NULL, 'r'},
                                            {"set", required_argument, NULL, 's'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    request r = {.id = REDSET_ALL};
    command_open_streams();
    for (int c; (c = getopt_long(argc, argv, "nr:s:qhV", options, NULL)) != -1;) {
        int code = rebuild_take_option(c, &r);
        if (code >= 0) return code;
    }
    if (command_count(ARGUMENTS, argc - optind, 1, 1) != COMMAND_GOOD ||
        command_names(ARGUMENTS, 1, argv + optind) != COMMAND_GOOD)
        return COMMAND_WRONG_USAGE;
    r.folder = argv[optind];
    int code = owner_enter("directory", r.folder);
    return code == COMMAND_GOOD ? rebuild_work(&r) : code;
}
