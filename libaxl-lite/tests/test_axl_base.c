/* SPDX-License-Identifier: BSD-3-Clause */
/* Destinations below a base: another user who may write to a directory on the way places
 * a link there, before or while files move, and nothing is ever written where the link
 * leads. */
#include "scratch.h"
#include "src/axl_private.h"

#include <axl/axl.h>
#include <dirent.h>
#include <errno.h>
#include <kvtree/kvtree.h>
#include <kvtree/kvtree_util.h>

/* Bytes per second: so slow that the transfer still runs, however busy the machine is. */
#define SLOW 1000.0

static const char program[] = TEST_TRANSFER; /* the path of scr_transfer */
static char base[160], folder[200], moved[200], private[160], file[240], secret[200];
static char state[160];

/* Creates a base that is itself a link, with a directory in it, and beside it a private
 * directory of ours with a file of the same name. */
static void prepare(const scratch *s)
{
    char real[160];
    snprintf(real, sizeof real, "%s/real", s->folder);
    snprintf(base, sizeof base, "%s/base", s->folder);
    snprintf(folder, sizeof folder, "%s/dataset", base);
    snprintf(moved, sizeof moved, "%s/moved", base);
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(private, sizeof private, "%s/private", s->folder);
    snprintf(secret, sizeof secret, "%s/file", private);
    snprintf(state, sizeof state, "%s/transfer", s->folder);
    assert_int_equal(mkdir(real, 0755), 0);
    assert_int_equal(symlink("real", base), 0);
    assert_int_equal(mkdir(private, 0700), 0);
    scratch_write(secret, "secret", 6);
    unsigned char *bytes = scratch_bytes(20000);
    scratch_write(s->source, bytes, 20000);
    free(bytes);
}

static void expect_secret(void)
{
    scratch_expect(secret, "secret", 6);
    assert_int_equal(scratch_count(private), 1);
}

static void expect_copied(const char *path)
{
    unsigned char *bytes = scratch_bytes(20000);
    scratch_expect(path, bytes, 20000);
    free(bytes);
}

static axl_transfer *create(const char *method, double bandwidth)
{
    axl_transfer *t = NULL;
    axl_error err = {""};
    const axl_options options = {.state = state,
                                 .daemon = program,
                                 .bandwidth = bandwidth,
                                 .workers = 1,
                                 .base = base};
    if (axl_create(method, &options, &t, &err) != 0) fail_msg("%s", err.text);
    return t;
}

static int add(axl_transfer *t, const scratch *s, int is_part, axl_error *err)
{
    const axl_part part = {s->source, 0, file, 0, 20000, 0, 0, NULL};
    return is_part ? axl_add_part(t, &part, err) : axl_add(t, s->source, file, err);
}

static int finish(axl_transfer *t, axl_error *err)
{
    int rc = axl_dispatch(t, err);
    rc = rc ? rc : axl_wait(t, err);
    axl_free(t);
    return rc;
}

static void put_link(void)
{
    rename(folder, moved);
    assert_int_equal(symlink(private, folder), 0);
}

static const char *const methods[] = {"sync", "pthread", "daemon"};

static void each_method(void **arg)
{
    const scratch *s = *arg;
    axl_error err = {""};
    prepare(s);
    for (int i = 0; i < 6; i++) {
        axl_transfer *t = create(methods[i / 2], 0);
        if (i % 2) assert_int_equal(mkdir(folder, 0755), 0);
        if (i % 2) scratch_write(file, "", 0);
        assert_int_equal(add(t, s, i % 2, &err), 0);
        if (finish(t, &err) != 0) fail_msg("%s: %s", methods[i / 2], err.text);
        expect_copied(file);
        assert_int_equal(unlink(file), 0);
        assert_int_equal(rmdir(folder), 0);
    }
}

static void a_link_on_the_way(void **arg)
{
    const scratch *s = *arg;
    prepare(s);
    put_link();
    for (int i = 0; i < 6; i++) {
        axl_error err = {""};
        axl_transfer *t = create(methods[i / 2], 0);
        assert_int_equal(add(t, s, i % 2, &err), 0);
        assert_int_equal(finish(t, &err), -ELOOP);
        assert_non_null(strstr(err.text, "dataset"));
        assert_non_null(strstr(err.text, "a link"));
        unlink(state);
        expect_secret();
    }
}

