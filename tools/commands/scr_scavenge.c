/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_scavenge: after the last run of a job, copies a dataset from the caches of its
 * nodes to the prefix directory (SCR Developer Guide 1.2, section 2.33.2). In round 1
 * each node copies the files of its ranks. If ranks are still missing, the nodes copy the
 * redundancy files of the affected sets in round 2. */
#include "lib/tool.h"
#include "lib/tool_heartbeat.h"
#include "lib/tool_log.h"
#include "lib/tool_manager.h"
#include "lib/tool_progress.h"
#include "nodes/down_nodes.h"
#include "prefix/flush_file.h"
#include "scavenge/node_command.h"
#include "scavenge/staging.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTHING = 3,         /* exit code: no cache has a part of the dataset */
    ANSWER = 60,         /* maximum seconds to inspect a cache */
    OUTPUT = 1 << 20,    /* maximum output per node in bytes */
    SETS_TEXT = 1 << 16, /* size of a list of sets; a longer list becomes "all" */
    SIGNS = 4,           /* heartbeats per timeout, ... */
    SIGN = 5             /* ... and maximum seconds between two heartbeats */
};

typedef struct scavenge_request {
    const char *dir, *up, *down;
    int id, seconds, width, stop, quiet;
} scavenge_request;

typedef enum node_state {
    NODE_UNKNOWN,
    NODE_ANSWERED,
    NODE_WITHOUT, /* it has no part of the dataset */
    NODE_FAILED,  /* a command failed on the node */
    NODE_GONE     /* the node does not answer and is not asked again */
} node_state;

/* The bytes that a node reported last. */
typedef struct node_bytes {
    bool is_known;
    uint64_t done, total;
} node_bytes;

typedef struct scavenge_job {
    const scavenge_request *r;
    const tool_prefix *prefix;
    hostlist nodes;
    node_state *states; /* one per node */
    tool_remote remote;
    hostlist asked;    /* nodes in this round, ... */
    int *asked_nodes;  /* ... and their indices in nodes */
    const char *round; /* name of the round */
    int done;          /* nodes that have finished */
    node_bytes *bytes; /* of the nodes in this round; and their sums */
    uint64_t copied, total;
    int known;          /* number of nodes in the sums */
    int silence;        /* timeout for heartbeats in seconds */
    scavenge_key key;   /* the newest dataset with the id; created 0: none */
    bool failed;        /* a node failed */
    tool_fold failures; /* of this round */
} scavenge_job;

/* ---- rounds ---- */

static void scavenge_failed(scavenge_job *s, int node, const char *command,
                            const tool_end *end)
{
    s->failed = true;
    s->states[node] = tool_remote_is_gone(end->code) ? NODE_GONE : NODE_FAILED;
    scavenge_command_failed(&s->failures, s->nodes.names[node], command, end);
}

static void scavenge_take_answer(int task, const tool_end *end, void *arg)
{
    scavenge_job *s = arg;
    int node = s->asked_nodes[task];
    const char *output = end->output;
    scavenge_answer answer;
    bool silent = end->code == 0 && end->size == strspn(output, "\n");
    if (end->code == SCAVENGE_NOTHING_HERE || silent) {
        s->states[node] = NODE_WITHOUT;
    } else if (end->code != 0 || !scavenge_answer_next(&output, &answer)) {
        scavenge_failed(s, node, "scr_inspect", end);
    } else {
        s->states[node] = NODE_ANSWERED;
        if (answer.created <= s->key.created) return;
        s->key.created = answer.created;
        s->key.id = s->r->id;
        strcpy(s->key.name, answer.name);
    }
}

/* Updates the progress; nodes without a report count as the mean of the others. */
static void scavenge_count(scavenge_job *s, int task, uint64_t done, uint64_t total)
{
    node_bytes *b = &s->bytes[task];
    s->known += !b->is_known;
    s->copied += done - b->done;
    s->total += total - b->total;
    *b = (node_bytes){true, done, total};
    tool_progress_set(s->copied,
                      s->total / (uint64_t)s->known * (uint64_t)s->asked.count);
}

