/* SPDX-License-Identifier: BSD-3-Clause */
/* Records that a run and commands change at the same time, and the index as one. */
#include "base/versions.h"
#include "common/io.h"
#include "common/record_size.h"
#include "nth_syscall.h"
#include "prefix/index.h"
#include "records.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const scr_dataset sets[] = {
    {.id = 1, .ckpt = 1, .complete = 1, .ranks = 1, .name = "c1"},
    {.id = 2, .ckpt = 2, .complete = 1, .ranks = 1, .name = "c2"},
    {.id = 3, .output = 1, .complete = 1, .ranks = 1, .name = "o3"}};

static void put_index(const struct scratch *s)
{
    kvtree *index = kvtree_new();
    for (int i = 0; i < 3; i++)
        assert_int_equal(scr_index_add(index, &sets[i], 1), 0);
    assert_int_equal(scr_index_set_current(index, &sets[0]), 0);
    assert_int_equal(
        kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, NULL), 0);
    kvtree_delete(&index);
}

static int choose(kvtree *index, void *dataset)
{
    int rc = scr_index_choose(index, dataset);
    return rc ? rc : 1;
}

static int nothing(kvtree *index, void *unused)
{
    (void)index;
    (void)unused;
    return 0;
}

static void index_is_changed(void **state)
{
    struct scratch *s = *state;
    scr_dataset second = sets[1], unknown = {.id = 9, .name = "c9"};
    kvtree *index = kvtree_new();
    assert_int_equal(scr_index_update(s->dir, choose, &second, index, &s->err), -ENOENT);
    put_index(s);
    assert_int_equal(scr_index_update(s->dir, choose, &second, index, &s->err), 0);
    assert_true(scr_index_is_current(index, "c2"));
    kvtree_unset_all(index);
    assert_int_equal(scr_index_read(s->dir, index, &s->err), 0);
    assert_true(scr_index_is_current(index, "c2"));
    assert_false(scr_index_is_current(index, "c1"));
    kvtree_unset_all(index);
    assert_int_equal(scr_index_update(s->dir, choose, &unknown, index, &s->err), -ENOENT);
    assert_says(s->err.text, "change " SCR_INDEX_NAME);
    kvtree_unset_all(index);
    assert_int_equal(scr_index_update(s->dir, nothing, NULL, index, &s->err), 0);
    kvtree_delete(&index);
}

/* What is no index is not written over. */
static void unusable_index(void **state)
{
    struct scratch *s = *state;
    char aside[SCR_INDEX_ASIDE_SIZE];
    scr_dataset second = sets[1];
    kvtree *index = kvtree_new(), *other = text_tree("VERSION\n  2\n");
    kvtree *foreign = text_tree("SOMETHING\n  2\n");
    put_index(s);
    scratch_flip(s, SCR_INDEX_NAME, 25);
    assert_int_equal(scr_index_update(s->dir, choose, &second, index, &s->err), -EBADMSG);
    assert_int_equal(
        kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, other, &s->err), 0);
    assert_int_equal(scr_index_update(s->dir, choose, &second, index, &s->err),
                     SCR_OTHER_VERSION);
    assert_says(s->err.text, "use the SCR that wrote it");
    assert_int_equal(scr_index_set_aside(s->dir, aside, &s->err), SCR_OTHER_VERSION);
    assert_int_equal(faccessat(s->dir, SCR_INDEX_NAME, F_OK, 0), 0);
    /* set aside, each time under another name */
    for (int i = 1; i < 3; i++) {
        char expected[SCR_INDEX_ASIDE_SIZE];
        snprintf(expected, sizeof expected, SCR_INDEX_NAME ".damaged.%d", i);
        assert_int_equal(
            kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, foreign, &s->err),
            0);
        assert_int_equal(scr_index_set_aside(s->dir, aside, &s->err), 0);
        assert_string_equal(aside, expected);
        assert_int_equal(faccessat(s->dir, aside, F_OK, 0), 0);
        assert_int_equal(faccessat(s->dir, SCR_INDEX_NAME, F_OK, 0), -1);
    }
    /* but not the file that replaced it meanwhile, nor a missing one */
    assert_int_equal(scr_index_set_aside(s->dir, aside, &s->err), 0);
    assert_string_equal(aside, "");
    put_index(s);
    assert_int_equal(scr_index_set_aside(s->dir, aside, &s->err), 0);
    assert_string_equal(aside, "");
    kvtree_unset_all(index);
    assert_int_equal(scr_index_read(s->dir, index, &s->err), 0);
    kvtree_delete(&index);
    kvtree_delete(&other);
    kvtree_delete(&foreign);
}

