/* SPDX-License-Identifier: BSD-3-Clause */
/* A map for files that were written in place: it equals the map of a flush, every file is
 * synced before the map is written, and errors leave everything as it was. And the owner
 * of a file that several ranks wrote. */
#include "lists.h"

#include <sys/syscall.h>

enum { FILES = 3 };

static char folder[64], prefix[128];
static filo_error err;
static int syncs, failing; /* number of fsync calls; number of the call that fails, from
                              1 */

int fsync(int fd)
{
    if (++syncs == failing) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

/* Names belong to the caller, and do not change. */
static void rename_file(filo_file *file, const char *name)
{
    file->name = (char *)(uintptr_t)name;
}

static void make_folders(const char *path)
{
    char part[512];
    for (const char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(s - path), path);
        CHECK(mkdir(part, 0755) == 0 || errno == EEXIST);
    }
}

/* Creates the files of a list in the directory itself. */
static void begin(list *l, const char *name, int count)
{
    char path[512];
    snprintf(prefix, sizeof prefix, "%s/%s", folder, name);
    list_init(l, folder, check_rank, count);
    for (int f = 0; f < count; f++) {
        snprintf(path, sizeof path, "%s/%s", prefix, l->name[f]);
        make_folders(path);
        size_t size = list_size(check_rank, f);
        unsigned char *bytes = malloc(size + 1);
        for (size_t i = 0; bytes && i < size; i++)
            bytes[i] = list_byte(check_rank, f, i);
        list_write(path, bytes, size);
        free(bytes);
        l->files[f].local = NULL;
        l->files[f].size = 77; /* the call finds the real size */
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static int reg(list *l, int checksum)
{
    const filo_options options = {.checksum = checksum};
    return filo_register(MPI_COMM_WORLD, prefix, NULL, l->count, l->files, &options,
                         &err);
}

/* Checks that the map names the files, and that a fetch restores them. */
static void expect_mapped(const list *l, int checksum)
{
    const filo_options options = {.checksum = 1};
    int ranks, count;
    filo_file *files;
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    CHECK_INT(ranks, check_ranks);
    CHECK_INT(count, l->count);
    for (int f = 0; f < count; f++) {
        CHECK(files[f].size == list_size(check_rank, f));
        CHECK_INT(files[f].has_crc, checksum);
        free(files[f].local);
        files[f].local = strdup(l->local[f]);
    }
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, &options, &err), 0);
    list_expect(l, check_rank);
    list_unlink(l);
    filo_files_free(count, files);
}

static void test_maps(void)
{
    list l;
    begin(&l, "in place", FILES);
    syncs = 0;
    CHECK_INT(reg(&l, 1), 0);
    CHECK(syncs >= FILES + (check_rank == 0));
    for (int f = 0; f < FILES; f++)
        CHECK(l.files[f].size == list_size(check_rank, f) && l.files[f].has_crc);
    expect_mapped(&l, 1);
    /* a second map replaces the first */
    begin(&l, "in place", check_rank % 2 ? FILES : 1);
    CHECK_INT(reg(&l, 0), 0);
    expect_mapped(&l, 0);
}

static void expect_refused(list *l, int expected, const char *text, uint64_t before)
{
    CHECK_INT(reg(l, 1), expected);
    list_expect_text(err.text, text);
    uint64_t after = list_folder_sum(prefix);
    CHECK(after == before);
}

static void test_mistakes(void)
{
    list l;
    char path[512];
    begin(&l, "mistakes", FILES);
    CHECK_INT(reg(&l, 1), 0);
    uint64_t before = list_folder_sum(prefix);
    int last = check_rank == check_ranks - 1;
    if (last) rename_file(&l.files[1], "sub/not there");
    expect_refused(&l, -ENOENT, "not there", before);
    snprintf(path, sizeof path, "%s/link", prefix);
    if (last) CHECK(symlink("/etc/passwd", path) == 0);
    if (last) rename_file(&l.files[1], "link");
    CHECK(reg(&l, 1) < 0);
    list_expect_text(err.text, "link");
    if (last) rename_file(&l.files[1], ".scr");
    CHECK(reg(&l, 1) < 0);
    if (last) rename_file(&l.files[1], "../out");
    expect_refused(&l, -EINVAL, "..", before);
    if (last) rename_file(&l.files[1], FILO_MAP);
    expect_refused(&l, -EINVAL, "belongs to the map", before);
    rename_file(&l.files[1], "shared");
    if (check_ranks > 1) expect_refused(&l, -EEXIST, "\"shared\" is listed by", before);
    if (last) CHECK(unlink(path) == 0);
    snprintf(prefix, sizeof prefix, "%s/no such folder", folder);
    CHECK_INT(reg(&l, 1), check_ranks > 1 ? -EEXIST : -ENOENT);
}

/* A file that cannot be synced gets no map. */
static void test_failing_sync(void)
{
    list l;
    begin(&l, "unsynced", FILES);
    int last = check_rank == check_ranks - 1;
    for (int n = 1; n <= FILES; n++) {
        syncs = 0;
        failing = last ? n : 0;
        CHECK_INT(reg(&l, 0), -EIO);
        list_expect_text(err.text, "fsync");
        CHECK(!list_exists(prefix, FILO_MAP));
        failing = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK_INT(reg(&l, 0), 0);
    expect_mapped(&l, 0);
}

/* Ranks k, k + 1, ... list name k, so rank k owns it. */
static void test_owners(void)
{
    char name[LIST_MAX][32];
    filo_file files[LIST_MAX] = {{0}};
    int owner[LIST_MAX], count = 0;
    for (int k = 0; k <= check_rank && k < LIST_MAX - 1; k++, count++) {
        snprintf(name[count], sizeof name[count], "shared/%d", k);
        files[count].name = name[count];
    }
    snprintf(name[count], sizeof name[count], "own_%d", check_rank);
    files[count].name = name[count];
    count++;
    CHECK_INT(filo_find_owners(MPI_COMM_WORLD, count, files, owner, &err), 0);
    for (int k = 0; k < count - 1; k++)
        CHECK_INT(owner[k], k);
    CHECK_INT(owner[count - 1], check_rank);
    CHECK_INT(filo_find_owners(MPI_COMM_WORLD, 0, NULL, owner, &err), 0);
    rename_file(&files[0], check_rank == 0 ? "a//b" : "good");
    CHECK_INT(filo_find_owners(MPI_COMM_WORLD, 1, files, owner, &err), -EINVAL);
    rename_file(&files[0], "twice");
    rename_file(&files[1], "twice");
    CHECK_INT(
        filo_find_owners(MPI_COMM_WORLD, check_rank == 0 ? 2 : 1, files, owner, &err),
        -EEXIST);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    test_maps();
    test_mistakes();
    test_failing_sync();
    test_owners();
    check_remove(folder);
    return check_end();
}
