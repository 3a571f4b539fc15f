/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of all ranks are written (SCR Developer Guide 1.2, sections 2.32.10 and
 * 2.32.11, where they are lists of files).
 *
 * Level by level, the ranks that have an item (at level 0 every rank its tree, above the
 * writers of the level below a pointer to their file) are cut into groups of neighbours
 * whose items fit into one file; the first rank of a group gets them all and writes. A
 * level above 0 with one group is the root. Rank 0 has an item on every level, and is the
 * first of its group, so it writes the root.
 *
 * A level ends with one agreement, which also tells everyone how many files it has and
 * how many bytes the next one needs. Where these fit into one file, nothing has to be
 * asked about groups, and where that is so at level 0, rank 0 writes the root, too,
 * without a level of its own. */
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
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <string.h>

_Static_assert(KVTREE_ERROR_SIZE == ERRTEXT_SIZE, "one size of error texts");

typedef struct writing {
    const kvtree_gather *to;
    MPI_Comm comm; /* the private one */
    int rank, size;
    int level;
    kvtree *item;    /* of this rank, at this level; or NULL */
    uint64_t bytes;  /* that it takes in a file */
    int ranks;       /* below it */
    int writer;      /* who writes it */
    kvtree *group;   /* at a writer: the items of its group ... */
    int group_ranks; /* ... and the ranks below them */
    char text[ERRTEXT_SIZE];
} writing;

/* ---- groups ---- */

/* Collective. Items are laid end to end, and those that begin within the same width form
 * a group, but for an item that is larger, which is one of its own. w->writer becomes who
 * writes this rank's item: the first of the group. *failed, what went wrong on this rank,
 * becomes true also where it did on a rank before. */
static int choose_writer(writing *w, uint64_t width, int *failed)
{
    int shares = w->item && w->bytes <= width;
    uint64_t mine[2] = {shares ? w->bytes : 0, *failed != 0}, before[2] = {0, 0};
    int added = MPI_Exscan(mine, before, 2, MPI_UINT64_T, MPI_SUM, w->comm);
    if (w->rank == 0) before[0] = before[1] = 0;
    if (before[1]) *failed = 1;
    /* the highest number so far is that of this group, with its lowest rank: numbers of
     * groups do not fall, and there are at most as many as ranks */
    uint64_t group = shares ? before[0] / width + 1 : 0;
    uint64_t mark = group << 32 | (UINT32_MAX - (uint32_t)w->rank), first = mark;
    int found = MPI_Scan(&mark, &first, 1, MPI_UINT64_T, MPI_MAX, w->comm);
    int fails = added != MPI_SUCCESS || found != MPI_SUCCESS;
    w->writer = shares && !fails ? (int)(UINT32_MAX - (uint32_t)first) : w->rank;
    return fails ? err_set(w->text, -EIO, "form groups: MPI failed") : 0;
}

/* Puts an item, which it takes over, into the group that this rank writes. */
static int add_item(writing *w, const char *rank, kvtree *item, int ranks)
{
    if (!w->group) w->group = kvtree_new();
    if (!kvtree_set(w->group, rank, item)) {
        kvtree_delete(&item);
        return -ENOMEM;
    }
    w->group_ranks += ranks;
    return 0;
}

/* The item and its number of ranks, addressed to the writer. */
static int send_item(writing *w, kvtree *send)
{
    char writer[16];
    kvtree *message = kvtree_new();
    int rc = kvtree_util_set_int(message, "RANKS", w->ranks);
    if (rc == 0 && kvtree_set(message, "ITEM", w->item)) w->item = NULL;
    snprintf(writer, sizeof writer, "%d", w->writer);
    if (!w->item && kvtree_set(send, writer, message)) return 0;
    kvtree_delete(&message);
    return -ENOMEM;
}

/* Moves the item of this rank to where it is written. */
static int dispatch_item(writing *w, kvtree *send)
{
    char rank[16];
    if (!w->item) return 0;
    if (w->writer != w->rank) return send_item(w, send);
    snprintf(rank, sizeof rank, "%d", w->rank);
    kvtree *item = w->item;
    w->item = NULL;
    return add_item(w, rank, item, w->ranks);
}

static int take_items(writing *w, const kvtree *received)
{
    for (kvtree_elem *e = kvtree_elem_first(received); e; e = kvtree_elem_next(e)) {
        int ranks;
        kvtree *message = kvtree_elem_hash(e);
        int rc = kvtree_util_get_int(message, "RANKS", &ranks);
        if (rc == 0)
            rc = add_item(w, kvtree_elem_key(e), kvtree_extract(message, "ITEM"), ranks);
        if (rc) return rc;
    }
    return kvtree_sort_int(w->group, KVTREE_SORT_ASCENDING);
}

/* Collective; the result is this rank's own. Brings the items of each group to its
 * writer. */
static int gather_groups(writing *w)
{
    kvtree *send = kvtree_new(), *received = kvtree_new();
    int dispatched = send && received ? dispatch_item(w, send) : -ENOMEM;
    int rc = kvtree_exchange(send, received, w->to->comm);
    if (rc == 0) rc = dispatched;
    if (rc == 0) rc = take_items(w, received);
    kvtree_delete(&send);
    kvtree_delete(&received);
    return rc ? err_sys(w->text, rc, "gather level %d of %s", w->level, w->to->name) : 0;
}

