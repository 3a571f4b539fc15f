/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_fetch: checks all files, copies them, and compares. Ranks agree on each step
 * before the next one. An incomplete cache is useless, so local files are renamed only
 * when the files of all ranks are complete. */
#include "src/filo_private_mpi.h"

#include "common/array.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct fetch {
    filo_job job; /* must be first: the checks of a list cast it back */
    filo_move move;
    batch stage;
    int count;
    filo_file *files;     /* as given by the caller, later as copied */
    struct stat *sources; /* attributes when checked, in the order of files and their
                             segments */
    size_t source_count, source_next;
    const char *container; /* the last of the sources, if it is a container; else NULL */
} fetch;

/* ---- before anything is copied ---- */

static int fetch_size_differs(filo_job *job, const filo_file *file, uint64_t size)
{
    return err_set(&job->err, FILO_DAMAGED,
                   "%s/%s has %" PRIu64 " bytes, but its map says %" PRIu64, job->folder,
                   file->name, size, file->size);
}

/* Keeps the attributes of a source: the file is opened by its path later, and others may
 * have replaced a directory on the path by then. */
static int fetch_keep_source(fetch *f, const struct stat *st)
{
    struct stat *sources = array_grow(f->sources, f->source_count, sizeof *sources);
    if (!sources) return err_sys(&f->job.err, -ENOMEM, "list the files of a fetch");
    f->sources = sources;
    sources[f->source_count++] = *st;
    return 0;
}

/* Checks a file or container below the directory. */
static int fetch_inspect(filo_job *job, const char *name, struct stat *st)
{
    int rc = beneath_check_name(name, &job->err);
    if (rc) return rc;
    rc = beneath_stat_source(job->dir, name, st, &job->err);
    if (rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP)
        return err_wrap(&job->err, FILO_DAMAGED, "directory %s", job->folder);
    if (rc) return err_wrap(&job->err, rc, "directory %s", job->folder);
    return S_ISREG(st->st_mode)
               ? fetch_keep_source((fetch *)job, st)
               : err_set(&job->err, FILO_DAMAGED, "%s/%s is not a regular file",
                         job->folder, name);
}

/* Reduces the mode of a file to the permissions that its container grants to those who
 * can read the file in the cache. */
static void fetch_limit_mode(const filo_job *job, filo_file *file, const struct stat *st,
                             bool first)
{
    const filo_options *o = &job->options;
    gid_t group = o->has_group ? o->group : st->st_gid;
    file->mode = filo_limit_mode(file->mode ? file->mode : st->st_mode & 0666, st, group);
    if (!first) file->mode = beneath_mode_in_group(file->mode, file->group, group);
    file->group = group;
}

/* Consecutive files often lie in the same container, which is then checked only once. */
static int fetch_inspect_container(filo_job *job, const char *name, struct stat *st)
{
    fetch *f = (fetch *)job;
    if (f->container && strcmp(f->container, name) == 0) {
        *st = f->sources[f->source_count - 1];
        return fetch_keep_source(f, st);
    }
    int rc = fetch_inspect(job, name, st);
    f->container = rc ? NULL : name;
    return rc;
}

static int fetch_check_segments(filo_job *job, filo_file *file)
{
    uint64_t sum = 0;
    for (int i = 0; i < file->segments; i++) {
        const filo_segment *s = &file->segment[i];
        struct stat st;
        int rc = fetch_inspect_container(job, s->container, &st);
        if (rc) return rc;
        fetch_limit_mode(job, file, &st, i == 0);
        uint64_t size = (uint64_t)st.st_size;
        if (s->offset > size || s->length > size - s->offset)
            return err_set(&job->err, FILO_DAMAGED,
                           "%s/%s has %" PRIu64 " bytes, but %s is at %" PRIu64
                           " to %" PRIu64 " in it",
                           job->folder, s->container, size, file->name, s->offset,
                           s->offset + s->length);
        sum += s->length;
    }
    return sum == file->size ? 0 : fetch_size_differs(job, file, sum);
}

static int fetch_check_file(filo_job *job, filo_file *file)
{
    struct stat st;
    if (!file->local || !*file->local)
        return err_set(&job->err, -EINVAL, "file \"%s\" has no local path", file->name);
    if (!file->local[beneath_folder_length(file->local)])
        return err_set(&job->err, -EISDIR, "\"%s\" is not a file name", file->local);
    if (file->packed) return fetch_check_segments(job, file);
    ((fetch *)job)->container = NULL;
    int rc = fetch_inspect(job, file->name, &st);
    if (rc) return rc;
    if ((uint64_t)st.st_size != file->size)
        return fetch_size_differs(job, file, (uint64_t)st.st_size);
    file->mode = st.st_mode & 0777;
    file->group = st.st_gid;
    if (job->options.has_group)
        file->mode = beneath_mode_in_group(file->mode, st.st_gid, job->options.group);
    return 0;
}

/* ---- copying ---- */

enum { FETCH_PLACE_SIZE = 512 };

/* Describes where the bytes of a file lie in the directory: a file in containers has no
 * path. */
static void fetch_describe_place(const filo_job *job, const filo_file *file,
                                 char place[FETCH_PLACE_SIZE])
{
    const char *in = file->segments > 0 ? file->segment[0].container : file->name;
    if (!file->packed || file->segments < 1)
        snprintf(place, FETCH_PLACE_SIZE, "%s/%s", job->folder, file->name);
    else if (file->segments == 1)
        snprintf(place, FETCH_PLACE_SIZE, "%s/%s, which has %s,", job->folder, in,
                 file->name);
    else
        snprintf(place, FETCH_PLACE_SIZE, "%s/%s, or another of the %d containers of %s,",
                 job->folder, in, file->segments, file->name);
}

