/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages of interrupted flushes, on rank 0. */
#include "prefix/prefix.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "plan/clean.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool scr_form_packs(const filo_form *form)
{
    return form->container > 0 || form->align > 0;
}

void scr_stage_identity(const scr_prefix *prefix, const scr_dataset *d, uint64_t layout,
                        char identity[SCR_STAGE_IDENTITY_SIZE])
{
    snprintf(identity, SCR_STAGE_IDENTITY_SIZE, "%d %" PRId64 " %016" PRIx64 " %s", d->id,
             d->created, layout, prefix->job->owner);
}

static void stages_read_identity(const scr_prefix *prefix, scr_staged *s)
{
    int id, end = 0;
    if (sscanf(s->identity, "%d %*d %*x %n", &id, &end) != 1 || !end) return;
    s->id = id;
    s->is_foreign = strcmp(s->identity + end, prefix->job->owner) != 0;
}

static void stages_path(const char *name, char stage[SCR_NAME_SIZE + 16])
{
    snprintf(stage, SCR_NAME_SIZE + 16, "%.*s/" FILO_STAGE, SCR_NAME_SIZE - 1, name);
}

/* Whether a directory above that of the dataset is itself a prefix directory, in which
 * other runs flush: other users may have put that name into the index. */
static bool stages_are_of_others(const scr_prefix *prefix, const char *name)
{
    char index[SCR_NAME_SIZE + sizeof SCR_INDEX_NAME + 1];
    struct stat st;
    for (const char *end = strchr(name, '/'); end; end = strchr(end + 1, '/')) {
        snprintf(index, sizeof index, "%.*s/" SCR_INDEX_NAME, (int)(end - name), name);
        if (beneath_stat(prefix->fd, index, &st, NULL) == 0) return true;
    }
    return false;
}

/* ---- listing ---- */

/* A stage that is listed or cleaned. */
struct visit {
    const scr_prefix *prefix;
    scr_stages *stages;
    const char *name;
    const scr_resume_flush *rows;
};

static int stages_note(void *arg, const filo_begun *flush)
{
    const struct visit *v = arg;
    scr_stages *stages = v->stages;
    scr_staged *more =
        realloc(stages->list, ((size_t)stages->count + 1) * sizeof *stages->list);
    if (!more) return 1; /* without memory, the next run removes it */
    stages->list = more;
    scr_staged *s = &more[stages->count++];
    *s = (scr_staged){.name = v->name, .form = flush->form};
    snprintf(s->identity, sizeof s->identity, "%s", flush->identity);
    stages_read_identity(v->prefix, s);
    return 1;
}

/* Adds names from the index to those from the cache and the search. */
static void stages_add_indexed(const scr_prefix *prefix, scr_stages *stages,
                               const kvtree *index)
{
    scr_dataset *all = NULL;
    int count = 0;
    scr_index_list(index, &all, &count);
    for (int i = 0; i < count; i++) {
        scr_index_state state = {.complete = 0};
        scr_index_look(index, &all[i], &state);
        const scr_clean_facts facts = {.is_indexed = true,
                                       .is_complete = state.complete != 0};
        if (scr_plan_clean(&facts).inspects && !stages_are_of_others(prefix, all[i].name))
            kvtree_set(stages->names, all[i].name, NULL);
    }
    free(all);
}

int scr_stages_find(scr_prefix *prefix, scr_stages *stages, kvtree_error *err)
{
    char stage[SCR_NAME_SIZE + 16];
    const kvtree *index;
    struct visit v = {.prefix = prefix, .stages = stages};
    int rc = scr_index_view(prefix, &index, err);
    if (rc) return rc;
    if (prefix->search) kvtree_merge(stages->names, prefix->search->staged);
    stages_add_indexed(prefix, stages, index);
    const kvtree_elem *e = kvtree_elem_first(stages->names);
    for (; e; e = kvtree_elem_next(e)) {
        v.name = kvtree_elem_key(e);
        stages_path(v.name, stage);
        /* a stage that cannot be read now stays; scr_stages_clean reports it */
        filo_begun_sweep(prefix->fd, stage, stages_note, &v, NULL);
    }
    return 0;
}

/* ---- removing stages ---- */

static bool stages_have_form(const filo_form *a, const filo_form *b)
{
    return a->container == b->container && a->align == b->align && a->nodes == b->nodes;
}

static int stages_keep(void *arg, const filo_begun *flush)
{
    const struct visit *v = arg;
    for (int i = 0; i < v->stages->count; i++) {
        const scr_staged *s = &v->stages->list[i];
        if (!stages_have_form(&s->form, &flush->form) ||
            strcmp(s->identity, flush->identity) != 0 || strcmp(s->name, v->name) != 0)
            continue;
        if (!v->rows[i].is_removed) return 1;
        scr_say(v->prefix->job->report, SCR_MSG_FLUSH_NOT_RESUMED,
                "a flush of dataset %d (%s) that an earlier run began is not resumed; "
                "its stage is removed",
                s->id, s->name);
        return 0;
    }
    return 1; /* the flush has just begun */
}

/* Removes the empty directories of a dataset that is not in the index, durably: no record
 * would name a directory that reappeared after a power loss. */
static void stages_vacate(scr_prefix *prefix, const char *name, char *stage)
{
    char *end;
    const char *last;
    int fd;
    bool stays = false;
    kvtree_error err = {""};
    const kvtree *index;
    scr_dataset d;
    if (scr_index_view(prefix, &index, &err) != 0) return;
    const scr_clean_facts facts = {.is_indexed = scr_index_get(index, name, &d) == 0,
                                   .is_cached = true};
    if (!scr_plan_clean(&facts).vacates) return;
    while (!stays && strlen(stage) > strlen(name) && (end = strrchr(stage, '/'))) {
        *end = 0;
        stays = beneath_rmdir(prefix->fd, stage, NULL) != 0;
    }
    int rc = stays ? beneath_open_below(prefix->fd, stage, &fd, NULL)
                   : beneath_open_parent(prefix->fd, name, 0, &fd, &last, NULL);
    if (rc) return;
    (void)io_fsync(fd);
    io_close(&fd);
}

void scr_stages_clean(scr_prefix *prefix, scr_stages *stages,
                      const scr_resume_flush *rows)
{
    char stage[SCR_NAME_SIZE + 16];
    kvtree_error err = {""};
    struct visit v = {.prefix = prefix, .stages = stages, .rows = rows};
    int folder;
    const kvtree_elem *e = kvtree_elem_first(stages->names);
    for (; e; e = kvtree_elem_next(e)) {
        v.name = kvtree_elem_key(e);
        if (scr_place_open(prefix, v.name, &folder, NULL) != 0) continue;
        scr_records_sweep(prefix, folder, v.name);
        io_close(&folder);
        stages_path(v.name, stage);
        if (filo_begun_sweep(prefix->fd, stage, stages_keep, &v, &err) != 0)
            scr_say(prefix->job->report, SCR_MSG_FLUSH_STAGE_KEPT,
                    "remains of an interrupted flush stay in %s/%s: %s", prefix->path,
                    stage, err.text);
        stages_vacate(prefix, v.name, stage);
    }
}

void scr_stages_free(scr_stages *stages)
{
    kvtree_delete(&stages->names);
    free(stages->list);
}
