/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves the cached files of one rank from the process that holds them to their owner.
 * Data flows in both directions at once, piece by piece. The sender removes its files
 * only after the receiver has recorded its own; after a failure on either side the files
 * stay with the sender. */
#include "cache/cache.h"

#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define MESSAGE (1 << 20) /* default number of bytes of file data in a message */
#define TAG 0x5343

/* Sends a number to rank a, and returns the number from rank b; 0 if there is none. */
static int transfer_swap(const scr_cache *cache, int mine, int a, int b)
{
    int theirs = 0;
    MPI_Sendrecv(&mine, 1, MPI_INT, a, TAG, &theirs, 1, MPI_INT, b, TAG,
                 cache->job->world, MPI_STATUS_IGNORE);
    return theirs;
}

/* ---- one side of a transfer: a walk through files ---- */

struct transfer_stream {
    scr_cache *cache;
    const kvtree_elem *file;
    const kvtree *described; /* the sender's description of files to create; else NULL */
    unsigned long left;      /* bytes of the current file that are still to be moved */
    int piece, step;         /* maximum bytes per message, and per read or write */
    int fd, id, flags;
    int rc; /* the first failure; the walk continues, so that the other side does not
               block */
    kvtree_error err;
};

static const char *transfer_name_of(const scr_cache *cache, int id,
                                    const kvtree_elem *file)
{
    return scr_filemap_name_of(kvtree_elem_key(file), cache->job->owner, id);
}

void scr_drop_files(scr_cache *cache, int id, int rank, int delete)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(cache->map, id, rank));
    for (; delete &&f; f = kvtree_elem_next(f)) {
        char path[SCR_CACHED_NAME_SIZE];
        scr_cached_name(id, transfer_name_of(cache, id, f), path);
        beneath_unlink(scr_cache_of(cache, id)->fd, path, NULL);
    }
    scr_filemap_remove_rank(cache->map, id, rank);
}

static int transfer_open_file(scr_cache *cache, int id, const char *name, int flags,
                              int *fd, kvtree_error *err)
{
    char path[SCR_CACHED_NAME_SIZE];
    scr_cached_name(id, name, path);
    if (flags & O_CREAT) {
        int parent;
        const char *last;
        int rc = beneath_open_parent(scr_cache_of(cache, id)->fd, path, 0700, &parent,
                                     &last, err);
        if (rc) return rc;
        rc = beneath_unlink(parent, last, err);
        io_close(&parent);
        if (rc) return rc;
    }
    return beneath_open(scr_cache_of(cache, id)->fd, path, flags, 0600, fd, err);
}

static void transfer_stream_open(struct transfer_stream *s)
{
    const char *name = transfer_name_of(s->cache, s->id, s->file);
    int mode;
    kvtree_util_get_bytecount(kvtree_elem_hash(s->file), SCR_META_SIZE, &s->left);
    if (s->rc) return;
    s->rc = transfer_open_file(s->cache, s->id, name, s->flags, &s->fd, &s->err);
    if (!s->rc &&
        kvtree_util_get_int(kvtree_get(s->described, "MODE"), name, &mode) == 0 &&
        fchmod(s->fd, (mode_t)mode & 0777) != 0)
        s->rc = err_sys(&s->err, -errno, "set the permissions of %s", name);
}

/* Advances to the next file with bytes left; file becomes NULL at the end. */
static void transfer_stream_next(struct transfer_stream *s)
{
    while (s->file && s->left == 0) {
        int rc = io_close(&s->fd);
        if (rc && !s->rc)
            s->rc = err_sys(&s->err, rc, "close a file of dataset %d", s->id);
        s->file = kvtree_elem_next(s->file);
        if (s->file) transfer_stream_open(s);
    }
}

static void transfer_stream_begin(struct transfer_stream *s, scr_cache *cache,
                                  const kvtree *files, int id, const kvtree *described)
{
    memset(s, 0, sizeof *s);
    s->described = described;
    s->cache = cache;
    s->fd = -1;
    s->id = id;
    s->flags = described ? O_WRONLY | O_CREAT | O_EXCL : O_RDONLY;
    s->piece = cache->set->message ? (int)cache->set->message : MESSAGE;
    s->step = cache->set->file_buffer ? (int)cache->set->file_buffer : s->piece;
    s->file = kvtree_elem_first(files);
    if (s->file) transfer_stream_open(s);
    transfer_stream_next(s);
}

