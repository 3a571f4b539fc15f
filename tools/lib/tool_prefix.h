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
    char *path; /* without links */
    int dir;    /* the same, open */
    scr_config config;
    int mistaken;   /* 1: the configuration has mistakes, which were reported */
    int of_scr3;    /* 1: the index is one of SCR 3 (tool_prefix_convert) */
    char *warnings; /* lines about names of earlier versions, or NULL */
} tool_prefix;

/* Functions return an exit code, after a message. Root opens a prefix directory as its
 * owner (tool_user.h) and remains that user. */

/* Opens the given directory; NULL: SCR_PREFIX from the environment or a configuration
 * file, else the current directory. The configuration is read only in that case. A
 * directory with records of another version (base/versions.h) is refused. */
int tool_prefix_open(tool_prefix *prefix, const char *given);

/* The same, and reads the configuration in any case. */
int tool_prefix_configure(tool_prefix *prefix, const char *given);

/* The same for work that must not wait for a corrected configuration, such as saving
 * caches: mistakes are reported, and the correct part is used. */
int tool_prefix_configure_anyway(tool_prefix *prefix, const char *given);

/* The same as tool_prefix_configure with another file in place of the system file (NULL:
 * that one). */
int tool_prefix_configure_by(tool_prefix *prefix, const char *given, const char *system);

/* Makes an index of SCR 3 one of this version, for commands that work with the index or
 * begin a run. Others leave it as it is: a job of SCR 3 may still use it. */
int tool_prefix_convert(tool_prefix *prefix);

/* Where SCR has never run: reports that, and what to do; 1 then. */
int tool_prefix_tell_unused(const tool_prefix *prefix);

/* The user, the allocation and this node, from the configuration or the system. */
typedef struct tool_owner {
    char user[SCR_USER_SIZE], job[SCR_JOB_ID_SIZE], node[SCR_NODE_SIZE];
} tool_owner;

/* For a prefix that was configured. */
int tool_owner_user(const tool_prefix *prefix, char user[SCR_USER_SIZE]);
int tool_owner_find(const tool_prefix *prefix, tool_owner *owner);

/* Whether that is the owner of caches as the flush file records it. */
bool tool_owner_is(const tool_owner *owner, const char *noted);

/* The directory of the job below a base: SCR_CNTL_BASE (control 1), or the path of a
 * store. A second calculation of the job has a directory with the prefix directory in its
 * name (docs/formats/scr.md), which is preferred where it exists. */
#define TOOL_PATH_SIZE (SCR_DESC_PATH_SIZE + 512)
void tool_job_folder(const tool_prefix *prefix, const tool_owner *owner, const char *base,
                     int control, char path[TOOL_PATH_SIZE]);

/* The control directory of runs in the prefix directory, which was configured; given,
 * unless that is NULL. */
int tool_control_folder(const tool_prefix *prefix, const char *given,
                        char path[TOOL_PATH_SIZE]);

/* Prints lines of warnings (scr_problems.warnings), or nothing for NULL. */
void tool_tell_warnings(char *warnings);

/* Frees; a prefix of zeros with dir -1 is fine. */
void tool_prefix_close(tool_prefix *prefix);

/* Reports all problems and frees them; COMMAND_BAD if there were any. */
int tool_tell_problems(scr_problems *problems);

#endif
