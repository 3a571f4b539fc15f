/* SPDX-License-Identifier: BSD-3-Clause */
/* A command on several nodes; see tool_remote.h. */
#include "lib/tool_remote.h"

#include "common/io.h"
#include "common/others.h"
#include "lib/tool.h"
#include "lib/tool_heartbeat.h"
#include "lib/tool_manager.h"
#include "lib/tool_run.h"
#include "lib/tool_user.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 /* nodes at once */, ANSWER = 30 /* seconds for a list of brokers */ };

/* ---- remote methods ---- */

/* Form in which the command follows the words that reach a node. */
typedef enum tail { ARGV, ENV_ARGV, SHELL_LINE } tail;

typedef struct way {
    const char *name;
    const char *begin[7]; /* words, ended by NULL; for "shell", options of ssh */
    const char *option;   /* prefix of the node's name, in the same word */
    tail tail;
} way;

static const way ways[] = {
    {"local", {NULL}, NULL, ARGV},
    {"simulate", {NULL}, NULL, ARGV},
    /* runs beside the job step on that node; Slurm forwards the environment */
    {"srun",
     {"srun", "--quiet", "--nodes=1", "--ntasks=1", "--overlap", "--mpi=none", NULL},
     "--nodelist=",
     ARGV},
    /* runs through the broker of that node and needs no free resources; the broker has
     * another environment */
    {"flux", {"flux", "exec", "--noinput", NULL}, "--rank=", ENV_ARGV},
    {"pdsh", {"pdsh", "-S", "-N", "-w", NULL}, "", SHELL_LINE},
    /* without prompts for a password */
    {"shell", {"-x", "-oBatchMode=yes", NULL}, "", SHELL_LINE},
};

static const way *remote_find_way(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, name) == 0) return &ways[i];
    return NULL;
}

static bool remote_is(const way *w, const char *name)
{
    return strcmp(w->name, name) == 0;
}

/* Variables that are not passed on: each node has its own name; and command lines are
 * public, passwords are not. */
static bool remote_is_local_variable(const char *entry)
{
    static const char *const local[] = {
        "SCR_NODE_NAME=", "SCR_LOG_DB_PASS=", "SCR_DB_PASS="};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (strncmp(entry, local[i], strlen(local[i])) == 0) return true;
    return false;
}

static void remote_add_with_environment(const char *const argv[], tool_words *words)
{
    tool_words_add(words, "env");
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, "SCR_", 4) == 0 && !remote_is_local_variable(*entry))
            tool_words_add(words, "%s", *entry);
    tool_words_add_all(words, argv);
}

static void remote_add_shell_line(const char *const argv[], tool_words *words)
{
    tool_words line = {0};
    remote_add_with_environment(argv, &line);
    if (!line.failed) tool_words_add_quoted(words, tool_words_list(&line));
    words->failed |= line.failed;
    tool_words_done(&line);
}

/* Simulates reaching a node. A lost node has no directory. A hanging node has a file
 * "hung" in its directory, and commands on it never end. */
static int remote_add_simulated(const tool_remote *remote, const char *node,
                                const char *const argv[], tool_words *words)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", remote->simulated, node);
    if (n < 0 || (size_t)n + 8 > sizeof path) return -ENAMETOOLONG;
    if (access(path, X_OK) != 0) return -EHOSTDOWN;
    strcat(path, "/hung");
    if (access(path, F_OK) == 0) {
        static const char *const hang[] = {"sleep", "2147483647", NULL};
        tool_words_add_all(words, hang);
        return 0;
    }
    tool_words_add(words, "env");
    tool_words_add(words, "SCR_NODE_NAME=%s", node);
    tool_words_add(words, "SCR_CACHE_BASE=%s/%s/cache", remote->simulated, node);
    tool_words_add(words, "SCR_CNTL_BASE=%s/%s/cntl", remote->simulated, node);
    tool_words_add_all(words, argv);
    return 0;
}

int tool_remote_words(const tool_remote *remote, const char *node,
                      const char *const argv[], tool_words *words)
{
    const way *w = remote_find_way(remote->way);
    int rank = 0;
    if (w->option && strcmp(node, remote->self) == 0) w = &ways[0];
    if (remote_is(w, "simulate")) {
        int rc = remote_add_simulated(remote, node, argv, words);
        return rc || !words->failed ? rc : -ENOMEM;
    }
    if (remote_is(w, "shell")) tool_words_add(words, "%s", remote->shell);
    if (!remote_is(w, "shell") || remote->is_ssh) tool_words_add_all(words, w->begin);
    if (remote_is(w, "flux")) {
        while (rank < remote->brokers.count &&
               strcmp(remote->brokers.names[rank], node) != 0)
            rank++;
        if (rank == remote->brokers.count) return -EHOSTDOWN;
        tool_words_add(words, "%s%d", w->option, rank);
    } else if (w->option) {
        tool_words_add(words, "%s%s", w->option, node);
    }
    if (w->tail == SHELL_LINE)
        remote_add_shell_line(argv, words);
    else if (w->tail == ENV_ARGV)
        remote_add_with_environment(argv, words);
    else
        tool_words_add_all(words, argv);
    return words->failed ? -ENOMEM : 0;
}

