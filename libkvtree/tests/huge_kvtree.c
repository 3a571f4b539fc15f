/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree larger than 32 bits can count, through a file and through packed bytes.
 *
 * usage: huge_kvtree [BYTES [FOLDER]]
 *
 * The packed tree has more than BYTES bytes (4 MiB as a test in every run). The file
 * takes this space in FOLDER (default /tmp), and the program twice as much memory. At the
 * end it prints a line with the resources used. */
#include "huge_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define AROUND 24 /* header and checksum of a file */

#define REQUIRE(condition)                                                               \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: failed: %s %s\n", __FILE__, __LINE__, #condition,    \
                    err.text);                                                           \
            failed = 1;                                                                  \
            goto end;                                                                    \
        }                                                                                \
    } while (0)

static kvtree_error err;

static int file_is_right(int dir, size_t size)
{
    struct stat st;
    unsigned char field[8];
    uint64_t told = 0;
    int fd = openat(dir, "tree", O_RDONLY);
    int good = fd >= 0 && fstat(fd, &st) == 0 && pread(fd, field, sizeof field, 8) == 8;
    for (int i = 0; i < 8; i++)
        told = told << 8 | field[i];
    close(fd);
    return good && (uint64_t)st.st_size == size && told == size;
}

/* Changes the last byte of the tree: far beyond the first 4 GiB, if the tree is that
 * large. */
static int damage(int dir, size_t size)
{
    int fd = openat(dir, "tree", O_WRONLY);
    int done = fd >= 0 && pwrite(fd, "!", 1, (off_t)(size - 5)) == 1;
    return close(fd) == 0 && done;
}

static int through_a_file(int dir, kvtree **tree, size_t bytes)
{
    int failed = 0;
    size_t size = huge_tree_size(bytes) + AROUND;
    REQUIRE(kvtree_file_write(dir, "tree", KVTREE_ANY_SIZE, *tree, &err) == 0);
    REQUIRE(file_is_right(dir, size));
    kvtree_delete(tree);
    *tree = kvtree_new();
    REQUIRE(kvtree_file_read(dir, "tree", KVTREE_ANY_SIZE, *tree, &err) == 0);
    REQUIRE(is_huge_tree(*tree, bytes));
    kvtree_unset_all(*tree);
    REQUIRE(damage(dir, size));
    REQUIRE(kvtree_file_read(dir, "tree", KVTREE_ANY_SIZE, *tree, &err) == -EBADMSG);
    REQUIRE(strstr(err.text, "checksum") && kvtree_size(*tree) == 0);
end:
    unlinkat(dir, "tree", 0);
    return failed;
}

static int through_memory(kvtree **tree, size_t bytes)
{
    int failed = 0;
    size_t size = huge_tree_size(bytes);
    char *packed = malloc(size);
    REQUIRE(packed != NULL);
    REQUIRE(kvtree_pack(packed, *tree) == size);
    kvtree_unset_all(*tree);
    REQUIRE(kvtree_unpack_err(packed, size - 1, *tree, &err) == -EBADMSG);
    REQUIRE(kvtree_size(*tree) == 0);
    REQUIRE(kvtree_unpack_n(packed, size, *tree) == (ssize_t)size);
    REQUIRE(is_huge_tree(*tree, bytes));
end:
    free(packed);
    return failed;
}

static int run(int dir, size_t bytes)
{
    int failed = 0;
    kvtree *tree = huge_tree(bytes);
    REQUIRE(tree && huge_tree_size(bytes) > bytes);
    REQUIRE(is_huge_tree(tree, bytes));
    failed = through_memory(&tree, bytes) || through_a_file(dir, &tree, bytes);
end:
    kvtree_delete(&tree);
    return failed;
}

int main(int argc, char **argv)
{
    char folder[4096];
    struct rusage usage;
    time_t start = time(NULL);
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 4194304;
    snprintf(folder, sizeof folder, "%s/scr-test-XXXXXX", argc > 2 ? argv[2] : "/tmp");
    int dir = mkdtemp(folder) ? open(folder, O_RDONLY | O_DIRECTORY) : -1;
    if (dir < 0) {
        perror(folder);
        return 1;
    }
    int failed = run(dir, bytes);
    close(dir);
    rmdir(folder);
    getrusage(RUSAGE_SELF, &usage);
    printf("%zu bytes packed: %ld s, at most %ld MiB of memory\n", huge_tree_size(bytes),
           (long)(time(NULL) - start), usage.ru_maxrss / 1024);
    return failed;
}
