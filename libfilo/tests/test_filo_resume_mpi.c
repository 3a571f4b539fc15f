/* SPDX-License-Identifier: BSD-3-Clause */
/* A flush whose program died, resumed with the same identity: copied data is not copied
 * again, other data is, and nothing is left. Here, a died program is one that has
 * forgotten its transfer; scr_transfer continues in both cases. */
#include "lists.h"

#include <axl/axl.h>
#include <time.h>

enum { FILES = 3, DEAD = 128, OLD = 12345 };

#define IDENTITY "dataset 7"

static char folder[64], prefix[100];
static filo_error err;
static const char program[] = TEST_TRANSFER; /* the path of scr_transfer */
static char state[128];
static list l;

static filo_transfer *dead[DEAD]; /* unused until the end of the test */
static int deaths;

/* In place of a container size: containers of nodes. Each rank has its own node, and two
 * nodes share a container. */
enum { ALIGNED = 1 };

/* Creates a list in the cache, and removes files of earlier tests. */
static filo_options begin(const char *method, uint64_t container)
{
    static char node[32];
    snprintf(node, sizeof node, "node %d", check_rank);
    err.text[0] = 0;
    snprintf(prefix, sizeof prefix, "%s/scr-test-prefix", folder);
    snprintf(state, sizeof state, "%s/state-%d", folder, check_rank);
    check_remove(prefix);
    list_create(&l, folder, check_rank, FILES);
    return (filo_options){.method = method,
                          .identity = IDENTITY,
                          .container = container == ALIGNED ? 0 : container,
                          .align = container == ALIGNED ? 4096 : 0,
                          .nodes = 2,
                          .node = node,
                          .workers = 1,
                          .state = state,
                          .daemon = program};
}

static filo_transfer *start(MPI_Comm comm, const filo_options *options)
{
    filo_transfer *t = NULL;
    CHECK_INT(filo_flush_start(comm, prefix, NULL, l.count, l.files, options, &t, &err),
              0);
    if (!t) fprintf(stderr, "%s\n", err.text);
    return t;
}

static void start_and_die(const filo_options *options)
{
    CHECK(deaths < DEAD);
    dead[deaths++] = start(MPI_COMM_WORLD, options);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Whether everything is copied, according to the state file. */
static int is_copied(void)
{
    axl_transfer *t = NULL;
    axl_file file;
    if (axl_resume(state, "daemon", &t, NULL) != 0) return 0;
    int copied = 1;
    for (size_t i = 0; i < axl_count(t); i++)
        copied = copied && axl_get(t, i, &file) == 0 && file.done;
    axl_free(t);
    return copied;
}

/* Lets scr_transfer copy everything, but leaves the files without their names. */
static void copy_and_die(const filo_options *options)
{
    /* each poll locks the state file, and scr_transfer waits for the lock */
    const struct timespec nap = {0, 30000000};
    start_and_die(options);
    for (int i = 0; i < 3000 && !is_copied(); i++)
        nanosleep(&nap, NULL);
    CHECK(is_copied());
    MPI_Barrier(MPI_COMM_WORLD);
}

static int is_culprit(void)
{
    return check_rank == check_ranks - 1;
}

/* ---- inspection ---- */

static int left; /* temporary files */
static int marked;
static int private; /* descriptor of the first replaced file */

/* Whether a path is staged data, not a record. */
static int is_copy(const char *path)
{
    return list_is_staged(path) && !strstr(path, "/stage.scr");
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *position)
{
    left += type == FTW_F && is_copy(path);
    return 0;
}

static int count_left(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    left = 0;
    nftw(prefix, visit, 16, FTW_PHYS);
    MPI_Barrier(MPI_COMM_WORLD);
    return left;
}

/* Changes bytes within a file or container, but not at the border of two ranks. */
static int alter_one(const char *path, const struct stat *st, int type,
                     struct FTW *position)
{
    if (type != FTW_F || !is_copy(path) || st->st_size < 10) return 0;
    int fd = open(path, O_WRONLY);
    CHECK(pwrite(fd, "\xAB\xCD\xEF", 3, st->st_size * 2 / 3) == 3);
    marked += close(fd) == 0;
    return 0;
}

/* Sets an old time: it stays only if the file is not copied again. */
static int mark_one(const char *path, const struct stat *st, int type,
                    struct FTW *position)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = OLD}};
    if (type != FTW_F || !is_copy(path)) return 0;
    marked += utimensat(AT_FDCWD, path, times, 0) == 0;
    return 0;
}

