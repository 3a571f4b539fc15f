/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that ranks write together: each rank has parts of them in files of its own, and a
 * flush copies the parts to their offsets. The descriptions of all parts of a shared file
 * are sent to its home, the rank that the hash of its name selects. The home checks that
 * no two parts overlap, and selects the rank that creates the file: the rank of the part
 * with the lowest offset. */
#include "src/filo_private_mpi.h"

#include <errno.h>
#include <inttypes.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Description of a part, sent to the home. */
#define KEY_OFFSET "OFFSET"
#define KEY_LENGTH "LENGTH"
#define KEY_MODE "MODE"
#define KEY_GROUP "GROUP"
#define KEY_RANK "RANK"

/* Reply of the home about the file: its name in the stage, and, to the rank that creates
 * it, LENGTH, MODE, GROUP and RANK. */
#define KEY_STAGED "STAGED"

/* A part, at the home of its file. */
typedef struct shared_part {
    const char *name;   /* of the file */
    const char *sender; /* process, as text */
    uint64_t offset, length;
    unsigned long mode, group, rank;
} shared_part;

/* ---- requests to homes ---- */

static int shared_tell_segment(const filo_job *job, const filo_file *file, int number,
                               kvtree *tell)
{
    const filo_segment *s = &file->segment[number];
    char home[16], key[16];
    snprintf(home, sizeof home, "%u", filo_name_hash(s->container) % (unsigned)job->size);
    kvtree *parts = kvtree_set_kv(tell, home, s->container);
    snprintf(key, sizeof key, "%d", kvtree_size(parts));
    kvtree *part = kvtree_set(parts, key, NULL);
    int rc = part ? 0 : -ENOMEM;
    rc = rc ? rc : kvtree_util_set_bytecount(part, KEY_OFFSET, s->offset);
    rc = rc ? rc : kvtree_util_set_bytecount(part, KEY_LENGTH, s->length);
    rc = rc ? rc : kvtree_util_set_bytecount(part, KEY_MODE, file->mode);
    rc = rc ? rc : kvtree_util_set_bytecount(part, KEY_GROUP, file->group);
    return rc ? rc : kvtree_util_set_bytecount(part, KEY_RANK, (unsigned long)file->rank);
}

static int shared_tell(const filo_job *job, int count, const filo_file files[],
                       kvtree *tell)
{
    int rc = 0;
    for (int i = 0; i < count && !rc; i++)
        for (int s = 0; files[i].packed && s < files[i].segments && !rc; s++)
            rc = shared_tell_segment(job, &files[i], s, tell);
    return rc;
}

/* ---- at a home ---- */

static int shared_take_part(const kvtree *told, shared_part *part)
{
    unsigned long offset, length;
    if (kvtree_util_get_bytecount(told, KEY_OFFSET, &offset) != 0 ||
        kvtree_util_get_bytecount(told, KEY_LENGTH, &length) != 0 ||
        kvtree_util_get_bytecount(told, KEY_MODE, &part->mode) != 0 ||
        kvtree_util_get_bytecount(told, KEY_GROUP, &part->group) != 0 ||
        kvtree_util_get_bytecount(told, KEY_RANK, &part->rank) != 0)
        return -EIO;
    part->offset = offset;
    part->length = length;
    return 0;
}

/* Appends the parts that one process sent. */
static int shared_take(const kvtree_elem *sender, size_t *count, shared_part **parts)
{
    const kvtree_elem *f = kvtree_elem_first(kvtree_elem_hash(sender));
    for (; f; f = kvtree_elem_next(f)) {
        const kvtree *told = kvtree_elem_hash(f);
        const size_t more = (size_t)kvtree_size(told);
        shared_part *list = realloc(*parts, (*count + more + 1) * sizeof *list);
        if (!list) return -ENOMEM;
        *parts = list;
        const kvtree_elem *e = kvtree_elem_first(told);
        for (; e; e = kvtree_elem_next(e)) {
            shared_part *part = &list[(*count)++];
            *part = (shared_part){.name = kvtree_elem_key(f),
                                  .sender = kvtree_elem_key(sender)};
            int rc = shared_take_part(kvtree_elem_hash(e), part);
            if (rc) return rc;
        }
    }
    return 0;
}

/* Orders parts by file and offset. */
static int shared_compare(const void *a, const void *b)
{
    const shared_part *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order) return order;
    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                  : (x->length > y->length) - (x->length < y->length);
}

static int shared_reply_maker(kvtree *known, const shared_part *first, uint64_t length,
                              unsigned long mode)
{
    int rc = kvtree_util_set_bytecount(known, KEY_LENGTH, length);
    rc = rc ? rc : kvtree_util_set_bytecount(known, KEY_MODE, mode);
    rc = rc ? rc : kvtree_util_set_bytecount(known, KEY_GROUP, first->group);
    return rc ? rc : kvtree_util_set_bytecount(known, KEY_RANK, first->rank);
}

/* Checks the parts of one file, which is number `number` of this home, and writes the
 * replies. The file grants only permissions that all parts grant. */
