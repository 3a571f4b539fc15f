/* SPDX-License-Identifier: BSD-3-Clause */
/* The batch system; see tool_manager.h. */
#include "lib/tool_manager.h"

#include "common/io.h"
#include "lib/tool_run.h"
#include "lib/tool_time.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    FILE_SIZE = 1 << 24, /* longest list of nodes in a file */
    NEAR = 10            /* seconds before the end count as the end: clocks may differ */
};

typedef struct manager {
    const char *name;
    const char *job[2];   /* variables: one of them is set within an allocation */
    const char *nodes[2]; /* variables that have a list of nodes */
    const char *file;     /* the same for the name of a file that has one */
} manager;

static const manager managers[] = {
    {"slurm",
     {"SLURM_JOB_ID", "SLURM_JOBID"},
     {"SLURM_JOB_NODELIST", "SLURM_NODELIST"},
     NULL},
    {"pbs", {"PBS_JOBID", NULL}, {NULL, NULL}, "PBS_NODEFILE"},
    {"lsf", {"LSB_JOBID", NULL}, {"LSB_HOSTS", NULL}, "LSB_DJOB_HOSTFILE"},
    {"flux", {"FLUX_JOB_ID", NULL}, {NULL, NULL}, NULL},
    {"none", {NULL, NULL}, {NULL, NULL}, NULL},
};

/* A variable of the environment that has a value. */
static const char *manager_variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

static const manager *manager_find(void)
{
    const manager *m = managers;
    while (m->job[0] && !manager_variable(m->job[0]) && !manager_variable(m->job[1]))
        m++;
    return m;
}

const char *tool_manager_name(void)
{
    return manager_find()->name;
}

/* ---- nodes ---- */

int tool_manager_parse(const char *text, hostlist *list)
{
    kvtree_error err = {""};
    return tool_result(NODELIST_INVALID, hostlist_parse(text, list, &err), &err);
}

static int manager_parse_file(const char *name, hostlist *list)
{
    char *text = malloc(FILE_SIZE + 1);
    int fd = io_open(AT_FDCWD, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0), code;
    ssize_t size = fd < 0 ? fd : -ENOMEM;
    if (fd >= 0 && text) size = io_read(fd, text, FILE_SIZE + 1);
    if (size > FILE_SIZE) size = -EFBIG;
    if (size < 0) {
        code = tool_say(NODELIST_INVALID, "list of nodes %s: %s", name,
                        strerror((int)-size));
    } else {
        text[size] = 0;
        code = strlen(text) < (size_t)size
                   ? tool_say(NODELIST_INVALID, "list of nodes %s: no text", name)
                   : tool_manager_parse(text, list);
    }
    if (fd >= 0) io_close(&fd);
    free(text);
    return code;
}

static int manager_allocation_nodes(const manager *m, const tool_owner *owner,
                                    hostlist *list)
{
    const char *text = manager_variable(m->nodes[0]);
    if (!text) text = manager_variable(m->nodes[1]);
    if (text) return tool_manager_parse(text, list);
    if (manager_variable(m->file))
        return manager_parse_file(manager_variable(m->file), list);
    if (m->job[0])
        return tool_say(NODELIST_MISSING, "%s lists no nodes; set SCR_NODELIST", m->name);
    return tool_manager_parse(owner->node, list);
}

int tool_manager_nodes(const tool_prefix *prefix, hostlist *nodes)
{
    tool_owner owner;
    hostlist all = {0, NULL};
    const char *given = scr_config_get(&prefix->config, "SCR_NODELIST", NULL);
    int code = tool_owner_find(prefix, &owner);
    if (code == COMMAND_GOOD)
        code = given && *given ? tool_manager_parse(given, &all)
                               : manager_allocation_nodes(manager_find(), &owner, &all);
    /* files have a line per processor */
    if (code == COMMAND_GOOD && hostlist_once(&all, nodes) != 0) code = tool_no_memory();
    hostlist_done(&all);
    return code;
}

/* ---- down ---- */

static int manager_ask_states(const hostlist *nodes, const char *states, double seconds,
                              hostlist *found)
{
    char *text = hostlist_compress(nodes), *output = NULL;
    kvtree_error err = {""};
    hostlist all = {0, NULL};
    int code = COMMAND_GOOD;
    const char *const command[] = {"sinfo",   "--noheader", states, "--format=%N",
                                   "--nodes", text,         NULL};
    if (text && strcmp(tool_manager_name(), "slurm") == 0 && nodes->count > 0) {
        if (tool_run(command, seconds, &output, &err) != 0)
            code = tool_say(BATCH_QUERY_FAILED, "%s", err.text);
        else
            code = tool_manager_parse(output, &all);
    }
    if (!text || (code == COMMAND_GOOD && hostlist_intersect(nodes, &all, found) != 0))
        code = tool_no_memory();
    hostlist_done(&all);
    free(output);
    free(text);
    return code;
}

int tool_manager_down(const hostlist *nodes, double seconds, hostlist *down)
{
    return manager_ask_states(nodes, "--states=down,no_respond", seconds, down);
}

int tool_manager_drained(const hostlist *nodes, double seconds, hostlist *drained)
{
    return manager_ask_states(nodes, "--states=drain,fail", seconds, drained);
}

/* ---- the end ---- */

static const char *manager_job_id(const manager *m)
{
    return manager_variable(m->job[0]) ? manager_variable(m->job[0])
                                       : manager_variable(m->job[1]);
}

