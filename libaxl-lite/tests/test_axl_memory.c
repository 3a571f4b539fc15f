/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers without memory: each allocation in the life of a transfer fails once, with
 * every method that works within this process, and also when a transfer is resumed or
 * continued. Then the destination is missing or complete, and nothing else remains but
 * the state file. */
#include "scratch.h"

#include "nth_each.h"
#include <axl/axl.h>
#include <errno.h>

enum { SIZE = 3000, FILES = 3 };

typedef struct trial {
    const scratch *s;
    const char *method;
    unsigned char *bytes;
    char state[128], late[128];
    char from[FILES][160], to[FILES][160];
    int with_state;
} trial;

static int is_there(const trial *t, int i)
{
    struct stat st;
    return stat(t->to[i], &st) == 0 && st.st_size == SIZE + i;
}

static int remove_temporaries(const char *folder)
{
    char path[600];
    int others = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] != '.' || strlen(e->d_name) <= 2) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        others += unlink(path) == 0;
    }
    if (dir) closedir(dir);
    return others;
}

/* No file is incomplete, and none has a wrong name, except those that a state file
 * records for axl_resume. */
static void look(const trial *t, int rc)
{
    char out[128];
    snprintf(out, sizeof out, "%s/out", t->s->folder);
    int others = remove_temporaries(out) + remove_temporaries(t->late);
    assert_true(others == 0 || (rc && access(t->state, F_OK) == 0));
    for (int i = 0; i < FILES; i++) {
        assert_true(is_there(t, i) || (rc && access(t->to[i], F_OK) != 0));
        unlink(t->to[i]);
    }
    rmdir(t->late);
}

/* Creates a transfer and lists the files. */
static int prepare(const trial *t, axl_transfer **transfer, axl_error *err)
{
    const axl_options options = {.flags = AXL_CHECKSUM,
                                 .workers = 2,
                                 .buffer = 1024,
                                 .state = t->with_state ? t->state : NULL};
    int rc = axl_create(t->method, &options, transfer, err);
    for (int i = 0; i < FILES && !rc; i++)
        rc = axl_add(*transfer, t->from[i], t->to[i], err);
    return rc;
}

/* Runs a transfer to its end, unless rc is an error, and checks the result. */
static int finish(const trial *t, axl_transfer *transfer, int rc)
{
    if (rc >= 0) rc = axl_dispatch(transfer, &nth_text);
    if (!rc) rc = axl_wait(transfer, &nth_text);
    axl_free(transfer);
    int held = nth_hold();
    assert_int_equal(nth_text.text[0] != 0, rc != 0);
    look(t, rc);
    unlink(t->state);
    countdown = held;
    return rc;
}

static int do_transfer(void *arg)
{
    axl_transfer *transfer = NULL;
    int rc = prepare(arg, &transfer, &nth_text);
    return finish(arg, transfer, rc);
}

/* A transfer that cannot create its last file leaves a state file. */
static void leave_state(const trial *t)
{
    axl_error err;
    axl_transfer *transfer = NULL;
    assert_int_equal(prepare(t, &transfer, &err), 0);
    scratch_write(t->late, "", 0); /* where a directory should be */
    int rc = axl_dispatch(transfer, &err);
    if (!rc) rc = axl_wait(transfer, &err);
    assert_true(rc < 0);
    axl_free(transfer);
    unlink(t->late);
    assert_int_equal(access(t->state, F_OK), 0);
}

static int do_resume(void *arg)
{
    const trial *t = arg;
    axl_transfer *transfer = NULL;
    int held = nth_hold();
    leave_state(t);
    countdown = held;
    int rc = axl_resume(t->state, t->method, &transfer, &nth_text);
    return finish(t, transfer, rc);
}

static int do_continue(void *arg)
{
    axl_transfer *transfer = NULL;
    int held = nth_hold();
    leave_state(arg);
    countdown = held;
    int rc = prepare(arg, &transfer, &nth_text);
    if (!rc) rc = axl_continue(transfer, &nth_text);
    return finish(arg, transfer, rc);
}

static int do_copy(void *arg)
{
    const trial *t = arg;
    axl_error *err = &nth_text;
    uint64_t size;
    uint32_t crc;
    int rc = axl_copy(t->from[0], t->to[0], AXL_CHECKSUM, &size, &crc, err);
    if (!rc) rc = axl_checksum(t->to[0], &size, &crc, err);
    int held = nth_hold();
    assert_true(is_there(t, 0) || (rc && access(t->to[0], F_OK) != 0));
    unlink(t->to[0]);
    countdown = held;
    return rc;
}

static void begin(trial *t, const scratch *s, const char *method)
{
    memset(t, 0, sizeof *t);
    t->s = s;
    t->method = method;
    t->bytes = scratch_bytes(SIZE + FILES);
    snprintf(t->state, sizeof t->state, "%s/state", s->folder);
    snprintf(t->late, sizeof t->late, "%s/late", s->folder);
    for (int i = 0; i < FILES; i++) {
        snprintf(t->from[i], sizeof t->from[i], "%s/source.%d", s->folder, i);
        snprintf(t->to[i], sizeof t->to[i], "%s/%s/file.%d", s->folder,
                 i < FILES - 1 ? "out" : "late", i);
        scratch_write(t->from[i], t->bytes, SIZE + (size_t)i);
    }
}

static void each_allocation_may_fail(void **state)
{
    static const char *const methods[] = {"sync", "pthread"};
    trial t;
    for (int m = 0; m < 2; m++) {
        begin(&t, *state, methods[m]);
        nth_each(methods[m], do_transfer, &t, 5);
        t.with_state = 1;
        nth_each("with a state file", do_transfer, &t, 10);
        nth_each("resumed", do_resume, &t, 10);
        nth_each("gone on with", do_continue, &t, 10);
        nth_each("one file", do_copy, &t, 1);
        free(t.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        each_allocation_may_fail, scratch_make, scratch_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