static void scavenge_hear(int task, const char *output, void *arg)
{
    uint64_t done, total;
    if (tool_heartbeat_read(output, &done, &total))
        scavenge_count(arg, task, done, total);
}

static void scavenge_take_copy(int task, const tool_end *end, void *arg)
{
    scavenge_job *s = arg;
    int node = s->asked_nodes[task];
    char line[256];
    s->done++;
    scavenge_count(s, task, s->bytes[task].total, s->bytes[task].total);
    if (end->code == SCAVENGE_NOTHING_HERE) return;
    if (end->code != 0) {
        scavenge_failed(s, node, "scr_copy", end);
        return;
    }
    s->states[node] = NODE_ANSWERED;
    if (s->r->quiet) return;
    tool_progress_hide();
    printf("%s, %d of %d: node %s: ", s->round, s->done, s->asked.count,
           s->nodes.names[node]);
    const char *text = strstr(end->output, "dataset ");
    if (!text) text = tool_heartbeat_skip(end->output);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    tool_print(line);
    printf("\n");
    fflush(stdout);
}

/* Runs the command on the nodes in one of two states, and frees words. */
static int scavenge_run_round(scavenge_job *s, node_state a, node_state b,
                              tool_words *words, tool_report told)
{
    kvtree_error err = {"no memory"};
    hostlist_done(&s->asked);
    s->done = s->known = 0;
    s->copied = s->total = 0;
    memset(s->bytes, 0, (size_t)s->nodes.count * sizeof *s->bytes);
    for (int i = 0; i < s->nodes.count; i++) {
        if (s->states[i] != a && s->states[i] != b) continue;
        s->asked_nodes[s->asked.count] = i;
        if (hostlist_parse(s->nodes.names[i], &s->asked, &err) != 0) words->failed = 1;
    }
    if (s->asked.count || words->failed)
        return scavenge_command_run(&s->remote, &s->asked, words, told, s, &s->failures);
    tool_words_done(words);
    return COMMAND_GOOD;
}

/* Finds the nodes that have the newest dataset with the id. */
static int scavenge_inspect(scavenge_job *s)
{
    tool_words words = {0};
    scavenge_command_begin(&words, "scr_inspect", s->prefix);
    tool_words_add(&words, "--brief");
    tool_words_add(&words, "--id=%d", s->r->id);
    s->remote.seconds = s->r->seconds < ANSWER ? s->r->seconds : ANSWER;
    return scavenge_run_round(s, NODE_UNKNOWN, NODE_UNKNOWN, &words,
                              scavenge_take_answer);
}

/* Copies redundancy files of the sets; sets NULL: application files. */
static int scavenge_copy_round(scavenge_job *s, const char *round, const char *sets,
                               node_state a, node_state b)
{
    tool_words words = {0};
    scavenge_command_begin(&words, "scr_copy", s->prefix);
    tool_words_add(&words, "--id=%d", s->r->id);
    tool_words_add(&words, "--created=%" PRId64, s->key.created);
    tool_words_add(&words, "--width=%d", s->r->width);
    tool_words_add(&words, "--alive=%d",
                   s->silence / SIGNS < SIGN ? s->silence / SIGNS : SIGN);
    if (sets)
        tool_words_add(&words, "--sets=%s", sets);
    else
        tool_words_add(&words, "--files");
    if (!sets && s->r->stop) tool_words_add(&words, "--stop");
    s->round = round;
    s->remote.seconds = s->r->seconds;
    s->remote.silence = s->silence;
    s->remote.heard = scavenge_hear;
    if (!s->r->quiet) tool_progress_begin(round, NULL);
    int code = scavenge_run_round(s, a, b, &words, scavenge_take_copy);
    tool_progress_end();
    return code;
}

/* ---- the result ---- */

static char *scavenge_list_sets(const int *ids, int count)
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

/* Returns the number of missing ranks, or -1 if nothing was copied. *sets: the sets that
 * may rebuild them, to be freed. */
