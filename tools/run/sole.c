/* SPDX-License-Identifier: BSD-3-Clause */
/* The claim is a lock on one byte of a file in the user's own folder below the control
 * base, where nobody else can make or lock one. The kernel takes it back when its holder
 * has ended; the file stays, empty, for all jobs of the user. See sole.h. */
#include "run/sole.h"

#include "cache/base.h"
#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "lib/tool.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LOCK "scr_run.lock"

/* The folder <base>/<user>, which is private. */
static int open_folder(const tool_prefix *prefix, const tool_owner *owner, int *folder,
                       char *err)
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

/* The byte of the job and the prefix folder: any that two of them hardly share. */
static struct flock byte_of(const tool_prefix *prefix, const tool_owner *owner)
{
    uint32_t crc = crc32_add(0, owner->job, strlen(owner->job) + 1);
    crc = crc32_add(crc, prefix->path, strlen(prefix->path));
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = crc, .l_len = 1};
}

/* The process that has the byte, or 0. */
static pid_t lock_byte(int file, struct flock lock)
{
    if (fcntl(file, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES))
        return 0;
    return fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

int sole_claim(const tool_prefix *prefix, const tool_owner *owner, int *claim)
{
    char err[ERRTEXT_SIZE];
    int folder;
    pid_t other = 0;
    *claim = -1;
    if (open_folder(prefix, owner, &folder, err) != 0) return COMMAND_GOOD;
    if (beneath_open(folder, LOCK, O_RDWR | O_CREAT, 0600, claim, err) == 0)
        other = lock_byte(*claim, byte_of(prefix, owner));
    io_close(&folder);
    if (other <= 0) return COMMAND_GOOD;
    io_close(claim);
    return tool_complain(
        "process %ld is a scr_run of job %s in this prefix folder, and may "
        "still save what its program left in the caches; start this one "
        "when that has ended",
        (long)other, owner->job);
}
