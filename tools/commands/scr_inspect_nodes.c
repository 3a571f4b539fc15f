/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_inspect --up: what the caches of several nodes have together (SCR Developer Guide
 * 1.2, section 2.33.1, step 10). Each node is asked by scr_inspect --brief. */
#include "commands/scr_inspect.h"
#include "lib/tool.h"
#include "lib/tool_fold.h"
#include "lib/tool_manager.h"
#include "lib/tool_remote.h"
#include "lib/tool_table.h"
#include "lib/tool_time.h"
#include "plan/dataset.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER = 60 /* seconds */, OUTPUT = 1 << 20 /* bytes that a node may print */ };

/* A dataset. */
typedef struct found {
    int id, ranks, here, whole, run;
    int64_t created;
    char name[SCR_NAME_SIZE];
    hostlist nodes; /* that have something of it */
} found;

typedef struct look {
    const tool_prefix *prefix;
    hostlist nodes;
    tool_remote remote;
    int count;
    found *list;
    int answers; /* nodes on which a run was */
    int code;
    tool_fold failures;
} look;

/* ---- answers ---- */

/* Where it belongs; new ones are added in their order. NULL without memory. */
static found *find(look *l, const found *one)
{
    int i = 0;
    while (i < l->count &&
           (l->list[i].id < one->id ||
            (l->list[i].id == one->id && l->list[i].created < one->created)))
        i++;
    if (i < l->count && l->list[i].id == one->id && l->list[i].created == one->created)
        return &l->list[i];
    found *more = realloc(l->list, ((size_t)l->count + 1) * sizeof *more);
    if (!more) return NULL;
    l->list = more;
    memmove(&more[i + 1], &more[i], (size_t)(l->count++ - i) * sizeof *more);
    more[i] = (found){.id = one->id, .created = one->created, .ranks = one->ranks};
    strcpy(more[i].name, one->name);
    return &more[i];
}

/* "4 1795257190731827 8 2 2 0 ckpt.4"; what reaches the node may print other lines. */
static int parse(const char *line, found *f)
{
    int at = 0;
    *f = (found){.id = 0};
    if (sscanf(line, "%9d %18" SCNd64 " %9d %9d %9d %1d %n", &f->id, &f->created,
               &f->ranks, &f->here, &f->whole, &f->run, &at) != 6 ||
        !at || f->id < 1)
        return 0;
    snprintf(f->name, sizeof f->name, "%.*s", (int)strcspn(line + at, "\n"), line + at);
    return 1;
}

static void add(look *l, const char *node, const found *one)
{
    char err[ERRTEXT_SIZE] = "no memory";
    found *f = find(l, one);
    if (!f || hostlist_parse(node, &f->nodes, err) != 0) {
        l->code = tool_complain("%s", err);
        return;
    }
    f->here += one->here;
    f->whole += one->whole;
    f->run |= one->run;
}

static void take(int task, const tool_end *end, void *arg)
{
    look *l = arg;
    const char *node = l->nodes.names[task], *line = end->output;
    char reason[256];
    found one;
    if (end->code == INSPECT_NOTHING) return;
    if (end->code != 0) {
        tool_remote_reason(end, "scr_inspect", reason, sizeof reason);
        char all[1024];
        snprintf(all, sizeof all, "%s%s%s", end->text, *reason ? ": " : "", reason);
        if (tool_fold_add(&l->failures, node, all) != 0)
            tool_complain("node %s: %s", node, all);
        l->code = COMMAND_BAD;
        return;
    }
    l->answers++;
    if (strstr(end->output, "scr_inspect: ")) {
        tool_remote_reason(end, "scr_inspect", reason, sizeof reason);
        if (tool_fold_add(&l->failures, node, reason) != 0)
            tool_complain("node %s: %s", node, reason);
    }
    for (; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (parse(line, &one)) add(l, node, &one);
    }
}

/* ---- nodes ---- */

static int find_nodes(look *l, const inspect_request *r)
{
    int code = tool_manager_up(l->prefix, r->up, NULL, ANSWER, &l->nodes);
    if (code == COMMAND_GOOD && l->nodes.count == 0) code = tool_complain("no nodes");
    return code;
}

static int ask(look *l, const inspect_request *r)
{
    char err[ERRTEXT_SIZE] = "", id[16];
    char *program = tool_remote_command("scr_inspect");
    const char *argv[9] = {program, "--brief", "--prefix", l->prefix->path};
    int n = 4;
    snprintf(id, sizeof id, "%d", r->id);
    if (r->id) {
        argv[n++] = "--id";
        argv[n++] = id;
    }
    if (r->control) {
        argv[n++] = "--cntldir";
        argv[n++] = r->control;
    }
    argv[n] = NULL;
    l->remote.seconds = ANSWER;
    l->remote.bytes = OUTPUT;
    l->remote.joined = 1;
    int code = program ? tool_remote_choose(&l->remote, l->prefix, &l->nodes)
                       : tool_complain("no memory");
    if (code == COMMAND_GOOD &&
        tool_remote_run(&l->remote, &l->nodes, argv, take, l, err) != 0)
        code = tool_complain("%s", err);
    tool_remote_done(&l->remote);
    free(program);
    return code;
}

/* ---- output ---- */

static int print(const look *l, const inspect_request *r)
{
    static const tool_column columns[] = {
        {"dset", "DSET", TOOL_NUMBER},   {"created", "CREATED", TOOL_TEXT},
        {"ranks", "RANKS", TOOL_NUMBER}, {"here", "HERE", TOOL_NUMBER},
        {"whole", "WHOLE", TOOL_NUMBER}, {"nodes", "NODES", TOOL_TEXT},
        {"name", "NAME", TOOL_TEXT},     {"time", NULL, TOOL_NUMBER},
        {"run", NULL, TOOL_SWITCH},
    };
    char created[TOOL_TIME_SIZE];
    tool_table *table = tool_table_new(columns, 9);
    for (int i = 0; i < l->count; i++) {
        const found *f = &l->list[i];
        char *nodes = hostlist_compress(&f->nodes);
        tool_time_text(f->created / 1000000, created);
        tool_table_number(table, f->id);
        tool_table_text(table, created);
        tool_table_number(table, f->ranks);
        tool_table_number(table, f->here);
        tool_table_number(table, f->whole);
        tool_table_mark(table, f->whole == f->ranks ? TOOL_GOOD : TOOL_BAD);
        tool_table_text(table, nodes);
        tool_table_text(table, f->name);
        tool_table_number(table, f->created);
        tool_table_switch(table, f->run);
        free(nodes);
    }
    return tool_table_print(table, r->json ? TOOL_JSON : TOOL_COLUMNS);
}

int inspect_nodes(const inspect_request *r, const tool_prefix *prefix)
{
    look l = {.prefix = prefix};
    int code = find_nodes(&l, r);
    if (code == COMMAND_GOOD) code = ask(&l, r);
    tool_fold_complain(&l.failures);
    if (code == COMMAND_GOOD) code = l.code;
    if (l.answers > 0) {
        int printed = print(&l, r);
        if (code == COMMAND_GOOD) code = printed;
    } else if (code == COMMAND_GOOD) {
        tool_complain("no run was on any of these nodes");
        tool_prefix_tell_unused(prefix);
        code = INSPECT_NOTHING;
    }
    for (int i = 0; i < l.count; i++)
        hostlist_done(&l.list[i].nodes);
    free(l.list);
    hostlist_done(&l.nodes);
    return code;
}
