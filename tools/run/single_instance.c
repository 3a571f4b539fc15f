/* SPDX-License-Identifier: BSD-3-Clause */
/* A lock on one byte of a file in the user's private directory below the control base.
 * The kernel releases the lock when its holder ends; the empty file stays for all jobs of
 * the user. See single_instance.h. */
#include "run/single_instance.h"

#include "cache/base.h"
#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "lib/tool.h"
#include "run/run_log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char lock_name[] = "scr_run.lock";

/* Opens the private directory <base>/<user>. */
static int instance_open_folder(const tool_prefix *prefix, const tool_owner *owner,
                                int *folder, kvtree_error *err)
{
    const char *base = scr_config_get(&prefix->config, "SCR_CNTL_BASE", NULL);
    char below[SCR_BASE_NAME];
    int made = -1, rc = folder_make(base, 0700, &made, err);
    io_close(&made);
    if (rc) return rc;
    if (scr_base_name(base, owner->user, below) < 0)
        return err_sys(err, -ENAMETOOLONG, "%s", owner->user);
    return beneath_private_folder(base, below, folder, err);
}

/* Returns the byte for the job and the prefix directory: a hash, so that two rarely share
 * one. */
static struct flock instance_byte(const tool_prefix *prefix, const tool_owner *owner)
{
    uint32_t crc = crc32_add(0, owner->job, strlen(owner->job) + 1);
    crc = crc32_add(crc, prefix->path, strlen(prefix->path));
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = crc, .l_len = 1};
}

/* Locks the byte. Returns the process that already holds the lock, or 0. */
static pid_t instance_lock_byte(int file, struct flock lock)
{
    if (fcntl(file, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES))
        return 0;
    return fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

int single_instance_lock(const tool_prefix *prefix, const tool_owner *owner, int *lock)
{
    kvtree_error err;
    int folder;
    pid_t other = 0;
    *lock = -1;
    if (instance_open_folder(prefix, owner, &folder, &err) != 0) return COMMAND_GOOD;
    if (beneath_open(folder, lock_name, O_RDWR | O_CREAT, 0600, lock, &err) == 0)
        other = instance_lock_byte(*lock, instance_byte(prefix, owner));
    io_close(&folder);
    if (other <= 0) return COMMAND_GOOD;
    io_close(lock);
    return tool_say(
        RUN_ACTIVE,
        "process %ld is a scr_run of job %s in this prefix directory; wait for its end",
        (long)other, owner->job);
}

/* ---- holder of the lock ---- */

/* Whether a process of this machine belongs to another user. */
static bool instance_is_foreign(pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%ld", (long)pid);
    return stat(path, &st) == 0 && st.st_uid != geteuid();
}

/* Returns the holder of a lock on any of these bytes of the file; -1: a process on
 * another machine; 0: none. */
static pid_t instance_ask(int folder, const char *name, struct flock lock)
{
    kvtree_error err;
    int file;
    if (beneath_open(folder, name, O_RDONLY, 0, &file, &err) != 0) return 0;
    bool held = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    io_close(&file);
    if (!held) return 0;
    if (lock.l_pid <= 0) return -1;
    return instance_is_foreign(lock.l_pid) ? 0 : lock.l_pid;
}

/* Returns the holder of the lock that a run has in its control directory below the
 * directory of the user. */
static pid_t instance_ask_run(const tool_prefix *prefix, const tool_owner *owner,
                              const char *base, const char *user)
{
    char path[TOOL_PATH_SIZE], name[TOOL_PATH_SIZE + sizeof "/run.lock"];
    kvtree_error err;
    int folder;
    pid_t holder = 0;
    tool_job_folder(prefix, owner, base, 1, path);
    const char *below = path + strlen(base) + (strcmp(base, "/") != 0);
    if (strncmp(below, user, strlen(user)) != 0) return 0;
    snprintf(name, sizeof name, "%s/run.lock", below);
    if (beneath_open_folder(base, &folder, &err) != 0) return 0;
    holder = instance_ask(folder, name,
                          (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET});
    io_close(&folder);
    return holder;
}

/* Returns the holder of a lock below the control base, in the directory of the user. */
static pid_t instance_ask_base(const tool_prefix *prefix, const tool_owner *owner)
{
    const char *base = scr_config_get(&prefix->config, "SCR_CNTL_BASE", NULL);
    char below[SCR_BASE_NAME];
    kvtree_error err;
    int top = -1, folder = -1;
    pid_t holder = 0;
    if (scr_base_name(base, owner->user, below) < 0) return 0;
    int rc = beneath_open_folder(base, &top, &err);
    /* otherwise others could fake a lock */
    if (!rc) rc = beneath_open_private(top, below, &folder, &err);
    if (!rc) holder = instance_ask(folder, lock_name, instance_byte(prefix, owner));
    if (!rc && !holder) holder = instance_ask_run(prefix, owner, base, below);
    io_close(&folder);
    io_close(&top);
    return holder;
}

long single_instance_holder(const tool_prefix *prefix, const tool_owner *owner)
{
    const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    pid_t holder = instance_ask_base(prefix, owner);
    return holder ? holder : instance_ask(prefix->dir, RUN_LOG_NAME, whole);
}
