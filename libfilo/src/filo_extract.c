/* SPDX-License-Identifier: BSD-3-Clause */
/* filo_extract: copies one file from its containers or from its own place, or only
 * verifies it. The bytes are compared with the map while they are read, and the copy gets
 * its name when it is complete. */
#include "src/filo_private.h"

#include "common/batch.h"
#include "common/crc32.h"
#include "common/io.h"
#include "common/others.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* State of one extraction. */
typedef struct passage {
    int dir; /* directory of the containers */
    const filo_file *file;
    const filo_target *to; /* NULL: verify only */
    int out;               /* descriptor of the copy; -1: verify only */
    const char *target;    /* name of the copy */
    uint32_t crc;
    int source;       /* the container that was read last, ... */
    const char *name; /* ... its name, ... */
    struct stat st;   /* ... and its attributes */
    gid_t group;      /* of out */
    unsigned mode;    /* permissions that all containers grant */
    void (*report)(void *arg, uint64_t done, uint64_t total); /* or NULL */
    void *report_arg;
    uint64_t done; /* bytes */
    filo_error *err;
} passage;

/* ---- reading ---- */

/* Errors caused by the contents of the directory mean damage. Others (no memory, no
 * permission, a failing disk) are passed on unchanged. */
static int extract_judge(int rc)
{
    int damage = rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -EISDIR ||
                 rc == -ENXIO || rc == -EINVAL;
    return damage ? FILO_DAMAGED : rc;
}

/* Opens a container, unless it is already open. */
static int extract_open_source(passage *p, const char *name)
{
    if (p->name && strcmp(p->name, name) == 0) return 0;
    io_close(&p->source);
    p->name = NULL;
    int rc = beneath_open(p->dir, name, O_RDONLY, 0, &p->source, p->err);
    if (rc) return extract_judge(rc);
    if (fstat(p->source, &p->st) != 0) return err_sys(p->err, -errno, "stat %s", name);
    others_limit_mode(p->source, &p->st);
    p->mode = filo_limit_mode(p->mode, &p->st, p->group);
    p->name = name;
    return 0;
}

static int extract_size_differs(const passage *p, const filo_segment *s)
{
    if (!p->file->packed)
        return err_set(p->err, FILO_DAMAGED, "%s has %lld bytes, not %" PRIu64, p->name,
                       (long long)p->st.st_size, p->file->size);
    return err_set(p->err, FILO_DAMAGED,
                   "%s has %lld bytes, but %" PRIu64 " of the file are at %" PRIu64
                   " in it",
                   p->name, (long long)p->st.st_size, s->length, s->offset);
}

static int extract_piece(passage *p, const filo_segment *s, uint64_t at, size_t size)
{
    char bytes[65536];
    ssize_t n = io_pread(p->source, bytes, size, (off_t)(s->offset + at));
    if (n < 0) return err_sys(p->err, (int)n, "read %s", p->name);
    if ((size_t)n < size)
        return err_set(p->err, FILO_DAMAGED, "%s was cut off while it was read", p->name);
    p->crc = crc32_add(p->crc, bytes, size);
    int rc = p->out < 0 ? 0 : io_write(p->out, bytes, size);
    p->done += size;
    if (p->report && !rc && p->done <= p->file->size)
        p->report(p->report_arg, p->done, p->file->size);
    return rc ? err_sys(p->err, rc, "write %s", p->target) : 0;
}

static int extract_segment(passage *p, const filo_segment *s)
{
    int rc = extract_open_source(p, s->container);
    if (rc) return rc;
    uint64_t there = (uint64_t)p->st.st_size;
    if (s->offset > there || s->length > there - s->offset)
        return extract_size_differs(p, s);
    for (uint64_t at = 0; at < s->length && rc == 0; at += 65536) {
        uint64_t left = s->length - at;
        rc = extract_piece(p, s, at, left < 65536 ? (size_t)left : 65536);
    }
    return rc;
}

/* A file that is not packed is one segment: the whole file of this name. */
static int extract_plain(passage *p)
{
    const filo_segment whole = {.container = p->file->name, .length = p->file->size};
    int rc = extract_segment(p, &whole);
    if (rc) return rc;
    return (uint64_t)p->st.st_size == p->file->size ? 0 : extract_size_differs(p, &whole);
}

static int extract_packed(passage *p)
{
    uint64_t sum = 0;
    int rc = 0;
    for (int i = 0; i < p->file->segments && rc == 0; i++) {
        rc = extract_segment(p, &p->file->segment[i]);
        sum += p->file->segment[i].length;
    }
    if (rc || sum == p->file->size) return rc;
    return err_set(p->err, FILO_DAMAGED,
                   "the segments have %" PRIu64 " bytes, not %" PRIu64, sum,
                   p->file->size);
}

/* Reads all bytes of the file, which must match the map. */
static int extract_bytes(passage *p)
{
    const filo_file *file = p->file;
    int rc = file->packed ? extract_packed(p) : extract_plain(p);
    io_close(&p->source);
    if (rc || !file->has_crc || p->crc == file->crc) return rc;
    return err_set(p->err, FILO_DAMAGED,
                   "altered: CRC32 0x%08" PRIx32 ", but the map says 0x%08" PRIx32,
                   p->crc, file->crc);
}

