/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of templates for launchers; see launcher.h. */
#include "run/launcher.h"

#include "common/io.h"
#include "lib/tool_manager.h"
#include "lib/tool_template.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXTS = 24, VALUES = 24 };

typedef struct maker {
    launcher_values *values;
    int texts, count; /* so far */
    bool failed;      /* without memory */
} maker;

/* Takes ownership of text, which may be NULL, and returns it. */
static char *values_keep(maker *m, char *text)
{
    if (text) m->values->texts[m->texts++] = text;
    return text;
}

static void values_add(maker *m, tool_value value)
{
    m->values->list[m->count++] = value;
}

static void values_add_text(maker *m, const char *name, const char *text)
{
    values_add(m, (tool_value){.name = name, .text = text});
}

/* Adds a text and takes ownership of it. there false: the value is missing, and text is
 * not freed. */
static void values_add_own(maker *m, const char *name, char *text, bool there)
{
    m->failed |= there && !text;
    values_add_text(m, name, there ? values_keep(m, text) : NULL);
}

static char *values_print(int number)
{
    char *text;
    return asprintf(&text, "%d", number) < 0 ? NULL : text;
}

/* number 0: the value is missing. */
static void values_add_number(maker *m, const char *name, int number)
{
    values_add_own(m, name, number > 0 ? values_print(number) : NULL, number > 0);
}

/* Returns n1,n2; with ranks n1:2,n2:1; with stars n1:*,n2:*. */
static char *values_join(const hostlist *list, const int *ranks, bool stars)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    for (int i = 0; i < list->count; i++) {
        fprintf(out, "%s%s", i ? "," : "", list->names[i]);
        if (ranks) fprintf(out, ":%d", ranks[i]);
        if (stars) fputs(":*", out);
    }
    return io_text_end(out, &text);
}

/* ---- lists ---- */

static void values_append(maker *m, hostlist *list, const char *text)
{
    char *copy = strdup(text);
    if (copy)
        list->names[list->count++] = copy;
    else
        m->failed = true;
}

static bool values_make_list(maker *m, hostlist *list, int most)
{
    list->names = calloc((size_t)most + 1, sizeof *list->names);
    m->failed |= !list->names;
    return list->names != NULL;
}

/* Lists the nodes that have ranks. */
static void values_make_hosts(maker *m, const launch *l)
{
    char number[16];
    hostlist *hosts = &m->values->hosts, *counts = &m->values->counts;
    int most = l ? l->nodes->count : 0;
    if (!values_make_list(m, hosts, most) || !values_make_list(m, counts, most)) return;
    for (int i = 0; i < most; i++) {
        if (l->ranks && l->ranks[i] == 0) continue;
        snprintf(number, sizeof number, "%d", l->ranks ? l->ranks[i] : 0);
        values_append(m, hosts, l->nodes->names[i]);
        values_append(m, counts, number);
    }
}

/* Lists the SCR_ variables, since some launchers export only named variables. */
static void values_make_variables(maker *m)
{
    int most = 0;
    while (environ[most])
        most++;
    if (!values_make_list(m, &m->values->variables, most)) return;
    for (char **entry = environ; *entry; entry++) {
        char *equals = strchr(*entry, '=');
        if (!equals || strncmp(*entry, "SCR_", 4) != 0) continue;
        char *name = strndup(*entry, (size_t)(equals - *entry));
        if (name) values_append(m, &m->values->variables, name);
        m->failed |= !name;
        free(name);
    }
}

static void values_add_list(maker *m, const char *name, const hostlist *list)
{
    values_add(m, (tool_value){.name = name,
                               .list = (const char *const *)list->names,
                               .count = list->count});
}

/* ---- all values ---- */

static void values_add_nodes(maker *m, const launch *l)
{
    const hostlist none = {0, NULL};
    const hostlist *nodes = l ? l->nodes : &none, *out = l ? l->out : &none,
                   *rest = l && l->rest ? l->rest : &none;
    values_add_number(m, "nodes", nodes->count);
    values_add_own(m, "hosts", values_join(nodes, NULL, false), true);
    values_add_own(m, "hostlist", hostlist_compress(nodes), true);
    values_add_own(m, "slots", values_join(nodes, l ? l->ranks : NULL, false), true);
    values_add_own(m, "stars", values_join(nodes, NULL, true), true);
    bool some = out->count > 0;
    values_add_own(m, "out", some ? values_join(out, NULL, false) : NULL, some);
    values_add_own(m, "outlist", some ? hostlist_compress(out) : NULL, some);
    some = rest->count > 0;
    values_add_own(m, "rest", some ? values_join(rest, NULL, false) : NULL, some);
}

static void values_add_ranks(maker *m, const launch *l)
{
    int most = 0, least = INT_MAX;
    for (int i = 0; l && l->ranks && i < l->nodes->count; i++) {
        if (l->ranks[i] > most) most = l->ranks[i];
        if (l->ranks[i] < least) least = l->ranks[i];
    }
    values_add_number(m, "ranks", l ? launcher_ranks(l) : 0);
    values_add_number(m, "most", most);
    values_add_number(m, "each", most == least ? most : 0);
}

static void values_add_others(maker *m, const launch *l, const char *id)
{
    double patience = l ? l->patience : 0;
    values_add_text(m, "program", l ? l->program : NULL);
    values_add_text(m, "name", l ? l->name : NULL);
    values_add_number(m, "patience", (int)(patience + 0.5));
    values_add_text(m, "simulated", l ? l->simulated : NULL);
    values_add_text(m, "preload", l ? l->preload : NULL);
    values_add_text(m, "job", tool_manager_job());
    values_add_text(m, "id", id);
    values_add(m, (tool_value){.name = "command", .words = l ? l->words : NULL});
    values_make_hosts(m, l);
    values_make_variables(m);
    values_add_list(m, "host", &m->values->hosts);
    values_add_list(m, "host_ranks", &m->values->counts);
    values_add_list(m, "variable", &m->values->variables);
}

int launcher_values_make(const launch *l, const char *id, launcher_values *values)
{
    maker m = {.values = values};
    *values = (launcher_values){.list = calloc(VALUES, sizeof *values->list),
                                .texts = calloc(TEXTS, sizeof *values->texts)};
    if (values->list && values->texts) {
        values_add_nodes(&m, l);
        values_add_ranks(&m, l);
        values_add_others(&m, l, id);
    }
    if (values->list && values->texts && !m.failed) return 0;
    launcher_values_free(values);
    return -ENOMEM;
}

void launcher_values_free(launcher_values *values)
{
    for (char **text = values->texts; text && *text; text++)
        free(*text);
    free(values->texts);
    free(values->list);
    hostlist_done(&values->hosts);
    hostlist_done(&values->counts);
    hostlist_done(&values->variables);
    *values = (launcher_values){0};
}
