/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees in files (SCR Developer Guide 1.2, section 2.3.4; byte table in
 * docs/formats/kvtree.md). A file is written as a whole under a temporary name and
 * renamed. It is read as a whole, after its header was compared with its actual size. */
#include "src/kvtree_private.h"

#include "common/batch.h"
#include "common/beneath.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/folder.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x951fc3f5u
#define TYPE 1u
#define VERSION 1u
#define FLAG_CRC32 1u

/* The code for a file that another version or another program wrote. */
#define OTHER_FORMAT (-EPROTONOSUPPORT)

#define HEADER_SIZE KVTREE_FILE_BEFORE
#define CRC_SIZE KVTREE_FILE_BEHIND
#define PIECE_SIZE 65536

/* ---- writing ---- */

static size_t file_put_header(char *p, uint64_t size)
{
    char *start = p;
    p = kvtree_put32(p, MAGIC);
    p = kvtree_put32(p, TYPE << 16 | VERSION);
    p = kvtree_put32(p, (uint32_t)(size >> 32));
    p = kvtree_put32(p, (uint32_t)size);
    p = kvtree_put32(p, FLAG_CRC32);
    return (size_t)(p - start);
}

/* Packs, checksums and writes piece by piece, so that no memory is needed. */
static int file_write_pieces(int fd, const kvtree *tree, uint64_t size)
{
    char piece[PIECE_SIZE + CRC_SIZE];
    struct kvtree_packer packer = {.tree = tree};
    size_t used = file_put_header(piece, size);
    uint32_t crc = 0;
    int rc = 0;
    while (!rc && !packer.end) {
        used += kvtree_packer_next(&packer, piece + used, PIECE_SIZE - used);
        crc = crc32_add(crc, piece, used);
        if (packer.end) used = (size_t)(kvtree_put32(piece + used, crc) - piece);
        rc = io_write(fd, piece, used);
        used = 0;
    }
    return rc;
}

/* Determines the bytes of a file with tree. Refuses a tree that no reader would accept.
 */
static int file_measure(const kvtree *tree, uint64_t limit, size_t *size,
                        kvtree_error *err)
{
    size_t depth;
    *size = HEADER_SIZE + kvtree_measure(tree, &depth) + CRC_SIZE;
    if (depth > KVTREE_DEPTH_MAX)
        return err_set(err, -EOVERFLOW, "write a tree of %zu levels: more than %d", depth,
                       KVTREE_DEPTH_MAX);
    if (*size > limit)
        return err_set(err, -EFBIG,
                       "a tree of %zu bytes; no reader accepts more than %llu", *size,
                       (unsigned long long)limit);
    return 0;
}

ssize_t kvtree_fd_write(int fd, uint64_t limit, const kvtree *tree, kvtree_error *err)
{
    size_t size;
    int rc = file_measure(tree, limit, &size, err);
    if (rc) return rc;
    rc = file_write_pieces(fd, tree, size);
    return rc ? err_sys(err, rc, "write a tree of %zu bytes", size) : (ssize_t)size;
}

ssize_t kvtree_write_fd(const char *path, int fd, const kvtree *tree)
{
    return path ? kvtree_fd_write(fd, KVTREE_ANY_SIZE, tree, NULL) : -EINVAL;
}

/* Fills in header and checksum. */
static void file_complete(char *bytes, size_t size)
{
    file_put_header(bytes, size);
    kvtree_put32(bytes + size - CRC_SIZE, crc32_add(0, bytes, size - CRC_SIZE));
}

int kvtree_write_persist(void **buffer, size_t *size, const kvtree *tree)
{
    size_t whole;
    if (!buffer || !size) return -EINVAL;
    int rc = file_measure(tree, KVTREE_ANY_SIZE, &whole, NULL);
    if (rc) return rc;
    char *bytes = malloc(whole);
    if (!bytes) return -ENOMEM;
    kvtree_pack(bytes + HEADER_SIZE, tree);
    file_complete(bytes, whole);
    *buffer = bytes;
    *size = whole;
    return KVTREE_SUCCESS;
}