/* ---- an index that is missing ---- */

static void index_is_made(void **state)
{
    struct scratch *s = *state;
    scr_index_state look;
    kvtree *index = kvtree_new(), *nothing_yet = kvtree_new();
    int added = -1;
    /* of nothing; and again */
    for (int i = 0; i < 2; i++, kvtree_unset_all(index)) {
        assert_int_equal(scr_index_make(s->dir, NULL, 0, index, &added, &s->err), 0);
        assert_int_equal(added, 0);
        kvtree_unset_all(index);
        assert_int_equal(scr_index_read(s->dir, index, &s->err), 0);
    }
    assert_int_equal(scr_index_make(s->dir, sets, 2, index, &added, &s->err), 0);
    assert_int_equal(added, 2);
    assert_true(scr_index_is_current(index, "c2"));
    /* the entry of a dataset stays, and the current one as well */
    assert_int_equal(scr_index_mark_failed(index, &sets[1]), 0);
    assert_int_equal(scr_index_set_current(index, &sets[0]), 0);
    assert_int_equal(
        kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, index, &s->err), 0);
    assert_int_equal(scr_index_make(s->dir, sets, 3, index, &added, &s->err), 0);
    assert_int_equal(added, 1);
    assert_true(scr_index_is_current(index, "c1"));
    assert_int_equal(scr_index_look(index, &sets[1], &look), 0);
    assert_true(look.failed);
    /* who was killed with the lock leaves a file without anything in it */
    assert_int_equal(
        kvtree_file_write(s->dir, SCR_INDEX_NAME, KVTREE_ANY_SIZE, nothing_yet, &s->err),
        0);
    kvtree_unset_all(index);
    assert_int_equal(scr_index_read(s->dir, index, &s->err), -ENOENT);
    assert_says(s->err.text, SCR_INDEX_NAME " is empty");
    assert_int_equal(scr_index_update(s->dir, nothing, NULL, index, &s->err), -ENOENT);
    assert_int_equal(scr_index_make(s->dir, sets, 3, index, &added, &s->err), 0);
    assert_int_equal(added, 3);
    scratch_flip(s, SCR_INDEX_NAME, 25);
    assert_int_equal(scr_index_make(s->dir, sets, 3, index, &added, &s->err), -EBADMSG);
    assert_says(s->err.text, SCR_INDEX_NAME);
    kvtree_delete(&index);
    kvtree_delete(&nothing_yet);
}

/* As a run does it that finds no index, or a damaged one. */
static int make_anew(const struct scratch *s, const scr_dataset *d)
{
    char aside[SCR_INDEX_ASIDE_SIZE];
    int added;
    kvtree *index = kvtree_new();
    int rc = scr_index_read(s->dir, index, NULL);
    if (rc == -EBADMSG) rc = scr_index_set_aside(s->dir, aside, NULL);
    if (rc == -ENOENT) rc = 0;
    rc = rc ? rc : scr_index_make(s->dir, d, 1, index, &added, NULL);
    kvtree_delete(&index);
    return rc;
}