/* ---- choice of the method ---- */

static const char *remote_find_name(const tool_remote *remote, const hostlist *nodes)
{
    const char *manager = tool_manager_name(), *exec = getenv("HYDRA_LAUNCHER_EXEC");
    int far = 0;
    for (int i = 0; i < nodes->count; i++)
        far |= strcmp(nodes->names[i], remote->self) != 0;
    if (remote->simulated) return "simulate";
    if (!far) return "local";
    if (strcmp(manager, "slurm") == 0 && tool_run_is_there("srun")) return "srun";
    if (strcmp(manager, "flux") == 0 && tool_run_is_there("flux")) return "flux";
    if (!(exec && *exec) && tool_run_is_there("pdsh")) return "pdsh";
    return "shell";
}

static int remote_find_brokers(tool_remote *remote)
{
    static const char *const command[] = {"flux", "getattr", "hostlist", NULL};
    char *text = NULL;
    kvtree_error err = {""};
    int rc = tool_run(command, ANSWER, &text, &err);
    if (!rc) rc = hostlist_parse(text, &remote->brokers, &err);
    free(text);
    return rc ? tool_say(REMOTE_UNUSABLE, "brokers of Flux: %s", err.text) : COMMAND_GOOD;
}

/* Copies a value, to be freed; NULL for an empty one. */
static int remote_copy(const char *value, char **text)
{
    *text = value && *value ? strdup(value) : NULL;
    return value && *value && !*text ? tool_no_memory() : COMMAND_GOOD;
}

/* Refuses a program that others can change, and a missing one, since others may create it
 * before it is started. */
static int remote_check_shell(tool_remote *remote)
{
    char path[PATH_MAX], *program;
    kvtree_error err = {""};
    const char *slash = strrchr(remote->shell, '/');
    remote->is_ssh = strcmp(slash ? slash + 1 : remote->shell, "ssh") == 0;
    if (!tool_run_find(remote->shell, path))
        return tool_say(REMOTE_UNUSABLE, "SCR_REMOTE_SHELL: %s: no such program",
                        remote->shell);
    if (tool_user_program(path, &program, &err) != 0)
        return tool_say(REMOTE_UNUSABLE, "SCR_REMOTE_SHELL: %s", err.text);
    free(remote->shell);
    remote->shell = program;
    return COMMAND_GOOD;
}

int tool_remote_choose(tool_remote *remote, const tool_prefix *prefix,
                       const hostlist *nodes)
{
    tool_owner owner;
    const scr_config *c = &prefix->config;
    const char *name = scr_config_get(c, "SCR_REMOTE", NULL);
    const char *shell = scr_config_get(c, "SCR_REMOTE_SHELL", NULL);
    int code = tool_owner_find(prefix, &owner);
    if (!shell || !*shell) shell = getenv("HYDRA_LAUNCHER_EXEC");
    if (!shell || !*shell) shell = "ssh";
    if (code == COMMAND_GOOD) code = remote_copy(shell, &remote->shell);
    if (code == COMMAND_GOOD)
        code = remote_copy(scr_config_get(c, "SCR_SIMULATE", NULL), &remote->simulated);
    if (code != COMMAND_GOOD) return code;
    strcpy(remote->self, owner.node);
    if (!name || !*name) name = remote_find_name(remote, nodes);
    const way *w = remote_find_way(name);
    if (!w) return tool_say(REMOTE_UNUSABLE, "SCR_REMOTE=%.60s: no such way", name);
    remote->way = w->name;
    if (remote_is(w, "simulate") && !remote->simulated)
        return tool_say(REMOTE_UNUSABLE, "SCR_REMOTE=simulate needs scr_run --simulate");
    if (remote_is(w, "shell")) return remote_check_shell(remote);
    return remote_is(w, "flux") ? remote_find_brokers(remote) : COMMAND_GOOD;
}

void tool_remote_done(tool_remote *remote)
{
    free(remote->shell);
    free(remote->simulated);
    hostlist_done(&remote->brokers);
    remote->shell = remote->simulated = NULL;
}

/* ---- execution ---- */

