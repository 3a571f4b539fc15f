/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_flush (SCR Developer Guide 1.2, section 2.32), built on its asynchronous form.
 * Everything is checked and planned; each rank copies to the stage when flow control
 * admits it; when all ranks have copied, files are renamed and the map is written. Ranks
 * agree on the result of each step before the next one. */
#include "src/filo_private_mpi.h"

#include "common/folder.h"
#include "common/io.h"
#include "common/others.h"
#include "src/filo_layout.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct filo_transfer {
    filo_job job; /* must be first: the checks of a list cast it back */
    filo_move move;
    batch stage;     /* files that this rank creates and renames */
    kvtree *folders; /* directories that this rank creates and syncs */
    kvtree *entry;   /* map entry of this rank, once it has copied everything */
    int64_t containers;
    filo_shared shared;
    char *folder, *map; /* copies of the arguments, used by job */
    int count;
    filo_file *files;
    struct stat *seen; /* of each file: its attributes when it was checked, for the leader
                          that copies the file; NULL: this rank copies */
    bool ended;
    int result;
};

/* ---- before anything is written ---- */

/* Checks the names and sizes of parts of shared files. */
static int flush_check_parts(filo_job *job, const filo_file *file)
{
    uint64_t left = file->size;
    int rc = 0;
    for (int i = 0; i < file->segments && !rc; i++) {
        const filo_segment *s = &file->segment[i];
        rc = beneath_check_name(s->container, &job->err);
        if (!rc && filo_map_owns(job, s->container))
            rc = err_set(&job->err, -EINVAL, "file name \"%s\" belongs to the map %s",
                         s->container, job->map);
        if (!rc && (s->length > left || s->offset > INT64_MAX - s->length)) break;
        left -= rc ? 0 : s->length;
    }
    if (rc || left == 0) return rc;
    return err_set(&job->err, -EINVAL,
                   "the parts of file \"%s\" are not %" PRIu64 " bytes", file->name,
                   file->size);
}

/* A file that a leader copies is opened here by its owner as well, so that the error is
 * reported by this rank. */
static int flush_look(filo_job *job, const filo_file *file, struct stat *st)
{
    const filo_transfer *t = (const filo_transfer *)job;
    int rc = 0;
    if (t->seen)
        rc = axl_look(file->local, st, &job->err);
    else if (lstat(file->local, st) != 0)
        return err_sys(&job->err, -errno, "stat %s", file->local);
    if (rc == -ELOOP || rc == -EISDIR || (!rc && !S_ISREG(st->st_mode)))
        return err_set(&job->err, -EINVAL, "%s is not a regular file", file->local);
    if (!rc && t->seen) t->seen[file - t->files] = *st;
    return rc;
}

static int flush_check_file(filo_job *job, filo_file *file)
{
    struct stat st;
    int rc = beneath_check_name(file->name, &job->err);
    if (rc) return rc;
    if (filo_map_owns(job, file->name))
        return err_set(&job->err, -EINVAL, "file name \"%s\" belongs to the map %s",
                       file->name, job->map);
    if (!file->local)
        return err_set(&job->err, -EINVAL, "file \"%s\" has no local path", file->name);
    rc = flush_look(job, file, &st);
    if (rc) return rc;
    if ((uint64_t)st.st_size != file->size)
        return err_set(&job->err, -EIO, "%s has %lld bytes, not %" PRIu64, file->local,
                       (long long)st.st_size, file->size);
    others_limit_mode_at(file->local, &st);
    file->mode = st.st_mode & 0777;
    file->group = job->options.has_group ? job->options.group : st.st_gid;
    job->shares |= file->packed != 0;
    return file->packed ? flush_check_parts(job, file) : 0;
}

static int flush_copy_parts(filo_file *copy, const filo_file *file)
{
    copy->packed = 1;
    copy->segment = calloc((size_t)file->segments + 1, sizeof *copy->segment);
    if (!copy->segment) return -ENOMEM;
    for (; copy->segments < file->segments; copy->segments++) {
        const filo_segment *from = &file->segment[copy->segments];
        filo_segment *s = &copy->segment[copy->segments];
        *s = (filo_segment){NULL, from->offset, from->length};
        s->container = from->container ? strdup(from->container) : NULL;
        if (from->container && !s->container) return -ENOMEM;
    }
    return 0;
}

