/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of SCR_Config: the values in use, including those that are determined at run
 * time, and, before SCR_Init, as far as they can be known then. */
#include "ops/context.h"

#include "base/path.h"
#include "config/config_file.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The prefix directory that this process would use. The caller frees it; NULL:
 * unknown. */
static char *query_prefix(const scr_config *config)
{
    char cwd[PATH_MAX];
    char *given = scr_config_prefix(config), *path = NULL;
    if (given && getcwd(cwd, sizeof cwd)) path = scr_path_absolute(cwd, given);
    free(given);
    return path;
}

/* The job id of the prefix directory. It is unknown as long as the directory is missing,
 * because links may lead to it. */
static char *query_job(const scr_config *config)
{
    char job[SCR_JOB_ID_SIZE], *prefix = query_prefix(config),
                               *real = prefix ? realpath(prefix, NULL) : NULL;
    char *answer = real && scr_identity_job(real, job, NULL) >= 0 ? strdup(job) : NULL;
    free(prefix);
    free(real);
    return answer;
}

/* The value of a parameter that was not set and has no default in the table. */
static char *query_found_value(const scr_config *config, const char *name)
{
    char user[SCR_USER_SIZE], node[SCR_NODE_SIZE];
    if (strcmp(name, "SCR_USER_NAME") == 0) {
        scr_identity_user(user);
        return strdup(user);
    }
    if (strcmp(name, "SCR_NODE_NAME") == 0) {
        scr_identity_node(node);
        return strdup(node);
    }
    if (strcmp(name, "SCR_JOB_ID") == 0) return query_job(config);
    if (strcmp(name, "SCR_FLUSH_TYPE") == 0)
        return strdup(strcmp(scr_config_get(config, "SCR_FLUSH_ASYNC", NULL), "1") == 0
                          ? "PTHREAD"
                          : "SYNC");
    return NULL;
}

/* The same, as SCR_Init has determined it. */
static const char *query_settled_value(const struct scr *scr, const char *name)
{
    if (scr_state_is_outside(scr->lifecycle.state)) return NULL;
    if (strcmp(name, "SCR_PREFIX") == 0) return scr->prefix.path;
    if (strcmp(name, "SCR_USER_NAME") == 0) return scr->job.user;
    if (strcmp(name, "SCR_JOB_ID") == 0) return scr->job.id;
    if (strcmp(name, "SCR_NODE_NAME") == 0) return scr->job.node_name;
    return NULL;
}

static char *query_parameter(const struct scr *scr, const scr_config *config,
                             const char *name)
{
    if (!scr_param_find(name)) return NULL;
    const char *value = query_settled_value(scr, name);
    if (!value && strcmp(name, "SCR_PREFIX") == 0) return query_prefix(config);
    if (!value) value = scr_config_get(config, name, NULL);
    return value ? strdup(value) : query_found_value(config, name);
}

/* Answers from the configuration that SCR_Init would read, as this process sees it.
 * SCR_Init reports mistakes. */
static char *query_before_init(const struct scr *scr, const char *question, int is_desc)
{
    scr_config c;
    scr_descs descs;
    scr_problems problems = {.count = 0};
    char *answer = NULL;
    if (scr_config_init(&c) != 0) return NULL;
    if (kvtree_merge(c.set, scr->config.set) == 0)
        scr_config_read_files(&c, SCR_SYSTEM_FILE, &problems);
    if (!is_desc) {
        answer = query_parameter(scr, &c, question);
    } else if (scr_descs_load(&c, &descs, &problems) == 0) {
        answer = scr_descs_answer(&descs, question);
        scr_descs_done(&descs);
    }
    scr_problems_done(&problems);
    scr_config_done(&c);
    return answer;
}

char *scr_query(struct scr *scr, const char *question)
{
    scr_question q;
    int is_desc = scr_config_question(question, &q) != -EINVAL;
    if (scr_state_is_outside(scr->lifecycle.state))
        return query_before_init(scr, question, is_desc);
    return is_desc ? scr_descs_answer(&scr->descs, question)
                   : query_parameter(scr, &scr->config, question);
}