/* The link is placed while the first bytes move. */
static void a_link_meanwhile(void **arg)
{
    const scratch *s = *arg;
    prepare(s);
    for (int i = 2; i < 6; i++) {
        axl_error err = {""};
        axl_progress progress = {0};
        axl_transfer *t = create(methods[i / 2], 100 * SLOW);
        assert_int_equal(mkdir(folder, 0755), 0);
        if (i % 2) scratch_write(file, "", 0);
        assert_int_equal(add(t, s, i % 2, &err), 0);
        assert_int_equal(axl_dispatch(t, &err), 0);
        while (axl_test(t, &err) == AXL_RUNNING && !progress.bytes_done)
            axl_progress_get(t, &progress);
        put_link();
        axl_wait(t, &err); /* it may have finished in time */
        axl_free(t);
        expect_secret();
        unlink(state);
        assert_int_equal(unlink(folder), 0);
        assert_int_equal(nftw(moved, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS), 0);
    }
}

/* One process begins, and another one resumes or cleans up. */
static void a_link_before_it_goes_on(void **arg)
{
    const scratch *s = *arg;
    prepare(s);
    for (int i = 0; i < 6; i++) {
        axl_error err = {""};
        axl_transfer *t = create("pthread", SLOW);
        assert_int_equal(mkdir(folder, 0755), 0);
        if (i % 2) scratch_write(file, "", 0);
        assert_int_equal(add(t, s, i % 2, &err), 0);
        assert_int_equal(axl_dispatch(t, &err), 0);
        axl_free(t); /* keeps the state file */
        put_link();
        if (i / 2 == 0) {
            assert_int_equal(axl_resume(state, "sync", &t, &err), 0);
            assert_int_equal(finish(t, &err), -ELOOP);
        } else if (i / 2 == 1) {
            assert_int_equal(axl_resume(state, "sync", &t, &err), 0);
            assert_int_equal(axl_cancel(t, &err), 0);
            axl_free(t);
        } else {
            t = create("sync", 0);
            assert_int_equal(add(t, s, i % 2, &err), 0);
            assert_true(axl_continue(t, &err) >= 0);
            assert_int_equal(finish(t, &err), -ELOOP);
        }
        expect_secret();
        unlink(state);
        assert_int_equal(unlink(folder), 0);
        assert_int_equal(nftw(moved, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS), 0);
    }
}

/* The base belongs to the list: with another base nothing is resumed. */
/* Returns the name of the temporary file, which the caller frees. */
static char *find_temporary(void)
{
    char *path = NULL;
    const struct dirent *item;
    DIR *stream = opendir(folder);
    while (stream && !path && (item = readdir(stream)) != NULL)
        if (strstr(item->d_name, ".tmp"))
            assert_true(asprintf(&path, "%s/%s", folder, item->d_name) > 0);
    if (stream) closedir(stream);
    return path;
}

static void expect_start(const char *path, const char *bytes)
{
    char start[16] = "";
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && read(fd, start, strlen(bytes)) == (ssize_t)strlen(bytes));
    close(fd);
    assert_string_equal(start, bytes);
}

/* A user who may write to the directory replaces the temporary file: while it is written,
 * or before another process resumes. A file with a second name is not written to, and no
 * process waits at a pipe. */
static void another_temporary_file(void **arg)
{
    const scratch *s = *arg;
    char other[200];
    prepare(s);
    snprintf(other, sizeof other, "%s/other", s->folder);
    alarm(60);
    for (int i = 0; i < 6; i++) {
        char *temporary = NULL;
        axl_error err = {""};
        axl_progress progress = {0};
        axl_transfer *t = create("pthread", 10 * SLOW);
        t->piece = 1000;
        t->interval = 0.1;
        assert_int_equal(mkdir(folder, 0755), 0);
        assert_int_equal(add(t, s, 0, &err), 0);
        assert_int_equal(axl_dispatch(t, &err), 0);
        while (axl_test(t, &err) == AXL_RUNNING && progress.bytes_done < 5000)
            axl_progress_get(t, &progress);
        while (!temporary)
            temporary = find_temporary();
        if (i < 3) axl_free(t);
        assert_int_equal(rename(temporary, other), 0);
        if (i % 3 == 0) assert_int_equal(mkfifo(temporary, 0666), 0);
        if (i % 3 == 1) assert_int_equal(link(other, temporary), 0);
        if (i % 3 == 2) assert_int_equal(symlink(other, temporary), 0);
        if (i < 3) {
            scratch_write(other, "not ours", 8);
            assert_int_equal(truncate(other, 20000), 0);
            assert_int_equal(axl_resume(state, "sync", &t, &err), 0);
            if (finish(t, &err) != 0) fail_msg("%d: %s", i, err.text);
            expect_copied(file);
        } else {
            finish(t, &err);
        }
        free(temporary);
        unlink(state);
        if (i < 3) expect_start(other, "not ours");
        assert_int_equal(unlink(other), 0);
        assert_int_equal(nftw(folder, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS), 0);
    }
    alarm(0);
}