/* A process that writes an index of one dataset when the last writer closes the pipe. */
static pid_t fork_maker(const struct scratch *s, const int fds[2], const scr_dataset *d)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    char byte;
    close(fds[1]);
    _exit(read(fds[0], &byte, 1) != 0 || make_anew(s, d) != 0);
}

/* Runs that start side by side with one prefix directory: what each enters stays, also
 * where a damaged index was in its place, which is set aside once. */
static void made_by_many(void **state)
{
    enum { MAKERS = 8, ROUNDS = 40 };
    struct scratch *s = *state;
    for (int round = 0; round < ROUNDS; round++) {
        char aside[SCR_INDEX_ASIDE_SIZE];
        scr_dataset list[MAKERS], found;
        pid_t pids[MAKERS];
        int fds[2], status;
        kvtree *index = kvtree_new();
        if (round % 2) {
            put_index(s);
            scratch_flip(s, SCR_INDEX_NAME, 25);
        }
        assert_int_equal(pipe(fds), 0);
        for (int i = 0; i < MAKERS; i++) {
            list[i] = sets[0];
            list[i].id = i + 1;
            snprintf(list[i].name, sizeof list[i].name, "set.%d", i);
            pids[i] = fork_maker(s, fds, &list[i]);
        }
        close(fds[1]);
        for (int i = 0; i < MAKERS; i++) {
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_int_equal(status, 0);
        }
        close(fds[0]);
        assert_int_equal(scr_index_read(s->dir, index, &s->err), 0);
        for (int i = 0; i < MAKERS; i++)
            assert_int_equal(scr_index_get(index, list[i].name, &found), 0);
        assert_int_equal(unlinkat(s->dir, SCR_INDEX_NAME, 0), 0);
        for (int i = 1; i <= MAKERS; i++) {
            snprintf(aside, sizeof aside, SCR_INDEX_NAME ".damaged.%d", i);
            assert_int_equal(unlinkat(s->dir, aside, 0), round % 2 && i == 1 ? 0 : -1);
        }
        kvtree_delete(&index);
    }
}

/* The holder of the lock may be about to replace the damaged index by a good one. */
static void set_aside_under_the_lock(void **state)
{
    struct scratch *s = *state;
    char aside[SCR_INDEX_ASIDE_SIZE] = "?";
    int lock, status;
    kvtree *index = kvtree_new();
    put_index(s);
    scratch_flip(s, SCR_INDEX_NAME, 25);
    assert_int_equal(scr_change_lock(s->dir, &lock, &s->err), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(lock);
        _exit(scr_index_set_aside(s->dir, aside, NULL) != 0 || aside[0]);
    }
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    put_index(s);
    close(lock);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(scr_index_read(s->dir, index, &s->err), 0);
    kvtree_delete(&index);
}

/* The file system has no locks. */
static int without_locks(void *unused, unsigned n, const nth_call *call)
{
    (void)unused;
    (void)n;
    return call->number == __NR_fcntl && call->args[1] == F_OFD_SETLK ? ENOLCK : NTH_GO;
}

static int set_aside(void *state)
{
    struct scratch *s = state;
    char aside[SCR_INDEX_ASIDE_SIZE];
    return scr_index_set_aside(s->dir, aside, NULL) != 0 || !aside[0];
}

static void set_aside_without_a_lock(void **state)
{
    static nth_result result;
    struct scratch *s = *state;
    int refused = 0;
    put_index(s);
    scratch_flip(s, SCR_INDEX_NAME, 25);
    if (nth_run(set_aside, s, without_locks, NULL, &result) != 0) skip();
    for (unsigned n = 0; n < result.count && n < NTH_CALLS; n++)
        refused += result.calls[n].answer == ENOLCK;
    assert_true(refused > 0);
    assert_int_equal(nth_returned(&result), 0);
    assert_int_equal(faccessat(s->dir, SCR_INDEX_NAME, F_OK, 0), -1);
}

/* ---- records ---- */

