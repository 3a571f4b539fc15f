/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers that wait for a slot, which this test or another transfer holds. */
#include "scratch.h"
#include "src/axl_private.h"

#include "common/io.h"
#include <axl/axl.h>
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <unistd.h>

enum { SIZE = 10000, COUNT = 3 };

static const char program[] = TEST_TRANSFER; /* the path of scr_transfer */

static char *path_of(const scratch *s, const char *name)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", s->folder, name) > 0);
    return path;
}

/* A transfer of one file, number i, that needs one of count slots. */
static axl_transfer *create(const scratch *s, const char *method, int i, int count)
{
    axl_transfer *t = NULL;
    char name[32];
    unsigned char *bytes = scratch_bytes(SIZE);
    snprintf(name, sizeof name, "state%d", i);
    char *state = path_of(s, name), *slots = path_of(s, "turn");
    snprintf(name, sizeof name, "in%d", i);
    char *source = path_of(s, name);
    snprintf(name, sizeof name, "out/%d", i);
    char *destination = path_of(s, name);
    const axl_options options = {.state = state, .daemon = program, .workers = 3};
    scratch_write(source, bytes, SIZE);
    assert_int_equal(axl_create(method, &options, &t, NULL), 0);
    assert_int_equal(axl_set_slots(t, slots, count, NULL), 0);
    assert_int_equal(axl_add(t, source, destination, NULL), 0);
    free(bytes);
    free(state);
    free(slots);
    free(source);
    free(destination);
    return t;
}

static int lock_slot(const scratch *s, int i)
{
    char name[32];
    int owner = -1;
    snprintf(name, sizeof name, "turn.%d", i);
    char *path = path_of(s, name);
    assert_int_equal(axl_owner_take(path, &owner, NULL), 0);
    free(path);
    return owner;
}

static void drop_slot(const scratch *s, int i, int owner)
{
    char name[32];
    snprintf(name, sizeof name, "turn.%d", i);
    char *path = path_of(s, name);
    axl_owner_drop(path, &owner);
    free(path);
}