static int shared_judge_file(filo_job *job, int number, size_t count,
                             const shared_part parts[], kvtree *reply)
{
    const shared_part *first = &parts[0];
    uint64_t end = 0;
    unsigned mode = 0666;
    char staged[FILO_SHARED_STAGED_SIZE];
    snprintf(staged, sizeof staged, FILO_SHARED_STAGED "%d.%d", job->rank, number);
    for (size_t i = 0; i < count; i++) {
        const shared_part *p = &parts[i];
        if (p->offset < end)
            return err_set(&job->err, -EEXIST,
                           "ranks %lu and %lu both have byte %" PRIu64 " of file \"%s\"",
                           parts[i - 1].rank, p->rank, p->offset, p->name);
        end = p->offset + p->length;
        mode &= beneath_mode_in_group((unsigned)p->mode, (gid_t)p->group,
                                      (gid_t)first->group);
        kvtree *known = kvtree_set_kv(reply, p->sender, p->name);
        if (!known || kvtree_util_set_str(known, KEY_STAGED, staged) != 0)
            return err_sys(&job->err, -ENOMEM, "shared files");
    }
    kvtree *known = kvtree_get(kvtree_get(reply, first->sender), first->name);
    return shared_reply_maker(known, first, end, mode | S_IRUSR | S_IWUSR) == 0
               ? 0
               : err_sys(&job->err, -ENOMEM, "shared files");
}

static int shared_judge(filo_job *job, kvtree *received, kvtree *reply)
{
    shared_part *parts = NULL;
    size_t count = 0;
    int rc = 0, number = 0;
    for (kvtree_elem *e = kvtree_elem_first(received); e && !rc; e = kvtree_elem_next(e))
        rc = shared_take(e, &count, &parts);
    if (rc) err_sys(&job->err, rc, "shared files");
    if (!rc && count > 0) qsort(parts, count, sizeof *parts, shared_compare);
    for (size_t i = 0, n; i < count && !rc; i += n) {
        for (n = 1; i + n < count && strcmp(parts[i].name, parts[i + n].name) == 0;)
            n++;
        rc = shared_judge_file(job, number++, n, &parts[i], reply);
    }
    free(parts);
    return rc;
}

/* ---- replies from homes ---- */

/* Adds a file that this rank creates. */
static int shared_add_own(filo_shared *shared, const kvtree_elem *e)
{
    unsigned long size = 0, mode = 0, group = 0, rank = 0;
    const kvtree *known = kvtree_elem_hash(e);
    filo_file *f = &shared->files[shared->count];
    kvtree_util_get_bytecount(known, KEY_LENGTH, &size);
    kvtree_util_get_bytecount(known, KEY_MODE, &mode);
    kvtree_util_get_bytecount(known, KEY_GROUP, &group);
    kvtree_util_get_bytecount(known, KEY_RANK, &rank);
    *f = (filo_file){.name = strdup(kvtree_elem_key(e)),
                     .size = size,
                     .mode = (unsigned)mode,
                     .group = (unsigned)group,
                     .rank = (int)rank,
                     .shared = 1};
    shared->count++;
    return f->name ? 0 : -ENOMEM;
}

static int shared_keep(filo_shared *shared, const kvtree *replies)
{
    const kvtree_elem *e;
    shared->known = kvtree_new();
    int rc = shared->known ? 0 : -ENOMEM;
    for (e = kvtree_elem_first(replies); e && !rc; e = kvtree_elem_next(e))
        rc = kvtree_merge(shared->known, kvtree_elem_hash(e));
    shared->files = calloc((size_t)kvtree_size(shared->known) + 1, sizeof(filo_file));
    if (!shared->files) rc = -ENOMEM;
    for (e = kvtree_elem_first(shared->known); e && !rc; e = kvtree_elem_next(e))
        if (kvtree_get(kvtree_elem_hash(e), KEY_LENGTH)) rc = shared_add_own(shared, e);
    return rc;
}

const char *filo_shared_find(const filo_shared *shared, const char *name)
{
    return kvtree_elem_get_first_val(kvtree_get(shared->known, name), KEY_STAGED);
}

int filo_shared_plan(filo_job *job, int count, const filo_file files[],
                     filo_shared *shared)
{
    kvtree *tell = kvtree_new(), *told = kvtree_new();
    kvtree *reply = kvtree_new(), *replies = kvtree_new();
    int rc =
        tell && told && reply && replies ? shared_tell(job, count, files, tell) : -ENOMEM;
    if (rc) err_sys(&job->err, rc, "shared files");
    int sent = kvtree_exchange(tell, told, job->comm);
    int judged =
        sent ? err_sys(&job->err, sent, "shared files") : shared_judge(job, told, reply);
    rc = rc ? rc : judged;
    sent = kvtree_exchange(reply, replies, job->comm);
    if (!rc && !sent) sent = shared_keep(shared, replies);
    if (!rc && sent) rc = err_sys(&job->err, sent, "shared files");
    kvtree_delete(&tell);
    kvtree_delete(&told);
    kvtree_delete(&reply);
    kvtree_delete(&replies);
    return filo_job_agree(job, rc);
}

filo_file *filo_shared_join(const filo_shared *shared, int count, const filo_file files[],
                            filo_which which, int *all)
{
    const int made = shared ? shared->count : 0;
    filo_file *list = calloc((size_t)count + (size_t)made + 1, sizeof *list);
    *all = 0;
    for (int i = 0; list && i < count; i++)
        if (which == FILO_ALL || !files[i].packed) list[(*all)++] = files[i];
    for (int i = 0; list && i < made; i++)
        list[(*all)++] = shared->files[i];
    return list;
}

void filo_shared_end(filo_shared *shared)
{
    kvtree_delete(&shared->known);
    filo_files_free(shared->count, shared->files);
    *shared = (filo_shared){.count = 0};
}