static int scavenge_count_missing(const scavenge_job *s, int *ranks, char **sets)
{
    kvtree_error err = {""};
    scavenge_saved saved;
    const scavenge_prefix prefix = {s->prefix->path, s->prefix->dir, 1, 0};
    int *ids = NULL, count = 0, missing = -1;
    *sets = NULL;
    if (scavenge_open(&prefix, &s->key, &saved, &err) != 0) {
        tool_say(SCAVENGE_UNREADABLE, "%s", err.text);
        return -1;
    }
    if (scavenge_scan_repairable(&saved.scan, &ids, &count) == 0 &&
        (!count || (*sets = scavenge_list_sets(ids, count)) != NULL)) {
        missing = scavenge_scan_missing(&saved.scan);
        *ranks = saved.scan.dataset.ranks;
    } else {
        tool_no_memory();
    }
    free(ids);
    if (saved.scan.refused) tool_say(SCAVENGE_FILE_REFUSED, "%s", saved.scan.why.text);
    scavenge_close(&saved);
    return missing;
}

static int scavenge_copy_rounds(scavenge_job *s, char note[64])
{
    int ranks = 0;
    char *sets = NULL;
    int code = scavenge_copy_round(s, "round 1", NULL, NODE_ANSWERED, NODE_FAILED);
    if (code == COMMAND_GOOD) /* failures may be transient */
        code = scavenge_copy_round(s, "round 1 again", NULL, NODE_FAILED, NODE_FAILED);
    if (code != COMMAND_GOOD) return code;
    int missing = scavenge_count_missing(s, &ranks, &sets);
    if (missing > 0 && sets) {
        s->failed = false; /* only this round decides about success */
        code = scavenge_copy_round(s, "round 2", sets, NODE_ANSWERED, NODE_FAILED);
    }
    bool repairable = sets && !s->failed;
    free(sets);
    if (missing < 0 || code != COMMAND_GOOD) return COMMAND_BAD;
    if (missing)
        snprintf(note, 64, "the files of %d of %d ranks are missing", missing, ranks);
    else
        snprintf(note, 64, "the files of all %d ranks are saved", ranks);
    if (!s->r->quiet) {
        printf("dataset %d (", s->r->id);
        tool_print(s->key.name);
        printf("): %s\n", note);
    }
    return !missing || repairable ? COMMAND_GOOD : COMMAND_BAD;
}

/* Logs an event; a log that cannot be written is not an obstacle. */
static void scavenge_log(const scavenge_job *s, scr_log_kind kind, double secs,
                         const char *note)
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

static int scavenge_copy_logged(scavenge_job *s)
{
    char note[64] = "";
    double start = tool_now();
    scavenge_log(s, SCR_LOG_SCAVENGE_START, 0, NULL);
    int code = scavenge_copy_rounds(s, note);
    scavenge_log(
        s, code == COMMAND_GOOD ? SCR_LOG_SCAVENGE_COMPLETE : SCR_LOG_SCAVENGE_FAILED,
        tool_now() - start, *note ? note : NULL);
    return code;
}

/* ---- work ---- */

/* Finds the newest dataset in the flush file. */
static int scavenge_find_id(const tool_prefix *prefix, int *id)
{
    kvtree_error err = {"no memory"};
    int count = 0, *ids = NULL;
    kvtree *flush = kvtree_new();
    int rc = flush ? scr_flush_file_read(prefix->dir, flush, &err) : -ENOMEM;
    if (!rc) rc = scr_flush_file_list(flush, &count, &ids);
    for (int i = 0; i < count; i++)
        if (ids[i] > *id) *id = ids[i];
    free(ids);
    kvtree_delete(&flush);
    if (rc == -ENOENT && tool_prefix_tell_unused(prefix)) return COMMAND_BAD;
    if (rc)
        return tool_say(FLUSH_FILE_UNUSABLE, "%s: %s; --id names a dataset", prefix->path,
                        err.text);
    if (*id) return COMMAND_GOOD;
    tool_say(CACHE_EMPTY, "no dataset is in a cache");
    return NOTHING;
}

static int scavenge_report_nothing(const scavenge_job *s)
{
    tool_owner owner;
    bool known = tool_owner_find(s->prefix, &owner) == COMMAND_GOOD;
    tool_say(CACHE_EMPTY, "no node has anything of dataset %d of job %s (SCR_JOB_ID)",
             s->r->id, known ? owner.job : "?");
    tool_prefix_tell_unused(s->prefix);
    return s->failed ? COMMAND_BAD : NOTHING;
}