static bool is_there(const scratch *s, const char *name)
{
    char *path = path_of(s, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* Whether it still runs and has copied nothing, after a time in which it could have
 * copied everything. */
static bool waits(const scratch *s, axl_transfer *t, const char *destination)
{
    usleep(300000);
    return axl_test(t, NULL) == AXL_RUNNING && !is_there(s, destination);
}

static void expect_moved(const scratch *s, axl_transfer *t, const char *destination)
{
    unsigned char *bytes = scratch_bytes(SIZE);
    char *path = path_of(s, destination);
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
    scratch_expect(path, bytes, SIZE);
    free(bytes);
    free(path);
}

static void one_waits_for_the_other(const scratch *s, const char *method)
{
    int owner = lock_slot(s, 0);
    axl_transfer *t = create(s, method, 0, 1), *second = create(s, method, 1, 2);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_dispatch(second, NULL), 0); /* the other slot is free */
    expect_moved(s, second, "out/1");
    assert_true(waits(s, t, "out/0"));
    drop_slot(s, 0, owner);
    expect_moved(s, t, "out/0");
    assert_false(is_there(s, "turn.0.lock"));
    assert_false(is_there(s, "turn.1.lock"));
}

static void threads_wait(void **state)
{
    one_waits_for_the_other(*state, "pthread");
}

static void processes_wait(void **state)
{
    one_waits_for_the_other(*state, "daemon");
}

/* More transfers than slots, none of which is tested meanwhile: all finish. */
static void all_arrive(void **state)
{
    scratch *s = *state;
    axl_transfer *t[COUNT];
    for (int i = 0; i < COUNT; i++)
        t[i] = create(s, i % 2 ? "daemon" : "pthread", i, 1);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(axl_dispatch(t[i], NULL), 0);
    for (int i = 0; i < 1000 && scratch_left(s) < COUNT; i++)
        usleep(10000);
    assert_int_equal(scratch_left(s), COUNT);
    expect_moved(s, t[2], "out/2");
    expect_moved(s, t[1], "out/1");
    expect_moved(s, t[0], "out/0");
    assert_false(is_there(s, "turn.0.lock"));
}

/* The slot of a killed process is free, although its file exists. */
static void a_slot_ends_with_its_owner(void **state)
{
    scratch *s = *state;
    int owner = lock_slot(s, 0);
    io_close(&owner);
    assert_true(is_there(s, "turn.0.lock"));
    axl_transfer *t = create(s, "pthread", 0, 1);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    expect_moved(s, t, "out/0");
    assert_false(is_there(s, "turn.0.lock"));
}

static void one_that_waits_is_cancelled(void **state)
{
    scratch *s = *state;
    const char *const methods[] = {"pthread", "daemon"};
    for (int i = 0; i < 2; i++) {
        int owner = lock_slot(s, 0);
        axl_transfer *t = create(s, methods[i], i, 1);
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_true(waits(s, t, i ? "out/1" : "out/0"));
        assert_int_equal(axl_cancel(t, NULL), 0);
        assert_int_equal(axl_wait(t, NULL), -ECANCELED);
        axl_free(t);
        drop_slot(s, 0, owner);
        assert_false(is_there(s, i ? "out/1" : "out/0"));
    }
}

/* Returns the bytes that scr_transfer has copied plus its looks for a slot. */
static unsigned long long sign_of(const scratch *s)
{
    char text[AXL_SIGN_SIZE] = "";
    unsigned long long beats, bytes = 0;
    char *path = path_of(s, "state0.lock");
    FILE *f = fopen(path, "r");
    if (f && fgets(text, sizeof text, f)) sscanf(text, "%llu %llu", &beats, &bytes);
    if (f) fclose(f);
    free(path);
    return bytes;
}

/* A transfer that waits for long does not count as hanging. */
static void waiting_is_a_sign_of_life(void **state)
{
    scratch *s = *state;
    int owner = lock_slot(s, 0);
    axl_transfer *t = create(s, "daemon", 0, 1);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    unsigned long long first = 0, second = 0;
    for (int i = 0; i < 1000 && (first == 0 || second <= first); i++) {
        usleep(10000);
        if (first == 0) first = sign_of(s);
        second = sign_of(s);
    }
    assert_true(first > 0 && second > first);
    drop_slot(s, 0, owner);
    expect_moved(s, t, "out/0");
}

static void without_locks_it_does_not_wait(void **state)
{
    scratch *s = *state;
    axl_transfer *t = create(s, "pthread", 0, 1);
    free(t->slot_path);
    t->slot_path = path_of(s, "no/such/directory/turn");
    assert_int_equal(axl_dispatch(t, NULL), 0);
    expect_moved(s, t, "out/0");
}

static void wrong_slots_are_refused(void **state)
{
    axl_transfer *t;
    (void)state;
    assert_int_equal(axl_create("pthread", NULL, &t, NULL), 0);
    assert_int_equal(axl_set_slots(t, "turn", 0, NULL), -EINVAL);
    assert_int_equal(axl_set_slots(t, "turn", AXL_SLOTS_MAX + 1, NULL), -EINVAL);
    assert_int_equal(axl_set_slots(t, "turn", AXL_SLOTS_MAX, NULL), 0);
    assert_int_equal(axl_set_slots(t, "turn", 1, NULL), -EINVAL);
    axl_free(t);
}

/* A process that resumes the transfer uses the same slots, or none. */
static void a_state_file_has_them(void **state)
{
    scratch *s = *state;
    axl_transfer *t = create(s, "pthread", 0, 2), *read;
    kvtree *tree = NULL;
    char *name = path_of(s, "turn");
    const struct {
        const char *name;
        int count, rc;
    } rows[] = {{name, 2, 0},
                {name, 0, -EBADMSG},
                {name, -1, -EBADMSG},
                {name, AXL_SLOTS_MAX + 1, -EBADMSG},
                {"turn", 2, -EBADMSG}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(axl_state_build(t, &tree), 0);
        assert_int_equal(kvtree_util_set_str(tree, "SLOTS", rows[i].name), 0);
        assert_int_equal(kvtree_util_set_int(tree, "SLOT_COUNT", rows[i].count), 0);
        assert_int_equal(axl_create("pthread", NULL, &read, NULL), 0);
        assert_int_equal(axl_state_fill(read, tree, NULL), rows[i].rc);
        assert_true(rows[i].rc ||
                    (strcmp(read->slot_path, name) == 0 && read->slot_count == 2));
        axl_free(read);
        kvtree_delete(&tree);
    }
    free(name);
    axl_free(t);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(threads_wait),
        WITH_FOLDER(processes_wait),
        WITH_FOLDER(all_arrive),
        WITH_FOLDER(a_slot_ends_with_its_owner),
        WITH_FOLDER(one_that_waits_is_cancelled),
        WITH_FOLDER(waiting_is_a_sign_of_life),
        WITH_FOLDER(without_locks_it_does_not_wait),
        WITH_FOLDER(wrong_slots_are_refused),
        WITH_FOLDER(a_state_file_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