static void another_base(void **arg)
{
    const scratch *s = *arg;
    axl_error err = {""};
    prepare(s);
    axl_transfer *t = create("pthread", SLOW);
    assert_int_equal(mkdir(folder, 0755), 0);
    scratch_write(file, "", 0);
    assert_int_equal(add(t, s, 1, &err), 0);
    assert_int_equal(axl_dispatch(t, &err), 0);
    axl_free(t);
    const axl_options options = {.state = state};
    assert_int_equal(axl_create("sync", &options, &t, &err), 0);
    assert_int_equal(add(t, s, 1, &err), 0);
    assert_int_equal(axl_continue(t, &err), 0);
    assert_int_equal(finish(t, &err), 0);
    expect_copied(file);
}

static void refused(void **arg)
{
    const scratch *s = *arg;
    char outside[240];
    axl_error err = {""};
    prepare(s);
    axl_transfer *t = create("sync", 0);
    snprintf(outside, sizeof outside, "%s/../private/file", base);
    assert_int_equal(axl_add(t, s->source, outside, &err), -EINVAL);
    snprintf(outside, sizeof outside, "%s2/file", base);
    assert_int_equal(axl_add(t, s->source, outside, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is not below directory"));
    assert_int_equal(axl_add(t, s->source, base, &err), -EINVAL);
    assert_int_equal(add(t, s, 0, &err), 0);
    assert_int_equal(unlink(base), 0);
    assert_int_equal(axl_dispatch(t, &err), -ENOENT);
    assert_non_null(strstr(err.text, base));
    axl_free(t);
    expect_secret();
}

/* A part is written into a directory that no other user can change, and into no other. */
static void private_only(void **arg)
{
    const scratch *s = *arg;
    axl_error err = {""};
    prepare(s);
    assert_int_equal(mkdir(folder, 0700), 0);
    scratch_write(file, "", 0);
    for (int i = 0; i < 6; i++) {
        axl_transfer *t = create(methods[i / 2], 0);
        assert_int_equal(axl_set_private(t, private, -1, &err), -EINVAL);
        assert_int_equal(axl_set_private(t, base, -1, &err), -EINVAL);
        assert_int_equal(axl_set_private(t, folder, -1, &err), 0);
        assert_int_equal(axl_add(t, s->source, moved, &err), -EINVAL);
        assert_int_equal(add(t, s, 1, &err), 0);
        assert_int_equal(chmod(folder, i % 2 ? 0750 : 0700), 0);
        assert_int_equal(finish(t, &err), i % 2 ? -EPERM : 0);
        if (i % 2) assert_non_null(strstr(err.text, "is open to others (mode 750"));
        if (!(i % 2)) expect_copied(file);
        assert_int_equal(truncate(file, 0), 0);
    }
}

/* A caller that has the directory open passes its descriptor: a later directory with the
 * name is not used. */
static void private_given(void **arg)
{
    const scratch *s = *arg;
    axl_error err = {""};
    prepare(s);
    assert_int_equal(mkdir(folder, 0700), 0);
    scratch_write(file, "", 0);
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    axl_transfer *t = create("sync", 0);
    assert_int_equal(axl_set_private(t, folder, dir, &err), 0);
    close(dir);
    assert_int_equal(rename(folder, moved), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(add(t, s, 1, &err), 0);
    assert_int_equal(finish(t, &err), 0);
    assert_int_equal(rmdir(folder), 0); /* the directory is empty */
    assert_int_equal(rename(moved, folder), 0);
    expect_copied(file);
}

/* A state file that another program wrote. */
static void forged(void **arg)
{
    static const char *const bases[] = {"relative", "/elsewhere", ""};
    const scratch *s = *arg;
    axl_error err = {""};
    prepare(s);
    axl_transfer *t = create("pthread", SLOW);
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(add(t, s, 0, &err), 0);
    assert_int_equal(axl_dispatch(t, &err), 0);
    axl_free(t);
    for (int i = 0; i < 3; i++) {
        kvtree *tree = kvtree_new();
        assert_int_equal(kvtree_file_read(AT_FDCWD, state, KVTREE_ANY_SIZE, tree, &err),
                         0);
        assert_int_equal(kvtree_util_set_str(tree, "BASE", bases[i]), 0);
        assert_int_equal(kvtree_file_write(AT_FDCWD, state, KVTREE_ANY_SIZE, tree, &err),
                         0);
        kvtree_delete(&tree);
        assert_int_equal(axl_resume(state, "sync", &t, &err), -EBADMSG);
    }
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(each_method),
        WITH_FOLDER(a_link_on_the_way),
        WITH_FOLDER(a_link_meanwhile),
        WITH_FOLDER(a_link_before_it_goes_on),
        WITH_FOLDER(another_temporary_file),
        WITH_FOLDER(another_base),
        WITH_FOLDER(refused),
        WITH_FOLDER(private_only),
        WITH_FOLDER(private_given),
        WITH_FOLDER(forged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