/* Finds the nodes, the remote method, and the timeout for heartbeats, which must allow
 * one heartbeat per second. */
static int scavenge_prepare(scavenge_job *s)
{
    double seconds;
    int code = tool_manager_up(s->prefix, s->r->up, s->r->down, ANSWER, &s->nodes);
    if (code != COMMAND_GOOD) return code;
    size_t count = (size_t)s->nodes.count;
    if (!count) return tool_say(NODELIST_EMPTY, "there is no node to copy from");
    s->states = calloc(count, sizeof *s->states);
    s->asked_nodes = calloc(count, sizeof *s->asked_nodes);
    s->bytes = calloc(count, sizeof *s->bytes);
    if (!s->states || !s->asked_nodes || !s->bytes) return tool_no_memory();
    if (down_nodes_patience(s->prefix, &seconds) != COMMAND_GOOD) return COMMAND_BAD;
    s->silence = seconds < SIGNS ? SIGNS : seconds > INT_MAX ? INT_MAX : (int)seconds;
    s->remote.bytes = OUTPUT;
    s->remote.joined = 1;
    return tool_remote_choose(&s->remote, s->prefix, &s->nodes);
}

static int scavenge_work(scavenge_request *r, const tool_prefix *prefix)
{
    scavenge_job s = {.r = r, .prefix = prefix};
    int code = r->id ? COMMAND_GOOD : scavenge_find_id(prefix, &r->id);
    if (code == COMMAND_GOOD) code = scavenge_prepare(&s);
    if (code == COMMAND_GOOD) code = scavenge_inspect(&s);
    if (code == COMMAND_GOOD)
        code = s.key.created ? scavenge_copy_logged(&s) : scavenge_report_nothing(&s);
    tool_remote_done(&s.remote);
    hostlist_done(&s.asked);
    hostlist_done(&s.nodes);
    free(s.asked_nodes);
    free(s.bytes);
    free(s.states);
    return code;
}

int main(int argc, char **argv)
{
    scavenge_request r = {.seconds = 3600, .width = 4};
    const char *jobset = NULL;
    const char *from = NULL;
    int verbose = 0;
    const tool_option options[] = {
        {'i', "id", "ID", "the dataset (default: the newest in the flush file)",
         .number = &r.id},
        TOOL_PREFIX_OPTION(&r.dir),
        {'t', "to", "DIRECTORY", "the same", .text = &r.dir},
        {'f', "from", "DIRECTORY", "without effect, for scripts of SCR 3", .text = &from},
        TOOL_VERBOSE_OPTION(&verbose),
        {'j', "jobset", "NODES",
         "the nodes of the allocation (default: as scr_env\n--nodes prints them)",
         .text = &jobset},
        {'u', "up", "NODES", "copy from these (default: the nodes of the allocation)",
         .text = &r.up},
        {'d', "down", "NODES", "but not from these (default: those that are down)",
         .text = &r.down},
        {'T', "timeout", "SECONDS", "limit for a node in each round (default: 3600)",
         .number = &r.seconds},
        {'w', "width", "N", "ranks that a node copies at a time (default: 4)",
         .number = &r.width},
        {'x', "stop", NULL, "end transfers of scr_transfer for ranks that are saved",
         .flag = &r.stop},
        {'q', "quiet", NULL, "print errors only", .flag = &r.quiet},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about = "Copies a dataset from the caches of all nodes to the prefix directory, "
                 "when the\njob's last run has ended. scr_index --add then makes it one "
                 "to restart from.\n",
        .codes = "0 all ranks were saved, or what is needed to rebuild the others; 1 "
                 "not, or an\nerror; 2 wrong usage; 3 no cache has anything of the "
                 "dataset.\n",
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
    if (jobset && setenv("SCR_NODELIST", jobset, 1) != 0) return tool_no_memory();
    code = tool_prefix_configure_anyway(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = tool_prefix_convert(&prefix);
    if (code == COMMAND_GOOD) code = scavenge_work(&r, &prefix);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