static void each(int (*change)(const char *, const struct stat *, int, struct FTW *))
{
    MPI_Barrier(MPI_COMM_WORLD);
    marked = 0;
    if (check_rank == 0) nftw(prefix, change, 16, FTW_PHYS);
    CHECK(marked > 0 || check_rank > 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int is_old(const struct stat *st)
{
    return st->st_size > 0 && st->st_mtim.tv_sec == OLD;
}

/* Counts the files of this rank that were not copied again. */
static int count_kept(void)
{
    char path[200];
    struct stat st;
    int kept = 0;
    for (int f = 0; f < l.count; f++) {
        snprintf(path, sizeof path, "%s/%s", prefix, l.files[f].name);
        kept += stat(path, &st) == 0 && is_old(&st);
    }
    return kept;
}

static int look_at_one(const char *path, const struct stat *st, int type,
                       struct FTW *position)
{
    marked += type == FTW_F && is_old(st);
    return 0;
}

/* Counts the files of this rank with wrong bytes. */
static int count_wrong(void)
{
    int ranks, count = 0, wrong = 0;
    filo_file *files = NULL;
    list_unlink(&l);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    list_adopt(&l, count, files);
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, NULL, &err), 0);
    for (int f = 0; f < l.count; f++)
        wrong += !list_file_is_good(l.local[f], check_rank, f);
    filo_files_free(count, files);
    list_unlink(&l);
    return wrong;
}

static void expect_no_traces(void)
{
    CHECK_INT(count_left(), 0);
    CHECK(!list_exists(prefix, FILO_STAGE));
    CHECK(access(state, F_OK) != 0);
}

/* Removes all flushes in the stage. */
static void sweep(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        int dir = open(prefix, O_RDONLY | O_DIRECTORY);
        CHECK_INT(filo_begun_sweep(dir, FILO_STAGE, NULL, NULL, &err), 0);
        close(dir);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void resume(const filo_options *options)
{
    filo_transfer *t = start(MPI_COMM_WORLD, options);
    if (t) CHECK_INT(filo_flush_wait(t, &err), 0);
    filo_flush_free(t);
    expect_no_traces();
}

/* Counts the files with bytes in the list of a rank. */
static int full_files(int rank)
{
    int full = 0;
    for (int f = 0; f < FILES; f++)
        full += list_size(rank, f) > 0;
    return full;
}

/* ---- tests ---- */

/* Everything was copied, and is not copied again. */
static void test_finished(const char *method, uint64_t container)
{
    filo_options options = begin("daemon", container);
    copy_and_die(&options);
    CHECK(!list_exists(prefix, FILO_MAP));
    CHECK(access(state, F_OK) == 0);
    each(mark_one);
    options.method = method;
    resume(&options);
    if (!container) CHECK_INT(count_kept(), full_files(check_rank));
    each(look_at_one);
    CHECK_INT(count_wrong(), 0);
}

/* One rank has copied for all ranks, and resumes for all. */
static void test_led(int harmed)
{
    char node[] = "all";
    const struct timespec nap = {0, 30000000};
    filo_options options = begin("daemon", ALIGNED);
    options.node = node;
    start_and_die(&options);
    for (int i = 0; check_rank == 0 && i < 3000 && !is_copied(); i++)
        nanosleep(&nap, NULL);
    CHECK_INT(access(state, F_OK) == 0, check_rank == 0);
    if (harmed) each(alter_one);
    each(mark_one);
    int copies = marked;
    resume(&options);
    if (check_rank == 0) {
        marked = 0;
        nftw(prefix, look_at_one, 16, FTW_PHYS);
        CHECK_INT(copies, 1);
        CHECK_INT(marked, !harmed);
    }
    CHECK_INT(count_wrong(), 0);
}

/* Everything was copied, but the copies were changed. */
static void test_altered(const char *method, uint64_t container)
{
    filo_options options = begin("daemon", container);
    copy_and_die(&options);
    each(alter_one);
    each(mark_one);
    options.method = method;
    resume(&options);
    if (!container) CHECK(count_kept() < full_files(check_rank));
    CHECK_INT(count_wrong(), 0);
}

/* Simulates another user who put a private file of this user in the place of a copy. */
static int exchange_one(const char *path, const struct stat *st, int type,
                        struct FTW *position)
{
    if (type != FTW_F || !is_copy(path)) return 0;
    if (marked++ == 0) private = open(path, O_RDONLY);
    CHECK(chmod(path, 0600) == 0);
    return 0;
}

/* The file stays private, and is not taken for the copy. */
static void test_exchanged(uint64_t container)
{
    struct stat st;
    filo_options options = begin("daemon", container);
    copy_and_die(&options);
    each(exchange_one);
    resume(&options);
    if (!container) CHECK_INT(count_kept(), 0);
    CHECK_INT(count_wrong(), 0);
    if (check_rank > 0) return;
    CHECK(fstat(private, &st) == 0 && (st.st_mode & 0777) == 0600);
    close(private);
}

/* The last rank cannot resume: it copies its part again, and only that. harm: the cause.
 */
static void test_one_anew(uint64_t container, void (*harm)(void))
{
    filo_options options = begin("daemon", container);
    copy_and_die(&options);
    each(mark_one);
    if (is_culprit()) harm();
    MPI_Barrier(MPI_COMM_WORLD);
    resume(&options);
    if (!container) CHECK_INT(count_kept(), is_culprit() ? 0 : full_files(check_rank));
    CHECK_INT(count_wrong(), 0);
}

static void lose_state(void)
{
    CHECK(unlink(state) == 0);
}

static void damage_state(void)
{
    list_write(state, "damaged", 7);
}

static void touch_source(void)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 12345}};
    CHECK(utimensat(AT_FDCWD, l.local[2], times, 0) == 0);
}

