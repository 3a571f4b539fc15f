/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of an encode for which this process acts. */
#include "src/set/adopt_rank.h"

#include "common/errtext.h"
#include "src/set/set.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADOPT_OPEN_FILES = 64 };

/* Sets the layout, from the redundancy file of the rank. */
static int adopt_rank_read_layout(adopt_rank *r, int dir, int ranks, redset_error *err)
{
    redset_error *why = &r->member.reason;
    redset_header *header;
    int rc = redset_header_read(dir, r->file, &header, why);
    if (rc) {
        r->lost = redset_loss_of(rc) != 0;
        return r->lost ? 0 : err_set(err, rc, "%s", why->text);
    }
    if (header->layout.ranks != ranks) {
        rc = err_set(err, REDSET_UNRECOVERABLE, "%s is of a run with %d ranks, not %d",
                     r->file, header->layout.ranks, ranks);
    } else if (header->list[0].rank != r->rank) {
        err_set(why, 0, "%s belongs to rank %d", r->file, header->list[0].rank);
        r->lost = true;
    } else {
        r->layout = header->layout;
        header->layout = (redset_layout){0};
        rc = redset_layout_find(&r->layout, r->rank);
        if (rc) err_sys(err, rc, "place of rank %d", r->rank);
    }
    redset_header_free(header);
    return rc;
}

static int adopt_rank_read_member(adopt_rank *r, int dir, redset_error *err)
{
    const redset_shape shape = redset_place_shape(&r->layout.place);
    redset_member *m = &r->member;
    m->layout = &r->layout;
    m->member = r->layout.place.member;
    m->dir = dir;
    m->piece = REDSET_PIECE;
    m->open_files = ADOPT_OPEN_FILES;
    m->state = calloc(1, redset_state_size(&shape));
    if (!m->state) return err_sys(err, -ENOMEM, "state of rank %d", r->rank);
    if (snprintf(m->name, sizeof m->name, "%s", r->file) >= (int)sizeof m->name)
        return err_sys(err, -ENAMETOOLONG, "%s", r->file);
    int rc = redset_member_inspect(m, err);
    rc = rc ? rc : redset_member_check_sizes(m, err);
    r->lost = m->state->lost != 0;
    return rc;
}

int adopt_rank_inspect(adopt_rank *r, int dir, int ranks, redset_error *err)
{
    r->member.streams.fd = -1;
    if (r->rank < 0 || r->rank >= ranks)
        return err_set(err, -EINVAL, "no rank %d among %d", r->rank, ranks);
    if (!r->file) {
        err_set(&r->member.reason, 0, "it has no redundancy file");
        r->lost = true;
        return 0;
    }
    int rc = adopt_rank_read_layout(r, dir, ranks, err);
    return rc || r->lost ? rc : adopt_rank_read_member(r, dir, err);
}

uint64_t adopt_rank_bytes(const adopt_rank *r)
{
    const redset_header *header = r->lost ? NULL : r->member.header;
    if (!header) return 0;
    uint64_t bytes = header->list[0].size;
    for (int i = 0; i < header->shape.failures; i++)
        bytes += redset_header_part(header, i);
    return bytes;
}

/* Frees the member and its state; the header is not needed any more. */
static void adopt_rank_close(adopt_rank *r)
{
    redset_member_done(&r->member);
    free(r->member.state);
    r->member.state = NULL;
}

int adopt_rank_verify(adopt_rank *r, redset_error *err)
{
    int rc = redset_member_verify(&r->member, err);
    if (rc) return rc;
    r->lost = r->member.state->lost != 0;
    if (r->lost) return 0;
    r->manifest = redset_manifest_new(r->member.header);
    if (!r->manifest) return err_sys(err, -ENOMEM, "manifest");
    r->done = true;
    adopt_rank_close(r);
    return 0;
}

int adopt_rank_finish(adopt_rank *r, const kvtree *layout, const redset_header *header,
                      bool rebuilt, redset_error *err)
{
    adopt_rank_close(r);
    redset_layout_done(&r->layout);
    int rc = redset_layout_from_tree(layout, &r->layout, err);
    if (!rc) rc = redset_layout_find(&r->layout, r->rank);
    r->manifest = rc ? NULL : redset_manifest_new(header);
    if (rc || !r->manifest) return err_sys(err, rc ? rc : -ENOMEM, "manifest");
    r->lost = false;
    r->done = true;
    r->rebuilt = rebuilt;
    return 0;
}

void adopt_rank_free(adopt_rank *r)
{
    adopt_rank_close(r);
    redset_layout_done(&r->layout);
    redset_manifest_free(r->manifest);
}