static int change(kvtree *tree, void *unused)
{
    (void)unused;
    return kvtree_util_set_int(tree, "OURS", 1) ? -ENOMEM : 1;
}

static int change_more(kvtree *tree, void *unused)
{
    (void)unused;
    return kvtree_util_set_int(tree, "MORE_OF_IT", 1) ? -ENOMEM : 1;
}

/* Who keeps the lock does not stop others for ever. */
static void kept_from_it(void **state)
{
    struct scratch *s = *state;
    int fd;
    kvtree *tree = kvtree_new();
    const scr_change c = {.prefix = s->dir,
                          .name = ".scr/record",
                          .limit = RECORD_SIZE_SMALL,
                          .make = 1,
                          .change = change,
                          .seconds = 1};
    assert_int_equal(scr_change_lock(s->dir, &fd, &s->err), 0);
    assert_int_equal(scr_change_record(&c, tree, &s->err), -ETIMEDOUT);
    assert_says(s->err.text, ".scr/lock: another process has had the lock for 1 seconds");
    assert_int_equal(faccessat(s->dir, ".scr/record", F_OK, 0), -1);
    io_unlock(&fd);
    assert_int_equal(scr_change_record(&c, tree, &s->err), 0);
    kvtree_delete(&tree);
}

static mode_t mode_of(const struct scratch *s, const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(s->dir, name, &st, 0), 0);
    return st.st_mode & 07777;
}

/* The umask says who reads a record. Who may not change it cannot keep others from it:
 * the lock of a file may be taken by all who may open it. */
static void readers_have_no_lock(void **state)
{
    static const struct {
        mode_t dir, mask, record, lock;
    } cases[] = {{0755, 022, 0644, 0600},  {0755, 002, 0644, 0600},
                 {0700, 022, 0600, 0600},  {0775, 002, 0644, 0600},
                 {02775, 002, 0664, 0660}, {02770, 007, 0660, 0660},
                 {02775, 022, 0644, 0660}, {02755, 002, 0644, 0600},
                 {0750, 022, 0640, 0600},  {0755, 077, 0600, 0600}};
    struct scratch *s = *state;
    const mode_t mask = umask(0);
    const scr_change c = {.prefix = s->dir,
                          .name = ".scr/record",
                          .limit = RECORD_SIZE_SMALL,
                          .make = 1,
                          .change = change};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kvtree *tree = kvtree_new();
        unlinkat(s->dir, ".scr/record", 0);
        unlinkat(s->dir, ".scr/lock", 0);
        assert_int_equal(fchmodat(s->dir, ".scr", cases[i].dir, 0), 0);
        umask(cases[i].mask);
        assert_int_equal(scr_change_record(&c, tree, &s->err), 0);
        umask(0);
        assert_int_equal(mode_of(s, ".scr/record"), cases[i].record);
        assert_int_equal(mode_of(s, ".scr/lock"), cases[i].lock);
        kvtree_delete(&tree);
    }
    umask(mask);
}

/* A lock file of another user, who holds it, stays where he may put files. */
static void lock_of_another_user(void **state)
{
    static const struct {
        mode_t dir;
        int result;
        uid_t owner;
    } cases[] = {{02770, -ETIMEDOUT, 1}, {0770, -ETIMEDOUT, 1}, {0750, 0, 0}};
    struct scratch *s = *state;
    kvtree *tree = kvtree_new();
    const scr_change c = {.prefix = s->dir,
                          .name = ".scr/record",
                          .limit = RECORD_SIZE_SMALL,
                          .make = 1,
                          .change = change,
                          .seconds = 1};
    if (geteuid() != 0) skip();
    scratch_put(s, SCR_LOCK_NAME, "", 0);
    assert_int_equal(fchownat(s->dir, SCR_LOCK_NAME, 1, 1, 0), 0);
    assert_int_equal(fchownat(s->dir, ".scr", 0, 1, 0), 0);
    int held = openat(s->dir, SCR_LOCK_NAME, O_RDWR);
    assert_int_equal(io_lock(held, F_OFD_SETLK, F_WRLCK), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stat st;
        assert_int_equal(fchmodat(s->dir, ".scr", cases[i].dir, 0), 0);
        assert_int_equal(scr_change_record(&c, tree, &s->err), cases[i].result);
        assert_int_equal(fstatat(s->dir, SCR_LOCK_NAME, &st, 0), 0);
        assert_int_equal(st.st_uid, cases[i].owner);
    }
    io_unlock(&held);
    kvtree_delete(&tree);
}