/* Removes one file: a rank whose bytes were in it copies all of its files again. */
static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *position)
{
    if (type != FTW_F || !is_copy(path)) return 0;
    return unlink(path) == 0 ? 1 : -1;
}

static void test_file_gone(uint64_t container)
{
    filo_options options = begin("daemon", container);
    copy_and_die(&options);
    if (check_rank == 0) CHECK_INT(nftw(prefix, remove_one, 16, FTW_PHYS), 1);
    MPI_Barrier(MPI_COMM_WORLD);
    resume(&options);
    CHECK_INT(count_wrong(), 0);
}

/* Resumes while scr_transfer works, and ranks of later waves never began. */
static void test_runs(int width, uint64_t container)
{
    filo_options options = begin("daemon", container);
    options.width = width;
    options.checksum = 1;
    options.bandwidth = 1500000; /* a fifth of a second for a rank */
    start_and_die(&options);
    CHECK((access(state, F_OK) == 0) == (!width || check_rank < width));
    CHECK(!list_exists(prefix, FILO_MAP));
    options.bandwidth = 0; /* for ranks that have not begun */
    resume(&options);
    for (int f = 0; f < l.count; f++)
        l.files[f].has_crc = 0;
    int ranks, count;
    filo_file *files;
    const filo_options check = {.checksum = 1};
    list_unlink(&l);
    CHECK_INT(
        filo_read_map(MPI_COMM_WORLD, prefix, NULL, &ranks, &count, &files, NULL, &err),
        0);
    for (int f = 0; f < count; f++) {
        CHECK_INT(files[f].has_crc, 1);
        files[f].local = strdup(l.local[f]);
    }
    CHECK_INT(filo_fetch(MPI_COMM_WORLD, prefix, count, files, &check, &err), 0);
    list_expect(&l, check_rank);
    filo_files_free(count, files);
    list_unlink(&l);
}

/* The resumed flush fails, or is stopped: the directory is as it was before, and no
 * process copies. */
