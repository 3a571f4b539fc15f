/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INDEXES_H
#define INDEXES_H

/* Indexes that tests of them begin with. */

#include "prefix/index.h"
#include "records.h"

static inline scr_dataset checkpoint(int id)
{
    scr_dataset d = {.id = id,
                     .ckpt = id,
                     .files = 4,
                     .complete = 1,
                     .size = 2097182,
                     .created = id < 18 ? 1312853406814268 - 12 + id
                                        : 1312853507675143 - 18 + id,
                     .user = "user1",
                     .job_name = "simulation123",
                     .job_id = "112573"};
    snprintf(d.name, sizeof d.name, "scr.dataset.%d", id);
    return d;
}

static inline void add(scr_index *index, int id, int complete)
{
    scr_dataset d = checkpoint(id);
    assert_int_equal(scr_index_add(index, &d, complete), 0);
}

/* The change of what the index has under that name. */
static inline int apply(scr_index *index, int (*change)(scr_index *, const scr_dataset *),
                        const char *name)
{
    scr_dataset d = {.id = 1};
    snprintf(d.name, sizeof d.name, "%s", name);
    scr_index_get(index, name, &d);
    return change(index, &d);
}

static inline scr_index *guide_index(void)
{
    scr_index *index = kvtree_new();
    add(index, 12, 1);
    assert_int_equal(apply(index, scr_index_mark_fetched, "scr.dataset.12"), 0);
    add(index, 18, 0);
    add(index, 18, 1);
    assert_int_equal(apply(index, scr_index_set_current, "scr.dataset.18"), 0);
    return index;
}

#endif
