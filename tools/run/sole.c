/* SPDX-License-Identifier: BSD-3-Clause */
/* The claim is a lock on a file in the user's own folder below the control base, where
 * nobody else can make or lock one; the kernel takes it back when its holder has ended.
 * See sole.h. */
#include "run/sole.h"

#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "lib/tool.h"
#include "records/scr_base.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 10, NAME_SIZE = SCR_JOB_ID_SIZE + 32 };

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

/* The process that has the lock, 0 when this one has it now, or -errno: -EAGAIN when the
 * file was removed meanwhile. */
static int try_lock(int folder, const char *name, int *claim, char *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat st;
    int rc = beneath_open(folder, name, O_RDWR | O_CREAT, 0600, claim, err);
    if (rc) return rc;
    if (fcntl(*claim, F_SETLK, &lock) == 0) {
        if (fstat(*claim, &st) == 0 && st.st_nlink > 0) return 0;
        rc = -EAGAIN;
    } else {
        rc = errno == EAGAIN || errno == EACCES ? -EAGAIN : -errno;
        if (rc == -EAGAIN && fcntl(*claim, F_GETLK, &lock) == 0 &&
            lock.l_type != F_UNLCK && lock.l_pid > 0)
            rc = lock.l_pid;
    }
    io_close(claim);
    return rc;
}

int sole_claim(const tool_prefix *prefix, const tool_owner *owner, sole *claim)
{
    char err[ERRTEXT_SIZE] = "";
    int rc = open_folder(prefix, owner, &claim->folder, err);
    uint32_t crc = crc32_add(0, prefix->path, strlen(prefix->path));
    snprintf(claim->name, sizeof claim->name, "scr_run.%08x.%s.lock", crc, owner->job);
    for (int i = 0; i < ATTEMPTS && !rc; i++) {
        rc = try_lock(claim->folder, claim->name, &claim->lock, err);
        if (rc != -EAGAIN) break;
        rc = 0;
        usleep(1000);
    }
    if (rc <= 0)
        return COMMAND_GOOD; /* what cannot be locked keeps nobody from running */
    io_close(&claim->folder);
    return tool_complain(
        "process %d is a scr_run of job %s in this prefix folder, and may "
        "still save what its program left in the caches; start this one "
        "when that has ended",
        rc, owner->job);
}

void sole_release(sole *claim)
{
    if (claim->lock >= 0) unlinkat(claim->folder, claim->name, 0);
    io_close(&claim->lock);
    io_close(&claim->folder);
}
