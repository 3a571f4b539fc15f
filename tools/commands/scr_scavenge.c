/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_scavenge: after a job's last run, copies a dataset from the caches of its nodes to
 * the prefix folder (SCR Developer Guide 1.2, section 2.33.2). In the first round each
 * node that answers copies the files of its ranks; if some ranks are missing then, the
 * second round brings the redundancy files of their sets. */
#include "common/io.h"
#include "lib/tool.h"
#include "lib/tool_fold.h"
#include "lib/tool_log.h"
#include "lib/tool_manager.h"
#include "lib/tool_prefix.h"
#include "lib/tool_remote.h"
#include "nodes/down_nodes.h"
#include "prefix/flush_file.h"
#include "scavenge/staging.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTHING = 3,         /* exit code: the caches have nothing of it, ... */
    NOTHING_HERE = 3,    /* ... and that of a command on a node */
    ANSWER = 60,         /* seconds to tell what is in a cache, at most */
    OUTPUT = 1 << 16,    /* bytes that a node may print */
    SETS_TEXT = 1 << 16, /* bytes for a list of sets; a longer one is "all" */
    SIGNS = 4 /* of life that a node gives in the time that counts as silence */
};

typedef struct request {
    const char *dir, *up, *down;
    int id, seconds, width, stop, quiet;
} request;

typedef enum state { UNKNOWN, ANSWERED, WITHOUT, FAILED, GONE } state;

/* One call. */
typedef struct scavenge {
    const request *r;
    const tool_prefix *prefix;
    hostlist nodes;
    state *states; /* of the nodes */
    tool_remote remote;
    hostlist asked;    /* in this round */
    int *asked_nodes;  /* their numbers among all */
    const char *round; /* how it is called */
    int told;
    int silence;        /* seconds after which a node without a sign of life is gone */
    scavenge_key key;   /* of the newest dataset of that id; created 0: there is none */
    int trouble;        /* 1: some node failed */
    tool_fold failures; /* in this round */
} scavenge;

/* ---- rounds ---- */

static void tell_failure(scavenge *s, int node, const char *command, const tool_end *end)
{
    char line[256];
    s->trouble = 1;
    /* nothing is asked any more of one that is gone */
    s->states[node] = tool_remote_is_gone(end->code) ? GONE : FAILED;
    tool_remote_reason(end, command, line, sizeof line);
    const char *text = end->code ? end->text : "this is no answer";
    char all[1024];
    snprintf(all, sizeof all, "%s%s%s", text, *line ? ": " : "", line);
    if (tool_fold_add(&s->failures, s->nodes.names[node], all) != 0)
        tool_complain("node %s: %s", s->nodes.names[node], all);
}

/* The line that has the answer: what reaches the node may print others. NULL: none. */
static const char *find_answer(const char *output, int64_t *created, const char **name)
{
    for (const char *line = output; line; line = strchr(line, '\n')) {
        int at = 0;
        line += *line == '\n';
        if (sscanf(line, "%*d %" SCNd64 " %*d %*d %*d %*d %n", created, &at) != 1 || !at)
            continue;
        *name = line + at;
        return line;
    }
    return NULL;
}

/* "4 1795257190731827 8 2 2 0 ckpt.4" */
static void take_answer(int task, const tool_end *end, void *arg)
{
    scavenge *s = arg;
    int node = s->asked_nodes[task];
    int64_t created;
    const char *name;
    int silent = end->code == 0 && end->size == strspn(end->output, "\n");
    if (end->code == NOTHING_HERE || silent) {
        s->states[node] = WITHOUT;
        return;
    }
    if (end->code != 0 || !find_answer(end->output, &created, &name)) {
        tell_failure(s, node, "scr_inspect", end);
        return;
    }
    s->states[node] = ANSWERED;
    if (created <= s->key.created) return;
    s->key.created = created;
    s->key.id = s->r->id;
    snprintf(s->key.name, sizeof s->key.name, "%.*s", (int)strcspn(name, "\n"), name);
}

