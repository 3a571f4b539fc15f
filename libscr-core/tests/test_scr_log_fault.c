/* SPDX-License-Identifier: BSD-3-Clause */
/* The log in files, stopped at every system call: wherever the process is killed, there
 * are whole lines; whatever fails, the log goes on, and each event is in the file or
 * counted. */
#include "log_records.h"
#include "nth_syscall.h"

#include "common/io.h"
#include <sys/mman.h>

#define EVENTS 4

struct child {
    const struct scratch *scratch;
    struct told *told; /* shared with it */
};

static int log_events(void *arg)
{
    const struct child *child = arg;
    scr_log *log;
    scr_log_options options =
        log_options(child->scratch, 1u << SCR_LOG_TEXT | 1u << SCR_LOG_JSON, child->told);
    if (scr_log_open(&options, &log) != 0) return 2; /* no memory */
    for (int i = 0; i < EVENTS; i++)
        scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_OUTPUT_START,
                                            .dset = i,
                                            .name = "a name\nof two lines"});
    scr_log_close(log);
    return 0;
}

/* All lines parse and are in order, and the last one has its newline. Returns how many
 * there are. */
static int check_lines(const struct scratch *s, const char *name,
                       int (*field)(const char *, const char *, char *))
{
    char *text = log_read(s, name), got[20000];
    int last = -1, lines = 0;
    for (char *line = text; *line; line = strchr(line, '\n') + 1) {
        assert_non_null(strchr(line, '\n'));
        assert_int_equal(field(line, "dset", got), 1);
        assert_true(atoi(got) > last);
        last = atoi(got);
        lines++;
    }
    free(text);
    return lines;
}

/* The number in the last line that a log told of a target. */
static int dropped(const struct told *told, const char *target)
{
    static const char identifier[] = "LOG_EVENTS_DROPPED: ";
    char what[100];
    int count = 0;
    snprintf(what, sizeof what, " %s\n", target);
    for (const char *at = told->text; (at = strstr(at, identifier)) && !count;) {
        at += sizeof identifier - 1;
        const char *end = strstr(at, what);
        if (end && end < strchr(at, '\n')) count = atoi(at);
    }
    return count;
}

static void start_anew(const struct child *child)
{
    unlinkat(child->scratch->dir, ".scr/log", 0);
    unlinkat(child->scratch->dir, ".scr/log.jsonl", 0);
    memset(child->told, 0, sizeof *child->told);
}

