/* SPDX-License-Identifier: BSD-3-Clause */
/* Privileges; see tool_user.h. */
#include "lib/tool_user.h"

#include "common/errtext.h"
#include "common/owner.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int tool_user_enter(const char *prefix)
{
    return owner_enter("prefix folder", prefix);
}

int tool_user_may_run(const char *path, char *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return err_sys(err, -errno, "%s", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, -EPERM,
                       "%s belongs to user %lu, and is executed only if it is yours or "
                       "root's",
                       path, (unsigned long)st.st_uid);
    if (st.st_mode & S_IWOTH)
        return err_set(err, -EPERM, "%s can be changed by everybody, and is not executed",
                       path);
    return 0;
}