static void test_ends_badly(int fails)
{
    filo_options options = begin("daemon", 0), none = {0};
    CHECK_INT(filo_flush(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &none, &err), 0);
    uint64_t before = list_folder_sum(prefix);
    options.bandwidth = 50000;
    options.checksum = 1;
    start_and_die(&options);
    if (fails && is_culprit()) {
        CHECK(unlink(state) == 0);
        l.files[2].has_crc = 1;
        l.files[2].crc = 0xdeadbeef;
        snprintf(state, sizeof state, "%s/other-state", folder);
        options.method = "sync";
        options.bandwidth = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    filo_transfer *t = start(MPI_COMM_WORLD, &options);
    if (fails) {
        CHECK_INT(filo_flush_wait(t, &err), -EIO);
        list_expect_text(err.text, "was altered: CRC32 0x");
    } else {
        CHECK_INT(filo_flush_test(t, &err), FILO_RUNNING);
    }
    filo_flush_free(t);
    expect_no_traces();
    CHECK(list_folder_sum(prefix) == before);
    list_unlink(&l);
}

/* With another list, the dataset has no file of the first list, and none is left in the
 * stage. */
static void test_other_list(void)
{
    filo_options options = begin("daemon", 0);
    copy_and_die(&options);
    each(mark_one);
    l.count--;
    resume(&options);
    CHECK_INT(count_kept(), 0);
    CHECK_INT(count_wrong(), 0);
    l.count = FILES;
    list_unlink(&l);
}

/* The files of another flush in the stage stay, and neither flush replaces the other. */
static void test_other_identity(uint64_t container)
{
    filo_options options = begin("daemon", container);
    copy_and_die(&options);
    int copies = count_left();
    each(mark_one);
    filo_options other = options;
    other.identity = "dataset 8";
    char other_state[160];
    snprintf(other_state, sizeof other_state, "%s-other", state);
    other.state = other_state;
    filo_transfer *t = start(MPI_COMM_WORLD, &other);
    CHECK_INT(filo_flush_wait(t, &err), 0);
    filo_flush_free(t);
    CHECK_INT(count_left(), copies);
    CHECK_INT(count_kept(), 0);
    resume(&options);
    if (!container) CHECK_INT(count_kept(), full_files(check_rank));
    CHECK_INT(count_wrong(), 0);
}

/* One rank less: the dataset has the files of the remaining ranks. */
static void test_fewer_ranks(void)
{
    MPI_Comm fewer;
    MPI_Comm_split(MPI_COMM_WORLD, is_culprit() ? MPI_UNDEFINED : 0, check_rank, &fewer);
    filo_options options = begin("daemon", 0);
    copy_and_die(&options);
    if (fewer != MPI_COMM_NULL) {
        filo_transfer *t = start(fewer, &options);
        CHECK_INT(filo_flush_wait(t, &err), 0);
        filo_flush_free(t);
        MPI_Comm_free(&fewer);
        CHECK(access(state, F_OK) != 0);
    }
    CHECK_INT(count_left(),
              FILES * check_ranks); /* another number of ranks: another flush */
    CHECK((access(state, F_OK) == 0) == is_culprit());
    if (is_culprit()) CHECK_INT(filo_flush_abandon(state, 0, &err), 0);
    sweep();
    expect_no_traces();
    list_unlink(&l);
}

/* Running transfers are stopped. */
static void test_abandoned(uint64_t container)
{
    filo_options options = begin("daemon", container);
    options.bandwidth = 50000;
    start_and_die(&options);
    int all = count_left();
    CHECK(all >= 1);
    CHECK_INT(filo_flush_abandon(state, 0, &err), 0);
    CHECK(access(state, F_OK) != 0);
    CHECK_INT(count_left(), all);
    sweep();
    expect_no_traces();
    CHECK_INT(filo_flush_abandon(state, 0, &err), 0);
    list_write(state, "damaged", 7);
    CHECK_INT(filo_flush_abandon(state, 0, &err), 0);
    CHECK(access(state, F_OK) != 0);
    CHECK_INT(filo_flush_abandon(folder, 0, &err), -EINVAL);
    list_unlink(&l);
}

static int64_t staged; /* bytes */

static int add_size(const char *path, const struct stat *st, int type,
                    struct FTW *position)
{
    if (type == FTW_F && is_copy(path)) staged += (int64_t)st->st_size;
    return 0;
}

/* Files get their sizes before their bytes, because a copy that does not reach the end of
 * its file is copied again. */
static void test_sized_first(void)
{
    filo_options options = begin("pthread", 0);
    options.bandwidth = 1e5; /* many seconds */
    int64_t all = 0;
    for (int f = 0; f < l.count; f++)
        all += (int64_t)l.files[f].size;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    filo_transfer *t = start(MPI_COMM_WORLD, &options);
    MPI_Barrier(MPI_COMM_WORLD);
    staged = 0;
    nftw(prefix, add_size, 16, FTW_PHYS);
    CHECK(staged == all);
    MPI_Barrier(MPI_COMM_WORLD);
    filo_flush_free(t);
    list_unlink(&l);
}

static void test_refused(void)
{
    filo_transfer *t = NULL;
    filo_options options = begin("sync", 0);
    if (is_culprit()) options.identity = "dataset 8";
    if (check_ranks > 1)
        CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l.count, l.files,
                                   &options, &t, &err),
                  -EINVAL);
    CHECK(t == NULL);
    list_unlink(&l);
}

int main(int argc, char **argv)
{
    static void (*const harms[])(void) = {lose_state, damage_state, touch_source};
    check_begin(&argc, &argv);
    check_folder(folder);
    static const uint64_t containers[] = {0, 123456, ALIGNED};
    for (int c = 0; c < 3; c++) {
        const uint64_t container = containers[c];
        test_finished("sync", container);
        test_finished("daemon", container);
        test_altered("pthread", container);
        test_altered("daemon", container);
        test_exchanged(container);
        for (int h = 0; h < 3; h++)
            test_one_anew(container, harms[h]);
        test_file_gone(container);
        test_runs(0, container);
        test_runs(1, container);
    }
    test_ends_badly(0);
    test_ends_badly(1);
    test_other_list();
    test_other_identity(0);
    test_other_identity(123456);
    test_other_identity(ALIGNED);
    test_led(0);
    test_led(1);
    if (check_ranks > 1) test_fewer_ranks();
    test_abandoned(0);
    test_abandoned(123456);
    test_sized_first();
    test_refused();
    while (deaths > 0)
        filo_flush_free(dead[--deaths]);
    check_remove(folder);
    return check_end();
}
