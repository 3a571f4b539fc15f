/* SPDX-License-Identifier: BSD-3-Clause */
/* The batch system; see tool_manager.h. */
#include "lib/tool_manager.h"

#include "common/io.h"
#include "lib/tool_manager_table.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_SIZE = 1 << 24, /* maximum size of a file with a list of nodes */
    ANSWER = 30          /* timeout of the batch system for a list of nodes, in seconds */
};

const char *tool_manager_name(void)
{
    return manager_find()->name;
}

const char *tool_manager_job(void)
{
    return manager_job_id(manager_find());
}

int tool_manager_find_job(char job[SCR_JOB_ID_SIZE], kvtree_error *err)
{
    return manager_find_job(manager_find(), job, err);
}

bool tool_manager_drained_waits(void)
{
    return manager_find()->drained_waits;
}

int tool_manager_reserve(void)
{
    return manager_find()->reserve;
}

const char *tool_manager_lost(void)
{
    return manager_find()->lost;
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

/* Returns the value of an environment variable; NULL if it is unset or empty. */
static const char *manager_variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

/* Parses "n1 4 n2 4": every second word is a number of processors. */
static int manager_parse_counted(const char *text, hostlist *list)
{
    char *names = strdup(text), *rest = names, *word;
    int code = names ? COMMAND_GOOD : tool_no_memory();
    for (int i = 0; code == COMMAND_GOOD && (word = strsep(&rest, " ")) != NULL;)
        if (*word && i++ % 2 == 0) code = tool_manager_parse(word, list);
    free(names);
    return code;
}

static int manager_ask_nodes(const manager *m, hostlist *list)
{
    char *output;
    kvtree_error err = {""};
    if (manager_ask(m, m->ask_nodes, NULL, ANSWER, &output, &err) != 0)
        return tool_say(BATCH_QUERY_FAILED, "%s", err.text);
    int code = tool_manager_parse(output, list);
    free(output);
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
    if (manager_variable(m->counted))
        return manager_parse_counted(manager_variable(m->counted), list);
    if (m->ask_nodes) return manager_ask_nodes(m, list);
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
    /* files have one line per processor */
    if (code == COMMAND_GOOD && hostlist_once(&all, nodes) != 0) code = tool_no_memory();
    hostlist_done(&all);
    return code;
}

/* ---- states of nodes ---- */

/* Adds the nodes that a command of the batch system lists. */
static int manager_ask_states(const hostlist *nodes, const manager *m,
                              const char *command, double seconds, hostlist *found)
{
    kvtree_error err = {""};
    hostlist all = {0, NULL};
    int code = COMMAND_GOOD;
    if (!command || nodes->count == 0) return COMMAND_GOOD;
    char *text = hostlist_compress(nodes), *output = NULL;
    const tool_value values[] = {{.name = "hostlist", .text = text}, {.name = NULL}};
    if (text) {
        if (manager_ask(m, command, values, seconds, &output, &err) != 0)
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
    const manager *m = manager_find();
    return manager_ask_states(nodes, m, m->down, seconds, down);
}

int tool_manager_drained(const hostlist *nodes, double seconds, hostlist *drained)
{
    const manager *m = manager_find();
    return manager_ask_states(nodes, m, m->drained, seconds, drained);
}

/* ---- the end of the allocation ---- */

int tool_manager_end(double seconds, scr_halt_end *end)
{
    char *output;
    kvtree_error err = {""};
    const manager *m = manager_find();
    *end = (scr_halt_end){0, NULL};
    if (scr_halt_find_end(end, &err) != 0)
        return tool_say(END_TIME_INVALID, "%s", err.text);
    if (end->time || !m->end) return COMMAND_GOOD;
    /* an instance of Flux that is not a job has no end */
    char job[SCR_JOB_ID_SIZE];
    int known = m->ask_job ? manager_find_job(m, job, &err) : 1;
    if (known < 0) return tool_say(BATCH_QUERY_FAILED, "%s", err.text);
    if (known == 0) return COMMAND_GOOD;
    if (manager_ask(m, m->end, NULL, seconds, &output, &err) != 0)
        return tool_say(BATCH_QUERY_FAILED, "%s", err.text);
    int rc = m->end_read(output, manager_job_id(m), &end->time, &err);
    free(output);
    if (end->time) end->source = m->end_source;
    return tool_result(BATCH_QUERY_FAILED, rc, &err);
}

int tool_manager_find_end(const tool_prefix *prefix, double seconds, scr_halt_end *end)
{
    scr_problems problems = {.count = 0};
    int64_t when = 0;
    *end = (scr_halt_end){0, NULL};
    scr_config_int64(&prefix->config, "SCR_END_TIME", 0, &when, &problems);
    if (tool_tell_problems(&problems) != COMMAND_GOOD) return COMMAND_BAD;
    *end = (scr_halt_end){when, "SCR_END_TIME"};
    return when || seconds <= 0 ? COMMAND_GOOD : tool_manager_end(seconds, end);
}

bool tool_manager_is_over(double seconds)
{
    const manager *m = manager_find();
    char *output;
    kvtree_error err = {""};
    if (!m->over || manager_ask(m, m->over, NULL, seconds, &output, &err) != 0)
        return false;
    bool over = m->over_read(output, manager_job_id(m));
    free(output);
    return over;
}

bool tool_manager_can_requeue(void)
{
    return manager_find()->requeue != NULL;
}

int tool_manager_requeue(double seconds, kvtree_error *err)
{
    const manager *m = manager_find();
    char *output;
    int rc = manager_ask(m, m->requeue, NULL, seconds, &output, err);
    if (!rc) free(output);
    return rc;
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
