/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that other commands start; see node_command.h. */
#include "scavenge/node_command.h"

#include "lib/tool.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scavenge_command_begin(tool_words *words, const char *name,
                            const tool_prefix *prefix)
{
    char *path = tool_remote_command(name);
    tool_words_add(words, "%s", path ? path : name);
    tool_words_add(words, "--prefix=%s", prefix->path);
    free(path);
}

char *scavenge_postrun_line(const char *prefix)
{
    tool_words words = {0};
    tool_words_add(&words, "scr_postrun");
    tool_words_add(&words, "--prefix=%s", prefix);
    return tool_words_line(&words);
}

static void node_command_report(void *arg, const char *count, const char *nodes,
                                const char *text)
{
    (void)arg;
    tool_say(NODE_REPORT, "%s %s: %s", count, nodes, text);
}

int scavenge_command_run(const tool_remote *remote, const hostlist *nodes,
                         tool_words *words, tool_report told, void *arg,
                         tool_fold *failures)
{
    kvtree_error err = {"no memory"};
    int rc = -1;
    if (!words->failed)
        rc = tool_remote_run(remote, nodes, tool_words_list(words), told, arg, &err);
    tool_words_done(words);
    tool_fold_report(failures, node_command_report, NULL);
    return tool_result(NODE_QUERY_FAILED, rc, &err);
}

void scavenge_command_failed(tool_fold *failures, const char *node, const char *command,
                             const tool_end *end)
{
    char line[256], all[1024];
    tool_remote_reason(end, command, line, sizeof line);
    snprintf(all, sizeof all, "%s%s%s", end->code ? end->text : "this is no answer",
             *line ? ": " : "", line);
    if (tool_fold_add(failures, node, all) != 0)
        tool_say(NODE_REPORT, "node %s: %s", node, all);
}

void scavenge_answer_print(const scavenge_answer *a)
{
    printf("%d %" PRId64 " %d %d %d %d ", a->id, a->created, a->ranks, a->here, a->whole,
           a->run);
    tool_print(a->name); /* quoted; it has no control characters */
    printf("\n");
}

/* The bytes that stand for one byte, as tool_print quotes it. */
static int answer_quoted(const char *text, char *byte)
{
    unsigned value;
    int n = 0;
    *byte = *text;
    if (*text != '\\') return 1;
    if (text[1] == '\\') return 2;
    if (sscanf(text, "\\x%2x%n", &value, &n) != 1 || n != 4 || value == 0) return 1;
    *byte = (char)value;
    return n;
}

static void answer_unquote(const char *text, size_t length, char name[SCR_NAME_SIZE])
{
    const char *end = text + length;
    size_t used = 0;
    while (text < end && used + 1 < SCR_NAME_SIZE)
        text += answer_quoted(text, &name[used++]);
    name[used] = 0;
}

bool scavenge_answer_next(const char **output, scavenge_answer *a)
{
    while (**output) {
        int at = 0;
        const char *line = *output;
        *output += strcspn(line, "\n");
        *output += **output == '\n';
        if (sscanf(line, "%9d %18" SCNd64 " %9d %9d %9d %1d%n", &a->id, &a->created,
                   &a->ranks, &a->here, &a->whole, &a->run, &at) != 6 ||
            line[at] != ' ' || a->id < 1)
            continue;
        line += at + 1; /* the name may begin with a space, too */
        answer_unquote(line, strcspn(line, "\n"), a->name);
        return true;
    }
    return false;
}
