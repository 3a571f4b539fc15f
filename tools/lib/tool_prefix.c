/* SPDX-License-Identifier: BSD-3-Clause */
/* The prefix directory and the configuration; see tool_prefix.h. */
#include "lib/tool_prefix.h"

#include "base/path.h"
#include "base/versions.h"
#include "cache/base.h"
#include "common/io.h"
#include "common/owner.h"
#include "config/config_file.h"
#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_user.h"
#include "prefix/scr3.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tool_tell_warnings(char *warnings)
{
    char *line;
    while ((line = strsep(&warnings, "\n")) && *line)
        tool_say(CONFIG_FORMER, "%s", line);
}

int tool_tell_problems(scr_problems *problems)
{
    char *line, *rest = problems->text;
    int code = problems->count ? COMMAND_BAD : COMMAND_GOOD;
    while ((line = strsep(&rest, "\n")) && *line)
        tool_say(CONFIG_MISTAKE, "%s", line);
    scr_problems_done(problems);
    return code;
}

static int prefix_read_config(tool_prefix *prefix, const char *system)
{
    scr_problems problems = {.count = 0};
    if (scr_config_init(&prefix->config) != 0 ||
        scr_config_capture_env(&prefix->config) != 0)
        return tool_no_memory();
    scr_config_read_files(&prefix->config, system, &problems);
    scr_config_check_places(&prefix->config, &problems);
    prefix->mistaken = problems.count > 0;
    prefix->warnings = problems.warnings;
    problems.warnings = NULL;
    return tool_tell_problems(&problems);
}

/* Checks the versions of the records. Records of another version of SCR, or of another
 * program, stay unchanged. */
static int prefix_check_versions(tool_prefix *prefix)
{
    kvtree_error err = {""};
    prefix->of_scr3 = 0;
    if (scr_versions_check(prefix->dir, &err) == 0) return COMMAND_GOOD;
    prefix->of_scr3 = scr3_is_there(prefix->dir);
    if (prefix->of_scr3) return COMMAND_GOOD;
    return tool_say(PREFIX_VERSION, "prefix directory %s: %s", prefix->path, err.text);
}

int tool_prefix_convert(tool_prefix *prefix)
{
    kvtree_error err = {""};
    scr3_result result;
    if (!prefix->of_scr3) return COMMAND_GOOD;
    if (scr3_convert(prefix->dir, prefix->path, &result, &err) != 0)
        return tool_say(PREFIX_VERSION, "prefix directory %s: %s", prefix->path,
                        err.text);
    if (result.converted)
        tool_say(PREFIX_OF_SCR3,
                 "the index of SCR 3 in %s was converted, and has %d datasets now; it "
                 "was kept as %s",
                 prefix->path, result.datasets, result.aside);
    if (result.refused)
        tool_say(PREFIX_OF_SCR3_IN_PART,
                 "%d datasets of SCR 3 were not converted; the first: %s", result.refused,
                 result.why.text);
    return prefix_check_versions(prefix);
}

static int prefix_open_folder(tool_prefix *prefix, const char *path)
{
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof cwd))
        return tool_say(DIRECTORY_UNUSABLE, "current directory: %s", strerror(errno));
    char *full = scr_path_absolute(cwd, path);
    if (full) prefix->path = realpath(full, NULL);
    if (prefix->path)
        prefix->dir =
            io_open(AT_FDCWD, prefix->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    else
        prefix->dir = full ? -errno : -ENOMEM;
    int rc = prefix->dir;
    if (rc < 0) prefix->dir = -1;
    if (rc < 0)
        tool_say(DIRECTORY_UNUSABLE, "prefix directory %s: %s", full ? full : path,
                 strerror(-rc));
    free(full);
    return rc < 0 ? COMMAND_BAD : prefix_check_versions(prefix);
}

/* Returns the directory with the configuration, which may name another prefix
 * directory. */
static const char *prefix_config_folder(const char *given)
{
    const char *path = given ? given : getenv("SCR_PREFIX");
    return path && *path ? path : ".";
}

/* Refuses a directory that replaced the one whose owner root has become. */
static int prefix_check_entered(const tool_prefix *prefix)
{
    if (owner_is_entered(prefix->dir)) return COMMAND_GOOD;
    return tool_say(DIRECTORY_UNUSABLE,
                    "prefix directory %s: another directory is in its place now",
                    prefix->path);
}

/* system: NULL if the configuration is not needed. anyway: accepts a configuration with
 * mistakes. */
static int prefix_open(tool_prefix *prefix, const char *given, const char *system,
                       int anyway)
{
    char *known = NULL;
    memset(prefix, 0, sizeof *prefix);
    prefix->dir = -1;
    if (given && !*given) return tool_say(DIRECTORY_UNUSABLE, "empty name");
    const char *first = prefix_config_folder(given);
    if (tool_user_enter(first) != COMMAND_GOOD) return COMMAND_BAD;
    /* users' configuration files are in the prefix directory */
    if (given && setenv("SCR_PREFIX", given, 1) != 0) return tool_no_memory();
    if (!given || system) {
        int code = prefix_read_config(prefix, system ? system : SCR_SYSTEM_FILE);
        if (prefix->mistaken && !given && !system)
            tool_say(PREFIX_UNCERTAIN, "the prefix directory is uncertain: name it, as "
                                       "with --prefix .");
        if (code != COMMAND_GOOD && !(anyway && prefix->mistaken)) return code;
        if (!given) known = scr_config_prefix(&prefix->config);
        if (!given && !(given = known)) return tool_no_memory();
    }
    int code = tool_user_enter(given);
    if (code == COMMAND_GOOD) code = prefix_open_folder(prefix, given);
    if (code == COMMAND_GOOD) code = prefix_check_entered(prefix);
    free(known);
    return code;
}

