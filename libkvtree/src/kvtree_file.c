/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees in files (SCR Developer Guide 1.2, section 2.3.4; byte table in
 * docs/formats/kvtree.md). A file is written as a whole under a temporary name and
 * renamed; it is read as a whole, after its header was compared with what the file really
 * has. */
#include "src/kvtree_private.h"

#include "common/batch.h"
#include "common/crc32.h"
#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(KVTREE_ERROR_SIZE == ERRTEXT_SIZE, "one size of error texts");

#define MAGIC 0x951fc3f5u
#define TYPE 1u
#define VERSION 1u
#define FLAG_CRC32 1u

/* A file that another version or another program wrote. */
#define OTHER_FORMAT (-EPROTONOSUPPORT)

#define HEADER_SIZE 20
#define CRC_SIZE 4
#define PIECE_SIZE 65536

/* ---- writing ---- */

static size_t put_header(char *p, uint64_t size)
{
    char *start = p;
    p = kvtree_put32(p, MAGIC);
    p = kvtree_put32(p, TYPE << 16 | VERSION);
    p = kvtree_put32(p, (uint32_t)(size >> 32));
    p = kvtree_put32(p, (uint32_t)size);
    p = kvtree_put32(p, FLAG_CRC32);
    return (size_t)(p - start);
}

