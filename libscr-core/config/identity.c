/* SPDX-License-Identifier: BSD-3-Clause */
/* User, node and allocation of this process; see config/identity.h. */
#include "config/identity.h"

#include "common/errtext.h"
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

void scr_identity_user(char user[SCR_USER_SIZE])
{
    const struct passwd *pw = getpwuid(geteuid());
    if (pw && strlen(pw->pw_name) < SCR_USER_SIZE)
        strcpy(user, pw->pw_name);
    else
        snprintf(user, SCR_USER_SIZE, "uid-%ld", (long)geteuid());
}

void scr_identity_node(char node[SCR_NODE_SIZE])
{
    node[SCR_NODE_SIZE - 1] = 0;
    if (gethostname(node, SCR_NODE_SIZE - 1) != 0) strcpy(node, "localhost");
}

void scr_identity_prefix(const char *prefix, char name[SCR_JOB_ID_SIZE])
{
    uLong crc = crc32(0, (const Bytef *)prefix, (uInt)strlen(prefix));
    snprintf(name, SCR_JOB_ID_SIZE, "prefix-%08lx", crc);
}

int scr_identity_job(const char *prefix, char job[SCR_JOB_ID_SIZE], kvtree_error *err)
{
    static const char *const variables[] = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID",
                                            "LSB_JOBID", "FLUX_JOB_ID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *id = getenv(variables[i]);
        if (!id || !*id) continue;
        if (strlen(id) >= SCR_JOB_ID_SIZE)
            return err_set(err, -EINVAL, "%s=%.60s... is too long", variables[i], id);
        strcpy(job, id);
        return 0;
    }
    scr_identity_prefix(prefix, job);
    return 0;
}