static void take_copy(int task, const tool_end *end, void *arg)
{
    scavenge *s = arg;
    int node = s->asked_nodes[task];
    char line[256];
    s->told++;
    if (end->code == NOTHING_HERE) return;
    if (end->code != 0) {
        tell_failure(s, node, "scr_copy", end);
        return;
    }
    s->states[node] = ANSWERED;
    if (s->r->quiet) return;
    printf("%s, %d of %d: node %s: ", s->round, s->told, s->asked.count,
           s->nodes.names[node]);
    const char *said = strstr(end->output, "dataset ");
    /* signs of life are empty lines */
    if (!said) said = end->output + strspn(end->output, "\n");
    snprintf(line, sizeof line, "%.*s", (int)strcspn(said, "\n"), said);
    tool_print(line);
    printf("\n");
    fflush(stdout);
}

/* Adds the nodes in one of two states to those that are asked. */
static int choose(scavenge *s, state a, state b)
{
    char err[ERRTEXT_SIZE] = "no memory";
    hostlist_done(&s->asked);
    s->told = 0;
    for (int i = 0; i < s->nodes.count; i++) {
        if (s->states[i] != a && s->states[i] != b) continue;
        s->asked_nodes[s->asked.count] = i;
        if (hostlist_parse(s->nodes.names[i], &s->asked, err) != 0)
            return tool_complain("%s", err);
    }
    return COMMAND_GOOD;
}

static int ask(scavenge *s, double seconds, const char *const argv[], tool_told told)
{
    char err[ERRTEXT_SIZE] = "";
    if (s->asked.count == 0) return COMMAND_GOOD;
    s->remote.seconds = seconds;
    int rc = tool_remote_run(&s->remote, &s->asked, argv, told, s, err);
    tool_fold_complain(&s->failures);
    return rc ? tool_complain("%s", err) : COMMAND_GOOD;
}

/* Which nodes have something of the newest dataset of that id. */
static int inspect(scavenge *s)
{
    char id[16];
    double seconds = s->r->seconds < ANSWER ? s->r->seconds : ANSWER;
    char *program = tool_remote_command("scr_inspect");
    snprintf(id, sizeof id, "%d", s->r->id);
    const char *const argv[] = {program,    "--brief",       "--id", id,
                                "--prefix", s->prefix->path, NULL};
    int code = program ? choose(s, UNKNOWN, UNKNOWN) : tool_complain("no memory");
    if (code == COMMAND_GOOD) code = ask(s, seconds, argv, take_answer);
    free(program);
    return code;
}

/* A round of scr_copy, by nodes in one of two states; sets NULL: files. */
static int copy(scavenge *s, const char *sets, state a, state b)
{
    char id[16], created[32], width[16], alive[16];
    char *program = tool_remote_command("scr_copy");
    const char *stop = s->r->stop ? "--stop" : NULL; /* where files are, rounds begin */
    snprintf(id, sizeof id, "%d", s->r->id);
    snprintf(created, sizeof created, "%" PRId64, s->key.created);
    snprintf(width, sizeof width, "%d", s->r->width);
    snprintf(alive, sizeof alive, "%d", s->silence > SIGNS ? s->silence / SIGNS : 1);
    const char *const argv[] = {program,
                                "--id",
                                id,
                                "--created",
                                created,
                                "--width",
                                width,
                                "--alive",
                                alive,
                                "--prefix",
                                s->prefix->path,
                                sets ? "--sets" : "--files",
                                sets ? sets : stop,
                                NULL};
    int code = program ? choose(s, a, b) : tool_complain("no memory");
    s->remote.silence = s->silence;
    if (code == COMMAND_GOOD) code = ask(s, s->r->seconds, argv, take_copy);
    free(program);
    return code;
}

/* ---- what is there now ---- */

static char *list_sets(const int *ids, int count)
{
    char *text = malloc(SETS_TEXT);
    size_t used = 0;
    for (int i = 0; text && i < count; i++) {
        int n = snprintf(text + used, SETS_TEXT - used, "%s%d", i ? "," : "", ids[i]);
        used += (size_t)n;
        if (used < SETS_TEXT) continue;
        strcpy(text, "all");
        break;
    }
    return text;
}

/* How many ranks are missing, or -1 when nothing is there; and the list of sets that
 * could give them back, to be freed. */
