/* SPDX-License-Identifier: BSD-3-Clause */
/* Interrupted flushes in a stage: all are passed to the callback with their records,
 * removed if they are not kept, and nothing else is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <filo/filo.h>
#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGE "set/.scr/stage"

static char folder[64];
static filo_error err;
static int dir = -1;

static void create(const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* A flush with a file, and a record unless identity is NULL. */
static void begin(const char *name, const char *identity, unsigned long container)
{
    char path[128];
    snprintf(path, sizeof path, STAGE "/%s", name);
    assert_int_equal(mkdirat(dir, path, 0700), 0);
    snprintf(path, sizeof path, STAGE "/%s/0", name);
    assert_int_equal(mkdirat(dir, path, 0700), 0);
    snprintf(path, sizeof path, STAGE "/%s/0/0.0", name);
    create(path);
    snprintf(path, sizeof path, STAGE "/%s/shared.3.0", name);
    create(path);
    if (!identity) return;
    kvtree *record = kvtree_new();
    kvtree_util_set_str(record, "IDENTITY", identity);
    kvtree_util_set_bytecount(record, "CONTAINER", container);
    snprintf(path, sizeof path, STAGE "/%s/stage.scr", name);
    assert_int_equal(kvtree_file_write(dir, path, KVTREE_ANY_SIZE, record, &err), 0);
    kvtree_delete(&record);
}

static int exists(const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The flushes that the callback received. */
typedef struct seen {
    int count, unknown;
    unsigned long containers;
    const char *keep;
} seen;

static int note(void *arg, const filo_begun *flush)
{
    seen *s = arg;
    s->count++;
    s->unknown += !*flush->identity;
    s->containers += flush->form.container;
    return s->keep && strcmp(flush->identity, s->keep) == 0;
}

static void swept(void **state)
{
    seen s = {.keep = "two"};
    begin("1", "one", 0);
    begin("2", "two", 300);
    begin("3", NULL, 0);
    begin("4", "", 7);
    create(STAGE "/0123456789abcdef");
    create(STAGE "/other");
    create("set/file");
    assert_int_equal(filo_begun_sweep(dir, STAGE, note, &s, &err), 0);
    assert_int_equal(s.count, 6);
    assert_int_equal(s.unknown, 4);
    assert_true(exists(STAGE "/2/0/0.0") && exists(STAGE "/2/stage.scr"));
    assert_false(exists(STAGE "/1") || exists(STAGE "/3") || exists(STAGE "/4") ||
                 exists(STAGE "/0123456789abcdef"));
    /* files that belong to no flush stay */
    assert_true(exists(STAGE "/other"));
    assert_int_equal(unlinkat(dir, STAGE "/other", 0), 0);
    s = (seen){.keep = NULL};
    assert_int_equal(filo_begun_sweep(dir, STAGE, note, &s, &err), 0);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.containers, 300);
    assert_false(exists(STAGE));
    assert_true(exists("set/.scr") && exists("set/file"));
}

static void all(void **state)
{
    assert_int_equal(mkdirat(dir, STAGE, 0700), 0);
    begin("1", "one", 0);
    begin("2", NULL, 0);
    assert_int_equal(filo_begun_sweep(dir, STAGE, NULL, NULL, &err), 0);
    assert_false(exists(STAGE));
    assert_int_equal(filo_begun_sweep(dir, STAGE, NULL, NULL, &err), 0);
    assert_int_equal(filo_begun_sweep(dir, "other/stage", NULL, NULL, &err), 0);
}

static void damaged_record(void **state)
{
    seen s = {.keep = "one"};
    assert_int_equal(mkdirat(dir, STAGE, 0700), 0);
    begin("1", "one", 0);
    int fd = openat(dir, STAGE "/1/stage.scr", O_WRONLY);
    assert_int_equal(ftruncate(fd, 20), 0);
    close(fd);
    assert_int_equal(filo_begun_sweep(dir, STAGE, note, &s, &err), 0);
    assert_int_equal(s.unknown, 1);
    assert_false(exists(STAGE));
}