/* Copies the list, because the caller may change it during the flush. filo_list_check
 * refuses an invalid list later. */
static int flush_copy_list(filo_transfer *t, int count, const filo_file files[])
{
    if (count < 0 || !files) {
        t->count = count;
        return 0;
    }
    t->files = calloc((size_t)count + 1, sizeof *t->files);
    if (!t->files) return -ENOMEM;
    for (int i = 0; i < count; i++) {
        const filo_file *f = &files[i];
        filo_file *copy = &t->files[t->count++];
        *copy = (filo_file){
            .size = f->size, .crc = f->crc, .has_crc = f->has_crc, .rank = f->rank};
        copy->local = f->local ? strdup(f->local) : NULL;
        copy->name = f->name ? strdup(f->name) : NULL;
        if ((f->local && !copy->local) || (f->name && !copy->name)) return -ENOMEM;
        if (f->packed && flush_copy_parts(copy, f) != 0) return -ENOMEM;
    }
    return 0;
}

static int flush_make_seen(filo_transfer *t)
{
    if (t->count <= 0) return 0;
    t->seen = calloc((size_t)t->count, sizeof *t->seen);
    return t->seen ? 0 : err_sys(&t->job.err, -ENOMEM, "flush %d files", t->count);
}

static int flush_copy_path(char **copy, const char *path)
{
    *copy = path ? strdup(path) : NULL;
    return path && !*copy ? -ENOMEM : 0;
}

/* ---- the directory ---- */

/* Returns the path of a staged file, freed by the caller; NULL without memory. */
static char *flush_path(const filo_transfer *t, const char *staged)
{
    char *path, part[FILO_PART_SIZE];
    filo_job_name_part(&t->job, part);
    int n = asprintf(&path, "%s/%s%s%s", t->folder, part, *staged ? "/" : "", staged);
    return n < 0 ? NULL : path;
}

/* The transfer uses the private directory through the same descriptor. */
static int flush_enter_stage(filo_transfer *t)
{
    int rc = filo_job_enter(&t->job);
    if (rc) return rc;
    char *path = flush_path(t, "");
    rc = path ? axl_set_private(t->move.transfer, path, t->job.stage_dir, &t->job.err)
              : err_sys(&t->job.err, -ENOMEM, "stage");
    free(path);
    return rc;
}

static const struct stat *flush_seen(const filo_transfer *t, int i)
{
    return t->seen ? &t->seen[i] : NULL;
}

static int flush_add_segments(filo_transfer *t, int i)
{
    const filo_file *file = &t->files[i];
    uint64_t at = 0;
    int rc = 0;
    for (int s = 0; s < file->segments && !rc; s++) {
        const filo_segment *segment = &file->segment[s];
        if (segment->length == 0) continue; /* another one may begin there */
        const char *staged = filo_shared_find(&t->shared, segment->container);
        if (!staged) staged = filo_containers_stage(segment->container);
        rc = filo_move_add(&t->move, i, flush_seen(t, i), strdup(file->local), at,
                           flush_path(t, staged), segment->offset, segment->length);
        at += segment->length;
    }
    return rc;
}

static int flush_add_file(filo_transfer *t, int i)
{
    const filo_job *job = &t->job;
    const filo_file *file = &t->files[i];
    char staged[64];
    const batch_file add = {.name = file->name,
                            .from = job->stage_dir,
                            .temporary = staged,
                            .size = file->size,
                            .mode = file->mode,
                            .has_group = true,
                            .group = file->group};
    if (job->shares) /* paths begin at the directory of the flush */
        snprintf(staged, sizeof staged, "%d/%d.%d", job->rank / FILO_STAGE_SPREAD,
                 job->rank, i);
    else
        snprintf(staged, sizeof staged, "%d.%d", job->rank, i);
    int rc = batch_add(&t->stage, &add, &t->job.err);
    return rc ? rc
              : filo_move_add(&t->move, i, flush_seen(t, i), strdup(file->local), 0,
                              flush_path(t, staged), 0, file->size);
}

/* Collective, agreed. rc is the result of this rank so far. Creates the directories of
 * files that are not packed and of shared files. */