int kvtree_write_below(int dir, const char *name, uint64_t limit, const kvtree *tree,
                       enum kvtree_kind kind, kvtree_error *err)
{
    batch b = {.dir = dir, .exclusive = kind == KVTREE_NEW_LOCKED};
    const mode_t mode = kind == KVTREE_PLAIN ? 0 : beneath_lock_mode(dir);
    int fd, rc = batch_open(&b, name, mode, &fd, err);
    if (!rc) {
        ssize_t size = kvtree_fd_write(fd, limit, tree, err);
        rc = size < 0 ? (int)size : batch_commit(&b, err);
    }
    batch_drop(&b);
    return rc;
}

int kvtree_file_write(int dir, const char *name, uint64_t limit, const kvtree *tree,
                      kvtree_error *err)
{
    if (!name) return err_set(err, -EINVAL, "write a tree: no file name");
    int rc = kvtree_write_below(dir, name, limit, tree, KVTREE_PLAIN, err);
    return rc ? err_wrap(err, rc, "write %s", name) : KVTREE_SUCCESS;
}

int kvtree_write_packed(int dir, const char *name, char *bytes, size_t size,
                        kvtree_error *err)
{
    batch b = {.dir = dir};
    int fd, rc = batch_open(&b, name, 0, &fd, err);
    file_complete(bytes, size);
    if (!rc && (rc = io_write(fd, bytes, size)) != 0)
        err_sys(err, rc, "write a tree of %zu bytes", size);
    if (!rc) rc = batch_commit(&b, err);
    batch_drop(&b);
    return rc ? err_wrap(err, rc, "write %s", name) : KVTREE_SUCCESS;
}

int kvtree_write_file(const char *path, const kvtree *tree)
{
    return kvtree_file_write(AT_FDCWD, path, KVTREE_ANY_SIZE, tree, NULL);
}

/* ---- reading ---- */

/* A file that is being read. */
struct file_reader {
    int fd;
    uint64_t limit; /* maximum number of bytes to accept from the current offset */
    bool whole;     /* no bytes may follow the tree */
    bool sized;     /* a regular file; the size of a pipe is known only at its end */
    bool is_at_end; /* there was no byte at all */
    uint64_t there; /* bytes from the current offset to the end of a regular file */
    char *bytes;    /* the bytes read, starting with the header */
    struct kvtree_file_facts facts;
};

/* Maximum memory that is allocated for a pipe before bytes arrive. */
#define PIPE_FIRST ((size_t)1 << 20)

static size_t file_trailer_size(const struct file_reader *r)
{
    return r->facts.has_crc ? CRC_SIZE : 0;
}

/* Parses the header. OTHER_FORMAT, with a text, for an unknown format. */
static int file_parse_header(struct file_reader *r, kvtree_error *err)
{
    const char *bytes = r->bytes, *advice = "use the program that wrote it";
    uint32_t magic = kvtree_get32(bytes), kind = kvtree_get32(bytes + 4);
    uint32_t flags = kvtree_get32(bytes + 16);
    if (magic != MAGIC)
        return err_set(err, -EBADMSG, "not a tree file: magic number 0x%08x, not 0x%08x",
                       magic, MAGIC);
    r->facts.size = (uint64_t)kvtree_get32(bytes + 8) << 32 | kvtree_get32(bytes + 12);
    r->facts.has_crc = (flags & FLAG_CRC32) != 0;
    if (kind >> 16 != TYPE)
        return err_set(err, OTHER_FORMAT, "file type %u; this program knows type %u: %s",
                       kind >> 16, TYPE, advice);
    if ((kind & 0xffff) != VERSION)
        return err_set(err, OTHER_FORMAT,
                       "file version %u; this program knows version %u: %s",
                       kind & 0xffff, VERSION, advice);
    if (flags & ~FLAG_CRC32)
        return err_set(err, OTHER_FORMAT, "unknown flags 0x%08x", flags & ~FLAG_CRC32);
    return 0;
}

static int file_check_limit(const struct file_reader *r, kvtree_error *err)
{
    unsigned long long size = r->facts.size, limit = r->limit;
    if (size <= limit) return 0;
    return err_set(err, -EBADMSG,
                   "too large: %llu bytes, but only %llu are accepted; restore it from a "
                   "copy, or move it away",
                   size, limit);
}