static struct child make_child(void **state)
{
    struct child child = {.scratch = *state};
    child.told = mmap(NULL, sizeof *child.told, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(child.told != MAP_FAILED);
    return child;
}

/* The number of calls in all; 0: it cannot be watched here, and the test is skipped. */
static unsigned count_calls(struct child *child, nth_result *result)
{
    nth_fault none = {0, 0};
    int rc = nth_run(log_events, child, nth_at, &none, result);
    if (rc) {
        print_message("system calls cannot be watched here: %s\n", strerror(rc));
        return 0;
    }
    assert_int_equal(nth_returned(result), 0);
    assert_int_equal(check_lines(child->scratch, ".scr/log", text_field), EVENTS);
    assert_int_equal(check_lines(child->scratch, ".scr/log.jsonl", json_field), EVENTS);
    assert_int_equal(child->told->lines, 0);
    return result->count;
}

static nth_result result;

static void killed_at_any_call(void **state)
{
    struct child child = make_child(state);
    unsigned calls = count_calls(&child, &result);
    int lines = 0;
    if (!calls) skip();
    /* a sanitizer makes a few calls of its own, now more, now less */
    for (unsigned at = 1; at <= calls; at++) {
        nth_fault fault = {at, NTH_KILL};
        start_anew(&child);
        assert_int_equal(nth_run(log_events, &child, nth_at, &fault, &result), 0);
        assert_true(nth_was_killed(&result) || at + 10 > calls);
        int now = check_lines(child.scratch, ".scr/log", text_field);
        int json = check_lines(child.scratch, ".scr/log.jsonl", json_field);
        assert_true(now >= lines && json <= now && json >= now - 1);
        lines = now;
    }
    assert_int_equal(lines, EVENTS);
    munmap(child.told, sizeof *child.told);
}

static void each_call_fails(void **state)
{
    static const int answers[] = {ENOSPC, EROFS, EIO, EINTR, EACCES};
    struct child child = make_child(state);
    unsigned calls = count_calls(&child, &result), warned = 0;
    if (!calls) skip();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        for (unsigned at = 1; at <= calls; at++) {
            nth_fault fault = {at, answers[i]};
            start_anew(&child);
            assert_int_equal(nth_run(log_events, &child, nth_at, &fault, &result), 0);
            if (nth_returned(&result) == 2)
                continue; /* no memory, and nothing was done */
            assert_int_equal(nth_returned(&result), 0);
            int text = check_lines(child.scratch, ".scr/log", text_field);
            int json = check_lines(child.scratch, ".scr/log.jsonl", json_field);
            assert_int_equal(text + dropped(child.told, ".scr/log"), EVENTS);
            assert_int_equal(json + dropped(child.told, ".scr/log.jsonl"), EVENTS);
            warned += child.told->lines > 0;
            if (at <= result.count && nth_is(&result.calls[at - 1], "writev"))
                assert_int_equal(text + json < 2 * EVENTS, answers[i] != EINTR);
        }
    assert_true(warned > 20);
    munmap(child.told, sizeof *child.told);
}

/* One warning for all that follows. */
static int all_writes_fail(void *arg, unsigned n, const nth_call *call)
{
    return nth_is(call, "writev") ? *(int *)arg : NTH_GO;
}

static void all_writes_of_a_full_disk(void **state)
{
    int answer = ENOSPC;
    struct child child = make_child(state);
    if (!count_calls(&child, &result)) skip();
    start_anew(&child);
    assert_int_equal(nth_run(log_events, &child, all_writes_fail, &answer, &result), 0);
    assert_int_equal(nth_returned(&result), 0);
    assert_int_equal(child.told->lines, 4);
    assert_true(told_has(child.told, "LOG_TARGET_FAILED",
                         ".scr/log: ", "write .scr/log: No space left on device"));
    assert_int_equal(dropped(child.told, ".scr/log"), EVENTS);
    assert_int_equal(dropped(child.told, ".scr/log.jsonl"), EVENTS);
    munmap(child.told, sizeof *child.told);
}

/* ---- two writers find the file full ---- */

#define FULL_NAME "full"
#define FULL_LINE "a line that fills the file\n"

static int append(const struct scratch *s, const char *line)
{
    kvtree_error err;
    scr_log_file file;
    int rc = scr_log_file_open(&file, s->dir, FULL_NAME, strlen(FULL_LINE), &err);
    if (!rc) rc = scr_log_file_write(&file, line, strlen(line), &err);
    io_close(&file.fd);
    return rc;
}

static int append_one(void *scratch)
{
    return append(scratch, "one\n") != 0;
}

struct other {
    const struct scratch *scratch;
    unsigned at;
};

/* The other writer writes while the first one stands still before that call. */
static int append_other(void *arg, unsigned n, const nth_call *call)
{
    const struct other *other = arg;
    (void)call;
    if (n == other->at) assert_int_equal(append(other->scratch, "other\n"), 0);
    return NTH_GO;
}

/* Only one of them puts it aside: a second time would lose it. */
static void two_put_a_full_file_aside(void **state)
{
    struct scratch *s = *state;
    struct other other = {s, 0};
    int aside = 0;
    do {
        unlinkat(s->dir, FULL_NAME SCR_LOG_BEFORE, 0);
        unlinkat(s->dir, FULL_NAME, 0);
        assert_int_equal(append(s, FULL_LINE), 0);
        other.at++;
        int rc = nth_run(append_one, s, append_other, &other, &result);
        if (rc) {
            print_message("system calls cannot be watched here: %s\n", strerror(rc));
            skip();
        }
        assert_int_equal(nth_returned(&result), 0);
        char *before = log_read(s, FULL_NAME SCR_LOG_BEFORE),
             *now = log_read(s, FULL_NAME);
        const int has_other = other.at <= result.count;
        assert_memory_equal(before, FULL_LINE, strlen(FULL_LINE));
        assert_int_equal(count_lines(before) + count_lines(now), 2 + has_other);
        assert_true(strstr(now, "one\n") != NULL);
        assert_int_equal(strstr(before, "other\n") || strstr(now, "other\n"), has_other);
        aside += !strcmp(before, FULL_LINE);
        free(before);
        free(now);
    } while (other.at <= result.count);
    assert_true(aside > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(killed_at_any_call),
        scratch_test(each_call_fails),
        scratch_test(all_writes_of_a_full_disk),
        scratch_test(two_put_a_full_file_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