static int flush_make_folders(filo_transfer *t, int rc)
{
    int count;
    filo_file *named =
        filo_shared_join(&t->shared, t->count, t->files, FILO_NAMED, &count);
    if (!rc && !named) rc = err_sys(&t->job.err, -ENOMEM, "list files");
    rc = filo_folders_make(&t->job, rc, count, named, &t->folders);
    free(named);
    return rc;
}

/* Adds the shared files that this rank creates. */
static int flush_add_shared(filo_transfer *t)
{
    int rc = t->shared.count ? filo_job_enter(&t->job) : 0;
    t->stage.dir = t->job.dir;
    for (int i = 0; i < t->shared.count && !rc; i++) {
        const filo_file *file = &t->shared.files[i];
        const batch_file add = {.name = file->name,
                                .from = t->job.stage_dir,
                                .temporary = filo_shared_find(&t->shared, file->name),
                                .size = file->size,
                                .mode = file->mode,
                                .has_group = true,
                                .group = file->group};
        rc = batch_add(&t->stage, &add, &t->job.err);
    }
    return rc;
}

/* Collective, agreed. rc is the result of this rank so far. Prepares the stage, to which
 * an earlier process may already have copied data. Containers and shared files are
 * created before any rank writes to them, but after every rank has checked its files. */
static int flush_plan(filo_transfer *t, int rc)
{
    filo_job *job = &t->job;
    const bool packed = job->options.container || job->options.align;
    const bool early = packed || job->shares, copies = filo_lead_is_here(job);
    if (!rc && job->rank == 0)
        rc = filo_map_make_folder(job->options.base, job->folder, job->map, &job->err);
    rc = filo_job_make_stage(job, rc);
    if (rc) return rc;
    rc = copies ? flush_enter_stage(t) : 0;
    /* axl syncs files, filo_commit directories */
    t->stage = (batch){.dir = job->dir,
                       .durability = BATCH_UNSYNCED,
                       .resumed = true,
                       .from = job->stage};
    if (packed)
        rc = filo_containers_plan(job, rc, t->count, t->files, &t->stage, &t->containers);
    if (!packed || job->shares) rc = flush_make_folders(t, rc);
    if (rc && !job->options.align) return rc; /* not agreed if leaders copy */
    for (int i = 0; i < t->count && !rc; i++)
        rc = t->files[i].packed ? flush_add_segments(t, i) : flush_add_file(t, i);
    if (!rc) rc = flush_add_shared(t);
    rc = filo_move_hand(&t->move, rc);
    if (!rc) rc = filo_move_continue(&t->move);
    if (!early) t->move.stage = &t->stage;
    rc = filo_job_agree(job, rc);
    if (rc || !early) return rc;
    return filo_job_agree(job, batch_make(&t->stage, &job->err));
}

/* ---- the files ---- */

/* Compares the copied data with the size and checksum that the caller gave. */
static int flush_compare(filo_job *job, const filo_file *given, const filo_file *moved)
{
    struct stat st;
    uint64_t size = moved->size;
    if (lstat(given->local, &st) == 0 && (uint64_t)st.st_size != given->size)
        size = (uint64_t)st.st_size; /* its size changed since it was checked */
    if (size != given->size)
        return err_set(&job->err, -EIO, "%s has %" PRIu64 " bytes, not %" PRIu64,
                       given->local, size, given->size);
    if (given->has_crc && moved->crc != given->crc)
        return err_set(&job->err, -EIO,
                       "%s was altered: CRC32 0x%08" PRIx32 ", not 0x%08" PRIx32,
                       given->local, moved->crc, given->crc);
    return 0;
}

/* ---- a flush under way ---- */

/* Collective; rc is agreed. State files are removed before the data that they record. */
static int flush_end(filo_transfer *t, int rc)
{
    if (rc && t->move.transfer) axl_cancel(t->move.transfer, NULL);
    if (rc) batch_drop(&t->stage);
    if (rc) filo_job_meet(&t->job);
    if (rc && t->job.staged) { /* the same on all ranks */
        filo_job_remove_stage(&t->job);
        filo_job_meet(&t->job);
    }
    t->ended = true;
    t->result = rc;
    return rc;
}

static int flush_result(const filo_transfer *t, filo_error *err)
{
    return t->result ? err_set(err, t->result, "%s", t->job.err.text) : 0;
}

