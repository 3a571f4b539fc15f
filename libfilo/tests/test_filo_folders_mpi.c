/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories: each missing directory costs one mkdir, on one rank, whatever ranks name
 * it; no rank is responsible for more than its share; and each is synced once. Functions
 * of this program count the system calls. */
#include "lists.h"

#include "common/io.h"
#include "src/filo_private_mpi.h"

#include <dirent.h>
#include <sys/syscall.h>

static char folder[64], prefix[128];
static filo_error err;
static int made, synced_folders, denied;

int mkdirat(int dir, const char *name, mode_t mode)
{
    if (denied) {
        errno = EDQUOT;
        return -1;
    }
    made++;
    return (int)syscall(SYS_mkdirat, dir, name, mode);
}

int fsync(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) synced_folders++;
    return (int)syscall(SYS_fsync, fd);
}

static int sum_of(int mine)
{
    int sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static int max_of(int mine)
{
    int max;
    MPI_Allreduce(&mine, &max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return max;
}

static void begin(const char *name)
{
    snprintf(prefix, sizeof prefix, "%s/%s", folder, name);
    if (check_rank == 0) CHECK(mkdir(prefix, 0700) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    made = synced_folders = denied = 0;
}

/* Creates the directories of `count` files below prefix; own: the directories of this
 * rank. */
static int make(char names[][64], int count, kvtree **own)
{
    filo_job job;
    filo_file files[64];
    for (int i = 0; i < count; i++)
        files[i] = (filo_file){.name = names[i]};
    int rc = filo_job_begin(&job, MPI_COMM_WORLD, prefix, NULL, NULL);
    if (!rc) rc = filo_job_open(&job);
    CHECK_INT(rc, 0);
    rc = filo_folders_make(&job, rc, count, files, own);
    return filo_job_end(&job, rc, &err);
}

/* All ranks name the same directories. */
static void test_shared(void)
{
    char names[4][64] = {"a/b/c/file", "a/x", "top", "a/b/d/e/f/g"};
    kvtree *own;
    begin("shared");
    CHECK_INT(make(names, 4, &own), 0);
    CHECK_INT(sum_of(made), 6); /* a, a/b, a/b/c, a/b/d, a/b/d/e, a/b/d/e/f */
    CHECK_INT(sum_of(kvtree_size(own)), 6);
    CHECK(list_exists(prefix, "a/b/c") && list_exists(prefix, "a/b/d/e/f"));
    kvtree_delete(&own);
    made = 0;
    CHECK_INT(make(names, 4, &own), 0);
    CHECK_INT(sum_of(made), 0); /* all exist already */
    kvtree_delete(&own);
}

/* Each rank has 32 directories of its own below directories that all ranks share. */
static void test_many(void)
{
    enum { FILES = 32 };
    char names[FILES][64];
    kvtree *own;
    begin("many");
    for (int i = 0; i < FILES; i++)
        snprintf(names[i], sizeof names[i], "all/step.%d/rank.%d/f", i, check_rank);
    CHECK_INT(make(names, FILES, &own), 0);
    int all = 1 + FILES + FILES * check_ranks;
    CHECK_INT(sum_of(made), all);
    CHECK_INT(sum_of(kvtree_size(own)), all);
    int owners = 1;
    while (2 * owners <= check_ranks)
        owners *= 2;
    CHECK(max_of(kvtree_size(own)) <= 2 * all / owners + 16);
    for (int i = 0; i < FILES; i++) {
        *strrchr(names[i], '/') = 0;
        CHECK(list_exists(prefix, names[i]));
    }
    kvtree_delete(&own);
}

static void test_none(void)
{
    char names[1][64] = {"top"};
    kvtree *own;
    begin("none");
    CHECK_INT(make(names, check_rank % 2, &own), 0);
    CHECK_INT(kvtree_size(own), 0);
    kvtree_delete(&own);
}

/* A file, or a link to a directory elsewhere, is in the place of a directory. */
static void test_in_the_way(void)
{
    char file[1][64] = {"file/x/y"}, link[1][64] = {"link/x"}, path[256];
    kvtree *own = NULL;
    begin("way");
    snprintf(path, sizeof path, "%s/file", prefix);
    if (check_rank == 0) list_write(path, "", 0);
    snprintf(path, sizeof path, "%s/link", prefix);
    if (check_rank == 0) CHECK(symlink("/tmp", path) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_INT(make(file, 1, &own), -ENOTDIR);
    list_expect_text(err.text, "/file is not a directory");
    CHECK_INT(make(link, 1, &own), -ENOTDIR);
    CHECK(own == NULL);
}

static void test_denied(void)
{
    char names[1][64] = {"a/b"};
    kvtree *own = NULL;
    begin("denied");
    denied = 1;
    CHECK_INT(make(names, 1, &own), -EDQUOT);
    list_expect_text(err.text, "make directory ");
    denied = 0;
}

/* A whole flush: every directory is synced once for its new names. The directory of the
 * map is also synced when it is created or its earlier root is removed, and by libkvtree.
 */
static void test_flush(void)
{
    list l;
    begin("flush");
    list_create(&l, folder, check_rank, 3);
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, NULL, &err), 0);
    int folders = sum_of(made);
    const int stage = 3; /* the stage, the directory of the flush, the subdirectory of 256
                            ranks */
    CHECK_INT(folders, 1 + stage + 3 * check_ranks); /* .scr, sub of R, deep, er */
    int renamed = 3 * check_ranks + 1, map = 5;      /* with the record in the stage */
    CHECK(sum_of(synced_folders) <= renamed + map);
    made = synced_folders = 0;
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, NULL, &err), 0);
    CHECK_INT(sum_of(made), stage);
    CHECK(sum_of(synced_folders) <= renamed + map);
    list_unlink(&l);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    check_folder(folder);
    test_shared();
    test_many();
    test_none();
    test_in_the_way();
    test_denied();
    test_flush();
    check_remove(folder);
    return check_end();
}