static int look(const scavenge *s, int *ranks, char **sets)
{
    char err[ERRTEXT_SIZE] = "";
    scavenge_saved saved;
    const scavenge_prefix prefix = {s->prefix->path, s->prefix->dir, 1, 0};
    int *ids = NULL, count = 0, missing = -1;
    *sets = NULL;
    if (scavenge_open(&prefix, &s->key, &saved, err) != 0) {
        tool_complain("%s", err);
        return -1;
    }
    if (scavenge_scan_repairable(&saved.scan, &ids, &count) == 0 &&
        (!count || (*sets = list_sets(ids, count)) != NULL)) {
        missing = scavenge_scan_missing(&saved.scan);
        *ranks = saved.scan.dataset.ranks;
    } else {
        tool_complain("no memory");
    }
    free(ids);
    if (saved.scan.refused) tool_complain("%s", saved.scan.why);
    scavenge_close(&saved);
    return missing;
}

static void conclude(const scavenge *s, int missing, int ranks, char note[64])
{
    if (missing)
        snprintf(note, 64, "the files of %d of %d ranks are missing", missing, ranks);
    else
        snprintf(note, 64, "the files of all %d ranks are saved", ranks);
    if (s->r->quiet) return;
    printf("dataset %d (", s->r->id);
    tool_print(s->key.name);
    printf("): %s\n", note);
}

static int both_rounds(scavenge *s, char note[64])
{
    int ranks = 0;
    char *sets = NULL;
    s->round = "round 1";
    int code = copy(s, NULL, ANSWERED, FAILED);
    s->round = "round 1 again"; /* where it failed, and may have done so by chance */
    if (code == COMMAND_GOOD) code = copy(s, NULL, FAILED, FAILED);
    if (code != COMMAND_GOOD) return code;
    s->round = "round 2";
    int missing = look(s, &ranks, &sets);
    if (missing > 0 && sets) {
        s->trouble = 0; /* what counts now is whether these come */
        code = copy(s, sets, ANSWERED, FAILED);
    }
    int helped = sets && !s->trouble;
    free(sets);
    if (missing < 0 || code != COMMAND_GOOD) return COMMAND_BAD;
    conclude(s, missing, ranks, note);
    return !missing || helped ? COMMAND_GOOD : COMMAND_BAD;
}

/* No log stands in the way of what it tells about. */
static void tell_log(const scavenge *s, scr_log_kind kind, double secs, const char *note)
{
    const scr_log_event event = {.kind = kind,
                                 .dset = s->r->id,
                                 .name = s->key.name,
                                 .to = s->prefix->path,
                                 .nodes = s->nodes.count,
                                 .secs = secs,
                                 .note = note};
    tool_log_write(s->prefix, &event, NULL);
}

static int both_rounds_logged(scavenge *s)
{
    char note[64] = "";
    double start = tool_tasks_now();
    tell_log(s, SCR_LOG_SCAVENGE_START, 0, NULL);
    int code = both_rounds(s, note);
    tell_log(s,
             code == COMMAND_GOOD ? SCR_LOG_SCAVENGE_COMPLETE : SCR_LOG_SCAVENGE_FAILED,
             tool_tasks_now() - start, *note ? note : NULL);
    return code;
}

/* ---- work ---- */

/* The one that the flush file calls the newest. */
static int find_id(const tool_prefix *prefix, int *id)
{
    char err[ERRTEXT_SIZE] = "no memory";
    int count = 0, *ids = NULL;
    kvtree *flush = kvtree_new();
    int rc = flush ? scr_flush_file_read(prefix->dir, flush, err) : -ENOMEM;
    rc = rc ? rc : scr_flush_file_list(flush, &count, &ids);
    for (int i = 0; i < count; i++)
        if (ids[i] > *id) *id = ids[i];
    free(ids);
    kvtree_delete(&flush);
    if (rc == -ENOENT && tool_prefix_tell_unused(prefix)) return COMMAND_BAD;
    if (rc)
        return tool_complain(
            "%s: %s; scr_inspect --all lists what is in the caches, --id "
            "names a dataset",
            prefix->path, err);
    if (*id) return COMMAND_GOOD;
    tool_complain("no dataset is in a cache");
    return NOTHING;
}

static int find_nodes(scavenge *s)
{
    int code = tool_manager_up(s->prefix, s->r->up, s->r->down, ANSWER, &s->nodes);
    if (code == COMMAND_GOOD && s->nodes.count == 0)
        code = tool_complain("there is no node to copy from");
    return code;
}

