/* SPDX-License-Identifier: BSD-3-Clause */
/* Halt conditions, one by one and together, and the halt file. */
#include "halt/halt.h"
#include "records.h"
#include <errno.h>
#include <sys/wait.h>

#define NOW 1298944000

static const scr_halt_end nowhere = {0, NULL};

/* Whether text, as a halt file, halts a run at NOW. */
static int halts(const char *text, char reason[SCR_HALT_REASON_SIZE])
{
    kvtree *halt = text_tree(text);
    memset(reason, '#', 128);
    int now = scr_halt_check(halt, &nowhere, NOW, reason);
    kvtree_delete(&halt);
    if (now)
        assert_true(reason[0] && memchr(reason, 0, 128));
    else
        assert_int_equal(reason[0], '#');
    return now;
}

static void each_condition(void **state)
{
    static const struct {
        const char *text, *reason; /* NULL: the run continues */
    } cases[] = {
        {"", NULL},
        {"ExitReason\n  SCR_FINALIZE_CALLED\n", "SCR_FINALIZE_CALLED"},
        {"ExitReason\n  because I say so\n", "because I say so"},
        {"ExitReason\n", NULL},
        {"ExitReason\n  one\n  two\n", "one"},
        {"ExitReason\n  a\tb\033[2J\n", "a?b?[2J"},
        {"CheckpointsLeft\n  7\n", NULL},
        {"CheckpointsLeft\n  1\n", NULL},
        {"CheckpointsLeft\n  0\n", "the requested number of checkpoints"},
        {"CheckpointsLeft\n  -1\n", "the requested number of checkpoints"},
        {"ExitAfter\n  1298944001\n", NULL},
        {"ExitAfter\n  1298944000\n", "ExitAfter"},
        {"ExitAfter\n  1298943999\n", "ExitAfter"},
        {"ExitAfter\n  0\n", "ExitAfter"},
        {"ExitBefore\n  1298944001\n", NULL},
        {"ExitBefore\n  1298944000\n", "0 seconds are left until ExitBefore"},
        {"ExitBefore\n  1298000000\n", "0 seconds are left until ExitBefore"},
        {"HaltSeconds\n  1200\n", NULL},
        {"ExitBefore\n  1298945201\nHaltSeconds\n  1200\n", NULL},
        {"ExitBefore\n  1298945200\nHaltSeconds\n  1200\n", "1200 seconds are left"},
        {"ExitBefore\n  1298944100\nHaltSeconds\n  1200\n", "100 seconds are left"},
        {"ExitBefore\n  1298944001\nHaltSeconds\n  -5\n", NULL},
        {"ExitBefore\n  1298944000\nHaltSeconds\n  -5\n", "0 seconds are left"},
        /* a text that is not a number is no condition; numbers at the limits do not
         * overflow */
        {"CheckpointsLeft\n  none\nExitAfter\n  soon\nExitBefore\n  now\n", NULL},
        {"ExitAfter\n  9223372036854775807\n", NULL},
        {"ExitAfter\n  9223372036854775808\n", NULL},
        {"ExitBefore\n  9223372036854775807\nHaltSeconds\n  1\n", NULL},
        {"ExitBefore\n  9223372036854775807\nHaltSeconds\n  -9223372036854775808\n",
         NULL},
        {"ExitBefore\n  -9223372036854775808\nHaltSeconds\n  9223372036854775807\n",
         "0 seconds are left"},
        {"ExitBefore\n  9223372036854775807\nHaltSeconds\n  9223372036854775807\n",
         "seconds are left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char reason[SCR_HALT_REASON_SIZE];
        int now = halts(cases[i].text, reason);
        if (now != (cases[i].reason != NULL)) fail_msg("%s: %d", cases[i].text, now);
        if (now) assert_says(reason, cases[i].reason);
    }
}

/* Each condition is sufficient by itself. */
static void all_together(void **state)
{
    static const char *const texts[][2] = {
        {"CheckpointsLeft\n  7\n", "CheckpointsLeft\n  0\n"},
        {"ExitAfter\n  1298944800\n", "ExitAfter\n  1298937600\n"},
        {"ExitBefore\n  1298946000\n", "ExitBefore\n  1298944800\n"},
        {"", "ExitReason\n  SCR_FINALIZE_CALLED\n"}};
    for (int set = 0; set < 16; set++) {
        char text[256] = "HaltSeconds\n  1200\n", reason[128];
        for (int i = 0; i < 4; i++)
            strcat(text, texts[i][set >> i & 1]);
        assert_int_equal(halts(text, reason), set != 0);
    }
}

static void long_reason_is_cut(void **state)
{
    char reason[SCR_HALT_REASON_SIZE], text[1024] = "ExitReason\n  ";
    memset(text + strlen(text), 'r', 1000);
    text[1013] = 0;
    assert_int_equal(halts(text, reason), 1);
    assert_int_equal(strlen(reason), 127);
}

static void no_file_at_all(void **state)
{
    char reason[SCR_HALT_REASON_SIZE];
    assert_int_equal(scr_halt_check(NULL, &nowhere, NOW, reason), 0);
    assert_int_equal(scr_halt_count_checkpoint(NULL), 0);
}

/* The first reason stays; the next start removes SCR's own reasons, and no others. */
static void reasons(void **state)
{
    static const struct {
        const char *reason;
        int own;
    } cases[] = {{"SCR_FINALIZE_CALLED", 1},
                 {"SCR_SIGNAL: SIGTERM came to rank 3", 1},
                 {"SCR_HALT_EXIT: because", 1},
                 {"SCR_FINALIZE_CALLED_BY_ME", 0},
                 {"SCR_", 0},
                 {"because I say so", 0},
                 {"SCR_SIGNAL from a user", 0}};
    char reason[SCR_HALT_REASON_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kvtree *halt = text_tree("CheckpointsLeft\n  7\n");
        assert_int_equal(scr_halt_drop_own_reason(halt), 0);
        assert_int_equal(scr_halt_add_reason(halt, cases[i].reason), 1);
        assert_int_equal(scr_halt_add_reason(halt, SCR_HALT_FINALIZED), 0);
        assert_int_equal(scr_halt_check(halt, &nowhere, NOW, reason), 1);
        assert_string_equal(reason, cases[i].reason);
        assert_int_equal(scr_halt_drop_own_reason(halt), cases[i].own);
        assert_int_equal(scr_halt_check(halt, &nowhere, NOW, reason), !cases[i].own);
        kvtree_delete(&halt);
    }
    assert_true(scr_halt_add_reason(NULL, "x") < 0);
    assert_int_equal(scr_halt_drop_own_reason(NULL), 0);
}

/* ---- the end of the allocation ---- */

static void end_of_allocation(void **state)
{
    static const struct {
        const char *text;
        int64_t end;
        const char *reason;
    } cases[] = {
        {"HaltSeconds\n  1200\n", NOW + 1201, NULL},
        {"HaltSeconds\n  1200\n", NOW + 1200,
         "1200 seconds are left until the allocation"},
        {"HaltSeconds\n  1200\n", NOW - 5, "0 seconds are left until the allocation"},
        {"HaltSeconds\n  1200\n", 0, NULL},
        /* without HaltSeconds the run does not end early */
        {"", NOW + 1, NULL},
        {"HaltSeconds\n  0\n", NOW - 1, NULL},
        {"HaltSeconds\n  -7\n", NOW - 1, NULL},
        /* the earlier end counts */
        {"HaltSeconds\n  9\nExitBefore\n  1298944009\n", NOW + 1000, "ExitBefore"},
        {"HaltSeconds\n  9\nExitBefore\n  1298945000\n", NOW + 9, "(SOMEBODY)"},
        {"HaltSeconds\n  9\nExitBefore\n  1298945000\n", NOW + 10, NULL},
        {"HaltSeconds\n  9223372036854775807\n", INT64_MAX, "(SOMEBODY)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char reason[SCR_HALT_REASON_SIZE] = "";
        const scr_halt_end end = {cases[i].end, "SOMEBODY"};
        kvtree *halt = text_tree(cases[i].text);
        int now = scr_halt_check(halt, &end, NOW, reason);
        if (now != (cases[i].reason != NULL)) fail_msg("case %zu: %d", i, now);
        if (now) assert_says(reason, cases[i].reason);
        kvtree_delete(&halt);
    }
}

static void end_is_missing(void **state)
{
    static const struct {
        const char *text;
        int lacks; /* without another end */
    } cases[] = {{"", 0},
                 {"HaltSeconds\n  0\n", 0},
                 {"HaltSeconds\n  5\n", 1},
                 {"HaltSeconds\n  5\nExitAfter\n  7\n", 1},
                 {"HaltSeconds\n  5\nExitBefore\n  7\n", 0}};
    const scr_halt_end end = {NOW, "SOMEBODY"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kvtree *halt = text_tree(cases[i].text);
        assert_int_equal(scr_halt_lacks_end(halt, &nowhere), cases[i].lacks);
        assert_int_equal(scr_halt_lacks_end(halt, &end), 0);
        kvtree_delete(&halt);
    }
}

static void end_in_the_environment(void **state)
{
    static const char *const bad[] = {"soon", "12:00", "0",
                                      "-5",   "1e9",   "99999999999999999999"};
    kvtree_error err = {""};
    scr_halt_end end = {7, "untouched"};
    unsetenv("SLURM_JOB_END_TIME");
    assert_int_equal(scr_halt_find_end(&end, &err), 0);
    assert_int_equal(end.time, 7);
    setenv("SLURM_JOB_END_TIME", "", 1);
    assert_int_equal(scr_halt_find_end(&end, &err), 0);
    assert_int_equal(end.time, 7);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("SLURM_JOB_END_TIME", bad[i], 1);
        assert_int_equal(scr_halt_find_end(&end, &err), -EINVAL);
        assert_says(err.text, bad[i]);
        assert_int_equal(end.time, 7);
    }
    setenv("SLURM_JOB_END_TIME", "4102444800", 1);
    assert_int_equal(scr_halt_find_end(&end, &err), 0);
    assert_int_equal(end.time, 4102444800);
    assert_string_equal(end.source, "SLURM_JOB_END_TIME");
    unsetenv("SLURM_JOB_END_TIME");
}

static void checkpoints_are_counted(void **state)
{
    char reason[SCR_HALT_REASON_SIZE];
    kvtree *halt = text_tree("CheckpointsLeft\n  3\nHaltSeconds\n  5\n");
    for (int left = 2; left >= 0; left--) {
        int is;
        assert_int_equal(scr_halt_check(halt, &nowhere, NOW, reason), 0);
        assert_int_equal(scr_halt_count_checkpoint(halt), 1);
        assert_int_equal(kvtree_util_get_int(halt, "CheckpointsLeft", &is), 0);
        assert_int_equal(is, left);
    }
    assert_int_equal(scr_halt_check(halt, &nowhere, NOW, reason), 1);
    assert_int_equal(scr_halt_count_checkpoint(halt), 0); /* does not go below 0 */
    kvtree_util_set_str(halt, "CheckpointsLeft", "many");
    assert_int_equal(scr_halt_count_checkpoint(halt), 0);
    assert_tree(halt, "CheckpointsLeft\n  many\nHaltSeconds\n  5\n");
    kvtree_delete(&halt);
}

static void file(void **state)
{
    struct scratch *s = *state;
    const char *text = "CheckpointsLeft\n  7\nExitAfter\n  1298937600\nExitBefore\n"
                       "  1298944800\nHaltSeconds\n  1200\n";
    kvtree *halt = text_tree(text), *read = kvtree_new();
    assert_int_equal(scr_halt_read(s->dir, read, &s->err), 0); /* missing: empty */
    assert_int_equal(kvtree_size(read), 0);
    assert_int_equal(scr_halt_write(s->dir, halt, &s->err), 0);
    assert_int_equal(faccessat(s->dir, ".scr/halt.scr", R_OK, 0), 0);
    assert_int_equal(scr_halt_read(s->dir, read, &s->err), 0);
    assert_tree(read, text);
    assert_string_equal(s->err.text, "");
    kvtree_delete(&halt);
    kvtree_delete(&read);
}

static void unusable_file(void **state)
{
    struct scratch *s = *state;
    kvtree *halt = text_tree("HaltSeconds\n  5\n"), *read = kvtree_new();
    assert_int_equal(scr_halt_write(s->dir, halt, &s->err), 0);
    scratch_flip(s, SCR_HALT_NAME, 25);
    assert_int_equal(scr_halt_read(s->dir, read, &s->err), -EBADMSG);
    assert_says(s->err.text, SCR_HALT_NAME);
    assert_int_equal(kvtree_size(read), 0);
    assert_int_equal(unlinkat(s->dir, SCR_HALT_NAME, 0), 0);
    assert_int_equal(unlinkat(s->dir, ".scr", AT_REMOVEDIR), 0);
    assert_int_equal(scr_halt_write(s->dir, halt, &s->err), -ENOENT);
    kvtree_delete(&halt);
    kvtree_delete(&read);
}

/* ---- changes ---- */

static int count_down(kvtree *halt, void *calls)
{
    ++*(int *)calls;
    return scr_halt_count_checkpoint(halt);
}

static int no_memory(kvtree *halt, void *unused)
{
    return -ENOMEM;
}

static void count_down_often(int dir, int times)
{
    for (int i = 0, calls = 0; i < times; i++) {
        kvtree *halt = kvtree_new();
        if (scr_halt_change(dir, count_down, &calls, halt, NULL) != 0) _exit(1);
        kvtree_delete(&halt);
    }
    _exit(0);
}

/* A run counts down while people change conditions: no change is lost. */
static void no_change_is_lost(void **state)
{
    enum { PROCESSES = 4, TIMES = 50 };
    struct scratch *s = *state;
    kvtree *halt = text_tree("CheckpointsLeft\n  201\n");
    assert_int_equal(scr_halt_write(s->dir, halt, &s->err), 0);
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) count_down_often(s->dir, TIMES);
    }
    for (int i = 0, status; i < PROCESSES; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    kvtree_unset_all(halt);
    assert_int_equal(scr_halt_read(s->dir, halt, &s->err), 0);
    assert_tree(halt, "CheckpointsLeft\n  1\n");
    kvtree_delete(&halt);
}

