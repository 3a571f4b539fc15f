/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PREFIX_H
#define TOOL_PREFIX_H

/* The prefix folder that a command is about, and the configuration of runs there. */

#include "config/desc.h"
#include "config/identity.h"
#include "config/parameters.h"
#include "config/problems.h"

typedef struct tool_prefix {
    char *path; /* without links */
    int dir;    /* the same, open */
    scr_config config;
    int mistaken; /* 1: the configuration has mistakes, which were said */
} tool_prefix;

/* What every function here returns: an exit code, with what is wrong said. Root opens a
 * prefix folder as its owner (tool_user.h), and goes on as that user. */

/* Opens the folder given (NULL: SCR_PREFIX, as the environment or a configuration file
 * has it, else the current folder). Only then is the configuration read. A folder with
 * records of another version (scr_versions.h) is refused. */
int tool_prefix_open(tool_prefix *prefix, const char *given);

/* The same, and reads the configuration in any case. */
int tool_prefix_configure(tool_prefix *prefix, const char *given);

/* The same for what must not wait until somebody has mended the configuration, as saving
 * what is in the caches: its mistakes are said, and what is right of it counts. */
int tool_prefix_configure_anyway(tool_prefix *prefix, const char *given);

/* The same as tool_prefix_configure with another file in place of the system file (NULL:
 * that one). */
int tool_prefix_configure_by(tool_prefix *prefix, const char *given, const char *system);

/* Where no run of SCR was yet: says so, and what to do. 1 then. */
int tool_prefix_tell_unused(const tool_prefix *prefix);

/* Who runs jobs there, in which allocation, and where this is, as the configuration says
 * or else as it is found out. */
typedef struct tool_owner {
    char user[SCR_USER_SIZE], job[SCR_JOB_ID_SIZE], node[SCR_NODE_SIZE];
} tool_owner;

/* Of a prefix that was configured. */
int tool_owner_user(const tool_prefix *prefix, char user[SCR_USER_SIZE]);
int tool_owner_find(const tool_prefix *prefix, tool_owner *owner);

/* 1 when that is the owner of caches as the flush file notes it (scr_flush_file.h). */
int tool_owner_is(const tool_owner *owner, const char *noted);

/* The folder of the job below a base: SCR_CNTL_BASE (control 1), or the path of a store.
 * A second calculation of the job has another one, which has the prefix folder in its
 * name (docs/formats/scr.md); where it is there, it is meant. */
#define TOOL_PATH_SIZE (SCR_DESC_PATH_SIZE + 512)
void tool_job_folder(const tool_prefix *prefix, const tool_owner *owner, const char *base,
                     int control, char path[TOOL_PATH_SIZE]);

/* The control folder of runs in the prefix folder, which was configured: given, if that
 * is not NULL. */
int tool_control_folder(const tool_prefix *prefix, const char *given,
                        char path[TOOL_PATH_SIZE]);

/* Frees; a prefix of zeros with dir -1 is fine. */
void tool_prefix_close(tool_prefix *prefix);

/* Says all of the problems, and frees them; COMMAND_BAD if there were any. */
int tool_tell_problems(scr_problems *problems);

#endif
