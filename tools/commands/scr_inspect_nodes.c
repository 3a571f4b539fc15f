/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_inspect --up: the combined datasets in the caches of several nodes (SCR Developer
 * Guide 1.2, section 2.33.1, step 10), from the output of scr_inspect --brief on each
 * node. */
#include "commands/scr_inspect.h"

#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_table.h"
#include "lib/tool_time.h"
#include "scavenge/node_command.h"
#include <stdlib.h>
#include <string.h>

enum { ANSWER = 60 /* seconds */, OUTPUT = 1 << 20 /* bytes per node, at most */ };

typedef struct inspect_found {
    scavenge_answer sum; /* sum over all nodes ... */
    hostlist nodes;      /* ... in this list */
} inspect_found;

typedef struct inspect_survey {
    const tool_prefix *prefix;
    hostlist nodes;
    int count;
    inspect_found *list; /* ordered by id and creation */
    int answers;         /* nodes that had a run */
    int code;
    tool_fold failures;
} inspect_survey;

/* ---- answers ---- */

/* Returns the entry of the dataset, which is created if needed; NULL without memory. */
static inspect_found *inspect_find(inspect_survey *s, const scavenge_answer *a)
{
    int i = 0;
    while (i < s->count &&
           (s->list[i].sum.id < a->id ||
            (s->list[i].sum.id == a->id && s->list[i].sum.created < a->created)))
        i++;
    if (i < s->count && s->list[i].sum.id == a->id &&
        s->list[i].sum.created == a->created)
        return &s->list[i];
    inspect_found *more = realloc(s->list, ((size_t)s->count + 1) * sizeof *more);
    if (!more) return NULL;
    s->list = more;
    memmove(&more[i + 1], &more[i], (size_t)(s->count++ - i) * sizeof *more);
    more[i] = (inspect_found){.sum = *a};
    more[i].sum.here = more[i].sum.whole = more[i].sum.run = 0;
    return &more[i];
}

static void inspect_add_answer(inspect_survey *s, const char *node,
                               const scavenge_answer *a)
{
    kvtree_error err = {"no memory"};
    inspect_found *f = inspect_find(s, a);
    if (!f || hostlist_parse(node, &f->nodes, &err) != 0) {
        s->code = tool_say(NODELIST_INVALID, "%s", err.text);
        return;
    }
    f->sum.here += a->here;
    f->sum.whole += a->whole;
    f->sum.run |= a->run;
}

static void inspect_take_answers(int task, const tool_end *end, void *arg)
{
    inspect_survey *s = arg;
    const char *node = s->nodes.names[task], *output = end->output;
    char warning[256];
    scavenge_answer answer;
    if (end->code == SCAVENGE_NOTHING_HERE) return;
    if (end->code != 0) {
        scavenge_command_failed(&s->failures, node, "scr_inspect", end);
        s->code = COMMAND_BAD;
        return;
    }
    s->answers++;
    if (tool_remote_reason(end, "scr_inspect", warning, sizeof warning) &&
        tool_fold_add(&s->failures, node, warning) != 0)
        tool_say(NODE_REPORT, "node %s: %s", node, warning);
    while (scavenge_answer_next(&output, &answer))
        inspect_add_answer(s, node, &answer);
}

static int inspect_ask(inspect_survey *s, const inspect_request *r)
{
    tool_words words = {0};
    tool_remote remote = {.seconds = ANSWER, .bytes = OUTPUT, .joined = 1};
    int code = tool_manager_up(s->prefix, r->up, NULL, ANSWER, &s->nodes);
    if (code == COMMAND_GOOD && s->nodes.count == 0)
        code = tool_say(NODELIST_EMPTY, "no nodes");
    if (code == COMMAND_GOOD) code = tool_remote_choose(&remote, s->prefix, &s->nodes);
    if (code == COMMAND_GOOD) {
        scavenge_command_begin(&words, "scr_inspect", s->prefix);
        tool_words_add(&words, "--brief");
        if (r->id) tool_words_add(&words, "--id=%d", r->id);
        if (r->control) tool_words_add(&words, "--cntldir=%s", r->control);
        code = scavenge_command_run(&remote, &s->nodes, &words, inspect_take_answers, s,
                                    &s->failures);
    }
    tool_remote_done(&remote);
    return code == COMMAND_GOOD ? s->code : code;
}

/* ---- output ---- */

static int inspect_print_survey(const inspect_survey *s, const inspect_request *r)
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
    for (int i = 0; i < s->count; i++) {
        const scavenge_answer *sum = &s->list[i].sum;
        char *nodes = hostlist_compress(&s->list[i].nodes);
        tool_time_text(sum->created / 1000000, created);
        tool_table_number(table, sum->id);
        tool_table_text(table, created);
        tool_table_number(table, sum->ranks);
        tool_table_number(table, sum->here);
        tool_table_number(table, sum->whole);
        tool_table_mark(table, sum->whole == sum->ranks ? TOOL_GOOD : TOOL_BAD);
        tool_table_text(table, nodes);
        tool_table_text(table, sum->name);
        tool_table_number(table, sum->created);
        tool_table_switch(table, sum->run);
        free(nodes);
    }
    return tool_table_print(table, r->json ? TOOL_JSON : TOOL_COLUMNS);
}

int inspect_nodes(const inspect_request *r, const tool_prefix *prefix)
{
    inspect_survey s = {.prefix = prefix};
    int code = inspect_ask(&s, r);
    if (s.answers > 0) {
        int printed = inspect_print_survey(&s, r);
        if (code == COMMAND_GOOD) code = printed;
    } else if (code == COMMAND_GOOD) {
        tool_say(CACHE_EMPTY, "no run was on any of these nodes");
        tool_prefix_tell_unused(prefix);
        code = SCAVENGE_NOTHING_HERE;
    }
    for (int i = 0; i < s.count; i++)
        hostlist_done(&s.list[i].nodes);
    free(s.list);
    hostlist_done(&s.nodes);
    return code;
}
