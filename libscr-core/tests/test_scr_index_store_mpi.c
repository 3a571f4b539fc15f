/* SPDX-License-Identifier: BSD-3-Clause */
/* How often an SCR call reads and writes the index, and what another process that changes
 * it meanwhile may expect. */
#include "check.h"
#include "prefix/prefix.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int reads, writes; /* of the index */

int openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (strcmp(path, "index.scr") == 0) reads++;
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int renameat(int from, const char *old, int to, const char *path)
{
    if (strcmp(path, "index.scr") == 0) writes++;
    return (int)syscall(SYS_renameat, from, old, to, path);
}

static scr_dataset store_dataset(int id)
{
    scr_dataset d = {
        .id = id, .ckpt = id, .files = 1, .complete = 1, .created = id * 10, .ranks = 1};
    snprintf(d.name, sizeof d.name, "ckpt.%d", id);
    return d;
}

/* What another process does. */
static int store_add(kvtree *index, void *id)
{
    const scr_dataset d = store_dataset(*(int *)id);
    return scr_index_add(index, &d, 1) ? -ENOMEM : 1;
}

static void store_foreign(const scr_prefix *prefix, int id)
{
    kvtree_error err = {""};
    kvtree *index = kvtree_new();
    CHECK_INT(scr_index_update(prefix->fd, store_add, &id, index, &err), 0);
    CHECK_STR(err.text, "");
    kvtree_delete(&index);
}

static bool store_has(scr_prefix *prefix, int id)
{
    const scr_dataset d = store_dataset(id);
    scr_index_state state;
    kvtree_error err = {""};
    const kvtree *index;
    CHECK_INT(scr_index_view(prefix, &index, &err), 0);
    return scr_index_look(index, &d, &state) == 0;
}

static void store_expect(int most_reads, int expected_writes)
{
    CHECK_INT(reads, most_reads);
    CHECK_INT(writes, expected_writes);
    reads = writes = 0;
}

/* A new call. */
static void store_call(scr_prefix *prefix)
{
    scr_index_close(prefix);
    reads = writes = 0;
}

static void test_reads(scr_prefix *prefix)
{
    store_call(prefix);
    CHECK(!store_has(prefix, 1));
    store_foreign(prefix, 1);
    reads = writes = 0;
    CHECK(!store_has(prefix, 1)); /* what this call knows */
    store_expect(0, 0);
    store_call(prefix);
    CHECK(store_has(prefix, 1));
    store_expect(1, 0);
}

/* Under the lock both changes are there, and the view has both. */
static void test_changes(scr_prefix *prefix)
{
    const scr_dataset d = store_dataset(1), unknown = store_dataset(9);
    kvtree_error err = {""};
    int mine = 3;
    store_call(prefix);
    CHECK(store_has(prefix, 1));
    store_foreign(prefix, 2);
    reads = writes = 0;
    CHECK_INT(scr_index_change(prefix, &unknown, scr_index_mark_good, &err), -ENOENT);
    store_expect(0, 0);
    CHECK_INT(scr_index_change(prefix, &d, scr_index_mark_failed, &err), 0);
    CHECK(store_has(prefix, 2));
    CHECK_INT(scr_index_rewrite(prefix, store_add, &mine, &err), 0);
    CHECK(store_has(prefix, 3));
    store_expect(2, 2); /* one read under the lock for each */
    store_call(prefix);
    CHECK(store_has(prefix, 2) && store_has(prefix, 3));
    CHECK_INT(scr_index_remove(prefix->index, &d), 0); /* of this call alone */
    store_call(prefix);
    CHECK(store_has(prefix, 1));
}

static void test_flush(scr_prefix *prefix)
{
    const scr_dataset d = store_dataset(4);
    kvtree_error err = {""};
    const kvtree *index;
    scr_dataset current;
    store_call(prefix);
    CHECK(!store_has(prefix, 4));
    CHECK_INT(scr_index_flush_begins(prefix, &d, &err), 0);
    store_expect(2, 1);
    store_call(prefix);
    CHECK_INT(scr_index_flush_ends(prefix, &d, SCR_AGE_ANY, &err), 0);
    CHECK_INT(scr_index_view(prefix, &index, &err), 0);
    CHECK_INT(scr_index_get_current(index, &current), 0);
    CHECK_INT(current.id, 4);
    store_expect(2, 1);
}

static int store_refuse(kvtree *index, void *unused)
{
    (void)unused;
    kvtree_unset_all(index);
    return -EINVAL;
}

/* A change that fails leaves nothing behind. */
static void test_failure(scr_prefix *prefix)
{
    kvtree_error err = {""};
    store_call(prefix);
    CHECK(store_has(prefix, 3));
    CHECK_INT(scr_index_rewrite(prefix, store_refuse, NULL, &err), -EINVAL);
    CHECK(store_has(prefix, 3));
    store_expect(2, 0);
    unlinkat(prefix->fd, SCR_INDEX_NAME, 0);
    CHECK(store_has(prefix, 3));
    int mine = 5; /* it is made again from the summaries of datasets: there is one */
    CHECK_INT(scr_index_rewrite(prefix, store_add, &mine, &err), 0);
    CHECK(store_has(prefix, 4) && store_has(prefix, 5) && !store_has(prefix, 3));
}

/* A search alone meets stages: the next run makes it again unless they were removed. */
static void test_stages(scr_prefix *prefix)
{
    struct stat st;
    CHECK_INT(mkdirat(prefix->fd, "ckpt.4/.scr/stage", 0777), 0);
    CHECK_INT(unlinkat(prefix->fd, SCR_INDEX_NAME, 0), 0);
    for (int run = 0; run < 2; run++) {
        store_call(prefix);
        CHECK(store_has(prefix, 4));
        CHECK(prefix->search && kvtree_get(prefix->search->staged, "ckpt.4"));
        CHECK_INT(fstatat(prefix->fd, SCR_INDEX_NAME, &st, 0), -1);
    }
    scr_index_settle(prefix);
    CHECK(store_has(prefix, 4));
    CHECK_INT(fstatat(prefix->fd, SCR_INDEX_NAME, &st, 0), 0);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    char path[] = "/tmp/test_scr_index_store.XXXXXX", remove[sizeof path + 16];
    kvtree_error err = {""};
    scr_counters highest;
    scr_report report = {.rank = 1}; /* warnings are not printed */
    scr_job job = {.report = &report, .world = MPI_COMM_WORLD, .ranks = 1};
    CHECK(mkdtemp(path) != NULL);
    scr_prefix prefix = {.job = &job,
                         .path = strdup(path),
                         .real = strdup(path),
                         .fd = open(path, O_RDONLY | O_DIRECTORY),
                         .flush_file = kvtree_new()};
    CHECK_INT(mkdirat(prefix.fd, ".scr", 0777), 0);
    CHECK_INT(scr_index_begin(&prefix, &highest, &err), 0);
    test_reads(&prefix);
    test_changes(&prefix);
    test_flush(&prefix);
    test_failure(&prefix);
    test_stages(&prefix);
    scr_prefix_close(&prefix);
    snprintf(remove, sizeof remove, "rm -rf '%s'", path);
    CHECK_INT(system(remove), 0);
    return check_end();
}