static int transfer_stream_piece(const struct transfer_stream *s)
{
    unsigned long most = (unsigned long)s->piece;
    return !s->file ? 0 : s->left < most ? (int)s->left : s->piece;
}

static void transfer_stream_read(struct transfer_stream *s, char *buf, int n)
{
    for (int at = 0, m; at < n && !s->rc; at += m) {
        m = n - at < s->step ? n - at : s->step;
        ssize_t got = io_read(s->fd, buf + at, (size_t)m);
        if (got != m)
            s->rc = err_sys(&s->err, got < 0 ? (int)got : -EIO,
                            "read a file of dataset %d", s->id);
    }
}

static void transfer_stream_write(struct transfer_stream *s, const char *buf, int n)
{
    for (int at = 0, m; at < n && !s->rc; at += m) {
        m = n - at < s->step ? n - at : s->step;
        int rc = io_write(s->fd, buf + at, (size_t)m);
        if (rc) s->rc = err_sys(&s->err, rc, "write a file of dataset %d", s->id);
    }
}

static void transfer_stream_advance(struct transfer_stream *s, int n)
{
    if (n) s->left -= (unsigned long)n;
    transfer_stream_next(s);
}

/* ---- one round ---- */

struct transfer_round {
    int to, from;      /* MPI_PROC_NULL: none */
    int rc;            /* on the receiving side */
    int undescribed;   /* on the sending side: why the files could not be described */
    int here, there;   /* this rank shares its directory with from, with to */
    int receive, send; /* file data must be sent */
    kvtree *described; /* the sender's description of the files */
    kvtree_error err;
};

static int transfer_exchange_data(scr_cache *cache, const struct transfer_round *r,
                                  struct transfer_stream *out, struct transfer_stream *in)
{
    char *buf = io_buffer(2 * (size_t)out->piece);
    /* a piece is sent only when both sides have their buffers */
    int to = r->send ? r->to : MPI_PROC_NULL, from = r->receive ? r->from : MPI_PROC_NULL;
    int receive = transfer_swap(cache, buf != NULL, to, from);
    int send = transfer_swap(cache, buf != NULL, from, to);
    while (buf && ((send && out->file) || (receive && in->file))) {
        int n_out = send ? transfer_stream_piece(out) : 0,
            n_in = receive ? transfer_stream_piece(in) : 0;
        MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status status[2];
        if (n_in)
            MPI_Irecv(buf + out->piece, n_in, MPI_BYTE, r->from, TAG, cache->job->world,
                      &request[0]);
        if (n_out) {
            transfer_stream_read(out, buf, n_out);
            MPI_Isend(buf, n_out, MPI_BYTE, r->to, TAG, cache->job->world, &request[1]);
        }
        MPI_Waitall(2, request, status);
        if (n_in) transfer_stream_write(in, buf + out->piece, n_in);
        transfer_stream_advance(out, n_out);
        transfer_stream_advance(in, n_in);
    }
    int whole = buf && receive >= r->receive && send >= r->send;
    free(buf);
    return whole ? 0 : -ENOMEM;
}

/* Two processes may share a directory if the store is global, or if nodes are simulated
 * on one machine. Then no file may be copied onto itself, so the receiver creates a
 * marker, and the sender checks whether it exists. */
typedef char transfer_marker[64];

/* Creates the marker and sets its name, which is empty without a sender, or after an
 * error. */
static int transfer_leave_marker(const scr_cache *cache, int id, int from,
                                 transfer_marker mark, kvtree_error *err)
{
    int fd;
    uint64_t random;
    memset(mark, 0, sizeof(transfer_marker));
    if (from == MPI_PROC_NULL) return 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return err_set(err, -EIO, "no random number");
    snprintf(mark, sizeof(transfer_marker), "scr.dataset.%d/.%016llx.tmp", id,
             (unsigned long long)random);
    int rc = beneath_open(scr_cache_of(cache, id)->fd, mark, O_WRONLY | O_CREAT | O_EXCL,
                          0600, &fd, err);
    if (rc)
        mark[0] = 0;
    else
        io_close(&fd);
    return rc;
}

