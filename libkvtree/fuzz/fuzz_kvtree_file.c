/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as the file of a tree: unchanged, and also with corrected size and checksum,
 * since almost no other damage would pass these checks. The bytes are accepted exactly
 * when the table in docs/formats/kvtree.md allows them. Refused bytes leave the given
 * tree unchanged. */
#include "fuzz_tree.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEADER_SIZE 20
#define CRC_SIZE 4
#define BEFORE 3 /* bytes before the tree in a larger file, */
#define BEHIND 5 /* bytes after it */

/* ---- what the format says ---- */

static uint32_t number(const char *bytes)
{
    const unsigned char *p = (const unsigned char *)bytes;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_number(char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(value >> (24 - 8 * i) & 0xff);
}

static uint32_t crc32_of(const char *bytes, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static size_t crc_size(const char *file)
{
    return number(file + 16) & 1 ? CRC_SIZE : 0;
}

/* Whether the file has another type or version, or unknown flags, with a correct size and
 * with the checksum that every version writes. */
static int is_other_format(const char *file, size_t size, int whole)
{
    if (size < HEADER_SIZE || number(file) != 0x951fc3f5 ||
        (number(file + 4) == 0x10001 && number(file + 16) <= 1))
        return 0;
    uint64_t told = (uint64_t)number(file + 8) << 32 | number(file + 12);
    if (told > size || told < HEADER_SIZE + 4 + crc_size(file) || (whole && told < size))
        return 0;
    return crc_size(file) &&
           number(file + told - CRC_SIZE) == crc32_of(file, told - CRC_SIZE);
}

static void require_format(int code, const char *err, int other)
{
    REQUIRE((code == -EPROTONOSUPPORT) == other);
    require_refusal(other ? -EBADMSG : code, err);
}

/* Returns the size of the packed tree in a file of size bytes; -1 for a bad file. whole:
 * nothing may follow. */
static ssize_t tree_in(const char *file, size_t size, int whole)
{
    size_t noticed;
    if (size < HEADER_SIZE || number(file) != 0x951fc3f5 || number(file + 4) != 0x10001 ||
        number(file + 16) > 1)
        return -1;
    uint64_t told = (uint64_t)number(file + 8) << 32 | number(file + 12);
    size_t around = HEADER_SIZE + crc_size(file);
    if (told > size || told < around || (whole && told < size)) return -1;
    if (crc_size(file) &&
        number(file + told - CRC_SIZE) != crc32_of(file, told - CRC_SIZE))
        return -1;
    ssize_t packed_size = reference_unpack(file + HEADER_SIZE, told - around, &noticed);
    return packed_size == (ssize_t)(told - around) ? packed_size : -1;
}

static void repair(char *file, size_t size)
{
    if (size < HEADER_SIZE + CRC_SIZE) return;
    put_number(file + 8, 0);
    put_number(file + 12, (uint32_t)size);
    if (crc_size(file))
        put_number(file + size - CRC_SIZE, crc32_of(file, size - CRC_SIZE));
}

/* ---- reading a whole file ---- */

static int folder_fd = -1, file_fd = -1;

static void store(const char *bytes, size_t size)
{
    if (folder_fd < 0) {
        folder_fd = open(fuzz_folder(), O_RDONLY | O_DIRECTORY);
        file_fd = openat(folder_fd, "tree", O_WRONLY | O_CREAT | O_EXCL, 0600);
        REQUIRE(folder_fd >= 0 && file_fd >= 0);
    }
    REQUIRE(pwrite(file_fd, bytes, size, 0) == (ssize_t)size);
    REQUIRE(ftruncate(file_fd, (off_t)size) == 0);
}

/* A tree that shares some keys with those of the corpus, and has others. */
static kvtree *tree_before(void)
{
    static const char *const keys[] = {"a", "",  "RANK", "1", "2",
                                       "3", "4", "5",    "6", "7"};
    kvtree *tree = kvtree_new();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        kvtree_set_kv(tree, keys[i], "b");
    return tree;
}

static void read_whole(const char *bytes, size_t size)
{
    kvtree_error err = {""};
    size_t before_size;
    ssize_t packed_size = tree_in(bytes, size, 1);
    kvtree *tree = tree_before();
    char *before = packed(tree, &before_size);
    store(bytes, size);
    fuzz_memory_begin(SIZE_MAX);
    int rc = kvtree_file_read(folder_fd, "tree", KVTREE_ANY_SIZE, tree, &err);
    struct fuzz_memory memory = fuzz_memory_end();
    /* the file, the tree, and once more merged */
    REQUIRE(memory.bytes <=
            (2 * UNPACK_BYTES_PER_BYTE + 1) * size + 2 * UNPACK_BYTES_MORE);
    if (packed_size < 0) {
        require_format(rc, err.text, is_other_format(bytes, size, 1));
        REQUIRE(strncmp(err.text, "read tree: ", 11) == 0);
        REQUIRE(packs_to(tree, before, before_size));
    } else {
        size_t merged_size;
        REQUIRE(rc == 0 && err.text[0] == 0);
        kvtree *alone = unpacked(bytes + HEADER_SIZE, (size_t)packed_size);
        kvtree *expected = tree_before();
        REQUIRE(kvtree_merge(expected, alone) == 0);
        char *merged = packed(expected, &merged_size);
        REQUIRE(packs_to(tree, merged, merged_size));
        kvtree_delete(&alone);
        kvtree_delete(&expected);
        free(merged);
    }
    kvtree_delete(&tree);
    free(before);
}

/* ---- reading and writing inside a larger file ---- */

static int larger_file(const char *bytes, size_t size)
{
    static int fd = -1;
    if (fd < 0) fd = memfd_create("tree", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && pwrite(fd, "???", BEFORE, 0) == BEFORE);
    REQUIRE(pwrite(fd, bytes, size, BEFORE) == (ssize_t)size);
    REQUIRE(ftruncate(fd, (off_t)(BEFORE + size)) == 0);
    REQUIRE(lseek(fd, BEFORE, SEEK_SET) == BEFORE);
    return fd;
}

/* A tree is written to exactly the bytes that it was read from, if they had a checksum.
 */
static void write_back(int fd, const kvtree *tree, const char *bytes, size_t size)
{
    char *written = malloc(size + CRC_SIZE);
    kvtree_error err = {""};
    size_t expected = size + CRC_SIZE - crc_size(bytes), same = size - crc_size(bytes);
    REQUIRE(written && lseek(fd, BEFORE, SEEK_SET) == BEFORE);
    REQUIRE(kvtree_fd_write(fd, KVTREE_ANY_SIZE, tree, &err) == (ssize_t)expected &&
            err.text[0] == 0);
    REQUIRE(lseek(fd, 0, SEEK_CUR) == (off_t)(BEFORE + expected));
    REQUIRE(pread(fd, written, expected, BEFORE) == (ssize_t)expected);
    if (crc_size(bytes)) same = size;
    REQUIRE(memcmp(written + HEADER_SIZE, bytes + HEADER_SIZE, same - HEADER_SIZE) == 0);
    REQUIRE(tree_in(written, expected, 1) >= 0);
    free(written);
}

static void read_inside(const char *bytes, size_t size)
{
    kvtree_error err = {""};
    kvtree *tree = kvtree_new();
    ssize_t packed_size = tree_in(bytes, size, 0);
    int fd = larger_file(bytes, size);
    fuzz_memory_begin(SIZE_MAX);
    ssize_t used = kvtree_fd_read(fd, KVTREE_ANY_SIZE, tree, &err);
    struct fuzz_memory memory = fuzz_memory_end();
    REQUIRE(memory.bytes <= (UNPACK_BYTES_PER_BYTE + 1) * size + UNPACK_BYTES_MORE);
    if (packed_size < 0) {
        require_format((int)used, err.text, is_other_format(bytes, size, 0));
        REQUIRE(kvtree_size(tree) == 0);
    } else {
        REQUIRE(used == (ssize_t)(HEADER_SIZE + crc_size(bytes)) + packed_size);
        REQUIRE(lseek(fd, 0, SEEK_CUR) == BEFORE + used && err.text[0] == 0);
        REQUIRE(packs_to(tree, bytes + HEADER_SIZE, (size_t)packed_size));
        write_back(fd, tree, bytes, (size_t)used);
    }
    kvtree_unset_all(tree);
    if (memory.calls) {
        fd = larger_file(bytes, size);
        fuzz_memory_begin(fuzz_hash(bytes, size) % memory.calls);
        ssize_t without = kvtree_fd_read(fd, KVTREE_ANY_SIZE, tree, &err);
        fuzz_memory_end();
        REQUIRE(without == -ENOMEM || without == used);
        REQUIRE(without > 0 || kvtree_size(tree) == 0);
    }
    kvtree_delete(&tree);
}

/* ---- reading from a pipe ---- */

#define PIPE_MOST 65536           /* more than a pipe holds would need a second thread */
#define PIPE_MEMORY (1024 * 1024) /* allocated before all bytes have arrived */

static void read_pipe(const char *bytes, size_t size)
{
    kvtree_error err = {""};
    int ends[2];
    ssize_t packed_size = tree_in(bytes, size, 0);
    kvtree *tree = kvtree_new();
    if (size <= PIPE_MOST) {
        REQUIRE(pipe(ends) == 0 && write(ends[1], bytes, size) == (ssize_t)size);
        close(ends[1]);
        fuzz_memory_begin(SIZE_MAX);
        ssize_t used = kvtree_fd_read(ends[0], KVTREE_ANY_SIZE, tree, &err);
        struct fuzz_memory memory = fuzz_memory_end();
        REQUIRE(memory.bytes <=
                (UNPACK_BYTES_PER_BYTE + 2) * size + UNPACK_BYTES_MORE + PIPE_MEMORY);
        if (packed_size < 0)
            require_format((int)used, err.text, is_other_format(bytes, size, 0));
        else
            REQUIRE(packs_to(tree, bytes + HEADER_SIZE, (size_t)packed_size));
        REQUIRE(packed_size >= 0 || kvtree_size(tree) == 0);
        close(ends[0]);
    }
    kvtree_delete(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = fuzz_copy(data, size), *longer = calloc(1, size + BEHIND);
    REQUIRE(longer != NULL);
    for (int repaired = 0; repaired < 2; repaired++) {
        if (repaired) repair(bytes, size);
        read_whole(bytes, size);
        read_inside(bytes, size);
        read_pipe(bytes, size);
        if (size) memcpy(longer, bytes, size);
        read_whole(longer, size + BEHIND);
        read_inside(longer, size + BEHIND);
    }
    free(bytes);
    free(longer);
    return 0;
}