/* Stores the numbers in the record of a flush, and whether it can be resumed. */
static int note_form(void *arg, const filo_begun *flush)
{
    filo_form *form = arg;
    *form = *flush->identity ? flush->form : (filo_form){.container = UINT64_MAX};
    return 0;
}

static filo_form read_form(const char *container, const char *align, const char *nodes)
{
    filo_form form = {0};
    kvtree *record = kvtree_new();
    kvtree_util_set_str(record, "IDENTITY", "one");
    kvtree_util_set_str(record, "CONTAINER", container);
    if (align) kvtree_util_set_str(record, "ALIGN", align);
    if (nodes) kvtree_util_set_str(record, "NODES", nodes);
    (void)mkdirat(dir, STAGE, 0700);
    begin("1", NULL, 0);
    assert_int_equal(
        kvtree_file_write(dir, STAGE "/1/stage.scr", KVTREE_ANY_SIZE, record, &err), 0);
    kvtree_delete(&record);
    assert_int_equal(filo_begun_sweep(dir, STAGE, note_form, &form, &err), 0);
    return form;
}

static void forms(void **state)
{
    static const char *const bad[][3] = {
        {"0", "4096", NULL},      {"0", "0", "1"}, {"0", "4096", "0"},
        {"1", "4096", "1"},       {"0", "x", "1"}, {"0", "9223372036854775808", "1"},
        {"0", "1", "2147483648"}, {"0", "-1", "1"}};
    filo_form form = read_form("0", "4096", "3");
    assert_true(form.container == 0 && form.align == 4096 && form.nodes == 3);
    form = read_form("7", NULL, NULL);
    assert_true(form.container == 7 && form.align == 0 && form.nodes == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(read_form(bad[i][0], bad[i][1], bad[i][2]).container == UINT64_MAX);
}

/* Links are removed, not followed; a stage that is a link is refused. */
static void links(void **state)
{
    assert_int_equal(mkdirat(dir, "far", 0700), 0);
    create("far/mine");
    assert_int_equal(mkdirat(dir, STAGE, 0700), 0);
    assert_int_equal(symlinkat("../../../far", dir, STAGE "/0123456789abcdef"), 0);
    assert_int_equal(filo_begun_sweep(dir, STAGE, NULL, NULL, &err), 0);
    assert_false(exists(STAGE));
    assert_int_equal(symlinkat("../../far", dir, STAGE), 0);
    assert_true(filo_begun_sweep(dir, STAGE, NULL, NULL, &err) < 0);
    assert_true(exists("far/mine"));
    assert_int_equal(unlinkat(dir, STAGE, 0), 0);
}

/* A flush that cannot be read now may be valid: it stays, and the others are removed. */
static void unreadable(void **state)
{
    seen s = {.keep = NULL};
    if (geteuid() == 0) return; /* root may read everything */
    assert_int_equal(mkdirat(dir, STAGE, 0700), 0);
    begin("1", "one", 0);
    begin("2", "two", 0);
    assert_int_equal(fchmodat(dir, STAGE "/1", 0, 0), 0);
    assert_int_equal(filo_begun_sweep(dir, STAGE, note, &s, &err), -EACCES);
    assert_int_equal(s.count, 1);
    assert_true(exists(STAGE "/1"));
    assert_false(exists(STAGE "/2"));
    assert_int_equal(fchmodat(dir, STAGE "/1", 0700, 0), 0);
    assert_int_equal(filo_begun_sweep(dir, STAGE, NULL, NULL, &err), 0);
}

static int make(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/filo-begun.XXXXXX");
    if (!mkdtemp(folder)) return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY);
    return mkdirat(dir, "set", 0700) | mkdirat(dir, "set/.scr", 0700) |
           mkdirat(dir, STAGE, 0700);
}

static int clean(void **state)
{
    char command[96];
    close(dir);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swept),          cmocka_unit_test(all),
        cmocka_unit_test(damaged_record), cmocka_unit_test(links),
        cmocka_unit_test(unreadable),     cmocka_unit_test(forms),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