/* If nothing changes, no file is created or written, and no lock is needed. */
static void change_of_nothing(void **state)
{
    struct scratch *s = *state;
    struct stat before, after;
    int calls = 0;
    kvtree *halt = kvtree_new();
    assert_int_equal(scr_halt_change(s->dir, count_down, &calls, halt, &s->err), 0);
    assert_int_equal(faccessat(s->dir, SCR_HALT_NAME, F_OK, 0), -1);
    kvtree_util_set_int(halt, "CheckpointsLeft", 0);
    assert_int_equal(scr_halt_write(s->dir, halt, &s->err), 0);
    assert_int_equal(fstatat(s->dir, SCR_HALT_NAME, &before, 0), 0);
    kvtree_unset_all(halt);
    assert_int_equal(scr_halt_change(s->dir, count_down, &calls, halt, &s->err), 0);
    assert_int_equal(fstatat(s->dir, SCR_HALT_NAME, &after, 0), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_tree(halt, "CheckpointsLeft\n  0\n"); /* the contents of the file */
    assert_int_equal(calls, 2);
    kvtree_delete(&halt);
}

static void change_that_fails(void **state)
{
    struct scratch *s = *state;
    int calls = 0;
    kvtree *halt = text_tree("CheckpointsLeft\n  7\n");
    assert_int_equal(scr_halt_write(s->dir, halt, &s->err), 0);
    kvtree_unset_all(halt);
    assert_int_equal(scr_halt_change(s->dir, no_memory, NULL, halt, &s->err), -ENOMEM);
    assert_says(s->err.text, SCR_HALT_NAME);
    scratch_flip(s, SCR_HALT_NAME, 25);
    kvtree_unset_all(halt);
    assert_int_equal(scr_halt_change(s->dir, count_down, &calls, halt, &s->err),
                     -EBADMSG);
    assert_int_equal(kvtree_size(halt), 0);
    kvtree_delete(&halt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_condition),
        cmocka_unit_test(all_together),
        cmocka_unit_test(long_reason_is_cut),
        cmocka_unit_test(no_file_at_all),
        cmocka_unit_test(reasons),
        cmocka_unit_test(end_of_allocation),
        cmocka_unit_test(end_is_missing),
        cmocka_unit_test(end_in_the_environment),
        cmocka_unit_test(checkpoints_are_counted),
        scratch_test(file),
        scratch_test(unusable_file),
        scratch_test(no_change_is_lost),
        scratch_test(change_of_nothing),
        scratch_test(change_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