/* A change that no reader would accept is not written, and the record stays. */
static void too_large(void **state)
{
    struct scratch *s = *state;
    kvtree *tree = kvtree_new();
    scr_change c = {
        .prefix = s->dir, .name = ".scr/small", .limit = 43, .make = 1, .change = change};
    assert_int_equal(scr_change_record(&c, tree, &s->err), 0);
    assert_int_equal(kvtree_pack_size(tree) + 24, 43);
    c.change = change_more;
    kvtree_unset_all(tree);
    assert_int_equal(scr_change_record(&c, tree, &s->err), -EFBIG);
    assert_says(s->err.text, ".scr/small: a tree of 64 bytes; no reader accepts more");
    kvtree_unset_all(tree);
    assert_int_equal(kvtree_file_read(s->dir, ".scr/small", 43, tree, &s->err), 0);
    assert_tree(tree, "OURS\n  1\n");
    c.limit--;
    c.change = change;
    assert_int_equal(scr_change_record(&c, tree, &s->err), -EBADMSG);
    assert_says(s->err.text, ".scr/small: too large: 43 bytes");
    kvtree_delete(&tree);
}

static void why_not(void **state)
{
    const scr_index_state good = {.complete = 1}, half = {.complete = 0},
                          failed = {.complete = 1, .failed = 1},
                          going = {.complete = 0, .deleting = 1};
    assert_null(scr_index_why_not(&sets[0], &good));
    assert_null(scr_index_why_not(&sets[0], &failed)); /* another attempt is allowed */
    assert_says(scr_index_why_not(&sets[0], &half), "not complete");
    assert_says(scr_index_why_not(&sets[0], &going), "being deleted");
    assert_says(scr_index_why_not(&sets[2], &good), "not a checkpoint");
}

static void times(void **state)
{
    kvtree *index = kvtree_new();
    assert_int_equal(scr_index_add(index, &sets[0], 1), 0);
    assert_null(scr_index_time(index, &sets[0], SCR_INDEX_FETCHED));
    assert_null(scr_index_time(index, &sets[1], SCR_INDEX_FLUSHED));
    assert_non_null(scr_index_time(index, &sets[0], SCR_INDEX_FLUSHED));
    kvtree *entry = kvtree_getf(index, "DSET 1 DIR c1");
    for (int i = 0; i < 3; i++) { /* the last one counts, whatever the order */
        static const char *const when[] = {"2026-11-22T10:00:00", "2026-11-22T12:00:00",
                                           "2026-11-22T11:00:00"};
        kvtree_set_kv(entry, SCR_INDEX_FETCHED, when[i]);
    }
    assert_string_equal(scr_index_time(index, &sets[0], SCR_INDEX_FETCHED),
                        "2026-11-22T12:00:00");
    kvtree_delete(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(index_is_changed),
        scratch_test(unusable_index),
        scratch_test(index_is_made),
        scratch_test(made_by_many),
        scratch_test(set_aside_under_the_lock),
        scratch_test(set_aside_without_a_lock),
        scratch_test(readers_have_no_lock),
        scratch_test(kept_from_it),
        scratch_test(lock_of_another_user),
        scratch_test(too_large),
        cmocka_unit_test(why_not),
        cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