/* SCR_NODE_TIMEOUT, and not so short that signs of life could come late. */
static int find_silence(scavenge *s)
{
    double seconds;
    int code = down_nodes_patience(s->prefix, &seconds);
    s->silence = seconds < SIGNS ? SIGNS : seconds > INT_MAX ? INT_MAX : (int)seconds;
    return code;
}

static void tell_nothing(const scavenge *s)
{
    tool_owner owner;
    int known = tool_owner_find(s->prefix, &owner) == COMMAND_GOOD;
    tool_complain("no node has anything of dataset %d in the caches of job %s "
                  "(SCR_JOB_ID); scr_inspect --all lists what they have",
                  s->r->id, known ? owner.job : "?");
    tool_prefix_tell_unused(s->prefix);
}

static int run(scavenge *s)
{
    size_t count = (size_t)s->nodes.count;
    s->states = calloc(count, sizeof *s->states);
    s->asked_nodes = calloc(count, sizeof *s->asked_nodes);
    if (!s->states || !s->asked_nodes) return tool_complain("no memory");
    s->remote.bytes = OUTPUT;
    s->remote.joined = 1;
    if (find_silence(s) != COMMAND_GOOD) return COMMAND_BAD;
    int code = tool_remote_choose(&s->remote, s->prefix, &s->nodes);
    if (code == COMMAND_GOOD) code = inspect(s);
    if (code != COMMAND_GOOD) return code;
    if (!s->key.created) {
        tell_nothing(s);
        return s->trouble ? COMMAND_BAD : NOTHING;
    }
    return both_rounds_logged(s);
}

static int work(request *r, const tool_prefix *prefix)
{
    scavenge *s = calloc(1, sizeof *s);
    if (!s) return tool_complain("no memory");
    s->r = r;
    s->prefix = prefix;
    int code = r->id ? COMMAND_GOOD : find_id(prefix, &r->id);
    if (code == COMMAND_GOOD) code = find_nodes(s);
    if (code == COMMAND_GOOD) code = run(s);
    tool_remote_done(&s->remote);
    hostlist_done(&s->asked);
    hostlist_done(&s->nodes);
    free(s->asked_nodes);
    free(s->states);
    free(s);
    return code;
}

int main(int argc, char **argv)
{
    request r = {.seconds = 3600, .width = 4};
    const char *jobset = NULL;
    const tool_option options[] = {
        {'i', "id", "ID", "the dataset (default: the newest in the flush file)",
         .number = &r.id},
        {'p', "prefix", "FOLDER", "the prefix folder (default: SCR_PREFIX, or this one)",
         .text = &r.dir},
        {'j', "jobset", "NODES",
         "the nodes of the allocation (default: as scr_env\n--nodes prints them)",
         .text = &jobset},
        {'u', "up", "NODES", "copy from these (default: the nodes of the allocation)",
         .text = &r.up},
        {'d', "down", "NODES", "but not from these (default: those that are down)",
         .text = &r.down},
        {'t', "timeout", "SECONDS", "that a node has in each round (default: 3600)",
         .number = &r.seconds},
        {'w', "width", "N", "ranks that a node copies at a time (default: 4)",
         .number = &r.width},
        {'x', "stop", NULL, "end what scr_transfer still copies, where it is saved",
         .flag = &r.stop},
        {'q', "quiet", NULL, "print complaints only", .flag = &r.quiet},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "Copies a dataset from the caches of all nodes to the prefix folder, "
                 "when the\njob's last run has ended. scr_index --add then makes it one "
                 "to restart from.\n",
        .codes = "0 all ranks were saved, or what there is to rebuild the others; 1 not, "
                 "or an\nerror; 2 wrong usage; 3 no cache has anything of the dataset.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code < 0 && (r.seconds < 1 || r.width < 1))
        code = tool_misused(&t, "--timeout and --width are at least 1");
    if (code < 0) code = tool_manager_check(&t, jobset);
    if (code < 0) code = tool_manager_check(&t, r.up);
    if (code < 0) code = tool_manager_check(&t, r.down);
    if (code >= 0) return code;
    command_outlive_reader();
    if (jobset && setenv("SCR_NODELIST", jobset, 1) != 0)
        return tool_complain("no memory");
    code = tool_prefix_configure_anyway(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = work(&r, &prefix);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