/* The output of squeue, to be freed, with times in the format of tool_time_parse. */
static int manager_ask_squeue(const char *const command[], double seconds, char **output,
                              kvtree_error *err)
{
    static const char format[] = "SLURM_TIME_FORMAT"; /* of the user */
    char *users = manager_variable(format) ? strdup(manager_variable(format)) : NULL;
    int rc = setenv(format, "standard", 1) == 0 ? 0 : err_set(err, -ENOMEM, "no memory");
    if (!rc) rc = tool_run(command, seconds, output, err);
    if (users)
        setenv(format, users, 1);
    else
        unsetenv(format);
    free(users);
    return rc;
}

/* The word after the id in the line of that job, or NULL; *rest is the remainder. Other
 * parts of the same array, or of a heterogeneous job, may have lines, too. */
static const char *manager_find_state(char *lines, const char *job, char **rest)
{
    char *line;
    while ((line = strsep(&lines, "\n")) != NULL) {
        line += strspn(line, " ");
        size_t n = strcspn(line, " ");
        if (strlen(job) != n || strncmp(line, job, n) != 0) continue;
        *rest = line + n + strspn(line + n, " ");
        return strsep(rest, " ");
    }
    return NULL;
}

static int manager_take_end(const char *text, scr_halt_end *end)
{
    static const char *const without[] = {"",        "N/A",  "NONE",
                                          "UNKNOWN", "NULL", "UNLIMITED"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (!text || strcasecmp(text, without[i]) == 0) return COMMAND_GOOD;
    if (tool_time_parse(text, time(NULL), &end->time) != 0)
        return tool_say(BATCH_QUERY_FAILED, "squeue: \"%.60s\" is no time", text);
    end->source = "squeue";
    return COMMAND_GOOD;
}

int tool_manager_end(double seconds, scr_halt_end *end)
{
    char *output, *rest;
    kvtree_error err = {""};
    const manager *m = manager_find();
    const char *job = manager_job_id(m);
    const char *const command[] = {"squeue", "--noheader", "--format=%A %e",
                                   "--job",  job,          NULL};
    *end = (scr_halt_end){0, NULL};
    if (scr_halt_find_end(end, &err) != 0)
        return tool_say(END_TIME_INVALID, "%s", err.text);
    if (end->time || strcmp(m->name, "slurm") != 0) return COMMAND_GOOD;
    if (manager_ask_squeue(command, seconds, &output, &err) != 0)
        return tool_say(BATCH_QUERY_FAILED, "%s", err.text);
    int code = manager_take_end(manager_find_state(output, job, &rest), end);
    free(output);
    return code;
}

int tool_manager_find_end(const tool_prefix *prefix, double seconds, scr_halt_end *end)
{
    scr_problems problems = {0, NULL};
    int64_t when = 0;
    *end = (scr_halt_end){0, NULL};
    scr_config_int64(&prefix->config, "SCR_END_TIME", 0, &when, &problems);
    if (tool_tell_problems(&problems) != COMMAND_GOOD) return COMMAND_BAD;
    *end = (scr_halt_end){when, "SCR_END_TIME"};
    return when || seconds <= 0 ? COMMAND_GOOD : tool_manager_end(seconds, end);
}

/* When the time of a job is over, Slurm starts nothing in it, though it may still run. */
static bool manager_is_past(const char *text)
{
    int64_t end, now = time(NULL);
    return text && tool_time_parse(text, now, &end) == 0 && end <= now + NEAR;
}

bool tool_manager_is_over(double seconds)
{
    static const char *const ends[] = {
        "COMPLETING", "COMPLETED", "CANCELLED", "TIMEOUT",       "FAILED",    "NODE_FAIL",
        "PREEMPTED",  "DEADLINE",  "REVOKED",   "OUT_OF_MEMORY", "BOOT_FAIL", NULL};
    const manager *m = manager_find();
    const char *job = manager_job_id(m);
    char *output, *rest;
    kvtree_error err = {""};
    bool over = false;
    const char *const command[] = {
        "squeue", "--noheader", "--states=all", "--format=%A %T %e", "--job", job, NULL};
    if (strcmp(m->name, "slurm") != 0) return 0;
    if (manager_ask_squeue(command, seconds, &output, &err) != 0) return 0;
    const char *state = manager_find_state(output, job, &rest);
    for (size_t i = 0; state && ends[i]; i++)
        over |= strcmp(state, ends[i]) == 0;
    if (state) over |= manager_is_past(rest);
    free(output);
    return over;
}

int tool_manager_check(const tool *t, const char *text)
{
    kvtree_error err = {""};
    hostlist list = {0, NULL};
    int rc = text ? hostlist_parse(text, &list, &err) : 0;
    hostlist_done(&list);
    return rc ? tool_misused(t, "%s", err.text) : -1;
}

int tool_manager_up(const tool_prefix *prefix, const char *up, const char *down,
                    double seconds, hostlist *nodes)
{
    hostlist all = {0}, without = {0}, left = {0};
    int code = up ? tool_manager_parse(up, &all) : tool_manager_nodes(prefix, &all);
    if (code == COMMAND_GOOD && down) code = tool_manager_parse(down, &without);
    if (code == COMMAND_GOOD && !up && !down)
        code = tool_manager_down(&all, seconds, &without);
    if (code == COMMAND_GOOD &&
        (hostlist_minus(&all, &without, &left) != 0 || hostlist_once(&left, nodes) != 0))
        code = tool_no_memory();
    hostlist_done(&all);
    hostlist_done(&without);
    hostlist_done(&left);
    return code;
}
