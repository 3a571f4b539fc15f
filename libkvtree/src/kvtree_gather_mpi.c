/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the trees of all ranks (SCR Developer Guide 1.2, sections 2.32.10 and 2.32.11,
 * where the trees are lists of files).
 *
 * Level by level, the ranks that have an item are divided into groups of neighbors. At
 * level 0 every rank has its tree; above, the writers of the level below have a pointer
 * to their file. The items of a group fit into one file, which the first rank of the
 * group collects and writes. A level above 0 with one group is the root. Rank 0 has an
 * item on every level, and is the first of its group, so it writes the root. Items are
 * sent and stored packed: no rank needs the tree on the way.
 *
 * A level ends with one agreement, which also adds up its files and the bytes that the
 * next level needs. If these bytes fit into one file, groups need no communication. If
 * this holds at level 0, rank 0 also writes the root, without another level. */
#include <kvtree/kvtree_mpi.h>

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include "src/kvtree_gather_private.h"
#include "src/kvtree_mpi_private.h"
#include "src/kvtree_private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gather_mpi {
    const kvtree_gather *to;
    kvtree_gather_place place; /* the same place, for one file */
    const struct channel *ch;
    MPI_Comm comm; /* private duplicate */
    int rank, size;
    int level;
    kvtree_gather_item item;   /* the item of this rank at this level, if any */
    uint64_t bytes;            /* bytes that the item takes in a file */
    int writer;                /* the rank that writes the item */
    kvtree_gather_group group; /* of a writer */
    kvtree_error err;
} gather_mpi;

/* ---- groups ---- */

/* Collective. Items are laid end to end, and items that begin within the same width form
 * a group. An item that is larger than a width is a group by itself. w->writer becomes
 * the first rank of this rank's group. *failed, whether this rank failed before, becomes
 * true also if a lower rank failed. */
static int gather_mpi_choose_writer(gather_mpi *w, uint64_t width, bool *failed)
{
    bool shares = w->item.bytes && w->bytes <= width;
    uint64_t mine[2] = {shares ? w->bytes : 0, *failed}, before[2] = {0, 0};
    int added = MPI_Exscan(mine, before, 2, MPI_UINT64_T, MPI_SUM, w->comm);
    if (w->rank == 0) before[0] = before[1] = 0;
    if (before[1]) *failed = true;
    /* The maximum up to this rank is the number of this group with its lowest rank: group
     * numbers do not decrease, and there are at most as many groups as ranks. */
    uint64_t group = shares ? before[0] / width + 1 : 0;
    uint64_t mark = group << 32 | (UINT32_MAX - (uint32_t)w->rank), first = mark;
    int found = MPI_Scan(&mark, &first, 1, MPI_UINT64_T, MPI_MAX, w->comm);
    bool fails = added != MPI_SUCCESS || found != MPI_SUCCESS;
    w->writer = shares && !fails ? (int)(UINT32_MAX - (uint32_t)first) : w->rank;
    return fails ? err_set(&w->err, -EIO, "form groups: MPI failed") : 0;
}

/* Adds the item of this rank to its own group. */
static int gather_mpi_keep(gather_mpi *w)
{
    const kvtree_gather_item own = w->item;
    w->item = (kvtree_gather_item){NULL, 0};
    return own.bytes ? kvtree_gather_group_add(&w->group, w->rank, own) : 0;
}

/* For exchange_until_done. */
static int gather_mpi_take(void *arg, int source, const char *packed, size_t size)
{
    gather_mpi *w = arg;
    kvtree_gather_item item = {malloc(size + 1), size};
    if (!item.bytes) return -ENOMEM;
    memcpy(item.bytes, packed, size);
    return kvtree_gather_group_add(&w->group, source, item);
}

static int gather_mpi_send(gather_mpi *w, const struct channel *ch, struct outbox *box)
{
    const size_t size = MESSAGE_HEADER + w->item.size;
    int rc = outbox_open(box, size, message_pieces(size, ch->limit));
    return rc ? rc : outbox_post_packed(box, ch, w->item.bytes, w->item.size, w->writer);
}

/* Collective; returns this rank's own result. Sends the items of each group to its
 * writer. */
static int gather_mpi_route(gather_mpi *w)
{
    char scratch[MESSAGE_LIMIT];
    const struct channel ch = {w->comm, w->ch->tag, sizeof scratch, scratch};
    struct outbox box;
    int rc = outbox_open(&box, 0, 0);
    if (w->writer == w->rank)
        rc = gather_mpi_keep(w);
    else if (w->item.bytes)
        rc = gather_mpi_send(w, &ch, &box);
    int routed = exchange_until_done(&ch, &box, gather_mpi_take, w);
    int closed = outbox_close(&box);
    free(w->item.bytes);
    w->item = (kvtree_gather_item){NULL, 0};
    rc = rc ? rc : routed ? routed : closed;
    return rc ? err_sys(&w->err, rc, "gather level %d of %s", w->level, w->to->name) : 0;
}

/* ---- files ---- */

/* Writes the group; the pointer to its file becomes this rank's item at the next level.
 */
