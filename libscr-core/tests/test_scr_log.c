/* SPDX-License-Identifier: BSD-3-Clause */
/* The log in files: what is written can be read back, whatever the names are; lines of
 * several processes do not mix; what a log must not be is refused. */
#include "log_records.h"

#include <locale.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define FILES (1u << SCR_LOG_TEXT | 1u << SCR_LOG_JSON)

static scr_log *open_log(const struct scratch *s, unsigned targets, struct told *told)
{
    scr_log *log;
    scr_log_options options = log_options(s, targets, told);
    assert_int_equal(scr_log_open(&options, &log), 0);
    return log;
}

/* ---- forms ---- */

static void hostile_names_come_back(void **state)
{
    const struct scratch *s = *state;
    struct told told;
    char name[LONG_NAME + 1], got[20000];
    scr_log *log = open_log(s, FILES, &told);
    for (int i = 0; hostile_text(i, name); i++)
        scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_FLUSH_FAILED,
                                            .dset = i,
                                            .name = name,
                                            .from = name,
                                            .note = name});
    scr_log_close(log);
    char *text = log_read(s, SCR_LOG_TEXT_NAME), *json = log_read(s, SCR_LOG_JSON_NAME);
    const char *t = text, *j = json;
    for (int i = 0; hostile_text(i, name); i++) {
        static const char *const fields[] = {"name", "from", "note"};
        for (int k = 0; k < 3; k++) {
            assert_int_equal(text_field(t, fields[k], got), 1);
            assert_string_equal(got, name);
            assert_int_equal(json_bytes(j, fields[k], got), 1);
            assert_string_equal(got, name);
        }
        text_field(t, "dset", got);
        assert_int_equal(atoi(got), i);
        t = strchr(t, '\n') + 1;
        j = strchr(j, '\n') + 1;
    }
    assert_true(*t == 0 && *j == 0);
    assert_int_equal(told.lines, 0);
    free(text);
    free(json);
}