/* ---- files ---- */

/* Writes the group; the pointer to its file is this rank's item at the next level. */
static int write_file(writing *w, int level, int is_root)
{
    char name[BENEATH_NAME_MAX];
    const kvtree_gather *to = w->to;
    kvtree_gather_file_name(to->name, level, w->rank, name);
    if (is_root) snprintf(name, sizeof name, "%s", to->name);
    kvtree *tree = kvtree_gather_file_make(to->top, level, w->group_ranks, w->group);
    w->group = NULL;
    w->ranks = w->group_ranks;
    w->group_ranks = 0;
    w->item = kvtree_gather_pointer(name);
    w->bytes = kvtree_gather_item_size(w->rank, w->item);
    int rc = tree && w->item ? kvtree_file_write(to->dir, name, tree, w->text)
                             : err_sys(w->text, -ENOMEM, "write %s", name);
    kvtree_delete(&tree);
    return rc;
}

/* A group of all ranks is the only one of its level. At level 0 the root is above it, at
 * any other level it is the root. */
static int write_group(writing *w)
{
    if (!w->group) return 0;
    int is_all = w->group_ranks == w->size;
    if (w->level > 0 || !is_all) return write_file(w, w->level, is_all);
    int rc = write_file(w, 0, 0);
    if (rc) return rc;
    rc = dispatch_item(w, NULL);
    return rc ? err_sys(w->text, rc, "write %s", w->to->name) : write_file(w, 1, 1);
}

/* An earlier root goes before the first file is replaced that it names. */
static int remove_root(writing *w)
{
    if (w->level > 0 || w->rank != 0) return 0;
    return kvtree_gather_remove_root(w->to->dir, w->to->name, w->text);
}

/* Collective; the result is this rank's own. bytes are those of all items together. */
static int write_level(writing *w, int64_t bytes)
{
    const kvtree_gather *to = w->to;
    uint64_t width = kvtree_gather_width(to->name, to->top, to->limit, w->level);
    int rc = remove_root(w), failed = rc != 0, chosen = 0;
    w->writer = 0;
    if ((uint64_t)bytes > width) chosen = choose_writer(w, width, &failed);
    int gathered = gather_groups(w);
    if (chosen || gathered) return chosen ? chosen : gathered;
    return failed ? rc : write_group(w); /* an earlier root may be there: no file of it */
}

/* Collective, agreed. rc is this rank's own so far. */
static int write_levels(writing *w, int rc)
{
    enum { BYTES, FILES };
    int64_t sum[] = {[BYTES] = (int64_t)w->bytes, [FILES] = 0};
    rc = agree_sum(w->comm, rc, w->text, 2, sum);
    for (; rc == 0 && sum[FILES] != 1; w->level++) {
        rc = write_level(w, sum[BYTES]);
        sum[BYTES] = (int64_t)(w->item ? w->bytes : 0);
        sum[FILES] = w->item != NULL;
        rc = agree_sum(w->comm, rc, w->text, 2, sum);
    }
    return rc;
}

/* ---- public functions ---- */

/* Checks what would otherwise fail when the earlier root is gone. */
static int prepare(writing *w, const kvtree *tree)
{
    int rc = kvtree_gather_check_root(w->to->name, w->text);
    if (rc) return rc;
    w->bytes = kvtree_gather_item_size(w->rank, tree);
    rc = kvtree_gather_check_size(w->to->top, w->bytes, w->text);
    if (rc) return rc;
    w->item = kvtree_new();
    rc = w->item ? kvtree_merge(w->item, tree) : -ENOMEM;
    return rc ? err_sys(w->text, rc, "write %s", w->to->name) : 0;
}

/* Collective, agreed. rc and text are of this rank so far. */
static int gather(const kvtree_gather *to, const kvtree *tree, int rc, const char *text,
                  char *err)
{
    const struct channel *ch;
    if (agree_possible(to->comm, err) != 0) return err_wrap(err, -EINVAL, "write");
    int opened = channel_of(to->comm, &ch);
    if (opened) return err_sys(err, opened, "duplicate the communicator");
    writing w = {.to = to, .comm = ch->comm, .ranks = 1};
    snprintf(w.text, sizeof w.text, "%s", text);
    MPI_Comm_rank(w.comm, &w.rank);
    MPI_Comm_size(w.comm, &w.size);
    if (rc == 0) rc = prepare(&w, tree);
    rc = write_levels(&w, rc);
    kvtree_delete(&w.item);
    kvtree_delete(&w.group);
    return rc ? err_set(err, rc, "%s", w.text) : KVTREE_SUCCESS;
}

int kvtree_gather_write(const kvtree_gather *to, const kvtree *tree, char *err)
{
    if (!to) return err_set(err, -EINVAL, "write: nowhere");
    return gather(to, tree, 0, "", err);
}

int kvtree_write_gather(const char *path, const kvtree *tree, MPI_Comm comm)
{
    char text[ERRTEXT_SIZE] = "";
    kvtree_gather to = {.comm = comm, .dir = -1};
    int rc = folder_of(AT_FDCWD, path, 0, &to.dir, &to.name, text);
    rc = gather(&to, tree, rc, text, NULL);
    io_close(&to.dir);
    return rc;
}
