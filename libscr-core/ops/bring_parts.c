/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of files that ranks wrote in parts, for a restart; see ops/bring_parts.h. */
#include "ops/bring_parts.h"

#include "cache/brought.h"
#include "common/agree_mpi.h"
#include "common/beneath.h"
#include "common/errtext.h"
#include "common/io.h"
#include "ops/bring.h"
#include "plan/part_list.h"
#include "plan/part_name.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <kvtree/kvtree_mpi.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* <file>/{PART/<offset>/<size>, END/<end of the file>, JOINED/<offset>/{SIZE, PATH}}:
 * what a rank knows of the files that it asked for. A home knows the PARTs of its
 * files. */
#define PARTS_PART "PART"
#define PARTS_END "END"
#define PARTS_JOINED "JOINED"
#define PARTS_SIZE "SIZE"
#define PARTS_PATH "PATH"

/* <file>/<number>/{OFFSET, SIZE}: the byte ranges that a rank wants. */
#define PARTS_OFFSET "OFFSET"

static kvtree *parts_at_home(const struct scr *scr, kvtree *tree, const char *file)
{
    char home[SCR_BRING_HOME_SIZE];
    scr_bring_home(&scr->job, file, home);
    return kvtree_set_kv(tree, home, file);
}

static uint64_t parts_value(const kvtree *tree, const char *key)
{
    unsigned long value = 0;
    kvtree_util_get_bytecount(tree, key, &value);
    return value;
}

/* ---- 1. the catalog ---- */

static int parts_note(kvtree *entry, uint64_t offset, uint64_t size)
{
    return kvtree_setf(entry, NULL, PARTS_PART " %llu %llu", (unsigned long long)offset,
                       (unsigned long long)size)
               ? 0
               : -ENOMEM;
}

static int parts_tell(const struct scr *scr, kvtree *tell)
{
    const int id = scr->lifecycle.open.id;
    scr_filemap_walk walk = {NULL, NULL};
    int rc = 0;
    while (!rc && scr_filemap_next(scr->cache.map, id, &walk)) {
        const char *name =
            scr_filemap_name_of(kvtree_elem_key(walk.file), scr->job.owner, id);
        uint64_t offset;
        const size_t n = name ? scr_part_parse(name, &offset) : 0;
        char *file = n ? strndup(name, n) : NULL;
        if (n && !file) rc = -ENOMEM;
        if (file)
            rc = parts_note(parts_at_home(scr, tell, file), offset,
                            parts_value(kvtree_elem_hash(walk.file), SCR_META_SIZE));
        free(file);
    }
    return rc;
}

/* Collective, agreed. */
static int parts_make_catalog(struct scr *scr, kvtree_error *err)
{
    const scr_store_dir *store = scr_cache_of(&scr->cache, scr->lifecycle.open.id);
    int rc = scr_bring_clear(scr, store, err);
    if (rc) return rc;
    kvtree *tell = kvtree_new(), *told = kvtree_new(), *known = kvtree_new();
    rc = tell && told && known ? parts_tell(scr, tell) : -ENOMEM;
    int sent = kvtree_exchange(tell, told, scr->job.world);
    rc = rc ? rc : sent;
    for (kvtree_elem *p = kvtree_elem_first(told); p && !rc; p = kvtree_elem_next(p))
        rc = kvtree_merge(known, kvtree_elem_hash(p));
    kvtree_delete(&tell);
    kvtree_delete(&told);
    if (rc) err_sys(err, rc, "the catalog of parts");
    rc = agree(scr->job.world, rc, err);
    if (rc) kvtree_delete(&known);
    scr->restart.parts = known;
    return rc;
}

/* ---- 2. questions ---- */

/* Adds the parts that contain wanted bytes, and the end of the file, to the answer. */
static int parts_answer_one(const scr_part list[], size_t count, const kvtree *wanted,
                            kvtree *answer)
{
    const uint64_t from = parts_value(wanted, PARTS_OFFSET),
                   end = from + parts_value(wanted, PARTS_SIZE);
    const scr_part *last = &list[count - 1];
    int rc = answer ? 0 : -ENOMEM;
    for (size_t i = scr_part_list_find(list, count, from);
         i < count && list[i].offset < end && !rc; i++)
        rc = parts_note(answer, list[i].offset, list[i].length);
    return rc ? rc
              : kvtree_util_set_bytecount(answer, PARTS_END, last->offset + last->length);
}