/* The bytes of a file that ranks wrote together are those of other files in the map: only
 * the size is checked. */
static int extract_look(passage *p)
{
    int rc = extract_open_source(p, p->file->name);
    io_close(&p->source);
    if (rc || (uint64_t)p->st.st_size == p->file->size) return rc;
    return extract_size_differs(p, NULL);
}

/* A file that was written after the map, and has no checksum, cannot be verified. */
static int extract_verify(passage *p)
{
    if (p->file->shared) return extract_look(p);
    int rc = extract_bytes(p);
    if (rc || p->file->has_crc || !filo_file_was_written(p->file, &p->st)) return rc;
    return err_set(p->err, FILO_DAMAGED,
                   "written since the map, which has no checksum of it; a copy must keep "
                   "times (cp -a)");
}

/* ---- an existing file ---- */

/* Compares the bytes of a regular file with the map. */
static int extract_compare_target(const filo_file *file, const filo_target *to)
{
    filo_file there = *file;
    passage p = {.dir = to->dir, .file = &there, .out = -1, .source = -1};
    there.name = (char *)to->name;
    there.packed = 0;
    return extract_bytes(&p);
}

/* FILO_THERE if the target has the same bytes; 0 if it is missing or may be replaced. */
static int extract_inspect_target(const filo_file *file, const filo_target *to,
                                  filo_error *err)
{
    struct stat st;
    int rc = beneath_stat(to->dir, to->name, &st, NULL);
    if (rc == -ENOENT) return 0;
    if (rc) return err_sys(err, rc, "inspect %s", to->name);
    int can_tell = file->has_crc || file->size == 0;
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->size && can_tell) {
        rc = extract_compare_target(file, to);
        if (rc == 0) return FILO_THERE;
        if (rc < 0) return err_sys(err, rc, "compare %s", to->name);
    }
    if (to->replace) return 0;
    return err_set(err, -EEXIST, "%s is there already, and not known to be the same",
                   to->name);
}

/* ---- writing ---- */

/* Sets the mode of the copy. Packed: the mode of the map, without the permissions that
 * the containers do not grant to others. Not packed: the mode of the copied file. */
static int extract_set_mode(const passage *p)
{
    gid_t from = p->to->has_group ? p->to->group : p->st.st_gid;
    mode_t mode = p->file->packed
                      ? p->file->mode & p->mode
                      : beneath_mode_in_group(p->st.st_mode & 0777, from, p->group);
    if (p->file->packed && mode == 0) return 0;
    return fchmod(p->out, mode) == 0
               ? 0
               : err_sys(p->err, -errno, "set the mode of %s", p->target);
}

static int extract_find_group(passage *p)
{
    struct stat st;
    if (fstat(p->out, &st) != 0)
        return err_sys(p->err, -errno, "stat the temporary file of %s", p->target);
    p->group = st.st_gid;
    return 0;
}

static int extract_write(passage *p, batch *out)
{
    int rc = extract_find_group(p);
    if (rc == 0) rc = extract_bytes(p);
    if (rc == 0) rc = extract_set_mode(p);
    return rc ? rc : batch_commit(out, p->err);
}

/* The first attempt creates no directories, so that existing directories cost no fsync.
 */
static int extract_write_file(passage *p, const filo_target *to)
{
    batch out = {.dir = to->dir, .exclusive = !to->replace, .shared = to->shared};
    p->to = to;
    p->target = to->name;
    filo_error cause = {""};
    int rc = batch_open(&out, to->name, 0600, &p->out, &cause);
    if (rc == -ENOENT) {
        batch_drop(&out);
        out.folders = 0777;
        rc = batch_open(&out, to->name, 0600, &p->out, p->err);
    } else if (rc) {
        err_set(p->err, rc, "%s", cause.text);
    }
    if (rc == 0) rc = extract_write(p, &out);
    batch_drop(&out);
    return rc;
}

int filo_extract(int dir, const filo_file *file, const filo_target *to, filo_error *err)
{
    return filo_extract_with(dir, file, to, NULL, NULL, err);
}

int filo_extract_with(int dir, const filo_file *file, const filo_target *to,
                      void (*report)(void *arg, uint64_t done, uint64_t total), void *arg,
                      filo_error *err)
{
    passage p = {.dir = dir,
                 .file = file,
                 .out = -1,
                 .source = -1,
                 .mode = 0777,
                 .report = report,
                 .report_arg = arg,
                 .err = err};
    if (!file || !file->name || (file->segments > 0 && !file->segment))
        return err_set(err, -EINVAL, "no file");
    if (!to) return extract_verify(&p);
    int rc = beneath_check_name(to->name, err);
    if (rc == 0) rc = extract_inspect_target(file, to, err);
    return rc ? rc : extract_write_file(&p, to);
}
