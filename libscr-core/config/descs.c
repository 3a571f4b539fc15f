/* SPDX-License-Identifier: BSD-3-Clause */
/* All descriptors of a configuration; see config/descs.h. */
#include "config/descs.h"

#include "common/io.h"
#include "config/config_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int scr_descs_load(const scr_config *config, scr_descs *descs, scr_problems *problems)
{
    scr_descs d = {{NULL, NULL, NULL}, {0, NULL}, {0, NULL, 0}, NULL};
    int rc = scr_groups_from_config(config, &d.groups);
    if (!rc) d.launchers = scr_config_descs(config, SCR_DESC_LAUNCHER);
    if (!rc && !d.launchers) rc = -ENOMEM;
    rc = rc ? rc : scr_stores_from_config(config, &d.groups, &d.stores, problems);
    rc = rc ? rc
            : scr_reddescs_from_config(config, &d.groups, &d.stores, &d.reddescs,
                                       problems);
    if (rc)
        scr_descs_done(&d);
    else
        *descs = d;
    return rc;
}

void scr_descs_done(scr_descs *descs)
{
    scr_reddescs_done(&descs->reddescs);
    scr_stores_done(&descs->stores);
    scr_groups_done(&descs->groups);
    kvtree_delete(&descs->launchers);
}

/* ---- queries ---- */

static char *descs_answer_field(const scr_descs *d, const scr_question *q)
{
    if (q->kind == SCR_DESC_STORE) {
        const scr_store *store = scr_stores_find(&d->stores, q->key);
        return store ? scr_store_field(store, q->field) : NULL;
    }
    if (q->kind == SCR_DESC_GROUPS) {
        const char *value = scr_groups_value(&d->groups, q->field, q->key);
        return value ? strdup(value) : NULL;
    }
    if (q->kind == SCR_DESC_LAUNCHER) {
        const char *value = kvtree_get_val(
            kvtree_getf(d->launchers, "%s FIELD %s", q->key, q->field), "VALUE");
        return value ? strdup(value) : NULL;
    }
    const scr_reddescs *r = &d->reddescs;
    for (int i = 0, number = atoi(q->key); i < r->count; i++)
        if (r->list[i].index == number) return scr_reddesc_field(&r->list[i], q->field);
    return NULL;
}

static void descs_list_keys(FILE *out, const scr_descs *d, scr_desc_kind kind)
{
    const kvtree_elem *e = kvtree_elem_first(d->groups.nodes);
    for (; e && kind == SCR_DESC_GROUPS; e = kvtree_elem_next(e))
        fprintf(out, "%s\n", kvtree_elem_key(e));
    e = kvtree_elem_first(d->groups.ranges);
    for (; e && kind == SCR_DESC_GROUPS; e = kvtree_elem_next(e))
        fprintf(out, "%s\n", kvtree_elem_key(e));
    e = kvtree_elem_first(d->launchers);
    for (; e && kind == SCR_DESC_LAUNCHER; e = kvtree_elem_next(e))
        fprintf(out, "%s\n", kvtree_elem_key(e));
    for (int i = 0; kind == SCR_DESC_STORE && i < d->stores.count; i++)
        fprintf(out, "%s\n", d->stores.list[i].path);
    for (int i = 0; kind == SCR_DESC_CKPT && i < d->reddescs.count; i++)
        fprintf(out, "%d\n", d->reddescs.list[i].index);
}

/* Returns the keys without a newline at the end; NULL if there are none. */
static char *descs_answer_keys(const scr_descs *d, scr_desc_kind kind)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    descs_list_keys(out, d, kind);
    if (!io_text_end(out, &text)) return NULL;
    if (size > 0) {
        text[size - 1] = 0;
        return text;
    }
    free(text);
    return NULL;
}

char *scr_descs_answer(const scr_descs *descs, const char *question)
{
    scr_question q;
    if (scr_config_question(question, &q) != 0) return NULL;
    return q.key[0] ? descs_answer_field(descs, &q) : descs_answer_keys(descs, q.kind);
}