/* At a home: answers the questions of all ranks about one file. */
static int parts_answer_file(const kvtree_elem *file, kvtree *asked, kvtree *answers)
{
    size_t count;
    scr_part *list =
        scr_part_list(kvtree_get(kvtree_elem_hash(file), PARTS_PART), &count);
    int rc = list ? 0 : -ENOMEM;
    kvtree_elem *p = kvtree_elem_first(asked);
    for (; p && !rc && count > 0; p = kvtree_elem_next(p)) {
        const kvtree *wants = kvtree_get(kvtree_elem_hash(p), kvtree_elem_key(file));
        kvtree *answer =
            wants ? kvtree_set_kv(answers, kvtree_elem_key(p), kvtree_elem_key(file))
                  : NULL;
        const kvtree_elem *w = kvtree_elem_first(wants);
        for (; w && !rc; w = kvtree_elem_next(w))
            rc = parts_answer_one(list, count, kvtree_elem_hash(w), answer);
    }
    free(list);
    return rc;
}

/* At a home. */
static int parts_answer(const struct scr *scr, kvtree *asked, kvtree *answers)
{
    int rc = 0;
    const kvtree_elem *f = kvtree_elem_first(scr->restart.parts);
    for (; f && !rc; f = kvtree_elem_next(f))
        rc = parts_answer_file(f, asked, answers);
    return rc;
}

/* Collective, agreed. wants is addressed to homes; scr->restart.asked gets the
 * answers. */
static int parts_inquire(struct scr *scr, const kvtree *wants, kvtree_error *err)
{
    kvtree *asked = kvtree_new(), *answers = kvtree_new(), *replies = kvtree_new();
    int rc = asked && answers && replies ? 0 : -ENOMEM;
    int sent = kvtree_exchange(wants, asked, scr->job.world);
    rc = rc ? rc : sent ? sent : parts_answer(scr, asked, answers);
    sent = kvtree_exchange(answers, replies, scr->job.world);
    rc = rc ? rc : sent;
    scr_part_memo_forget(&scr->restart.asked_parts);
    if (!rc && !scr->restart.asked && !(scr->restart.asked = kvtree_new())) rc = -ENOMEM;
    for (kvtree_elem *p = kvtree_elem_first(replies); p && !rc; p = kvtree_elem_next(p))
        rc = kvtree_merge(scr->restart.asked, kvtree_elem_hash(p));
    kvtree_delete(&asked);
    kvtree_delete(&answers);
    kvtree_delete(&replies);
    if (rc) err_sys(err, rc, "find the parts");
    return agree(scr->job.world, rc, err);
}

/* ---- 3. parts ---- */

/* One call of this rank. */
typedef struct parts_call {
    struct scr *scr;
    kvtree *wants; /* <home>/<file>/<number>/{OFFSET, SIZE} */
    int count;     /* number of names */
    char **names;  /* absolute paths of the parts to bring */
} parts_call;

static int parts_copy_path(const char *found, char path[SCR_MAX_FILENAME])
{
    if (!found) return -ENOENT;
    return snprintf(path, SCR_MAX_FILENAME, "%s", found) < SCR_MAX_FILENAME
               ? 0
               : -ENAMETOOLONG;
}

/* Finds the path of a part in the cache of this node: 0, -ENOENT or another -errno. */
static int parts_find(struct scr *scr, const char *part, char path[SCR_MAX_FILENAME])
{
    const int id = scr->lifecycle.open.id, here = scr_route_has(scr, id, part);
    if (here < 0) return here;
    return here ? scr_route_cached_path(&scr->cache, id, part, path)
                : parts_copy_path(scr_bring_find(scr, part), path);
}

/* A file with wanted bytes, and what this rank knows of it. */
typedef struct parts_file {
    const char *name;
    const kvtree *known;
} parts_file;

/* The sorted parts of a tree in scr->restart.asked. */
static const scr_part *parts_list(struct scr *scr, const kvtree *known, size_t *count)
{
    return scr_part_memo_list(&scr->restart.asked_parts, kvtree_get(known, PARTS_PART),
                              count);
}

