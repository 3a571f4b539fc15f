/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_PLACES_H
#define FUZZ_PLACES_H

/* A prefix directory for the target of SCR's records, and properties of each reader of
 * records. */

#include "fuzz_records.h"

#include "common/errtext.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reading a record may allocate this number of bytes in total per byte of its packed
 * tree, plus a constant. The worst case is the list of an index whose entries are no
 * datasets: 6 bytes packed, and a scr_dataset in memory. */
#define BYTES_PER_BYTE 320
#define BYTES_MORE 65536

/* Writing syncs files, which is slow: only one of this number of inputs is written. */
#define FILES_PART 8

#define DATASET "d"

/* ---- directories and files ---- */

/* The prefix directory, and in it the directories of a dataset and of control files. */
struct places {
    char path[300];   /* of the prefix directory, ... */
    char folder[310]; /* ... of the dataset, ... */
    char again[310];  /* ... and for files that are written again */
    int prefix, dataset, control;
};

static inline int make_folder(const char *path, const char *name)
{
    char folder[320];
    snprintf(folder, sizeof folder, "%s/%s", path, name);
    REQUIRE(mkdir(folder, 0700) == 0);
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(dir >= 0);
    return dir;
}

static inline const struct places *places(void)
{
    static struct places p;
    if (p.path[0]) return &p;
    snprintf(p.path, sizeof p.path, "%s", fuzz_folder());
    snprintf(p.folder, sizeof p.folder, "%s/" DATASET, p.path);
    snprintf(p.again, sizeof p.again, "%s/again", p.path);
    p.prefix = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(p.prefix >= 0);
    close(make_folder(p.path, ".scr"));
    p.dataset = make_folder(p.path, DATASET);
    close(make_folder(p.path, DATASET "/.scr"));
    close(make_folder(p.path, "again"));
    p.control = make_folder(p.path, "control");
    return &p;
}

static inline void put_bytes(int dir, const char *name, const char *bytes, size_t size)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

static inline void put_big(char *bytes, uint64_t number, int count)
{
    for (int i = count - 1; i >= 0; i--, number >>= 8)
        bytes[i] = (char)number;
}

/* Writes a tree unchanged, without checksum or sync. */
static inline void put(int dir, const char *name, const kvtree *tree)
{
    enum { HEADER = 20 };
    size_t size = HEADER + kvtree_pack_size(tree);
    char *bytes = calloc(1, size);
    REQUIRE(bytes != NULL);
    put_big(bytes, 0x951fc3f500010001, 8);
    put_big(bytes + 8, size, 8);
    kvtree_pack(bytes + HEADER, tree);
    put_bytes(dir, name, bytes, size);
    free(bytes);
}

/* ---- properties of each reader ---- */

/* A reader returns 0 or an error, and leaves no memory. If an allocation fails, it
 * returns -ENOMEM or the same result as with memory. */
typedef int reader(const kvtree *tree);

static inline int take(reader *read, const kvtree *tree, uint32_t hash)
{
    fuzz_memory_begin(SIZE_MAX);
    int rc = read(tree);
    struct fuzz_memory used = fuzz_memory_end();
    REQUIRE(used.bytes <= BYTES_PER_BYTE * kvtree_pack_size(tree) + BYTES_MORE);
    if (used.calls == 0) return rc;
    fuzz_memory_begin(hash % used.calls);
    int failed = read(tree);
    fuzz_memory_end();
    REQUIRE(failed == -ENOMEM || failed == rc);
    return rc;
}

/* An error text fits into its buffer, and is set only after an error. */
static inline int told(int rc, const char *err)
{
    REQUIRE(strnlen(err, sizeof(kvtree_error)) < sizeof(kvtree_error) &&
            (rc != 0) == (err[0] != 0));
    for (; *err; err++)
        REQUIRE((unsigned char)*err >= 0x20 && *err != 0x7f);
    return rc;
}

#endif