/* Packs, sums up and writes piece after piece, so that no memory is needed. */
static int write_pieces(int fd, const kvtree *tree, uint64_t size)
{
    char piece[PIECE_SIZE + CRC_SIZE];
    struct kvtree_packer packer = {.tree = tree};
    size_t used = put_header(piece, size);
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

ssize_t kvtree_write_fd(int fd, const kvtree *tree, char *err)
{
    size_t depth, size = HEADER_SIZE + kvtree_measure(tree, &depth) + CRC_SIZE;
    if (depth > KVTREE_DEPTH_MAX) /* nobody could read it */
        return err_set(err, -EOVERFLOW, "write a tree of %zu levels: more than %d", depth,
                       KVTREE_DEPTH_MAX);
    int rc = write_pieces(fd, tree, size);
    return rc ? err_sys(err, rc, "write a tree of %zu bytes", size) : (ssize_t)size;
}

int kvtree_open_folder_of(const char *path, int *folder, const char **last, char *err)
{
    if (!path) return err_set(err, -EINVAL, "no path");
    const char *slash = strrchr(path, '/');
    size_t len = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *above = len ? strndup(path, len) : strdup(".");
    if (!above) return err_sys(err, -ENOMEM, "open the folder");
    int fd = io_open(AT_FDCWD, above, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int rc = fd < 0 ? err_sys(err, fd, "open folder %s", above) : 0;
    free(above);
    if (rc) return rc;
    *folder = fd;
    *last = slash ? slash + 1 : path;
    return 0;
}

int kvtree_write_below(int dir, const char *name, const kvtree *tree, bool exclusive,
                       char *err)
{
    batch b = {.dir = dir, .exclusive = exclusive};
    int fd, rc = batch_open(&b, name, 0, &fd, err);
    if (!rc) {
        ssize_t size = kvtree_write_fd(fd, tree, err);
        rc = size < 0 ? (int)size : batch_commit(&b, err);
    }
    batch_drop(&b);
    return rc;
}

int kvtree_file_write(int dir, const char *name, const kvtree *tree, char *err)
{
    int folder = dir;
    const char *last = name;
    if (!name) return err_set(err, -EINVAL, "write a tree: no file name");
    int rc = dir == AT_FDCWD ? kvtree_open_folder_of(name, &folder, &last, err) : 0;
    if (!rc) {
        rc = kvtree_write_below(folder, last, tree, false, err);
        if (dir == AT_FDCWD) io_close(&folder);
    }
    return rc ? err_wrap(err, rc, "write %s", name) : KVTREE_SUCCESS;
}

int kvtree_write_file(const char *path, const kvtree *tree)
{
    return kvtree_file_write(AT_FDCWD, path, tree, NULL);
}

/* ---- reading ---- */

struct header {
    uint64_t size;
    size_t trailer; /* bytes of the checksum */
    uint32_t crc;   /* of a file that has one */
};

/* Where a tree is read from. */
struct input {
    int fd;
    int sized;      /* a regular file; the size of a pipe shows only at its end */
    uint64_t there; /* bytes from here to the end of a regular file */
    int whole;      /* no bytes may follow the tree */
};

/* Of a pipe no more than this is allocated before bytes come. */
#define PIPE_FIRST ((size_t)1 << 20)

static int parse_header(const char bytes[HEADER_SIZE], struct header *h, char *err)
{
    uint32_t magic = kvtree_get32(bytes), kind = kvtree_get32(bytes + 4);
    uint32_t flags = kvtree_get32(bytes + 16);
    if (magic != MAGIC)
        return err_set(err, -EBADMSG, "not a tree file: magic number 0x%08x, not 0x%08x",
                       magic, MAGIC);
    h->size = (uint64_t)kvtree_get32(bytes + 8) << 32 | kvtree_get32(bytes + 12);
    h->trailer = flags & FLAG_CRC32 ? CRC_SIZE : 0;
    if (kind >> 16 != TYPE)
        return err_set(
            err, OTHER_FORMAT,
            "file type %u; this program knows type %u: use the program that wrote it",
            kind >> 16, TYPE);
    if ((kind & 0xffff) != VERSION)
        return err_set(err, OTHER_FORMAT,
                       "file version %u; this program knows version %u: use the "
                       "program that wrote it",
                       kind & 0xffff, VERSION);
    if (flags & ~FLAG_CRC32)
        return err_set(err, OTHER_FORMAT, "unknown flags 0x%08x", flags & ~FLAG_CRC32);
    return 0;
}

/* Compares the size that the header tells with the bytes that are really there, before
 * anything is allocated for them. */
static int check_size(const struct header *h, const struct input *in, char *err)
{
    unsigned long long told = h->size, real = in->there;
    if (h->size < HEADER_SIZE + KVTREE_COUNT_SIZE + h->trailer)
        return err_set(err, -EBADMSG, "size field %llu is too small for a tree", told);
    if (in->sized && h->size > in->there)
        return err_set(err, -EBADMSG, "cut off: size field %llu, but only %llu bytes",
                       told, real);
    if (h->size > SSIZE_MAX)
        return err_set(err, -EBADMSG, "size field %llu is too large for a file", told);
    if (in->sized && in->whole && h->size < in->there)
        return err_set(err, -EBADMSG, "trailing bytes: size field %llu, but %llu bytes",
                       told, real);
    return 0;
}

static int check_crc(const char *bytes, size_t size, uint32_t *crc, char *err)
{
    uint32_t told = kvtree_get32(bytes + size - CRC_SIZE);
    uint32_t real = crc32_add(0, bytes, size - CRC_SIZE);
    *crc = real;
    if (told == real) return 0;
    return err_set(err, -EBADMSG, "damaged: checksum 0x%08x, but the bytes have 0x%08x",
                   told, real);
}

static int decode(const char *bytes, struct header *h, kvtree *tree, char *err)
{
    size_t size = (size_t)h->size, packed = size - HEADER_SIZE - h->trailer;
    int rc = h->trailer ? check_crc(bytes, size, &h->crc, err) : 0;
    if (rc) return rc;
    /* Unpacked on its own first: bytes behind the tree must not cost the caller's tree.
     */
    kvtree *fresh = kvtree_size(tree) ? kvtree_new() : tree;
    if (!fresh) return err_sys(err, -ENOMEM, "unpack a tree of %zu bytes", packed);
    ssize_t used = kvtree_unpack_err(bytes + HEADER_SIZE, packed, fresh, err);
    if (used < 0)
        rc = (int)used;
    else if ((size_t)used < packed)
        rc = err_set(err, -EBADMSG, "%zu bytes too many between the tree and the end",
                     packed - (size_t)used);
    else if (fresh != tree && (rc = kvtree_merge(tree, fresh)) != 0)
        err_sys(err, rc, "merge a tree of %zu bytes", packed);
    if (fresh != tree)
        kvtree_delete(&fresh);
    else if (rc)
        kvtree_unset_all(tree);
    return rc;
}

/* Reads exactly size bytes, to follow `before` others. */
static int read_all(int fd, char *bytes, size_t size, size_t before, char *err)
{
    ssize_t n = io_read(fd, bytes, size);
    if (n < 0) return err_sys(err, (int)n, "read");
    if ((size_t)n < size)
        return err_set(err, -EBADMSG, "cut off: %zu bytes where %zu were expected",
                       before + (size_t)n, before + size);
    return 0;
}

/* Reads what follows the header, which *bytes begins with. */
static int read_rest(const struct input *in, char **bytes, size_t size, char *err)
{
    size_t used = HEADER_SIZE, room = !in->sized && size > PIPE_FIRST ? PIPE_FIRST : size;
    while (used < size) {
        char *larger = realloc(*bytes, room);
        if (!larger) return err_sys(err, -ENOMEM, "read a tree of %zu bytes", size);
        *bytes = larger;
        int rc = read_all(in->fd, larger + used, room - used, used, err);
        if (rc) return rc;
        used = room;
        room = room < size / 2 ? 2 * room : size;
    }
    return 0;
}

static int check_end(const struct input *in, char *err)
{
    char more;
    ssize_t n = in->whole && !in->sized ? io_read(in->fd, &more, 1) : 0;
    if (n < 0) return err_sys(err, (int)n, "read");
    return n == 0 ? 0 : err_set(err, -EBADMSG, "trailing bytes behind the tree");
}

/* Header and checksum stand where they are in every version: a header of another format
 * in a file with a wrong size or checksum is damage. */
static int confirm_format(const struct input *in, char **bytes, struct header *h,
                          char *err)
{
    char why[ERRTEXT_SIZE];
    int rc = check_size(h, in, why);
    rc = rc ? rc : read_rest(in, bytes, (size_t)h->size, why);
    if (!rc && h->trailer) rc = check_crc(*bytes, (size_t)h->size, &h->crc, why);
    return rc ? err_set(err, rc, "%s", why) : OTHER_FORMAT;
}

static int read_tree(const struct input *in, kvtree *tree, struct header *h, char *err)
{
    char *bytes = malloc(HEADER_SIZE);
    if (!bytes) return err_sys(err, -ENOMEM, "read a tree");
    int rc = read_all(in->fd, bytes, HEADER_SIZE, 0, err);
    if (!rc) rc = parse_header(bytes, h, err);
    if (rc == OTHER_FORMAT) rc = confirm_format(in, &bytes, h, err);
    if (!rc) rc = check_size(h, in, err);
    if (!rc) rc = read_rest(in, &bytes, (size_t)h->size, err);
    if (!rc) rc = check_end(in, err);
    if (!rc) rc = decode(bytes, h, tree, err);
    free(bytes);
    return rc;
}

static int look_at(int fd, struct input *in, char *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_sys(err, -errno, "stat");
    in->fd = fd;
    in->sized = S_ISREG(st.st_mode);
    if (!in->sized) return 0;
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0) return err_sys(err, -errno, "find the offset");
    in->there = st.st_size > at ? (uint64_t)(st.st_size - at) : 0;
    return 0;
}

ssize_t kvtree_read_fd(int fd, kvtree *tree, char *err)
{
    struct input in = {0};
    struct header h = {0};
    if (!tree) return err_set(err, -EINVAL, "read a tree: no tree to read into");
    int rc = look_at(fd, &in, err);
    if (!rc) rc = read_tree(&in, tree, &h, err);
    return rc ? rc : (ssize_t)h.size;
}

static int read_whole(int fd, kvtree *tree, struct header *h, char *err)
{
    struct input in = {.whole = 1};
    int rc = look_at(fd, &in, err);
    return rc ? rc : read_tree(&in, tree, h, err);
}

int kvtree_read_whole(int fd, kvtree *tree, char *err)
{
    struct header h = {0};
    return read_whole(fd, tree, &h, err);
}

int kvtree_read_facts(int fd, kvtree *tree, struct kvtree_file_facts *facts, char *err)
{
    struct header h = {0};
    int rc = read_whole(fd, tree, &h, err);
    if (rc) return rc;
    *facts = (struct kvtree_file_facts){
        .size = h.size, .has_crc = h.trailer != 0, .crc = h.crc};
    for (kvtree_elem *e = NULL; (e = kvtree_walk(tree, e, NULL));)
        facts->elements++;
    return 0;
}

static int read_below(int dir, const char *name, kvtree *tree, char *err)
{
    int fd;
    int rc = beneath_open(dir, name, O_RDONLY, 0, &fd, err);
    if (rc) return rc;
    rc = kvtree_read_whole(fd, tree, err);
    io_close(&fd);
    return rc;
}

int kvtree_file_read(int dir, const char *name, kvtree *tree, char *err)
{
    int folder = dir;
    const char *last = name;
    if (!name || !tree)
        return err_set(err, -EINVAL, "read a tree: no %s", name ? "tree" : "file name");
    int rc = dir == AT_FDCWD ? kvtree_open_folder_of(name, &folder, &last, err) : 0;
    if (!rc) {
        rc = read_below(folder, last, tree, err);
        if (dir == AT_FDCWD) io_close(&folder);
    }
    return rc ? err_wrap(err, rc, "read %s", name) : KVTREE_SUCCESS;
}

int kvtree_read_file(const char *path, kvtree *tree)
{
    return kvtree_file_read(AT_FDCWD, path, tree, NULL);
}