/* On the sender: 1 if the receiver uses the same directory, 0 if not, -1 if the receiver
 * could not create its marker. */
static int transfer_find_marker(const scr_cache *cache, int id,
                                const transfer_marker mine, int to, int from)
{
    transfer_marker theirs = "";
    struct stat st;
    int fd = scr_cache_of(cache, id)->fd;
    MPI_Sendrecv(mine, sizeof(transfer_marker), MPI_CHAR, from, TAG, theirs,
                 sizeof(transfer_marker), MPI_CHAR, to, TAG, cache->job->world,
                 MPI_STATUS_IGNORE);
    if (to == MPI_PROC_NULL) return 0;
    theirs[sizeof(transfer_marker) - 1] = 0;
    return !theirs[0] ? -1 : beneath_stat(fd, theirs, &st, NULL) == 0;
}

/* Adds the permissions of a file, which a flush keeps. */
static int transfer_describe_mode(const scr_cache *cache, int id, const char *name,
                                  kvtree *tree)
{
    char path[SCR_CACHED_NAME_SIZE];
    struct stat st;
    scr_cached_name(id, name, path);
    int rc = beneath_stat(scr_cache_of(cache, id)->fd, path, &st, NULL);
    kvtree *modes = kvtree_get(tree, "MODE");
    if (!rc && !modes) modes = kvtree_set(tree, "MODE", NULL);
    return rc ? rc : kvtree_util_set_int(modes, name, (int)(st.st_mode & 0777));
}

/* Describes the files of the rank with their meta data, for the receiver. */
static int transfer_describe_files(scr_cache *cache, int id, int rank, kvtree *tree)
{
    const kvtree_elem *f = kvtree_elem_first(scr_filemap_files(cache->map, id, rank));
    int rc = 0;
    for (; f && !rc; f = kvtree_elem_next(f)) {
        const char *name = transfer_name_of(cache, id, f);
        /* both sides must walk through the same list */
        if (kvtree_get_kv(tree, "FILE", name)) return -EBADMSG;
        kvtree *copy = kvtree_set_kv(tree, "FILE", name);
        rc = copy ? kvtree_merge(copy, kvtree_elem_hash(f)) : -ENOMEM;
        rc = rc ? rc : transfer_describe_mode(cache, id, name, tree);
    }
    return rc;
}

static int transfer_accept_file(scr_cache *cache, int id, const char *folder,
                                const kvtree_elem *f, kvtree_error *err)
{
    char *path = NULL;
    int rc = beneath_check_name(kvtree_elem_key(f), err);
    if (rc) return rc;
    if (asprintf(&path, "%s/%s", folder, kvtree_elem_key(f)) < 0) return -ENOMEM;
    kvtree *meta = scr_filemap_add_file(cache->map, id, cache->job->rank, path);
    free(path);
    return meta ? kvtree_merge(meta, kvtree_elem_hash(f)) : -ENOMEM;
}

/* Records the described files as those of this rank. */
static int transfer_accept_files(scr_cache *cache, const scr_dataset *dataset,
                                 const kvtree *tree, kvtree_error *err)
{
    const kvtree *files = kvtree_get(tree, "FILE");
    const kvtree_elem *f = kvtree_elem_first(files);
    char *folder = scr_dataset_folder(cache, dataset->id);
    kvtree *desc = kvtree_new();
    int rc = folder && desc ? scr_dataset_to_tree(dataset, desc) : -ENOMEM;
    for (; f && !rc; f = kvtree_elem_next(f))
        rc = transfer_accept_file(cache, dataset->id, folder, f, err);
    rc = rc ? rc
            : scr_filemap_set_expected(cache->map, dataset->id, cache->job->rank,
                                       kvtree_size(files));
    rc = rc ? rc
            : scr_filemap_set_dataset(cache->map, dataset->id, cache->job->rank, desc);
    kvtree_delete(&desc);
    free(folder);
    return rc;
}