/* Compares the size in the header with the actual number of bytes, before memory is
 * allocated. */
static int file_check_size(const struct file_reader *r, kvtree_error *err)
{
    unsigned long long size = r->facts.size, real = r->there;
    if (size < HEADER_SIZE + KVTREE_COUNT_SIZE + file_trailer_size(r))
        return err_set(err, -EBADMSG, "size field %llu is too small for a tree", size);
    if (r->sized && size > real)
        return err_set(err, -EBADMSG, "cut off: size field %llu, but only %llu bytes",
                       size, real);
    if (size > SSIZE_MAX)
        return err_set(err, -EBADMSG, "size field %llu is too large for a file", size);
    if (r->sized && r->whole && size < real)
        return err_set(err, -EBADMSG, "trailing bytes: size field %llu, but %llu bytes",
                       size, real);
    return 0;
}

static int file_check_crc(struct file_reader *r, kvtree_error *err)
{
    if (!r->facts.has_crc) return 0;
    size_t size = (size_t)r->facts.size - CRC_SIZE;
    uint32_t stored = kvtree_get32(r->bytes + size);
    uint32_t real = r->facts.crc = crc32_add(0, r->bytes, size);
    if (stored == real) return 0;
    return err_set(err, -EBADMSG, "damaged: checksum 0x%08x, but the bytes have 0x%08x",
                   stored, real);
}

static int file_decode(const struct file_reader *r, kvtree *tree, kvtree_error *err)
{
    size_t packed = (size_t)r->facts.size - HEADER_SIZE - file_trailer_size(r);
    return kvtree_unpack_merge(r->bytes + HEADER_SIZE, packed, tree, err);
}

/* Reads until size bytes are present, of which `used` already are. */
static int file_read_until(struct file_reader *r, size_t used, size_t size,
                           kvtree_error *err)
{
    ssize_t n = io_read(r->fd, r->bytes + used, size - used);
    if (n < 0) return err_sys(err, (int)n, "read");
    r->is_at_end = used + (size_t)n == 0;
    if ((size_t)n < size - used)
        return err_set(err, -EBADMSG, "cut off: %zu bytes where %zu were expected",
                       used + (size_t)n, size);
    return 0;
}

/* Reads the bytes from number `used` on, up to the size in the header. */
static int file_read_bytes(struct file_reader *r, size_t used, size_t size,
                           kvtree_error *err)
{
    size_t room = !r->sized && size > PIPE_FIRST ? PIPE_FIRST : size;
    while (used < size) {
        char *larger = realloc(r->bytes, room);
        if (!larger) return err_sys(err, -ENOMEM, "read a tree of %zu bytes", size);
        r->bytes = larger;
        int rc = file_read_until(r, used, room, err);
        if (rc) return rc;
        used = room;
        room = room < size / 2 ? 2 * room : size;
    }
    return 0;
}

static int file_check_end(const struct file_reader *r, kvtree_error *err)
{
    char more;
    ssize_t n = r->whole && !r->sized ? io_read(r->fd, &more, 1) : 0;
    if (n < 0) return err_sys(err, (int)n, "read");
    return n == 0 ? 0 : err_set(err, -EBADMSG, "trailing bytes behind the tree");
}

/* Header and checksum have the same position in every version. Therefore a header of
 * another format in a file with a wrong size or checksum, or without a checksum, is
 * damage. Other formats may have other limits, so a large file of another format is not
 * damage. */
static int file_read_tree(struct file_reader *r, kvtree *tree, kvtree_error *err)
{
    kvtree_error other;
    int rc = file_read_bytes(r, 0, HEADER_SIZE, err);
    if (rc) return rc;
    int format = file_parse_header(r, &other);
    if (format && format != OTHER_FORMAT) return err_set(err, format, "%s", other.text);
    if (format && !r->facts.has_crc)
        return err_set(err, -EBADMSG, "damaged: no checksum, and %.400s", other.text);
    rc = file_check_size(r, err);
    if (rc) return rc;
    rc = file_check_limit(r, err);
    if (rc && format) return err_set(err, format, "%s", other.text);
    if (!rc) rc = file_read_bytes(r, HEADER_SIZE, (size_t)r->facts.size, err);
    if (!rc) rc = file_check_crc(r, err);
    if (rc) return rc;
    if (format) return err_set(err, format, "%s", other.text);
    rc = file_check_end(r, err);
    return rc ? rc : file_decode(r, tree, err);
}