/* In the text form there is nothing that a terminal obeys. */
static void text_is_harmless(void **state)
{
    const struct scratch *s = *state;
    struct told told;
    char name[LONG_NAME + 1];
    scr_log *log = open_log(s, FILES, &told);
    for (int i = 0; hostile_text(i, name); i++)
        scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT, .note = name});
    scr_log_close(log);
    char *text = log_read(s, SCR_LOG_TEXT_NAME), *json = log_read(s, SCR_LOG_JSON_NAME);
    for (const char *c = text; *c; c++)
        assert_true((unsigned char)*c >= 0x20 || *c == '\n');
    assert_null(strstr(text, "\xc2\x9b"));
    assert_null(strstr(json, "\xe2\x80\xae"));
    assert_null(strstr(json, "\xe9"));
    assert_non_null(strstr(text, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xbe"));
    assert_non_null(strstr(json, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xbe"));
    free(text);
    free(json);
}

/* Every event, with all that can be given: exactly the fields of the table are there. */
static void fields_are_those_of_the_table(void **state)
{
    struct told told;
    scr_log_options options = log_options(*state, 0, &told);
    char got[20000];
    size_t size;
    scr_log_event full = {.time = 1,
                          .job_name = "j",
                          .cluster = "c",
                          .prefix = "p",
                          .ranks = 8,
                          .nodes = 4,
                          .dset = 3,
                          .name = "n",
                          .type = "t",
                          .from = "f",
                          .to = "o",
                          .method = "m",
                          .files = 9,
                          .bytes = -5,
                          .secs = 1.5,
                          .rebuilt = 2,
                          .compute = 2.25,
                          .node = "d",
                          .code = 7,
                          .note = "e"};
    for (int kind = 0; kind < SCR_LOG_KINDS; kind++) {
        full.kind = (scr_log_kind)kind;
        scr_log_event *event = scr_log_copy(&full, &options);
        char *text = scr_log_text_line(event, &size), *json;
        assert_int_equal(size, strlen(text));
        json = scr_log_json_line(event, &size);
        assert_int_equal(size, strlen(json));
        assert_memory_equal(text, "1970-01-01T00:00:00.000001Z ", 28);
        assert_memory_equal(text + 28, scr_log_types[kind].name,
                            strlen(scr_log_types[kind].name));
        for (int i = 2; scr_log_fields[i].name; i++) {
            int has = scr_log_types[kind].fields >> i & 1;
            assert_int_equal(text_field(text, scr_log_fields[i].name, got), has);
            assert_int_equal(json_field(json, scr_log_fields[i].name, got), has);
        }
        free(text);
        free(json);
        free(event);
    }
}

static void check_value(const scr_log_event *event, const char *field, const char *value)
{
    struct told told;
    struct scratch none = {.dir = -1};
    scr_log_options options = log_options(&none, 0, &told);
    char got[20000] = "";
    size_t size;
    scr_log_event *copy = scr_log_copy(event, &options);
    char *text = scr_log_text_line(copy, &size), *json = scr_log_json_line(copy, &size);
    text_field(text, field, got);
    assert_string_equal(got, value);
    json_field(json, field, got);
    assert_string_equal(got, value);
    free(text);
    free(json);
    free(copy);
}

/* Also where the application's locale has a decimal comma, if there is such a one. */
static void numbers_are_exact(void **state)
{
    const scr_log_kind kind = SCR_LOG_FLUSH_COMPLETE;
    setlocale(LC_ALL, "de_DE.UTF-8");
    check_value(&(scr_log_event){.kind = kind, .secs = 0.25}, "secs", "0.250000");
    check_value(&(scr_log_event){.kind = kind, .secs = 1234567.0000005}, "secs",
                "1234567.000001");
    check_value(&(scr_log_event){.kind = kind, .secs = 1e300}, "secs", "0.000000");
    check_value(&(scr_log_event){.kind = kind, .secs = -1}, "secs", "0.000000");
    check_value(&(scr_log_event){.kind = kind, .bytes = INT64_MAX}, "bytes",
                "9223372036854775807");
    check_value(&(scr_log_event){.kind = kind, .bytes = INT64_MAX, .secs = 1e-9}, "bw",
                "9223372036854775807");
    check_value(&(scr_log_event){.kind = kind, .bytes = 300, .secs = 2}, "bw", "150");
    check_value(&(scr_log_event){.kind = kind, .bytes = 300}, "bw", "0");
    check_value(&(scr_log_event){.kind = kind, .dset = INT64_MIN}, "dset",
                "-9223372036854775808");
    setlocale(LC_ALL, "C");
}

static void times_are_utc(void **state)
{
    struct told told;
    scr_log_options options = log_options(*state, 0, &told);
    static const struct {
        int64_t time;
        const char *text;
    } cases[] = {{1795297227123456, "2026-11-21T21:40:27.123456Z"},
                 {-1, "1969-12-31T23:59:59.999999Z"},
                 {951782400000000, "2000-02-29T00:00:00.000000Z"},
                 {INT64_MAX, "0000-00-00T00:00:00.000000Z"}};
    setenv("TZ", "Pacific/Auckland", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        scr_log_event *event = scr_log_copy(
            &(scr_log_event){.kind = SCR_LOG_HALT, .time = cases[i].time}, &options);
        char *text = scr_log_text_line(event, &size);
        assert_memory_equal(text, cases[i].text, 27);
        free(text);
        free(event);
    }
}

static void long_texts_are_cut(void **state)
{
    char name[5001] = "", limit[4097];
    memset(name, 'y', 5000);
    memcpy(limit, name, 4096);
    limit[4096] = 0;
    check_value(&(scr_log_event){.kind = SCR_LOG_FLUSH_START, .from = name}, "from",
                limit);
    limit[1023] = 0;
    check_value(&(scr_log_event){.kind = SCR_LOG_FLUSH_START, .name = name}, "name",
                limit);
}

static void empty_texts_are_left_out(void **state)
{
    struct told told;
    char got[20000];
    size_t size;
    scr_log_options options = log_options(*state, 0, &told);
    options.run = NULL;
    scr_log_event *event =
        scr_log_copy(&(scr_log_event){.kind = SCR_LOG_HALT, .note = ""}, &options);
    char *text = scr_log_text_line(event, &size);
    assert_int_equal(text_field(text, "note", got), 0);
    assert_int_equal(text_field(text, "run", got), 0);
    assert_int_equal(text_field(text, "jobid", got), 1);
    free(text);
    free(event);
}

static void runs_have_ids_of_their_own(void **state)
{
    char a[SCR_LOG_RUN_SIZE], b[SCR_LOG_RUN_SIZE];
    scr_log_run_id(a);
    scr_log_run_id(b);
    assert_string_not_equal(a, b);
    assert_int_equal(strlen(a), 24);
    assert_int_equal(a[8], 'T');
}

/* ---- several writers ---- */

#define WRITERS 4
#define LINES 400

static void writer(const struct scratch *s, int number)
{
    struct told told;
    char name[LONG_NAME + 1];
    scr_log *log = open_log(s, FILES, &told);
    memset(name, 'a' + number, sizeof name);
    for (int i = 0; i < LINES; i++) {
        name[(i * 97) % LONG_NAME + 1] = 0;
        scr_log_write(
            log, &(scr_log_event){.kind = SCR_LOG_OUTPUT_START, .dset = i, .name = name});
        name[(i * 97) % LONG_NAME + 1] = (char)('a' + number);
    }
    scr_log_close(log);
    _exit(told.lines != 0);
}

/* Every line is whole, and each writer's are in order. */
static void lines_do_not_mix(void **state)
{
    const struct scratch *s = *state;
    int next[WRITERS] = {0}, status;
    char got[20000];
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) writer(s, i);
    for (int i = 0; i < WRITERS; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    char *text = log_read(s, SCR_LOG_TEXT_NAME), *json = log_read(s, SCR_LOG_JSON_NAME);
    assert_int_equal(count_lines(json), WRITERS * LINES);
    for (char *t = text; *t; t = strchr(t, '\n') + 1) {
        if (*t == '\n') continue;
        assert_int_equal(text_field(t, "name", got), 1);
        int who = got[0] - 'a';
        for (const char *c = got; *c; c++)
            assert_int_equal(*c, 'a' + who);
        text_field(t, "dset", got);
        assert_int_equal(atoi(got), next[who]++);
    }
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(next[i], LINES);
    for (char *j = json; *j; j = strchr(j, '\n') + 1)
        if (*j != '\n') assert_int_equal(json_field(j, "name", got), 1);
    free(text);
    free(json);
}

/* ---- what a log must not be ---- */

/* Two events go nowhere, and one warning and one count say so. */
static void refuse_log(const struct scratch *s, const char *why)
{
    struct told told;
    scr_log *log = open_log(s, 1u << SCR_LOG_TEXT, &told);
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT, .note = "one"});
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT, .note = "two"});
    assert_int_equal(told.lines, 1);
    assert_true(told_has(&told, "LOG_TARGET_FAILED", ".scr/log", why));
    scr_log_close(log);
    assert_int_equal(told.lines, 2);
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", "2 ", ".scr/log"));
}

