/* SPDX-License-Identifier: BSD-3-Clause */
/* The log is read as it was written: each kind of event, with any text. What is no log is
 * tested by test_scr_history.c, which reads through the same functions. */
#include "records.h"
#include "report/log.h"
#include "report/log_read.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const texts[] = {"plain",
                                    "",
                                    "a \"b\" c=d",
                                    "\\x41 \\n",
                                    "tab\tnew\nline",
                                    "\xff\xfe\x01",
                                    "\xc3\xa4 \xe2\x80\xae"};
enum { TEXTS = sizeof texts / sizeof *texts, EVENTS = SCR_LOG_KINDS * TEXTS };

static scr_log_event event_of(int number)
{
    const char *text = texts[number % TEXTS];
    return (scr_log_event){.kind = (scr_log_kind)(number / TEXTS),
                           .time = 1795257190123456 + number,
                           .run = "r1",
                           .user = "me",
                           .job_id = "17",
                           .host = "n1",
                           .ranks = 8,
                           .nodes = 4,
                           .dset = 1 + number,
                           .name = text,
                           .type = "checkpoint",
                           .bytes = INT64_MAX,
                           .secs = 1.5,
                           .compute = 2.25,
                           .note = text};
}

static void assert_text(const char *is, const char *wanted)
{
    if (is && *wanted) assert_string_equal(is, wanted);
}

static void take(void *arg, const scr_log_event *e)
{
    int *count = arg;
    scr_log_event wanted = event_of(*count);
    assert_int_equal(e->kind, wanted.kind);
    assert_true(e->time == wanted.time);
    assert_string_equal(e->run, "r1");
    assert_string_equal(e->host, "n1");
    assert_text(e->name, wanted.name);
    assert_text(e->note, wanted.note);
    if (e->kind == SCR_LOG_OUTPUT_COMPLETE) {
        assert_true(e->bytes == INT64_MAX && e->secs == 1.5 && e->dset == 1 + *count);
        assert_true(e->compute < 0); /* it has none */
        assert_string_equal(e->type, "checkpoint");
        assert_true((e->name != NULL) == (*wanted.name != 0));
    }
    if (e->kind == SCR_LOG_OUTPUT_START) assert_true(e->compute == 2.25);
    if (e->kind == SCR_LOG_RUN_READY) assert_null(e->name);
    ++*count;
}

static void round_trip(void **state)
{
    struct scratch *s = *state;
    scr_log_options options = {.set.targets = 1u << SCR_LOG_TEXT, .prefix = s->dir};
    scr_log *log;
    int count = 0;
    assert_int_equal(scr_log_open(&options, &log), 0);
    for (int i = 0; i < EVENTS; i++) {
        scr_log_event e = event_of(i);
        scr_log_write(log, &e);
    }
    scr_log_close(log);
    assert_int_equal(scr_log_read(s->dir, 0, take, &count, &s->err), 0);
    assert_int_equal(count, EVENTS);
}

/* Of a newer version, or with values that are none. */
static void other_lines(void **state)
{
    (void)state;
    scr_log_event e;
    char newer[] = "2026-11-21T10:00:00.000000Z NEWER what=\"x\" run=\"r\" dset=7";
    char wrong[] = "2026-11-21T10:00:00.000000Z RUN_END dset=x secs=none name=3 code=-2";
    char none[] = "2026-11-21T10:00:00.000000Z RUN_END dset";
    assert_int_equal(scr_log_parse(newer, &e), 0);
    assert_int_equal(e.kind, SCR_LOG_OTHER);
    assert_int_equal(e.dset, 7);
    assert_string_equal(e.run, "r");
    assert_int_equal(scr_log_parse(wrong, &e), 0);
    assert_int_equal(e.kind, SCR_LOG_RUN_END);
    assert_true(e.dset == 0 && e.secs < 0 && e.code == -2);
    assert_int_equal(scr_log_parse(none, &e), -EBADMSG);
}

/* ---- files that are put aside ---- */

enum { MOST = 20000, WRITERS = 4, LINES = 400 };

static scr_log *open_small(const struct scratch *s, uint64_t size)
{
    scr_log_options options = {.set = {.targets = 1u << SCR_LOG_TEXT, .file_size = size},
                               .prefix = s->dir,
                               .run = "r1"};
    scr_log *log;
    assert_int_equal(scr_log_open(&options, &log), 0);
    return log;
}

static void put(scr_log *log, int64_t number)
{
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_OUTPUT_START, .dset = number});
}

static off_t size_of(const struct scratch *s, const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(s->dir, name, &st, 0), 0);
    return st.st_size;
}

struct seen {
    int count;
    int64_t first, last;
    bool in_order;
};

static void see(void *arg, const scr_log_event *e)
{
    struct seen *seen = arg;
    if (!seen->count++) *seen = (struct seen){1, e->dset, e->dset, true};
    if (seen->count > 1 && e->dset != seen->last + 1) seen->in_order = false;
    seen->last = e->dset;
}

static struct seen look(struct scratch *s, int64_t most)
{
    struct seen seen = {0};
    assert_int_equal(scr_log_read(s->dir, most, see, &seen, &s->err), 0);
    assert_string_equal(s->err.text, "");
    return seen;
}

