/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_INDEX_H
#define FUZZ_INDEX_H

/* Properties of every index that is accepted: its datasets can be found, and changes have
 * the documented effect. */

#include "base/versions.h"
#include "fuzz_places.h"
#include "prefix/index.h"

static inline int read_index(const kvtree *tree)
{
    kvtree_error err = {""};
    kvtree *index = kvtree_new();
    scr_dataset *list = NULL;
    int count, rc = index ? scr_index_read(places()->prefix, index, &err) : -ENOMEM;
    REQUIRE(rc == 0 || kvtree_size(index) == 0);
    if (!rc) rc = scr_index_list(index, &list, &count);
    free(list);
    kvtree_delete(&index);
    (void)tree;
    return rc;
}

/* Each checkpoint that is offered can be used, and after all of them were tried none is
 * offered. */
static inline void check_offers(const scr_index *index, int count)
{
    scr_dataset d;
    scr_index_state state;
    kvtree *tried = kvtree_new();
    while (scr_index_next_fetch(index, SCR_AGE_ANY, tried, &d) == 0) {
        REQUIRE(count-- > 0 && d.ckpt > 0 && told_dataset_name(d.name));
        REQUIRE(scr_index_look(index, &d, &state) == 0 && state.complete == 1);
        REQUIRE(!state.failed && state.attempts < SCR_INDEX_ATTEMPTS);
        REQUIRE(!kvtree_get(tried, d.name) && kvtree_set(tried, d.name, NULL));
        if (scr_index_next_fetch(index, (scr_age){d.id, 0}, NULL, &d) == 0)
            REQUIRE(d.ckpt > 0);
    }
    kvtree_delete(&tried);
}

static inline void check_leaving(const scr_index *index, int count)
{
    scr_dataset *list;
    scr_index_state state;
    int leaving;
    const scr_window window = {.keep = 1, .flushed = 1, .reading = 2};
    REQUIRE(scr_index_leaving(index, &window, &list, &leaving) == 0 && leaving <= count);
    for (int i = 0; i < leaving; i++) {
        REQUIRE(scr_index_look(index, &list[i], &state) == 0);
        REQUIRE(state.deleting || (state.complete == 1 && list[i].id > 2 &&
                                   !scr_index_is_current(index, list[i].name)));
    }
    free(list);
}

/* Checks names, ids and texts of the list. */
static inline int check_list(const scr_index *index, scr_dataset **list)
{
    int count;
    char *text = malloc(40);
    scr_dataset d;
    scr_index_state state;
    REQUIRE(scr_index_list(index, list, &count) == 0);
    const scr_counters highest = scr_index_highest(index);
    for (int i = 0; i < count; i++) {
        const scr_dataset *at = &(*list)[i];
        REQUIRE(told_dataset_name(at->name) && at->id >= 1 && at->id <= SCR_ID_MAX);
        REQUIRE(at->id <= highest.id && at->ckpt <= highest.ckpt &&
                at->created <= highest.created);
        REQUIRE(i == 0 || (*list)[i - 1].id <= at->id);
        REQUIRE(scr_index_look(index, at, &state) == 0);
        REQUIRE(scr_index_get(index, at->name, &d) == 0 && !strcmp(d.name, at->name));
    }
    scr_index_names(index, text, 40);
    REQUIRE(strnlen(text, 40) < 40);
    free(text);
    check_offers(index, count);
    check_leaving(index, count);
    return count;
}

/* Each change of a dataset is visible in the index. */
static inline void change_index(scr_index *index, const scr_dataset *d)
{
    scr_dataset same;
    scr_index_state before, after;
    scr_index_look(index, d, &before);
    REQUIRE(scr_index_mark_tried(index, d) == 0 && scr_index_look(index, d, &after) == 0);
    REQUIRE(after.attempts > 0 && (before.attempts < 1 || before.attempts == INT_MAX ||
                                   after.attempts == before.attempts + 1));
    REQUIRE(scr_index_mark_good(index, d) == 0 && scr_index_look(index, d, &after) == 0);
    REQUIRE(after.attempts == 0 && after.complete == before.complete);
    REQUIRE(scr_index_mark_failed(index, d) == 0);
    REQUIRE(scr_index_look(index, d, &after) == 0 && after.failed);
    REQUIRE(!scr_index_is_current(index, d->name));
    REQUIRE(scr_index_choose(index, d) == 0 && scr_index_is_current(index, d->name));
    REQUIRE(scr_index_look(index, d, &after) == 0 && !after.failed && !after.attempts);
    REQUIRE(scr_index_mark_deleting(index, d) == 0);
    REQUIRE(scr_index_look(index, d, &after) == 0 && after.deleting && !after.complete);
    REQUIRE(!scr_index_is_current(index, d->name));
    REQUIRE(scr_index_add(index, d, 1) == 0 && scr_index_look(index, d, &after) == 0);
    REQUIRE(after.complete && !after.deleting && !after.failed && !after.attempts);
    REQUIRE(scr_index_get(index, d->name, &same) == 0 && same_dataset(&same, d));
    REQUIRE(scr_index_remove(index, d) == 0);
    REQUIRE(scr_index_get(index, d->name, &same) == -ENOENT);
    REQUIRE(scr_index_look(index, d, &after) == -ENOENT);
    REQUIRE(scr_index_add(index, d, 1) == 0);
}

static inline void check_index(const kvtree *tree, uint32_t hash)
{
    int version, dir = places()->prefix;
    bool known = fuzz_integer(tree, "VERSION", INT_MIN, INT_MAX, &version);
    bool good = known && version == 1;
    put(dir, SCR_INDEX_NAME, tree);
    int wanted = good                 ? 0
                 : !kvtree_size(tree) ? -ENOENT
                 : known              ? SCR_OTHER_VERSION
                                      : -EBADMSG;
    REQUIRE(take(read_index, tree, hash) == wanted);
    if (!good) return;
    scr_dataset *list, *again;
    kvtree *index = kvtree_new(), *back = kvtree_new();
    REQUIRE(scr_index_read(dir, index, NULL) == 0 && fuzz_tree_same(index, tree));
    int count = check_list(index, &list);
    if (count > 0) change_index(index, &list[hash % (uint32_t)count]);
    free(list);
    count = check_list(index, &list);
    if (hash % FILES_PART)
        put(dir, SCR_INDEX_NAME, index);
    else
        REQUIRE(kvtree_file_write(dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, NULL) ==
                0);
    REQUIRE(scr_index_read(dir, back, NULL) == 0 && fuzz_tree_same(index, back));
    REQUIRE(check_list(back, &again) == count);
    for (int i = 0; i < count; i++)
        REQUIRE(same_dataset(&list[i], &again[i]));
    free(list);
    free(again);
    kvtree_delete(&index);
    kvtree_delete(&back);
}

#endif