static int gather_mpi_write_file(gather_mpi *w, int level, bool is_root)
{
    int rc = kvtree_gather_pack_pointer(&w->place, level, w->rank, w->group.ranks,
                                        &w->item, &w->bytes, &w->err);
    if (rc) return rc;
    return kvtree_gather_group_write(&w->group, &w->place, level, w->rank, is_root,
                                     &w->err);
}

/* A group of all ranks is the only one of its level. At level 0 its root follows; at any
 * other level its file is the root. */
static int gather_mpi_write_group(gather_mpi *w)
{
    if (!w->group.count) return 0;
    if (w->place.dir < 0 && w->to->open) {
        int opened = w->to->open(w->to->arg, &w->place.dir, &w->err);
        if (opened) return opened;
    }
    bool is_all = w->group.ranks == w->size;
    if (w->level > 0 || !is_all) return gather_mpi_write_file(w, w->level, is_all);
    int rc = gather_mpi_write_file(w, 0, false);
    if (rc) return rc;
    rc = gather_mpi_keep(w);
    return rc ? err_sys(&w->err, rc, "write %s", w->to->name)
              : gather_mpi_write_file(w, 1, true);
}

/* Collective; returns this rank's own result. bytes is the size of all items together. An
 * earlier root is removed before the first file that it names is replaced. */
static int gather_mpi_write_level(gather_mpi *w, int64_t bytes)
{
    uint64_t width = kvtree_gather_width(&w->place, w->level);
    bool removes = w->level == 0 && w->rank == 0 && !w->to->fresh;
    int rc = removes ? beneath_unlink_durable(w->to->dir, w->to->name, &w->err) : 0;
    bool failed = rc != 0;
    int chosen = 0;
    w->writer = 0;
    if ((uint64_t)bytes > width) chosen = gather_mpi_choose_writer(w, width, &failed);
    int routed = gather_mpi_route(w);
    if (chosen || routed) return chosen ? chosen : routed;
    /* after a failure an earlier root may remain: none of its files is replaced */
    return failed ? rc : gather_mpi_write_group(w);
}

/* Collective, agreed. rc is this rank's result so far. */
static int gather_mpi_write_levels(gather_mpi *w, int rc)
{
    enum { BYTES, FILES };
    int64_t sum[] = {[BYTES] = (int64_t)w->bytes, [FILES] = 0};
    rc = agree_sum(w->comm, rc, &w->err, 2, sum);
    for (; rc == 0 && sum[FILES] != 1; w->level++) {
        rc = gather_mpi_write_level(w, sum[BYTES]);
        sum[BYTES] = (int64_t)(w->item.bytes ? w->bytes : 0);
        sum[FILES] = w->item.bytes != NULL;
        rc = agree_sum(w->comm, rc, &w->err, 2, sum);
    }
    return rc;
}

/* ---- public functions ---- */

/* Checks for errors that would otherwise appear after the earlier root was removed. */
static int gather_mpi_prepare(gather_mpi *w, const kvtree *tree)
{
    int rc = kvtree_gather_check_root(w->to->name, &w->err);
    return rc ? rc
              : kvtree_gather_pack(&w->place, w->rank, 1, tree, &w->item, &w->bytes,
                                   &w->err);
}

/* Collective, agreed. rc and text are this rank's result so far. */
static int gather_mpi_write(const kvtree_gather *to, const kvtree *tree, int rc,
                            const char *text, kvtree_error *err)
{
    const struct channel *ch;
    if (agree_possible(to->comm, err) != 0) return err_wrap(err, -EINVAL, "write");
    int opened = channel_of(to->comm, &ch);
    if (opened) return err_sys(err, opened, "duplicate the communicator");
    gather_mpi w = {.to = to,
                    .place = {to->dir, to->name, to->top, to->limit, 0},
                    .ch = ch,
                    .comm = ch->comm};
    snprintf(w.err.text, sizeof w.err.text, "%s", text);
    MPI_Comm_rank(w.comm, &w.rank);
    MPI_Comm_size(w.comm, &w.size);
    if (rc == 0) rc = gather_mpi_prepare(&w, tree);
    rc = gather_mpi_write_levels(&w, rc);
    free(w.item.bytes);
    kvtree_gather_group_free(&w.group);
    return rc ? err_set(err, rc, "%s", w.err.text) : KVTREE_SUCCESS;
}

int kvtree_gather_write(const kvtree_gather *to, const kvtree *tree, kvtree_error *err)
{
    if (!to) return err_set(err, -EINVAL, "write: nowhere");
    return gather_mpi_write(to, tree, 0, "", err);
}

int kvtree_write_gather(const char *path, const kvtree *tree, MPI_Comm comm)
{
    kvtree_error err = {""};
    kvtree_gather to = {.comm = comm, .dir = -1};
    int rc = folder_of(AT_FDCWD, path, 0, &to.dir, &to.name, &err);
    rc = gather_mpi_write(&to, tree, rc, err.text, NULL);
    io_close(&to.dir);
    return rc;
}