static int file_inspect(struct file_reader *r, kvtree_error *err)
{
    struct stat st;
    if (fstat(r->fd, &st) != 0) return err_sys(err, -errno, "stat");
    r->sized = S_ISREG(st.st_mode);
    if (!r->sized) return 0;
    off_t at = lseek(r->fd, 0, SEEK_CUR);
    if (at < 0) return err_sys(err, -errno, "find the offset");
    r->there = st.st_size > at ? (uint64_t)(st.st_size - at) : 0;
    return 0;
}

static int file_read_all(struct file_reader *r, kvtree *tree, kvtree_error *err)
{
    int rc = file_inspect(r, err);
    if (!rc) rc = file_read_tree(r, tree, err);
    free(r->bytes);
    return rc;
}

ssize_t kvtree_fd_read(int fd, uint64_t limit, kvtree *tree, kvtree_error *err)
{
    struct file_reader r = {.fd = fd, .limit = limit};
    if (!tree) return err_set(err, -EINVAL, "read a tree: no tree to read into");
    int rc = file_read_all(&r, tree, err);
    return rc ? rc : (ssize_t)r.facts.size;
}

ssize_t kvtree_read_fd(const char *path, int fd, kvtree *tree)
{
    struct file_reader r = {.fd = fd, .limit = KVTREE_ANY_SIZE};
    if (!path || !tree) return -EINVAL;
    int rc = file_read_all(&r, tree, NULL);
    if (r.is_at_end) return 0;
    return rc ? rc : (ssize_t)r.facts.size;
}

int kvtree_read_or_empty(int fd, kvtree *tree, kvtree_error *err)
{
    struct file_reader r = {.fd = fd, .limit = KVTREE_ANY_SIZE, .whole = true};
    kvtree_error text;
    int rc = file_read_all(&r, tree, &text);
    if (rc == 0 || r.is_at_end) return 0;
    return err_set(err, rc, "%s", text.text);
}

int kvtree_read_whole(int fd, uint64_t limit, kvtree *tree,
                      struct kvtree_file_facts *facts, kvtree_error *err)
{
    struct file_reader r = {.fd = fd, .limit = limit, .whole = true};
    int rc = file_read_all(&r, tree, err);
    if (rc || !facts) return rc;
    *facts = r.facts;
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, NULL));)
        facts->elements++;
    return 0;
}

/* Opens the file name below dir (AT_FDCWD: a path). */
static int file_open(int dir, const char *name, int *fd, kvtree_error *err)
{
    int folder;
    const char *last;
    int rc = folder_of(dir, name, 0, &folder, &last, err);
    if (rc) return rc;
    rc = beneath_open(folder, last, O_RDONLY, 0, fd, err);
    io_close(&folder);
    return rc;
}

int kvtree_file_read(int dir, const char *name, uint64_t limit, kvtree *tree,
                     kvtree_error *err)
{
    int fd;
    if (!name || !tree)
        return err_set(err, -EINVAL, "read a tree: no %s", name ? "tree" : "file name");
    int rc = file_open(dir, name, &fd, err);
    if (!rc) {
        rc = kvtree_read_whole(fd, limit, tree, NULL, err);
        io_close(&fd);
    }
    return rc ? err_wrap(err, rc, "read %s", name) : KVTREE_SUCCESS;
}

int kvtree_read_file(const char *path, kvtree *tree)
{
    int fd;
    if (!path || !tree) return -EINVAL;
    int rc = file_open(AT_FDCWD, path, &fd, NULL);
    if (rc) return rc;
    rc = kvtree_read_or_empty(fd, tree, NULL);
    io_close(&fd);
    return rc;
}
