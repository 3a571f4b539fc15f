/* SPDX-License-Identifier: BSD-3-Clause */
/* A flush in the background, by each method: started, polled, waited for, stopped, and
 * failing on one rank. */
#include "flushed.h"

#include <fcntl.h>
#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <time.h>

enum { FILES = 3 };

static const char program[] = TEST_TRANSFER; /* the path of scr_transfer */
static char state[128];

static void begin(list *l, const char *name)
{
    snprintf(state, sizeof state, "%s/state-%d", folder, check_rank);
    flushed_begin(l, name, FILES);
}

static filo_options options_of(const char *method)
{
    return (filo_options){.method = method,
                          .checksum = 1,
                          .workers = 2,
                          .state = strcmp(method, "daemon") == 0 ? state : NULL,
                          .daemon = program};
}

static void rest(void)
{
    const struct timespec nap = {0, 3000000};
    nanosleep(&nap, NULL);
}

static filo_transfer *start(list *l, const filo_options *options)
{
    filo_transfer *t = NULL;
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l->count, l->files, options,
                               &t, &err),
              0);
    return t;
}

/* Polls until the flush is complete. Changes that the program makes to its list meanwhile
 * have no effect. */
static void test_goes_on(const char *method, int width, uint64_t container)
{
    list l;
    int count = 0, rc;
    filo_options options = options_of(method);
    options.width = width;
    options.container = container;
    begin(&l, "goes on");
    filo_transfer *t = start(&l, &options);
    list given = l;
    for (int f = 0; f < l.count; f++) {
        memset(l.name[f], 'x', 20);
        memset(l.local[f], 'x', 20);
        l.files[f].size = 1;
    }
    while ((rc = filo_flush_test(t, &err)) == FILO_RUNNING) {
        CHECK(!list_exists(prefix, FILO_MAP));
        rest();
    }
    CHECK_INT(rc, 0);
    CHECK_INT(filo_flush_test(t, &err), 0); /* the result is repeated */
    CHECK_INT(filo_flush_wait(t, &err), 0);
    CHECK_INT(filo_flush_stop(t, &err), 0);
    const filo_file *files = filo_flush_files(t, &count);
    CHECK_INT(count, FILES);
    for (int f = 0; f < count; f++) {
        CHECK_STR(files[f].name, given.name[f]);
        CHECK_INT(files[f].size, list_size(check_rank, f));
        CHECK_INT(files[f].has_crc, 1);
        given.files[f] = files[f];
        given.files[f].name = given.name[f];
        given.files[f].local = given.local[f];
    }
    CHECK(filo_flush_free(t) == NULL);
    CHECK(access(state, F_OK) != 0);
    for (int f = 0; f < given.count; f++)
        given.files[f].packed = 0;
    flushed_fetch_all(&given);
    list_unlink(&given);
    if (check_rank == 0) {
        char command[256];
        snprintf(command, sizeof command, "rm -rf '%s'", prefix);
        CHECK(system(command) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool is_copied(void)
{
    kvtree *tree = kvtree_new();
    bool done = kvtree_file_read(AT_FDCWD, state, KVTREE_ANY_SIZE, tree, NULL) == 0 &&
                kvtree_get_kv(tree, "FLAG", "DONE");
    kvtree_delete(&tree);
    return done;
}

/* With slots all ranks copy without calls by the program; width is ignored. */
static void test_slots(int count)
{
    list l;
    char slots[sizeof folder + 8];
    begin(&l, count == 1 ? "one slot" : "slots");
    filo_options options = options_of("daemon");
    snprintf(slots, sizeof slots, "%s/turn", folder);
    options.width = 1;
    options.slots = slots;
    options.slot_count = count;
    filo_transfer *t = start(&l, &options);
    while (!is_copied())
        rest();
    CHECK(!list_exists(prefix, FILO_MAP)); /* filo_flush_test renames the files */
    CHECK_INT(filo_flush_wait(t, &err), 0);
    filo_flush_free(t);
    CHECK(list_exists(prefix, FILO_MAP));
    list_unlink(&l);
}

/* One rank has no slots. */
static void test_wrong_slots(void)
{
    list l;
    filo_transfer *t = NULL;
    begin(&l, "wrong slots");
    filo_options options = options_of("pthread");
    options.slots = is_culprit() && check_ranks > 1 ? NULL : "turn";
    options.slot_count = check_ranks > 1 ? 1 : 0;
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options,
                               &t, &err),
              -EINVAL);
    list_unlink(&l);
}

static void test_waited_for(const char *method)
{
    list l;
    filo_options options = options_of(method);
    options.width = 2;
    begin(&l, "waited for");
    filo_transfer *t = start(&l, &options);
    CHECK_INT(filo_flush_wait(t, &err), 0);
    CHECK_INT(filo_flush_test(t, &err), 0);
    filo_flush_free(t);
    CHECK(list_exists(prefix, FILO_MAP));
    list_unlink(&l);
}

/* Stops a flush that is slow enough to run still: the directory is as it was before. */
static void test_stopped(const char *method, int by_free)
{
    list l;
    filo_options options = options_of(method);
    begin(&l, "stopped");
    CHECK_INT(flush(&l, NULL), 0);
    uint64_t before = list_folder_sum(prefix);
    options.bandwidth = 50000;
    options.width = check_ranks > 2 ? check_ranks - 1 : 0; /* one rank has not started */
    filo_transfer *t = start(&l, &options);
    CHECK_INT(filo_flush_test(t, &err), FILO_RUNNING);
    if (!by_free) {
        CHECK_INT(filo_flush_stop(t, &err), 0);
        CHECK_INT(filo_flush_test(t, &err), -ECANCELED);
        CHECK_INT(filo_flush_wait(t, &err), -ECANCELED);
        CHECK_INT(filo_flush_stop(t, &err), 0);
    }
    CHECK(filo_flush_free(t) == NULL);
    CHECK(list_folder_sum(prefix) == before);
    CHECK(access(state, F_OK) != 0);
    list_unlink(&l);
}

/* A file of one rank has a wrong checksum; the valid transfers of the other ranks end as
 * well. */
static void test_fails(const char *method)
{
    list l;
    int rc;
    filo_options options = options_of(method);
    begin(&l, "fails");
    CHECK_INT(flush(&l, NULL), 0);
    uint64_t before = list_folder_sum(prefix);
    if (is_culprit()) {
        l.files[2].has_crc = 1;
        l.files[2].crc = 0xdeadbeef;
    } else if (strcmp(method, "sync") != 0) {
        options.bandwidth = 30000; /* still runs when the other rank has failed */
    }
    filo_transfer *t = start(&l, &options);
    while ((rc = filo_flush_test(t, &err)) == FILO_RUNNING)
        rest();
    CHECK_INT(rc, -EIO);
    list_expect_text(err.text, "was altered: CRC32 0x");
    CHECK_INT(filo_flush_wait(t, &err), -EIO);
    filo_flush_free(t);
    CHECK(list_folder_sum(prefix) == before);
    CHECK(access(state, F_OK) != 0);
    list_unlink(&l);
}

/* A local file is gone when the rank's turn comes. */
static void test_source_vanishes(void)
{
    list l;
    int rc;
    filo_options options = options_of("pthread");
    options.width = 1;
    begin(&l, "vanishes");
    filo_transfer *t = start(&l, &options);
    if (is_culprit() && check_ranks > 1) CHECK(unlink(l.local[2]) == 0);
    while ((rc = filo_flush_test(t, &err)) == FILO_RUNNING)
        rest();
    CHECK_INT(rc, check_ranks > 1 ? -ENOENT : 0);
    if (check_ranks > 1) CHECK(!list_exists(prefix, FILO_MAP));
    filo_flush_free(t);
    list_unlink(&l);
}

/* A local file has become longer when the rank's turn comes. */
static void test_source_grows(void)
{
    list l;
    filo_options options = options_of("pthread");
    options.width = 1;
    begin(&l, "grows");
    filo_transfer *t = start(&l, &options);
    if (is_culprit() && check_ranks > 1)
        CHECK(truncate(l.local[2], (off_t)l.files[2].size + 1) == 0);
    CHECK_INT(filo_flush_wait(t, &err), check_ranks > 1 ? -EIO : 0);
    if (check_ranks > 1) list_expect_text(err.text, " bytes, not ");
    filo_flush_free(t);
    list_unlink(&l);
}

/* Another user who may write to the directory above puts a link in the place of the
 * prefix directory, to a private directory with files of the same names: before the
 * flush, or while it moves files. The private directory stays unchanged. */
static void test_link(const char *method, int meanwhile)
{
    list l;
    char private[128], moved[160], path[160];
    begin(&l, "linked");
    filo_transfer *t = NULL;
    filo_options options = options_of(method);
    options.base = folder;
    options.bandwidth = meanwhile ? 100000 : 0;
    snprintf(private, sizeof private, "%s/private", folder);
    snprintf(moved, sizeof moved, "%s-moved", prefix);
    snprintf(path, sizeof path, "%s/rank_%d.0.ckpt", private, check_rank);
    if (check_rank == 0) CHECK(mkdir(private, 0700) == 0);
    if (check_rank == 0 && !meanwhile) CHECK(symlink(private, prefix) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    list_write(path, "secret", 6);
    uint64_t before = list_folder_sum(private);
    MPI_Barrier(MPI_COMM_WORLD);
    int rc = filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options,
                              &t, &err);
    CHECK_INT(rc, meanwhile ? 0 : -ELOOP);
    if (!meanwhile) list_expect_text(err.text, "a link");
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0 && meanwhile)
        CHECK(rename(prefix, moved) == 0 && symlink(private, prefix) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (meanwhile) filo_flush_wait(t, &err); /* the flush may have ended before */
    filo_flush_free(t);
    CHECK(list_folder_sum(private) == before);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        char command[512];
        snprintf(command, sizeof command, "rm -rf '%s' '%s' '%s'", prefix, moved,
                 private);
        CHECK(system(command) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    list_unlink(&l);
}

static void test_refused(void)
{
    list l;
    filo_transfer *t = NULL;
    begin(&l, "refused");
    filo_options options = options_of("daemon");
    if (is_culprit()) options.state = NULL;
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options,
                               &t, &err),
              -EINVAL);
    list_expect_text(err.text, "needs a state file");
    options = options_of("daemon");
    options.daemon = "/nonexistent/scr_transfer";
    CHECK_INT(flush(&l, &options), -ENOENT);
    list_expect_text(err.text, "/nonexistent/scr_transfer");
    options = options_of("pthread");
    options.width = -1;
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, l.count, l.files, &options,
                               &t, &err),
              -EINVAL);
    CHECK_INT(filo_flush_start(MPI_COMM_WORLD, prefix, NULL, is_culprit() ? 1 : 0, NULL,
                               NULL, &t, &err),
              -EINVAL);
    CHECK(t == NULL);
    CHECK(filo_flush_free(NULL) == NULL);
    CHECK(access(state, F_OK) != 0);
    list_unlink(&l);
}

int main(int argc, char **argv)
{
    static const char *const methods[] = {"sync", "pthread", "daemon"};
    check_begin(&argc, &argv);
    check_folder(folder);
    for (int m = 0; m < 3; m++) {
        test_goes_on(methods[m], 0, 0);
        test_goes_on(methods[m], 1, 0);
        test_goes_on(methods[m], 2, 123456);
        test_waited_for(methods[m]);
        if (m > 0) test_stopped(methods[m], 0);
        if (m > 0) test_stopped(methods[m], 1);
        test_fails(methods[m]);
        test_link(methods[m], 0);
        if (m > 0) test_link(methods[m], 1);
    }
    test_slots(1);
    test_slots(2);
    test_wrong_slots();
    test_source_vanishes();
    test_source_grows();
    test_refused();
    check_remove(folder);
    return check_end();
}