static int parts_add_name(parts_call *c, const char *part)
{
    char *path;
    char **names = realloc(c->names, ((size_t)c->count + 1) * sizeof *names);
    if (!names) return -ENOMEM;
    c->names = names;
    if (asprintf(&path, "%s/%s", c->scr->prefix.path, part) < 0) return -ENOMEM;
    names[c->count++] = path;
    return 0;
}

/* Lists the parts that contain wanted bytes. */
static int parts_list_one(parts_call *c, const parts_file *file, scr_part wanted,
                          kvtree_error *err)
{
    char part[2 * SCR_NAME_SIZE];
    const uint64_t file_end = parts_value(file->known, PARTS_END),
                   end = wanted.offset + wanted.length;
    size_t count;
    if (!file->known)
        return err_set(err, -ENOENT, "no rank wrote a part of \"%.200s\"", file->name);
    if (end > file_end)
        return err_set(err, -ENOENT, "\"%.200s\" has %" PRIu64 " bytes, not %" PRIu64,
                       file->name, file_end, end);
    const scr_part *list = parts_list(c->scr, file->known, &count);
    int rc = list ? 0 : -ENOMEM;
    for (size_t i = rc ? 0 : scr_part_list_find(list, count, wanted.offset);
         !rc && i < count && list[i].offset < end; i++) {
        rc = scr_part_name(file->name, list[i].offset, sizeof part, part);
        rc = rc ? rc : parts_add_name(c, part);
    }
    return rc ? err_sys(err, rc, "part of \"%.200s\"", file->name) : 0;
}

typedef int parts_use(parts_call *c, const parts_file *file, scr_part wanted,
                      kvtree_error *err);

/* Calls use for each range that this rank wants. */
static int parts_for_each(parts_call *c, parts_use *use, kvtree_error *err)
{
    int rc = 0;
    kvtree_elem *h = kvtree_elem_first(c->wants);
    for (; h && !rc; h = kvtree_elem_next(h)) {
        kvtree_elem *f = kvtree_elem_first(kvtree_elem_hash(h));
        for (; f && !rc; f = kvtree_elem_next(f)) {
            const parts_file file = {kvtree_elem_key(f), kvtree_get(c->scr->restart.asked,
                                                                    kvtree_elem_key(f))};
            kvtree_elem *w = kvtree_elem_first(kvtree_elem_hash(f));
            for (; w && !rc; w = kvtree_elem_next(w)) {
                const scr_part wanted = {parts_value(kvtree_elem_hash(w), PARTS_OFFSET),
                                         parts_value(kvtree_elem_hash(w), PARTS_SIZE)};
                rc = use(c, &file, wanted, err);
            }
        }
    }
    return rc;
}

/* ---- 4. several parts in one file ---- */

enum { PARTS_BUFFER = 1 << 18 };

/* Copies length bytes from offset from of one file to offset at of another. */
static int parts_copy(int in, uint64_t from, int out, uint64_t at, uint64_t length)
{
    char *buffer = io_buffer(PARTS_BUFFER);
    int rc = buffer ? 0 : -ENOMEM;
    for (uint64_t done = 0, n; done < length && !rc; done += n) {
        n = length - done < PARTS_BUFFER ? length - done : PARTS_BUFFER;
        ssize_t got = io_pread(in, buffer, (size_t)n, (off_t)(from + done));
        if (got != (ssize_t)n) rc = got < 0 ? (int)got : -EIO;
        rc = rc ? rc : io_pwrite(out, buffer, (size_t)n, (off_t)(at + done));
    }
    free(buffer);
    return rc;
}

/* Writes the wanted bytes of one part to out. */
static int parts_fill_one(const parts_call *c, const parts_file *file, scr_part wanted,
                          const scr_part *have, int out)
{
    char part[2 * SCR_NAME_SIZE], path[SCR_MAX_FILENAME];
    const uint64_t end = wanted.offset + wanted.length,
                   from = have->offset > wanted.offset ? have->offset : wanted.offset,
                   next = have->offset + have->length < end ? have->offset + have->length
                                                            : end;
    int in = -1, rc = scr_part_name(file->name, have->offset, sizeof part, part);
    rc = rc ? rc : parts_find(c->scr, part, path);
    if (!rc) in = io_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (!rc && in < 0) rc = in;
    if (!rc)
        rc = parts_copy(in, from - have->offset, out, from - wanted.offset, next - from);
    io_close(&in);
    return rc;
}