/* The two files have the newest events, without a gap. */
static void full_files_are_put_aside(void **state)
{
    struct scratch *s = *state;
    scr_log *log = open_small(s, MOST);
    int line = 0;
    for (int i = 1; i <= 2000; i++) {
        put(log, i);
        if (i == 1) line = (int)size_of(s, ".scr/log");
    }
    struct seen seen = look(s, 0);
    assert_true(seen.in_order && seen.last == 2000 && seen.first > 1);
    assert_true(seen.count > MOST / (line + 3) && seen.count < 2 * (MOST / line) + 2);
    off_t before = size_of(s, ".scr/log.1"), now = size_of(s, ".scr/log");
    assert_true(before >= MOST && before < MOST + line + 3 && now < MOST + line + 3);
    /* the end of both */
    seen = look(s, now + 10 * line);
    assert_true(seen.in_order && seen.last == 2000);
    assert_true(seen.count >= now / (line + 3) + 8 && seen.count <= now / line + 11);
    seen = look(s, 10 * line);
    assert_true(seen.in_order && seen.last == 2000 && seen.count <= 10);
    scr_log_close(log);
}

static void no_limit(void **state)
{
    struct scratch *s = *state;
    scr_log *log = open_small(s, 0);
    for (int i = 1; i <= 2000; i++)
        put(log, i);
    scr_log_close(log);
    assert_int_equal(look(s, 0).count, 2000);
    assert_int_equal(faccessat(s->dir, ".scr/log.1", F_OK, 0), -1);
}

/* Whoever put it aside died then: all events are there, and the next one begins a new
 * file, also from a process that has the old one open. */
static void death_after_the_rename(void **state)
{
    struct scratch *s = *state;
    scr_log *log = open_small(s, MOST);
    put(log, 1);
    assert_int_equal(renameat(s->dir, ".scr/log", s->dir, ".scr/log.1"), 0);
    assert_int_equal(look(s, 0).count, 1);
    put(log, 2);
    struct seen seen = look(s, 0);
    assert_true(seen.count == 2 && seen.in_order);
    assert_true(size_of(s, ".scr/log") == size_of(s, ".scr/log.1"));
    scr_log_close(log);
    assert_int_equal(unlinkat(s->dir, ".scr/log", 0), 0);
    assert_int_equal(unlinkat(s->dir, ".scr/log.1", 0), 0);
    assert_int_equal(scr_log_read(s->dir, 0, see, &seen, &s->err), -ENOENT);
}

/* Another process is about to put it aside. */
static void a_lock_is_respected(void **state)
{
    struct scratch *s = *state;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    scr_log *log = open_small(s, 100);
    int fd = openat(s->dir, ".scr/log", O_RDWR);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    for (int i = 1; i <= 10; i++)
        put(log, i);
    assert_int_equal(faccessat(s->dir, ".scr/log.1", F_OK, 0), -1);
    close(fd);
    put(log, 11);
    assert_int_equal(faccessat(s->dir, ".scr/log.1", F_OK, 0), 0);
    struct seen seen = look(s, 0);
    assert_true(seen.count == 11 && seen.in_order);
    scr_log_close(log);
}

/* A file that cannot be put aside, or read, loses nothing. */
static void what_is_in_the_way(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(mkdirat(s->dir, ".scr/log.1", 0700), 0);
    scr_log *log = open_small(s, 100);
    for (int i = 1; i <= 10; i++)
        put(log, i);
    scr_log_close(log);
    struct seen seen = {0};
    assert_int_equal(scr_log_read(s->dir, 0, see, &seen, &s->err), -EINVAL);
    assert_non_null(strstr(s->err.text, ".scr/log.1"));
    assert_int_equal(unlinkat(s->dir, ".scr/log.1", AT_REMOVEDIR), 0);
    s->err.text[0] = 0;
    assert_int_equal(look(s, 0).count, 10);
}

static void count(void *arg, const scr_log_event *e)
{
    int64_t *next = arg;
    int who = (int)(e->dset / LINES);
    assert_true(who >= 0 && who < WRITERS && e->dset == next[who]);
    next[who]++;
}

/* Several find the file full at the same time: one of them puts it aside. */
static void one_puts_aside(void **state)
{
    struct scratch *s = *state;
    for (int round = 0; round < 10; round++) {
        int64_t next[WRITERS];
        int status;
        for (int i = 0; i < WRITERS; i++) {
            next[i] = (int64_t)i * LINES;
            if (fork() != 0) continue;
            /* more than half of all lines fits: it happens once */
            scr_log *log = open_small(s, (uint64_t)WRITERS * LINES * 48);
            for (int k = 0; k < LINES; k++)
                put(log, (int64_t)i * LINES + k);
            scr_log_close(log);
            _exit(0);
        }
        for (int i = 0; i < WRITERS; i++)
            assert_true(wait(&status) > 0 && status == 0);
        assert_int_equal(scr_log_read(s->dir, 0, count, next, &s->err), 0);
        for (int i = 0; i < WRITERS; i++)
            assert_int_equal(next[i], (int64_t)(i + 1) * LINES);
        assert_int_equal(unlinkat(s->dir, ".scr/log", 0), 0);
        assert_int_equal(unlinkat(s->dir, ".scr/log.1", 0), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {scratch_test(round_trip),
                                       scratch_test(full_files_are_put_aside),
                                       scratch_test(no_limit),
                                       scratch_test(death_after_the_rename),
                                       scratch_test(a_lock_is_respected),
                                       scratch_test(what_is_in_the_way),
                                       scratch_test(one_puts_aside),
                                       cmocka_unit_test(other_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