/* Stores the times of staged files; a rename keeps them. A file whose time cannot be read
 * has none in the map. */
static void flush_note_times(filo_transfer *t)
{
    const batch_item *item = t->stage.items;
    for (int i = 0; i < t->count; i++) {
        struct stat st;
        if (t->files[i].packed) continue;
        if (beneath_stat(t->job.stage_dir, item->temporary, &st, NULL) == 0)
            filo_file_note_time(&t->files[i], &st);
        item++;
    }
}

/* Stores the times of shared files after all ranks have copied everything. Opening each
 * file fetches its current time, also on file systems whose clients cache attributes. */
static void flush_note_shared(filo_transfer *t)
{
    for (int i = 0; i < t->shared.count; i++) {
        filo_file *file = &t->shared.files[i];
        const char *staged = filo_shared_find(&t->shared, file->name);
        struct stat st;
        int fd;
        if (beneath_open(t->job.stage_dir, staged, O_RDONLY, 0, &fd, NULL) != 0) continue;
        if (fstat(fd, &st) == 0) filo_file_note_time(file, &st);
        io_close(&fd);
    }
}

static int flush_make_entry(filo_transfer *t)
{
    if (t->entry) return 0;
    int count;
    flush_note_times(t);
    flush_note_shared(t);
    filo_file *all = filo_shared_join(&t->shared, t->count, t->files, FILO_ALL, &count);
    int rc = all ? filo_map_make(&t->job, count, all, &t->entry)
                 : err_sys(&t->job.err, -ENOMEM, "list files");
    free(all);
    return rc;
}

/* Collective, agreed. Makes the entry after all ranks have copied: files were copied by
 * leaders, or shared files have parts of other ranks. */
static int flush_make_late_entry(filo_transfer *t)
{
    int rc = filo_move_return(&t->move);
    return filo_job_agree(&t->job, rc ? rc : flush_make_entry(t));
}

/* Collective, agreed. */
static int flush_go_on(filo_transfer *t, bool wait)
{
    filo_job *job = &t->job;
    const bool late = job->shares || job->options.align;
    int64_t busy = filo_move_go_on(&t->move, wait) == FILO_RUNNING;
    if (!busy && !t->move.rc && !late) t->move.rc = flush_make_entry(t);
    if (wait && job->options.align)
        filo_job_rest(job); /* other ranks sleep while leaders
                               copy */
    int rc = agree_sum(job->own, t->move.rc, &job->err, 1, &busy);
    if (!rc && busy) return FILO_RUNNING;
    if (!rc && late) rc = flush_make_late_entry(t);
    if (rc)
        filo_move_abort(&t->move);
    else
        rc = filo_commit(job, &t->stage, t->folders, t->entry, t->containers);
    return flush_end(t, rc);
}

static int flush_begin_move(filo_transfer *t, int checksum)
{
    const filo_options *o = &t->job.options;
    t->move.check = flush_compare;
    return filo_move_begin(&t->move, &t->job, o->base ? o->base : t->folder, t->count,
                           t->files, checksum != 0);
}

/* Collective, the result is this rank's own. One rank copies for a node, with checksums
 * if any file of the node needs one. */
static int flush_find_leader(filo_transfer *t, int checksum)
{
    filo_job *job = &t->job;
    int rc = filo_lead_meet(job);
    if (rc) return rc;
    rc = filo_lead_begin(job, &checksum);
    return rc ? rc : flush_begin_move(t, checksum);
}

/* Collective, agreed. rc is the result of this rank so far. */
static int flush_begin(filo_transfer *t, MPI_Comm comm, const filo_options *options,
                       int rc)
{
    filo_job *job = &t->job;
    int begun = filo_job_begin(job, comm, t->folder, t->map, options);
    if (rc) err_sys(&job->err, rc, "flush %d files", t->count);
    if (!rc) rc = begun;
    if (!rc) rc = filo_map_check_name(job);
    if (!rc && job->options.align) rc = flush_make_seen(t);
    if (!rc) rc = filo_list_check(job, t->count, t->files, flush_check_file);
    int checksum = job->options.checksum;
    const bool leads = job->options.align > 0;
    for (int i = 0; i < t->count && !rc; i++)
        checksum |= t->files[i].has_crc;
    if (!rc && !leads) rc = flush_begin_move(t, checksum);
    rc = filo_job_agree_key(job, rc);
    if (rc) return rc;
    if (leads) rc = flush_find_leader(t, checksum != 0);
    rc = filo_names_compare(job, rc, t->count, t->files, &t->shared);
    if (rc) return rc;
    rc = filo_flow_order(&t->move.flow, job->options.turn, &job->err);
    return rc && !leads ? rc : flush_plan(t, rc); /* only leaders agreed on rc */
}