static int fetch_compare(filo_job *job, const filo_file *known, const filo_file *moved)
{
    char place[FETCH_PLACE_SIZE];
    if (moved->size != known->size) return fetch_size_differs(job, known, moved->size);
    if (!job->options.checksum || !known->has_crc || moved->crc == known->crc) return 0;
    fetch_describe_place(job, known, place);
    return err_set(&job->err, FILO_DAMAGED,
                   "%s was altered: CRC32 0x%08" PRIx32 ", but its map says 0x%08" PRIx32,
                   place, moved->crc, known->crc);
}

/* Adds one part of a file, with its source in the directory. */
static int fetch_add_part(fetch *f, int i, const filo_segment *from, uint64_t at)
{
    const char *local = f->files[i].local;
    const struct stat *checked = &f->sources[f->source_next - 1];
    char *source, *temporary;
    if (asprintf(&source, "%s/%s", f->job.folder, from->container) < 0) source = NULL;
    if (asprintf(&temporary, "%.*s%s", (int)beneath_folder_length(local), local,
                 f->stage.items[i].temporary) < 0)
        temporary = NULL;
    return filo_move_add(&f->move, i, checked, source, from->offset, temporary, at,
                         from->length);
}

/* Refuses two files with the same local path: the second would replace the first. */
static int fetch_refuse_doubles(fetch *f)
{
    kvtree *paths = kvtree_new();
    int rc = paths ? 0 : -ENOMEM;
    for (int i = 0; i < f->count && !rc; i++) {
        const char *path = f->files[i].local;
        if (kvtree_get(paths, path))
            rc = err_set(&f->job.err, -EEXIST, "local path %s is listed twice", path);
        else if (!kvtree_set(paths, path, NULL))
            rc = -ENOMEM;
    }
    if (rc == -ENOMEM) err_sys(&f->job.err, rc, "fetch %d files", f->count);
    kvtree_delete(&paths);
    return rc;
}

static int fetch_add_file(fetch *f, int i)
{
    const filo_file *file = &f->files[i];
    const filo_segment whole = {.container = file->name, .length = file->size};
    char temporary[64]; /* beside the file: the cache has no stage */
    const batch_file add = {.name = file->local,
                            .from = BATCH_BESIDE,
                            .temporary = temporary,
                            .size = file->size,
                            .mode = file->mode,
                            .has_group = !f->job.options.has_group,
                            .group = file->group};
    uint64_t at = 0;
    snprintf(temporary, sizeof temporary, ".%016" PRIx64 "-%d-%d.tmp", f->job.key,
             f->job.rank, i);
    int rc = batch_add(&f->stage, &add, &f->job.err);
    if (rc) return rc;
    if (!file->packed) {
        f->source_next++;
        return fetch_add_part(f, i, &whole, 0);
    }
    for (int s = 0; s < file->segments && !rc; s++) {
        f->source_next++;
        if (file->segment[s].length > 0) rc = fetch_add_part(f, i, &file->segment[s], at);
        at += file->segment[s].length;
    }
    return rc;
}

/* Collective, agreed. */
static int fetch_copy_files(fetch *f)
{
    for (int i = 0; i < f->count && !f->move.rc; i++)
        f->move.rc = fetch_add_file(f, i);
    f->move.stage = &f->stage;
    while (filo_move_go_on(&f->move, true) == FILO_RUNNING) {
    }
    return filo_job_agree(&f->job, f->move.rc);
}

/* Collective, agreed. */
static int fetch_rename_files(fetch *f)
{
    int rc = filo_job_agree(&f->job, batch_commit(&f->stage, &f->job.err));
    if (rc) batch_remove(&f->stage);
    return rc;
}

/* ---- the call ---- */

static int fetch_copy_list(fetch *f, int count, const filo_file files[])
{
    f->count = count;
    if (count < 0 || !files) return 0; /* filo_list_check refuses it */
    f->files = malloc(((size_t)count + 1) * sizeof *files);
    if (!f->files) return err_sys(&f->job.err, -ENOMEM, "fetch %d files", count);
    f->count = 0;
    for (int i = 0; i < count; i++)
        if (!files[i].shared) f->files[f->count++] = files[i];
    return 0;
}

int filo_fetch(MPI_Comm comm, const char *folder, int count, filo_file files[],
               const filo_options *options, filo_error *err)
{
    /* names are local paths; axl syncs the files */
    fetch f = {.stage = {.dir = AT_FDCWD,
                         .folders = 0777,
                         .durability = BATCH_SYNCED,
                         .resumed = true},
               .move.check = fetch_compare};
    int rc = filo_job_begin(&f.job, comm, folder, NULL, options);
    if (!rc) rc = filo_job_open(&f.job);
    if (!rc) rc = fetch_copy_list(&f, count, files);
    if (!rc) rc = filo_list_check(&f.job, f.count, f.files, fetch_check_file);
    if (!rc) rc = fetch_refuse_doubles(&f);
    if (!rc)
        rc = filo_move_begin(&f.move, &f.job, NULL, f.count, f.files,
                             f.job.options.checksum);
    rc = filo_job_agree_key(&f.job, rc);
    if (!rc) rc = filo_flow_order(&f.move.flow, f.job.options.turn, &f.job.err);
    if (!rc) rc = fetch_copy_files(&f);
    if (!rc) rc = fetch_rename_files(&f);
    batch_drop(&f.stage);
    filo_move_end(&f.move);
    free(f.files);
    free(f.sources);
    return filo_job_end(&f.job, rc, err);
}
