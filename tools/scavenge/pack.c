/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins parts, and packs files into containers; see pack.h. */
#include "scavenge/pack.h"

#include "common/batch.h"
#include "common/beneath.h"
#include "common/crc32.h"
#include "common/io.h"
#include "common/others.h"
#include "lib/tool_progress.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 }; /* bytes per copy */

void scavenge_container_name(uint64_t i, char name[SCAVENGE_CONTAINER_SIZE])
{
    snprintf(name, SCAVENGE_CONTAINER_SIZE, "ctr.%" PRIu64 ".scr", i);
}

/* ---- writing ---- */

typedef struct packer {
    const scavenge_folder *folder;
    uint64_t limit, offset; /* of a container; of the next byte in the stream */
    mode_t mode;            /* mode of the output, ... */
    gid_t group;            /* ... which is meant for this group */
    bool any;               /* mode and group come from at least one file */
    batch out;              /* the current container or shared file, ... */
    const char *name;       /* ... its name in messages, ... */
    int fd;                 /* ... its descriptor; -1: none */
    char *piece;
    int64_t shared;       /* others who can change the names */
    uint64_t done, total; /* bytes */
    kvtree_error *err;
} packer;

static int pack_begin_container(packer *p)
{
    char name[SCAVENGE_CONTAINER_SIZE], below[SCAVENGE_CONTAINER_SIZE + 8];
    scavenge_container_name(p->offset / p->limit, name);
    snprintf(below, sizeof below, SCAVENGE_HIDDEN "/%s", name);
    p->out = (batch){.dir = p->folder->dir};
    p->name = "a container";
    return batch_open(&p->out, below, 0600, &p->fd, p->err);
}

static int pack_end(packer *p)
{
    struct stat st;
    if (p->fd < 0) return 0;
    if (fstat(p->fd, &st) != 0 ||
        fchmod(p->fd, beneath_mode_in_group(p->mode, p->group, st.st_gid)) != 0)
        return err_sys(p->err, -errno, "set the mode of %s", p->name);
    p->fd = -1;
    int rc = batch_commit(&p->out, p->err);
    batch_drop(&p->out);
    return rc;
}

static int pack_bytes(packer *p, const char *bytes, size_t size)
{
    while (size > 0) {
        uint64_t room = p->limit - p->offset % p->limit;
        size_t n = size < room ? size : (size_t)room;
        int rc = p->fd >= 0 ? 0 : pack_begin_container(p);
        if (rc) return rc;
        rc = io_write(p->fd, bytes, n);
        if (rc) return err_sys(p->err, rc, "write %s", p->name);
        p->offset += n;
        bytes += n;
        size -= n;
        rc = n == room ? pack_end(p) : 0;
        if (rc) return rc;
    }
    return 0;
}

static int pack_content(packer *p, int fd, const scavenge_file *f)
{
    uint32_t crc = 0;
    for (uint64_t left = f->size; left > 0;) {
        size_t n = left < PIECE ? (size_t)left : PIECE;
        ssize_t got = io_read(fd, p->piece, n);
        if (got < 0) return err_sys(p->err, (int)got, "read %s", f->name);
        if ((size_t)got < n) return err_set(p->err, -EBADMSG, "%s is cut off", f->name);
        crc = crc32_add(crc, p->piece, n);
        int rc = pack_bytes(p, p->piece, n);
        if (rc) return rc;
        left -= n;
        p->done += n;
        tool_progress_set(p->done, p->total);
    }
    if (!f->has_crc || crc == f->crc) return 0;
    return err_set(p->err, -EBADMSG, "%s is altered: CRC32 0x%08" PRIx32, f->name, crc);
}

/* ---- permissions ---- */

static void pack_begin_mode(packer *p)
{
    p->mode = 0666 | S_IRUSR | S_IWUSR;
    p->any = false;
}

/* Restricts the mode: a user who cannot read one of the files must not be able to read
 * the output either. */
static int pack_add_mode(packer *p, const scavenge_file *f)
{
    struct stat st;
    int rc = beneath_stat_source(p->folder->dir, f->name, &st, p->err);
    if (rc) return rc;
    p->mode &= st.st_mode | S_IRUSR | S_IWUSR;
    if (p->any) p->mode = beneath_mode_in_group(p->mode, p->group, st.st_gid);
    p->group = st.st_gid;
    p->any = true;
    return 0;
}

/* Checks that the open file grants all permissions of the output. The mode was determined
 * by names, which may belong to other files now. */
static int pack_check_mode(const packer *p, int fd, const scavenge_file *f)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(p->err, -errno, "stat %s", f->name);
    others_limit_mode(fd, &st);
    const mode_t granted = beneath_mode_in_group(st.st_mode & 0777, st.st_gid, p->group);
    if ((p->mode & (S_IRWXG | S_IRWXO) & ~granted) == 0) return 0;
    return err_set(p->err, -ESTALE,
                   "%s has other permissions than before, or is another file", f->name);
}