static void links_are_refused(void **state)
{
    const struct scratch *s = *state;
    scratch_put(s, "precious", "data", 4);
    assert_int_equal(symlinkat("../precious", s->dir, ".scr/log"), 0);
    refuse_log(s, "");
    char *text = log_read(s, "precious");
    assert_string_equal(text, "data");
    free(text);
}

static void dangling_links_are_refused(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(symlinkat("../made", s->dir, ".scr/log"), 0);
    refuse_log(s, "");
    assert_int_equal(faccessat(s->dir, "made", F_OK, 0), -1);
}

static void folders_are_refused(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(mkdirat(s->dir, ".scr/log", 0700), 0);
    refuse_log(s, "");
}

static void pipes_are_refused(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(mkfifoat(s->dir, ".scr/log", 0600), 0);
    refuse_log(s, "");
}

static void a_missing_folder_is_told(void **state)
{
    const struct scratch *s = *state;
    assert_int_equal(unlinkat(s->dir, ".scr", AT_REMOVEDIR), 0);
    refuse_log(s, "No such file or directory");
}

/* ---- lines that were cut off ---- */

static void a_torn_line_stays_alone(void **state)
{
    const struct scratch *s = *state;
    struct told told;
    scratch_put(s, ".scr/log", "2026-11-21T21:40:27.123456Z OUTPUT_ST", 37);
    scr_log *log = open_log(s, 1u << SCR_LOG_TEXT, &told);
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT, .note = "one"});
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT, .note = "two"});
    scr_log_close(log);
    char *text = log_read(s, ".scr/log"), got[20000];
    assert_int_equal(count_lines(text), 3);
    const char *line = strchr(text, '\n') + 1;
    assert_int_equal(text_field(line, "note", got), 1);
    assert_string_equal(got, "one");
    free(text);
}