/* Writes all wanted bytes to out; bytes that are in no part become zeros. */
static int parts_fill(const parts_call *c, const parts_file *file, scr_part wanted,
                      int out, kvtree_error *err)
{
    size_t count;
    const scr_part *list = parts_list(c->scr, file->known, &count);
    int rc = list ? 0 : -ENOMEM;
    if (!rc && ftruncate(out, (off_t)wanted.length) != 0) rc = -errno;
    for (size_t i = rc ? 0 : scr_part_list_find(list, count, wanted.offset);
         !rc && i < count && list[i].offset < wanted.offset + wanted.length; i++)
        rc = parts_fill_one(c, file, wanted, &list[i], out);
    return rc ? err_sys(err, rc, "join parts of \"%.200s\"", file->name) : 0;
}

static int parts_note_joined(parts_call *c, const parts_file *file, scr_part wanted,
                             const char *path)
{
    char key[24];
    kvtree *of_file = kvtree_get(c->scr->restart.asked, file->name);
    snprintf(key, sizeof key, "%" PRIu64, wanted.offset);
    kvtree *joined = kvtree_set_kv(of_file, PARTS_JOINED, key);
    int rc =
        joined ? kvtree_util_set_bytecount(joined, PARTS_SIZE, wanted.length) : -ENOMEM;
    return rc ? rc : kvtree_util_set_str(joined, PARTS_PATH, path);
}

static int parts_join(parts_call *c, const parts_file *file, scr_part wanted,
                      kvtree_error *err)
{
    char name[2 * SCR_NAME_SIZE], below[SCR_BROUGHT_NAME_SIZE], path[SCR_MAX_FILENAME];
    const scr_dataset *d = &c->scr->lifecycle.open;
    const scr_store_dir *store = scr_cache_of(&c->scr->cache, d->id);
    uint64_t at;
    int out = -1;
    if (scr_bring_find_part(c->scr, file->name, &wanted, path, &at) == 0) return 0;
    /* ranks of a node may want the same bytes, so the name contains the rank; no
     * application file has such a name */
    snprintf(name, sizeof name, ".scr/%d.%" PRIu64 "/%s", c->scr->job.rank, wanted.offset,
             file->name);
    scr_brought_name(d->id, name, below);
    int rc = scr_brought_create(store, below, &out, err);
    if (rc) return rc;
    rc = parts_fill(c, file, wanted, out, err);
    int closed = io_close(&out);
    if (!rc && closed) rc = err_sys(err, closed, "close %s", below);
    if (rc) return rc;
    char *full = scr_brought_path(store, d->id, name);
    rc = full ? parts_note_joined(c, file, wanted, full) : -ENOMEM;
    free(full);
    return rc ? err_sys(err, rc, "\"%.200s\"", file->name) : 0;
}

/* ---- the call ---- */

static int parts_want(parts_call *c, const char *file, const scr_part *part)
{
    char key[16];
    kvtree *of_file = parts_at_home(c->scr, c->wants, file);
    snprintf(key, sizeof key, "%d", kvtree_size(of_file));
    kvtree *wanted = of_file ? kvtree_set(of_file, key, NULL) : NULL;
    int rc =
        wanted ? kvtree_util_set_bytecount(wanted, PARTS_OFFSET, part->offset) : -ENOMEM;
    return rc ? rc : kvtree_util_set_bytecount(wanted, PARTS_SIZE, part->length);
}

