/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PREFIX_H
#define TOOL_PREFIX_H

/* The prefix directory of a command, and the configuration of runs there. */

#include "config/desc.h"
#include "config/identity.h"
#include "config/parameters.h"
#include "config/problems.h"
#include <stdbool.h>

typedef struct tool_prefix {
    char *path; /* without symbolic links */
    int dir;    /* the same directory, open */
    scr_config config;
    int mistaken;   /* 1: the configuration has mistakes, which were reported */
    int of_scr3;    /* 1: the index is an index of SCR 3 (tool_prefix_convert) */
    char *warnings; /* lines about names of earlier versions, or NULL */
} tool_prefix;

/* Functions return an exit code, after a message. Root opens a prefix directory as its
 * owner (tool_user.h) and remains that user. */

/* Opens the given directory; NULL: SCR_PREFIX from the environment or a configuration
 * file, else the current directory. Reads the configuration only for NULL. Refuses a
 * directory with records of another version (base/versions.h). */
int tool_prefix_open(tool_prefix *prefix, const char *given);

/* Like tool_prefix_open, but always reads the configuration. */
int tool_prefix_configure(tool_prefix *prefix, const char *given);

/* Like tool_prefix_configure, for work that must not wait for a corrected configuration,
 * such as saving caches: reports mistakes and uses the correct part. */
int tool_prefix_configure_anyway(tool_prefix *prefix, const char *given);

/* Like tool_prefix_configure, with another file in place of the system file (NULL: the
 * system file). */
int tool_prefix_configure_by(tool_prefix *prefix, const char *given, const char *system);

/* Converts an index of SCR 3 to this version, for commands that work with the index or
 * begin a run. Other commands leave the index unchanged, since a job of SCR 3 may still
 * use it. */
int tool_prefix_convert(tool_prefix *prefix);

/* If SCR has never run in the prefix directory, reports that and returns 1. */
int tool_prefix_tell_unused(const tool_prefix *prefix);

/* The user, the allocation and this node; from the configuration or the system. */
typedef struct tool_owner {
    char user[SCR_USER_SIZE], job[SCR_JOB_ID_SIZE], node[SCR_NODE_SIZE];
} tool_owner;

/* For a configured prefix. */
int tool_owner_user(const tool_prefix *prefix, char user[SCR_USER_SIZE]);
int tool_owner_find(const tool_prefix *prefix, tool_owner *owner);

/* Whether noted, the owner of caches as the flush file records it, is this owner. */
bool tool_owner_is(const tool_owner *owner, const char *noted);

/* Gets the directory of the job below a base, which is SCR_CNTL_BASE (control 1) or the
 * path of a store. A second calculation of the job has a directory with the prefix
 * directory in its name (docs/formats/scr.md); that one is preferred if it exists. */
#define TOOL_PATH_SIZE (SCR_DESC_PATH_SIZE + 512)
void tool_job_folder(const tool_prefix *prefix, const tool_owner *owner, const char *base,
                     int control, char path[TOOL_PATH_SIZE]);

/* Gets the control directory of runs in the configured prefix directory; if given is not
 * NULL, it is used instead. */
int tool_control_folder(const tool_prefix *prefix, const char *given,
                        char path[TOOL_PATH_SIZE]);

/* Prints lines of warnings (scr_problems.warnings); NULL: nothing. */
void tool_tell_warnings(char *warnings);

/* Closes and frees; accepts a prefix of zeros with dir -1. */
void tool_prefix_close(tool_prefix *prefix);

/* Reports and frees all problems; COMMAND_BAD if there were any. */
int tool_tell_problems(scr_problems *problems);

#endif