static void set_limit(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* The file may not grow beyond a limit, as on a full disk: a part of a line gets into it,
 * then nothing. Later there is room again. */
static void after_a_full_disk_it_goes_on(void **state)
{
    const struct scratch *s = *state;
    struct told told;
    char got[20000];
    scr_log *log = open_log(s, 1u << SCR_LOG_TEXT, &told);
    signal(SIGXFSZ, SIG_IGN);
    set_limit(300);
    for (int i = 0; i < 10; i++)
        scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_ERROR, .code = i});
    set_limit(RLIM_INFINITY);
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_ERROR, .code = 10});
    scr_log_close(log);
    char *text = log_read(s, ".scr/log"), *line = text;
    int whole = 0, torn = 0, last = -1;
    for (; *line; line = strchr(line, '\n') + 1) {
        char *end = strchr(line, '\n');
        if (end - line < 28 || strncmp(end - 7, " code=", 6) != 0) {
            if (strncmp(end - 8, " code=10", 8) != 0) {
                torn++;
                continue;
            }
        }
        assert_int_equal(text_field(line, "code", got), 1);
        last = atoi(got);
        whole++;
    }
    assert_int_equal(last, 10);
    assert_true(whole >= 3 && torn == 1);
    assert_int_equal(told.lines, 2);
    snprintf(got, sizeof got, "%d ", 11 - whole);
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", got, ".scr/log"));
    free(text);
}

/* Who removes the log in a run, or moves it away, gets a new one. */
static void a_removed_log_is_made_anew(void **state)
{
    const struct scratch *s = *state;
    struct told told;
    scr_log *log = open_log(s, 1u << SCR_LOG_TEXT, &told);
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT, .note = "one"});
    assert_int_equal(unlinkat(s->dir, ".scr/log", 0), 0);
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT, .note = "two"});
    scr_log_close(log);
    char *text = log_read(s, ".scr/log"), got[20000];
    assert_int_equal(count_lines(text), 1);
    assert_int_equal(text_field(text, "note", got), 1);
    assert_string_equal(got, "two");
    assert_int_equal(told.lines, 0);
    free(text);
}

/* ---- nothing at all ---- */

static void no_target_no_file(void **state)
{
    const struct scratch *s = *state;
    struct told told;
    scr_log *log = open_log(s, 0, &told);
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT});
    scr_log_write(NULL, &(scr_log_event){.kind = SCR_LOG_HALT});
    assert_null(scr_log_close(log));
    assert_null(scr_log_close(NULL));
    assert_int_equal(faccessat(s->dir, ".scr/log", F_OK, 0), -1);
    assert_int_equal(told.lines, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(hostile_names_come_back),
        scratch_test(text_is_harmless),
        scratch_test(fields_are_those_of_the_table),
        cmocka_unit_test(numbers_are_exact),
        scratch_test(times_are_utc),
        cmocka_unit_test(long_texts_are_cut),
        scratch_test(empty_texts_are_left_out),
        cmocka_unit_test(runs_have_ids_of_their_own),
        scratch_test(lines_do_not_mix),
        scratch_test(links_are_refused),
        scratch_test(dangling_links_are_refused),
        scratch_test(folders_are_refused),
        scratch_test(pipes_are_refused),
        scratch_test(a_missing_folder_is_told),
        scratch_test(a_torn_line_stays_alone),
        scratch_test(after_a_full_disk_it_goes_on),
        scratch_test(a_removed_log_is_made_anew),
        scratch_test(no_target_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
