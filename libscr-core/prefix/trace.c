/* SPDX-License-Identifier: BSD-3-Clause */
/* What flushes leave; see prefix/trace.h. */
#include "prefix/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_FLUSH "FLUSH"
#define KEY_BELOW "BELOW"
#define PREFIX_FOLDER "." /* as text: a value is not empty */

size_t scr_trace_below(const char *dataset, const char *name)
{
    size_t last = 0, i = 0;
    for (; dataset[i] && dataset[i] == name[i]; i++)
        if (dataset[i] == '/') last = i;
    return !dataset[i] && name[i] == '/' ? i : last;
}

void scr_trace_print(uint64_t number, char text[SCR_TRACE_DIGITS + 1])
{
    snprintf(text, SCR_TRACE_DIGITS + 1, "%016" PRIx64, number);
}

int scr_trace_parse(const char *text, uint64_t *number)
{
    if (!text || strspn(text, "0123456789abcdef") != SCR_TRACE_DIGITS ||
        text[SCR_TRACE_DIGITS])
        return -EBADMSG;
    *number = strtoull(text, NULL, 16);
    return 0;
}

kvtree *scr_trace_enter(kvtree *tree, const scr_trace *trace)
{
    char id[SCR_TRACE_DIGITS + 1];
    const char *below = *trace->below ? trace->below : PREFIX_FOLDER;
    scr_trace_remove(tree, trace->id);
    scr_trace_print(trace->id, id);
    kvtree *entry = kvtree_set_kv(tree, KEY_FLUSH, id);
    return kvtree_util_set_str(entry, KEY_BELOW, below) == 0 ? entry : NULL;
}

void scr_trace_remove(kvtree *tree, uint64_t id)
{
    char text[SCR_TRACE_DIGITS + 1];
    scr_trace_print(id, text);
    kvtree_unset_kv(tree, KEY_FLUSH, text);
}

void scr_trace_clear(kvtree *tree)
{
    kvtree_unset(tree, KEY_FLUSH);
}

const kvtree_elem *scr_trace_first(const kvtree *tree)
{
    return kvtree_elem_first(kvtree_get(tree, KEY_FLUSH));
}

/* Whether the dataset is that folder, or lies in it. */
static int is_below(const char *dataset, const char *folder)
{
    size_t n = strlen(folder);
    return n && strncmp(dataset, folder, n) == 0 && (!dataset[n] || dataset[n] == '/');
}

int scr_trace_read(const kvtree_elem *e, const char *dataset, scr_trace *trace)
{
    scr_trace t = {.id = 0};
    const char *below = kvtree_get_val(kvtree_elem_hash(e), KEY_BELOW);
    if (!below) below = dataset;
    if (scr_trace_parse(kvtree_elem_key(e), &t.id) != 0 || !t.id ||
        strlen(below) >= sizeof t.below)
        return -EBADMSG;
    if (strcmp(below, PREFIX_FOLDER) != 0) {
        if (!is_below(dataset, below)) return -EBADMSG;
        strcpy(t.below, below);
    }
    *trace = t;
    return 0;
}
