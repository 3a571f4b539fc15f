/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of a run: cached datasets and datasets written directly to the prefix
 * directory count; those of earlier runs do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "common/errtext.h"
#include "prefix/flush_file.h"
#include "prefix/index.h"
#include "run/run_progress.h"
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char path[64];
    int dir;
    kvtree *flush, *index;
    progress_reader source;
} here;

static int setup(void **state)
{
    strcpy(here.path, "/tmp/scr-test-XXXXXX");
    if (!mkdtemp(here.path)) return -1;
    here.dir = open(here.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    here.flush = kvtree_new();
    here.index = kvtree_new();
    return here.dir < 0 || mkdirat(here.dir, ".scr", 0700) != 0;
}

static int teardown(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", here.path);
    close(here.dir);
    kvtree_delete(&here.flush);
    kvtree_delete(&here.index);
    return system(command);
}

static void cache(int id, const char *location, int on)
{
    char name[16];
    snprintf(name, sizeof name, "c%d", id);
    assert_int_equal(scr_flush_file_set(here.flush, id, name, location, on), 0);
    assert_int_equal(scr_flush_file_write(here.dir, here.flush, NULL), 0);
}

static void uncache(int id)
{
    scr_flush_file_remove(here.flush, id);
    assert_int_equal(scr_flush_file_write(here.dir, here.flush, NULL), 0);
}

static void enter(int id, int complete)
{
    scr_dataset d = {.id = id, .ckpt = id, .ranks = 1};
    snprintf(d.name, sizeof d.name, "c%d", id);
    assert_int_equal(scr_index_add(here.index, &d, complete), 0);
    assert_int_equal(
        kvtree_file_write(here.dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, here.index, NULL),
        0);
}

static void expect(int latest, int completed, int writing)
{
    kvtree_error err = {""};
    run_progress p = {0};
    int rc = run_progress_read(&here.source, &p, &err);
    if (rc) fail_msg("%d: %s", rc, err.text);
    assert_int_equal(p.latest, latest);
    assert_int_equal(p.completed, completed);
    assert_int_equal(p.writing, writing);
}

static void begin(int latest)
{
    run_progress_begin(&here.source, here.dir);
    expect(latest, 0, 0);
}

static void test_cached(void **state)
{
    run_progress p;
    begin(0);
    cache(1, SCR_LOCATION_CACHE, 1);
    expect(1, 1, 0);
    cache(2, SCR_LOCATION_CACHE, 1);
    uncache(1);
    expect(2, 2, 0);
    /* three datasets that were not seen individually */
    cache(5, SCR_LOCATION_FLUSHING, 1);
    expect(5, 5, 0);
    assert_int_equal(run_progress_read(&here.source, &p, NULL), 0);
    assert_int_equal(p.flushing, 1);
    /* the same dataset on the prefix directory */
    enter(5, 0);
    expect(5, 5, 0);
    enter(5, 1);
    expect(5, 5, 0);
    begin(5);
}

static void test_written_at_once(void **state)
{
    begin(0);
    enter(1, 0);
    expect(0, 0, 1);
    enter(1, 1);
    expect(1, 1, 0);
    enter(2, 1);
    enter(3, 0);
    expect(2, 2, 1);
}

/* A fetched dataset is in the index; ids continue after all ids there. */
static void test_earlier(void **state)
{
    enter(8, 1);
    enter(10, 1);
    enter(11, 0);
    begin(11);
    cache(10, SCR_LOCATION_CACHE, 1);
    expect(11, 0, 0);
    /* a dataset of an earlier run is completed */
    enter(11, 1);
    expect(11, 0, 0);
    cache(12, SCR_LOCATION_CACHE, 1);
    expect(12, 1, 0);
    enter(13, 1);
    expect(13, 2, 0);
}

/* The flush file had datasets that do not exist any more: their ids are reused. */
static void test_lost(void **state)
{
    enter(5, 1);
    cache(9, SCR_LOCATION_CACHE, 1);
    begin(9);
    uncache(9);
    expect(5, 0, 0);
    cache(6, SCR_LOCATION_CACHE, 1);
    cache(7, SCR_LOCATION_CACHE, 1);
    expect(7, 2, 0);
}

static void write_over(const char *text)
{
    int fd = openat(here.dir, SCR_INDEX_NAME, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void test_read_once(void **state)
{
    struct stat st;
    enter(3, 1);
    begin(3);
    assert_int_equal(fstatat(here.dir, SCR_INDEX_NAME, &st, 0), 0);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    write_over("nonsense");
    assert_int_equal(utimensat(here.dir, SCR_INDEX_NAME, times, 0), 0);
    expect(3, 0, 0); /* its attributes are the same */
    const struct timespec later[2] = {times[0], {times[1].tv_sec, times[1].tv_nsec ^ 1}};
    assert_int_equal(utimensat(here.dir, SCR_INDEX_NAME, later, 0), 0);
    assert_int_equal(run_progress_read(&here.source, &(run_progress){0}, NULL), -EBADMSG);
}

/* The progress is unknown until the record is readable again. */
static void test_unreadable(void **state)
{
    kvtree_error err = {""};
    run_progress p = {.latest = 77, .completed = 7};
    enter(3, 1);
    begin(3);
    enter(4, 1);
    write_over("nonsense");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_progress_read(&here.source, &p, &err), -EBADMSG);
        assert_true(p.latest == 77 && p.completed == 7 &&
                    strstr(err.text, SCR_INDEX_NAME));
    }
    assert_int_equal(unlinkat(here.dir, SCR_INDEX_NAME, 0), 0);
    expect(3, 0, 0);
    enter(5, 1);
    expect(5, 2, 0);
}

/* Datasets that became readable only later are not new. */
static void test_unreadable_at_first(void **state)
{
    run_progress p = {0};
    enter(3, 1);
    write_over("nonsense");
    run_progress_begin(&here.source, here.dir);
    assert_int_equal(run_progress_read(&here.source, &p, NULL), -EBADMSG);
    enter(4, 1);
    expect(4, 0, 0);
    enter(5, 1);
    expect(5, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cached, setup, teardown),
        cmocka_unit_test_setup_teardown(test_written_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_earlier, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unreadable_at_first, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