/* Collective. This rank has no memory for a transfer, and reports that to the other
 * ranks. */
static int flush_refuse(MPI_Comm comm, const char *folder, filo_error *err)
{
    filo_job job;
    filo_job_begin(&job, comm, folder, NULL, NULL);
    err_sys(&job.err, -ENOMEM, "flush");
    return filo_job_end(&job, filo_job_agree_key(&job, -ENOMEM), err);
}

int filo_flush_start(MPI_Comm comm, const char *folder, const char *map, int count,
                     const filo_file files[], const filo_options *options,
                     filo_transfer **transfer, filo_error *err)
{
    filo_transfer *t = calloc(1, sizeof *t);
    if (!t) return flush_refuse(comm, folder, err);
    int rc = flush_copy_list(t, count, files);
    if (!rc) rc = flush_copy_path(&t->folder, folder);
    if (!rc) rc = flush_copy_path(&t->map, map);
    rc = flush_begin(t, comm, options, rc);
    if (rc) {
        rc = err_set(err, flush_end(t, rc), "%s", t->job.err.text);
        filo_flush_free(t);
        return rc;
    }
    filo_move_go_on(&t->move, false); /* the next call returns the result */
    *transfer = t;
    return 0;
}

int filo_flush_test(filo_transfer *transfer, filo_error *err)
{
    if (!transfer->ended && flush_go_on(transfer, false) == FILO_RUNNING)
        return FILO_RUNNING;
    return flush_result(transfer, err);
}

int filo_flush_wait(filo_transfer *transfer, filo_error *err)
{
    while (!transfer->ended)
        flush_go_on(transfer, true);
    return flush_result(transfer, err);
}

int filo_flush_stop(filo_transfer *transfer, filo_error *err)
{
    if (transfer->ended) return 0;
    filo_move_abort(&transfer->move);
    flush_end(transfer, err_set(&transfer->job.err, -ECANCELED, "the flush was stopped"));
    return 0;
}

const char *filo_flush_left(const filo_transfer *transfer)
{
    return transfer->job.left.text[0] ? transfer->job.left.text : NULL;
}

const filo_file *filo_flush_files(const filo_transfer *transfer, int *count)
{
    *count = transfer->count;
    return transfer->files;
}

/* Not collective: freeing a communicator sends nothing. */
static filo_transfer *flush_release(filo_transfer *transfer)
{
    filo_move_end(&transfer->move);
    batch_drop(&transfer->stage);
    kvtree_delete(&transfer->folders);
    kvtree_delete(&transfer->entry);
    filo_shared_end(&transfer->shared);
    filo_job_end(&transfer->job, 0, NULL);
    filo_files_free(transfer->count, transfer->files);
    free(transfer->seen);
    free(transfer->folder);
    free(transfer->map);
    free(transfer);
    return NULL;
}

filo_transfer *filo_flush_free(filo_transfer *transfer)
{
    if (transfer) filo_flush_stop(transfer, NULL);
    return transfer ? flush_release(transfer) : NULL;
}

filo_transfer *filo_flush_forget(filo_transfer *transfer)
{
    if (transfer && !transfer->ended) filo_move_forget(&transfer->move);
    return transfer ? flush_release(transfer) : NULL;
}

int filo_flush(MPI_Comm comm, const char *folder, const char *map, int count,
               filo_file files[], const filo_options *options, filo_error *err)
{
    filo_transfer *t;
    int rc = filo_flush_start(comm, folder, map, count, files, options, &t, err);
    if (rc) return rc;
    rc = filo_flush_wait(t, err);
    for (int i = 0; i < count && !rc; i++) {
        files[i].size = t->files[i].size;
        files[i].crc = t->files[i].crc;
        files[i].has_crc = t->files[i].has_crc;
    }
    filo_flush_free(t);
    return rc;
}