/* Local. Collects the wanted ranges from the arguments. */
static int parts_take_arguments(parts_call *c, int count, const char *const names[],
                                const uint64_t offsets[], const uint64_t lengths[],
                                kvtree_error *err)
{
    int rc = count < 0 ? err_set(err, -EINVAL, "%d names", count) : 0;
    if (!rc && count > 0 && (!names || !offsets || !lengths))
        rc = err_set(err, -EINVAL, "a list is missing");
    for (int i = 0; i < count && !rc; i++) {
        char *path = NULL;
        const char *below = NULL;
        const scr_part part = {offsets[i], lengths[i]};
        if (!names[i] || !names[i][0])
            return err_set(err, -EINVAL, "name %d is missing", i);
        if (part.offset > INT64_MAX || part.length > INT64_MAX - part.offset)
            return err_set(err, -EINVAL, "\"%.200s\" would end after 2^63 - 1 bytes",
                           names[i]);
        if (part.length == 0) continue;
        rc = scr_route_place(c->scr, names[i], &path, &below, err);
        if (!rc && parts_want(c, below, &part) != 0)
            rc = err_sys(err, -ENOMEM, "\"%.200s\"", names[i]);
        free(path);
    }
    return rc;
}

/* Collective, agreed. */
static int parts_bring_all(parts_call *c, kvtree_error *err)
{
    struct scr *scr = c->scr;
    int rc = scr->restart.parts ? 0 : parts_make_catalog(scr, err);
    rc = rc ? rc : parts_inquire(scr, c->wants, err);
    if (!rc) rc = agree(scr->job.world, parts_for_each(c, parts_list_one, err), err);
    if (!rc) rc = scr_bring_names(scr, c->count, (const char *const *)c->names, err);
    return rc ? rc : agree(scr->job.world, parts_for_each(c, parts_join, err), err);
}

int scr_bring_parts(struct scr *scr, int count, const char *const names[],
                    const uint64_t offsets[], const uint64_t lengths[])
{
    kvtree_error err = {""};
    parts_call c = {.scr = scr, .wants = kvtree_new()};
    int rc = c.wants ? parts_take_arguments(&c, count, names, offsets, lengths, &err)
                     : err_sys(&err, -ENOMEM, "list the parts");
    rc = agree(scr->job.world, rc, &err);
    if (!rc && scr->prefix.direct.dataset.id != scr->lifecycle.open.id)
        rc = parts_bring_all(&c, &err);
    for (int i = 0; i < c.count; i++)
        free(c.names[i]);
    free(c.names);
    kvtree_delete(&c.wants);
    return scr_bring_report(scr, SCR_CALL_FETCH_FILE_PARTS, rc, &err);
}

/* Finds a part that contains all wanted bytes, and its path: 0, -ENOENT or another
 * -errno. */
static int parts_find_part(struct scr *scr, const char *name, const scr_part *wanted,
                           scr_part *found, char path[SCR_MAX_FILENAME])
{
    char part[2 * SCR_NAME_SIZE];
    size_t count;
    const scr_part *list = parts_list(scr, kvtree_get(scr->restart.asked, name), &count);
    const size_t i = list ? scr_part_list_find(list, count, wanted->offset) : 0;
    if (!list) return -ENOMEM;
    if (i == count || !scr_part_has(&list[i], wanted)) return -ENOENT;
    *found = list[i];
    int rc = scr_part_name(name, list[i].offset, sizeof part, part);
    return rc ? rc : parts_find(scr, part, path);
}

/* The path of a joined file that contains all wanted bytes; NULL: there is none. */
static const char *parts_find_joined(const struct scr *scr, const char *name,
                                     const scr_part *wanted, scr_part *found)
{
    const kvtree *joined = kvtree_get(kvtree_get(scr->restart.asked, name), PARTS_JOINED);
    const kvtree_elem *e = kvtree_elem_first(joined);
    for (; e; e = kvtree_elem_next(e)) {
        *found = (scr_part){strtoull(kvtree_elem_key(e), NULL, 10),
                            parts_value(kvtree_elem_hash(e), PARTS_SIZE)};
        if (scr_part_has(found, wanted))
            return kvtree_elem_get_first_val(kvtree_elem_hash(e), PARTS_PATH);
    }
    return NULL;
}

int scr_bring_find_part(struct scr *scr, const char *name, const scr_part *part,
                        char path[SCR_MAX_FILENAME], uint64_t *at)
{
    scr_part have;
    int rc = parts_find_part(scr, name, part, &have, path);
    if (rc == -ENOENT)
        rc = parts_copy_path(parts_find_joined(scr, name, part, &have), path);
    if (!rc) *at = part->offset - have.offset;
    return rc;
}