typedef struct call {
    const tool_remote *remote;
    const hostlist *nodes;
    int *node_of; /* task -> index of the node */
    tool_report report;
    void *arg;
} call;

/* Reports a node for which no command could be made. */
static void remote_report_failure(const call *c, int node, int code)
{
    kvtree_error err = {""};
    const tool_end end = {code, err.text, "", 0};
    err_sys(&err, code, "%s", c->nodes->names[node]);
    c->report(node, &end, c->arg);
}

/* Whether the connection to the node failed rather than the command on it: ssh and
 * similar programs exit with 255, which pdsh passes on; pdsh itself exits with 254.
 * Commands of this project use neither code. */
static bool remote_is_unreached(const tool_remote *remote, const char *node, int code)
{
    int shell = strcmp(remote->way, "shell") == 0,
        pdsh = strcmp(remote->way, "pdsh") == 0;
    if (strcmp(node, remote->self) == 0) return false;
    return (code == 255 && (shell || pdsh)) || (code == 254 && pdsh);
}

static void remote_report_end(int task, const tool_end *end, void *arg)
{
    const call *c = arg;
    int node = c->node_of[task];
    tool_end known = *end;
    if (remote_is_unreached(c->remote, c->nodes->names[node], end->code))
        known.code = -EHOSTUNREACH;
    c->report(node, &known, c->arg);
}

static void remote_report_output(int task, const char *output, void *arg)
{
    const call *c = arg;
    c->remote->heard(c->node_of[task], output, c->arg);
}

int tool_remote_run(const tool_remote *remote, const hostlist *nodes,
                    const char *const argv[], tool_report report, void *arg,
                    kvtree_error *err)
{
    const tool_limits limits = {.seconds = remote->seconds,
                                .bytes = remote->bytes,
                                .most = remote->most > 0 ? remote->most : MOST,
                                .silence = remote->silence,
                                .heard = remote->heard ? remote_report_output : NULL,
                                .joined = remote->joined};
    size_t n = (size_t)nodes->count;
    tool_words *words = calloc(n + 1, sizeof *words);
    const char *const **tasks = calloc(n + 1, sizeof *tasks);
    int *node_of = calloc(n + 1, sizeof *node_of), count = 0;
    call c = {remote, nodes, node_of, report, arg};
    int rc = words && tasks && node_of ? 0 : -ENOMEM;
    for (int i = 0; i < nodes->count && !rc; i++) {
        rc = tool_remote_words(remote, nodes->names[i], argv, &words[i]);
        if (rc && rc != -ENOMEM) {
            remote_report_failure(&c, i, rc);
            rc = 0;
        } else if (!rc) {
            tasks[count] = tool_words_list(&words[i]);
            node_of[count++] = i;
        }
    }
    if (rc)
        err_sys(err, rc, "%s", argv[0]);
    else
        rc = tool_process_run(tasks, count, &limits, remote_report_end, &c, err);
    for (size_t i = 0; words && i < n; i++)
        tool_words_done(&words[i]);
    free(node_of);
    free(tasks);
    free(words);
    return rc;
}

/* ---- commands of this project ---- */

bool tool_remote_reason(const tool_end *end, const char *name, char *line, size_t size)
{
    bool own = false;
    const char *said = tool_heartbeat_skip(end->output), *at = said;
    size_t n = strlen(name);
    while (at && *at) {
        at += strspn(at, "\n");
        if (strncmp(at, name, n) == 0 && strncmp(at + n, ": ", 2) == 0) {
            said = at + n + 2;
            own = true;
            break;
        }
        at = strchr(at, '\n');
    }
    snprintf(line, size, "%.*s", (int)strcspn(said, "\n"), said);
    return own;
}

/* Whether the command at path is as safe as this program. */
static bool remote_is_ours(const char *path)
{
    struct stat self;
    if (stat("/proc/self/exe", &self) != 0) return false;
    int fd = others_open_beside(path, &self, geteuid());
    bool ours = fd >= 0;
    io_close(&fd);
    return ours;
}

char *tool_remote_command(const char *name)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    char *slash = n > 0 && (size_t)n < sizeof path ? memrchr(path, '/', (size_t)n) : NULL;
    if (slash && strlen(name) < sizeof path - (size_t)(slash + 1 - path)) {
        slash[1] = 0;
        bool trusted = !others_put_beside(path);
        strcpy(slash + 1, name);
        if (trusted && access(path, X_OK) == 0 && remote_is_ours(path))
            return strdup(path);
    }
    return strdup(name);
}

bool tool_remote_is_gone(int code)
{
    return code == -ETIMEDOUT || code == -EHOSTDOWN || code == -EHOSTUNREACH ||
           code == -EIO;
}
