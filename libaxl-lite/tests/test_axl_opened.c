/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that are written to an open file of the caller: its path is not opened, it ends
 * where the parts end, and the descriptor is closed in any case. */
#include "container.h"
#include "src/axl_private.h"

#include <errno.h>
#include <zlib.h>

enum { SIZE = 300000, PIECE = 65536 };

static axl_transfer *create_in_pieces(const scratch *s, const char *method)
{
    axl_transfer *t = create_transfer(s, method, AXL_CHECKSUM);
    t->piece = PIECE;
    return t;
}

/* An empty file. */
static int open_container(scratch *s)
{
    snprintf(s->destination, sizeof s->destination, "%s/container", s->folder);
    int fd = open(s->destination, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void give(axl_transfer *t, size_t i, int fd)
{
    axl_error err = {""};
    if (axl_set_opened(t, i, fd, &err) != 0) fail_msg("%s", err.text);
}

/* Two parts, the second one first; one has several pieces. Only the process scr_transfer
 * opens the path. */
static void each_method(void **state)
{
    static const char *const methods[] = {"sync", "pthread", "daemon"};
    scratch *s = *state;
    unsigned char *bytes = write_source(s, SIZE);
    char moved[160];
    snprintf(moved, sizeof moved, "%s/moved", s->folder);
    for (int m = 0; m < 3; m++) {
        const int remote = m == 2;
        axl_transfer *t = create_in_pieces(s, methods[m]);
        axl_file part;
        int fd = open_container(s);
        add(t, part_of(s, 1000, 1000, SIZE - 1000));
        add(t, part_of(s, 0, 0, 1000));
        give(t, 0, fd);
        assert_int_equal(is_open(fd), !remote);
        if (!remote) {
            assert_int_equal(rename(s->destination, moved), 0);
            scratch_write(s->destination, "of others", 9);
        }
        finish(t);
        assert_false(is_open(fd));
        assert_int_equal(axl_get(t, 0, &part), 0);
        assert_int_equal(part.crc, crc32(0, bytes + 1000, SIZE - 1000));
        axl_free(t);
        scratch_expect(remote ? s->destination : moved, bytes, SIZE);
        if (!remote) scratch_expect(s->destination, "of others", 9);
    }
    free(bytes);
}

/* A source that begins and ends with a hole, or is a hole: the file gets its full length.
 */
static void ends_with_a_hole(void **state)
{
    scratch *s = *state;
    for (int data = 0; data < 2; data++)
        for (int sums = 0; sums < 2; sums++) {
            unsigned char *bytes = calloc(1, SIZE);
            axl_transfer *t = create_in_pieces(s, "pthread");
            if (!sums) t->flags = 0;
            int in = open(s->source, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            assert_int_equal(ftruncate(in, SIZE), 0);
            if (data) memset(bytes + PIECE, 'x', 100);
            if (data) assert_int_equal(pwrite(in, bytes + PIECE, 100, PIECE), 100);
            close(in);
            add(t, part_of(s, 0, 0, SIZE));
            give(t, 0, open_container(s));
            finish(t);
            axl_free(t);
            scratch_expect(s->destination, bytes, SIZE);
            free(bytes);
        }
}

/* Wrong descriptors are refused, and closed. */
static void misused(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    free(write_source(s, 100));
    for (int wrong = 0; wrong < 4; wrong++) {
        axl_transfer *t = create_in_pieces(s, "sync");
        int first = open_container(s), fd = dup(first);
        if (wrong == 0)
            assert_int_equal(axl_add(t, s->source, s->destination, NULL), 0);
        else
            add(t, part_of(s, 0, 0, 100));
        if (wrong == 2)
            give(t, 0, first);
        else
            close(first);
        if (wrong == 3) finish(t);
        assert_int_equal(axl_set_opened(t, wrong == 1, fd, &err), -EINVAL);
        assert_non_null(strstr(err.text, "cannot get an open file"));
        assert_false(is_open(fd));
        assert_int_equal(is_open(first), wrong == 2);
        axl_free(t);
        assert_false(is_open(first));
    }
}

/* The transfer fails, with several workers, or is never started: the descriptor is
 * closed. */
static void closed_after_all(void **state)
{
    scratch *s = *state;
    for (int started = 0; started < 2; started++) {
        axl_transfer *t = create_in_pieces(s, "pthread");
        free(write_source(s, SIZE));
        add(t, part_of(s, 0, 0, SIZE));
        int fd = open_container(s);
        give(t, 0, fd);
        if (started) {
            struct timespec long_ago[2] = {{1, 0}, {1, 0}};
            struct stat seen;
            assert_int_equal(axl_look(s->source, &seen, NULL), 0);
            axl_take_seen(&t->items[0], &seen);
            assert_int_equal(utimensat(AT_FDCWD, s->source, long_ago, 0), 0);
            assert_int_equal(axl_dispatch(t, NULL), 0);
            assert_int_equal(axl_wait(t, NULL), -ESTALE);
        }
        axl_free(t);
        assert_false(is_open(fd));
        scratch_expect(s->destination, "", 0);
    }
}

/* The file is about to be removed, which a client of NFS delays as long as it is open. */
static void closed_where_nothing_starts(void **state)
{
    scratch *s = *state;
    axl_transfer *t = create_in_pieces(s, "sync");
    free(write_source(s, SIZE));
    add(t, part_of(s, 0, 0, SIZE));
    int fd = open_container(s);
    give(t, 0, fd);
    assert_int_equal(unlink(s->source), 0);
    assert_int_equal(axl_dispatch(t, NULL), -ENOENT);
    assert_false(is_open(fd));
    axl_free(t);
}

/* A transfer that another one began continues in the file at the path. */
static void not_after_continue(void **state)
{
    scratch *s = *state;
    char path[128];
    unsigned char *bytes = write_source(s, SIZE);
    snprintf(path, sizeof path, "%s/state", s->folder);
    int fd = -1;
    for (int again = 0; again < 2; again++) {
        axl_error err = {""};
        axl_transfer *t = NULL;
        const axl_options options = {.state = path, .bandwidth = again ? 0 : 1};
        assert_int_equal(axl_create("pthread", &options, &t, NULL), 0);
        close(open_container(s));
        add(t, part_of(s, 0, 0, SIZE));
        if (again) {
            fd = open_container(s);
            give(t, 0, fd);
            assert_int_equal(axl_continue(t, &err), AXL_CONTINUES);
            assert_false(is_open(fd));
            finish(t);
        } else {
            assert_int_equal(axl_dispatch(t, NULL), 0);
        }
        axl_free(t);
    }
    scratch_expect(s->destination, bytes, SIZE);
    free(bytes);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(each_method),
        WITH_FOLDER(ends_with_a_hole),
        WITH_FOLDER(misused),
        WITH_FOLDER(closed_after_all),
        WITH_FOLDER(closed_where_nothing_starts),
        WITH_FOLDER(not_after_continue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