/* Describes the files for the receiver. After an error the description is empty, which
 * tells the receiver that no files come. */
static int transfer_describe(scr_cache *cache, int id, const struct transfer_round *r,
                             kvtree *mine)
{
    int rc = kvtree_util_set_int(mine, "SHARED", r->there);
    rc = rc ? rc : transfer_describe_files(cache, id, r->to, mine);
    if (rc) kvtree_unset_all(mine);
    return rc;
}

/* The sender describes the files; the receiver requests their data. A failure on one
 * side of a rank does not affect its other side. */
static void transfer_begin(scr_cache *cache, const scr_dataset *dataset,
                           struct transfer_round *r)
{
    kvtree *mine = kvtree_new();
    transfer_marker mark;
    const int id = dataset->id;
    r->rc = transfer_leave_marker(cache, id, r->from, mark, &r->err);
    r->there = transfer_find_marker(cache, id, mark, r->to, r->from);
    if (r->to != MPI_PROC_NULL && r->there >= 0)
        r->undescribed = transfer_describe(cache, id, r, mine);
    int shared = kvtree_sendrecv(mine, r->to, r->described, r->from, cache->job->world);
    if (!r->rc && r->from != MPI_PROC_NULL) {
        r->rc = shared;
        if (!r->rc && kvtree_util_get_int(r->described, "SHARED", &r->here) != 0)
            r->rc = err_set(&r->err, -EIO, "rank %d could not describe them", r->from);
        if (!r->rc) r->rc = transfer_accept_files(cache, dataset, r->described, &r->err);
        r->receive = !r->rc && !r->here;
    }
    r->send = transfer_swap(cache, r->receive, r->from, r->to);
    if (mark[0]) beneath_unlink(scr_cache_of(cache, id)->fd, mark, NULL);
    kvtree_delete(&mine);
}

static void transfer_report(const scr_cache *cache, int id, int rc, const char *err)
{
    scr_fail_local(cache->job->report, SCR_MSG_REBUILD_FILES_NOT_MOVED, 0,
                   "rank %d: files of dataset %d could not be moved: %s",
                   cache->job->rank, id, err[0] ? err : strerror(-rc));
}

/* The receiver keeps the files, or drops them; the sender removes its copy if the
 * receiver kept them. */
static void transfer_end(scr_cache *cache, int id, struct transfer_round *r,
                         int sent_well, int received)
{
    int came = transfer_swap(cache, sent_well, r->to, r->from);
    if (r->from != MPI_PROC_NULL) {
        if (!r->rc) r->rc = received ? received : came ? 0 : -EIO;
        if (r->rc) scr_drop_files(cache, id, cache->job->rank, !r->here);
    }
    int taken = r->from != MPI_PROC_NULL && !r->rc;
    int let_go = transfer_swap(cache, taken, r->from, r->to);
    if (r->to != MPI_PROC_NULL && let_go) scr_drop_files(cache, id, r->to, !r->there);
    if (r->rc) transfer_report(cache, id, r->rc, r->err.text);
    if (r->undescribed) transfer_report(cache, id, r->undescribed, "");
}

int scr_move_files(scr_cache *cache, const scr_dataset *dataset, int to, int from)
{
    struct transfer_round r = {.to = to, .from = from, .described = kvtree_new()};
    struct transfer_stream out, in;
    int id = dataset->id;
    transfer_begin(cache, dataset, &r);
    transfer_stream_begin(
        &out, cache, r.send ? scr_filemap_files(cache->map, id, to) : NULL, id, NULL);
    transfer_stream_begin(&in, cache,
                          r.receive ? scr_filemap_files(cache->map, id, cache->job->rank)
                                    : NULL,
                          id, r.described);
    int pumped = transfer_exchange_data(cache, &r, &out, &in);
    if (in.rc) r.err = in.err;
    if (out.rc) transfer_report(cache, id, out.rc, out.err.text);
    transfer_end(cache, id, &r, !out.rc && !pumped, in.rc ? in.rc : pumped);
    io_close(&out.fd);
    io_close(&in.fd);
    kvtree_delete(&r.described);
    return r.rc;
}