static int pack_file(packer *p, const scavenge_file *f)
{
    const char *last;
    const int dir = p->folder->dir;
    int parent, fd, rc = beneath_open_parent(dir, f->name, 0, &parent, &last, p->err);
    if (rc) return rc;
    if (p->shared) rc = others_reach(p->shared, dir, parent, f->name, p->err);
    if (!rc) rc = beneath_open(parent, last, O_RDONLY, 0, &fd, p->err);
    io_close(&parent);
    if (rc) return rc;
    rc = pack_check_mode(p, fd, f);
    rc = rc ? rc : pack_content(p, fd, f);
    io_close(&fd);
    return rc;
}

/* ---- all files ---- */

/* Calls a function for each file that is not a part. */
static int pack_each(packer *p, const scavenge_scan *scan,
                     int each(packer *, const scavenge_file *))
{
    int rc = 0;
    for (int i = 0; i < scan->count && !rc; i++)
        for (int k = 0; k < scan->ranks[i]->count && !rc; k++)
            if (scavenge_is_whole_file(&scan->ranks[i]->files[k]))
                rc = each(p, &scan->ranks[i]->files[k]);
    return rc;
}

static int pack_containers(packer *p, const scavenge_scan *scan, uint64_t limit)
{
    pack_begin_mode(p);
    p->limit = limit;
    p->offset = 0;
    int rc = pack_each(p, scan, pack_add_mode);
    rc = rc ? rc : pack_each(p, scan, pack_file);
    return rc ? rc : pack_end(p);
}

/* Begins a shared file. Removes leftovers of an interrupted process in its directory. */
static int pack_begin_shared(packer *p, const char *name)
{
    const char *last;
    const int dir = p->folder->dir;
    int parent, rc = beneath_open_parent(dir, name, 0, &parent, &last, p->err);
    if (rc) return rc;
    batch_sweep(parent, NULL);
    io_close(&parent);
    p->out = (batch){.dir = dir, .shared = p->shared};
    p->name = name;
    return batch_open(&p->out, name, 0600, &p->fd, p->err);
}

/* Joins the parts of a shared file. Bytes that no part has remain a hole. */
static int pack_shared(packer *p, const scavenge_shared *s)
{
    int rc = 0;
    pack_begin_mode(p);
    for (int i = 0; i < s->count && !rc; i++)
        rc = pack_add_mode(p, s->parts[i].file);
    rc = rc ? rc : pack_begin_shared(p, s->name);
    if (!rc && ftruncate(p->fd, (off_t)s->size) != 0)
        rc = err_sys(p->err, -errno, "set the size of %s", s->name);
    p->limit = UINT64_MAX;
    for (int i = 0; i < s->count && !rc; i++) {
        p->offset = s->parts[i].at.offset;
        if (lseek(p->fd, (off_t)p->offset, SEEK_SET) < 0)
            rc = err_sys(p->err, -errno, "seek in %s", s->name);
        rc = rc ? rc : pack_file(p, s->parts[i].file);
    }
    return rc ? rc : pack_end(p);
}

int scavenge_pack(const scavenge_folder *folder, const scavenge_scan *scan,
                  uint64_t limit, kvtree_error *err)
{
    packer p = {.folder = folder,
                .fd = -1,
                .total = limit ? scan->bytes : scan->part_bytes,
                .err = err};
    if (p.total) tool_progress_turn("pack", NULL);
    int rc = (p.piece = io_buffer(PIECE)) ? 0 : err_set(err, -ENOMEM, "no memory");
    p.shared = rc ? 0 : others_put_below(folder->dir, SCAVENGE_HIDDEN "/", err);
    if (p.shared < 0) rc = (int)p.shared;
    for (int i = 0; i < scan->shared_count && !rc; i++)
        rc = pack_shared(&p, &scan->shared[i]);
    if (!rc && limit) rc = pack_containers(&p, scan, limit);
    batch_drop(&p.out);
    free(p.piece);
    return rc;
}

/* ---- the map ---- */

int scavenge_segments(const char *in, uint64_t offset, uint64_t limit, filo_file *file)
{
    uint64_t left = file->size;
    file->packed = 1;
    file->segment =
        calloc((size_t)(left / limit) + 2, sizeof *file->segment); /* maximum number */
    if (!file->segment) return -ENOMEM;
    for (; left > 0; file->segments++) {
        char name[SCAVENGE_CONTAINER_SIZE];
        uint64_t room = limit - offset % limit, n = left < room ? left : room;
        filo_segment *s = &file->segment[file->segments];
        scavenge_container_name(offset / limit, name);
        if (asprintf(&s->container, "%s/%s", in, name) < 0) {
            s->container = NULL;
            return -ENOMEM;
        }
        s->offset = offset % limit;
        s->length = n;
        offset += n;
        left -= n;
    }
    return 0;
}
