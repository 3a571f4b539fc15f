/* SPDX-License-Identifier: BSD-3-Clause */
/* User, node and allocation of this process; see config/identity.h. */
#include "config/identity.h"

#include "common/errtext.h"
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
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

/* Returns an environment variable; NULL if it is unset or empty. */
static const char *identity_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* ---- Flux ---- */

int scr_identity_flux(const char *id, char job[SCR_JOB_ID_SIZE])
{
    static const char hooked[] = "\306\222"; /* the hooked f of an id, in UTF-8 */
    size_t n = strncmp(id, hooked, 2) == 0 ? 2 : 0;
    if (!id[n] || strchr(id, '/') || strlen(id) >= SCR_JOB_ID_SIZE) return -EINVAL;
    snprintf(job, SCR_JOB_ID_SIZE, "%s%s", n ? "f" : "", id + n);
    return 0;
}

/* Finds the id of the Flux instance in path, which has the ids from the outermost
 * instance to this launch: "/fA/fB". Returns 1; 0 if there is no such id; or -EINVAL. */
static int identity_flux_parent(const char *path, char job[SCR_JOB_ID_SIZE])
{
    char parent[SCR_JOB_ID_SIZE];
    const char *last = strrchr(path, '/');
    size_t n = last ? (size_t)(last - path) : 0;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (!last || last == path + n) return 0;
    if ((size_t)(last - path) - n >= sizeof parent) return -EINVAL;
    snprintf(parent, sizeof parent, "%.*s", (int)(last - path - (ptrdiff_t)n), path + n);
    return scr_identity_flux(parent, job) == 0 ? 1 : -EINVAL;
}

/* Finds the id of the Flux instance. Each launch in it also has its own id, which is the
 * only one that older versions of Flux report. */
static int identity_find_flux(char job[SCR_JOB_ID_SIZE], kvtree_error *err)
{
    const char *instance = identity_variable("FLUX_ENCLOSING_ID");
    const char *path = identity_variable("FLUX_JOB_ID_PATH");
    const char *launch = identity_variable("FLUX_JOB_ID");
    int rc = 0;
    if (instance)
        rc = scr_identity_flux(instance, job) == 0 ? 1 : -EINVAL;
    else if (path)
        rc = identity_flux_parent(path, job);
    else if (launch)
        rc = scr_identity_flux(launch, job) == 0 ? 1 : -EINVAL;
    return rc >= 0 ? rc
                   : err_set(err, rc, "%.60s is not a job id of Flux",
                             instance ? instance
                             : path   ? path
                                      : launch);
}

/* ---- all resource managers ---- */

int scr_identity_find_job(char job[SCR_JOB_ID_SIZE], kvtree_error *err)
{
    static const char *const variables[] = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID",
                                            "LSB_JOBID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *id = identity_variable(variables[i]);
        if (!id) continue;
        if (strlen(id) >= SCR_JOB_ID_SIZE)
            return err_set(err, -EINVAL, "%s=%.60s... is too long", variables[i], id);
        strcpy(job, id);
        return 1;
    }
    return identity_find_flux(job, err);
}

static bool identity_is_of_launch(const char *job)
{
    char launch[SCR_JOB_ID_SIZE];
    const char *id = identity_variable("FLUX_JOB_ID");
    return id && scr_identity_flux(id, launch) == 0 && strcmp(launch, job) == 0;
}

int scr_identity_job(const char *prefix, char job[SCR_JOB_ID_SIZE], kvtree_error *err)
{
    int rc = scr_identity_find_job(job, err);
    if (rc < 0) return rc;
    if (rc > 0) return identity_is_of_launch(job) ? SCR_IDENTITY_OF_LAUNCH : 0;
    scr_identity_prefix(prefix, job);
    return 0;
}