int tool_prefix_open(tool_prefix *prefix, const char *given)
{
    return prefix_open(prefix, given, NULL, 0);
}

int tool_prefix_configure(tool_prefix *prefix, const char *given)
{
    return prefix_open(prefix, given, SCR_SYSTEM_FILE, 0);
}

int tool_prefix_configure_anyway(tool_prefix *prefix, const char *given)
{
    return prefix_open(prefix, given, SCR_SYSTEM_FILE, 1);
}

int tool_prefix_configure_by(tool_prefix *prefix, const char *given, const char *system)
{
    return prefix_open(prefix, given, system ? system : SCR_SYSTEM_FILE, 0);
}

int tool_prefix_tell_unused(const tool_prefix *prefix)
{
    struct stat st;
    if (fstatat(prefix->dir, ".scr", &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return 0;
    tool_say(PREFIX_UNUSED, "%s: no run has used this prefix directory: it has no .scr",
             prefix->path);
    return 1;
}

void tool_prefix_close(tool_prefix *prefix)
{
    io_close(&prefix->dir);
    free(prefix->path);
    free(prefix->warnings);
    scr_config_done(&prefix->config);
}

/* ---- identity ---- */

/* Gets an identity from its parameter. 1 if the parameter has a value; 0; or -1 if the
 * value is unusable, after a message. */
static int prefix_identity(const scr_config *config, const char *name, char *value,
                           size_t size)
{
    const char *text = scr_config_get(config, name, NULL);
    if (!text || !*text) return 0;
    if (strlen(text) >= size || strchr(text, '/')) {
        tool_say(IDENTITY_INVALID, "%s=%.60s is too long, or has a slash", name, text);
        return -1;
    }
    strcpy(value, text);
    return 1;
}

int tool_owner_user(const tool_prefix *prefix, char user[SCR_USER_SIZE])
{
    int given = prefix_identity(&prefix->config, "SCR_USER_NAME", user, SCR_USER_SIZE);
    if (given == 0) scr_identity_user(user);
    return given < 0 ? COMMAND_BAD : COMMAND_GOOD;
}

int tool_owner_find(const tool_prefix *prefix, tool_owner *owner)
{
    kvtree_error err = {""};
    const scr_config *c = &prefix->config;
    int user = tool_owner_user(prefix, owner->user);
    int job = prefix_identity(c, "SCR_JOB_ID", owner->job, sizeof owner->job);
    int node = prefix_identity(c, "SCR_NODE_NAME", owner->node, sizeof owner->node);
    if (user != COMMAND_GOOD || job < 0 || node < 0) return COMMAND_BAD;
    if (!node) scr_identity_node(owner->node);
    if (!job) job = tool_manager_find_job(owner->job, &err);
    if (job == -EINVAL) return tool_say(IDENTITY_INVALID, "%s", err.text);
    if (job < 0) return tool_say(BATCH_QUERY_FAILED, "%s", err.text);
    if (!job) scr_identity_prefix(prefix->path, owner->job);
    return COMMAND_GOOD;
}

bool tool_owner_is(const tool_owner *owner, const char *noted)
{
    char name[sizeof owner->user + sizeof owner->job + 8];
    int n = snprintf(name, sizeof name, "%s/scr.%s", owner->user, owner->job);
    return strncmp(noted, name, (size_t)n) == 0 && (!noted[n] || noted[n] == '.');
}

/* ---- directories of a job ---- */

static bool prefix_is_folder(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void tool_job_folder(const tool_prefix *prefix, const tool_owner *owner, const char *base,
                     int control, char path[TOOL_PATH_SIZE])
{
    char other[SCR_JOB_ID_SIZE], below[SCR_BASE_NAME];
    const char *slash = strcmp(base, "/") == 0 ? "" : "/";
    if (scr_base_name(base, owner->user, below) < 0) strcpy(below, owner->user);
    const char *node = control ? getenv("SCR_NODE_NAME") : NULL;
    int own = node && *node;
    scr_identity_prefix(prefix->path, other);
    for (int i = 0; i < 2; i++) {
        snprintf(path, TOOL_PATH_SIZE, "%s%s%s/scr.%s%s%s%s%s", base, slash, below,
                 owner->job, i ? "" : ".", i ? "" : other, own ? "/" : "",
                 own ? node : "");
        if (prefix_is_folder(path)) return;
    }
}

int tool_control_folder(const tool_prefix *prefix, const char *given,
                        char path[TOOL_PATH_SIZE])
{
    tool_owner owner;
    if (given) {
        if (strlen(given) >= TOOL_PATH_SIZE)
            return tool_say(PATH_TOO_LONG,
                            "the path of the control directory has %zu bytes, more "
                            "than %d",
                            strlen(given), TOOL_PATH_SIZE - 1);
        strcpy(path, given);
        return COMMAND_GOOD;
    }
    if (tool_owner_find(prefix, &owner) != COMMAND_GOOD) return COMMAND_BAD;
    tool_job_folder(prefix, &owner,
                    scr_config_get(&prefix->config, "SCR_CNTL_BASE", NULL), 1, path);
    return COMMAND_GOOD;
}
