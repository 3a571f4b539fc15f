/* SPDX-License-Identifier: BSD-3-Clause */
/* The log to a database: a real server gets every byte; one that refuses, hangs or dies
 * costs the job nothing but its events, which are counted. */
#include "log_records.h"
#include "private_server.h"
#include <sys/socket.h>
#include <sys/un.h>

static struct server server; /* pid 0: none can run here */

static scr_log_options db_options(struct told *told, const char *host)
{
    struct scratch none = {.dir = -1};
    scr_log_options options = log_options(&none, 1u << SCR_LOG_DATABASE, told);
    options.db_plugin = SCR_PLUGIN;
    options.set.db_host = host;
    options.set.db_name = "scr";
    options.set.db_user = "scr";
    options.set.db_pass = "secret";
    options.db_answer = 1;
    options.db_end = 1;
    return options;
}

/* With a server that works: as long as it takes. */
static scr_log_options good_options(struct told *told)
{
    scr_log_options options = db_options(told, server.socket);
    options.db_answer = options.db_end = 100;
    return options;
}

static scr_log *open_with(const scr_log_options *options)
{
    scr_log *log;
    assert_int_equal(scr_log_open(options, &log), 0);
    return log;
}

static void write_events(scr_log *log, int count)
{
    for (int i = 1; i <= count; i++)
        scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_OUTPUT_START, .dset = i});
}

/* So many events go to this place in vain, as the text says. A job that has to wait for
 * each answer of a second would take far longer than the alarm leaves it. */
static void in_vain(scr_log_options options, int count, const char *why)
{
    char dropped[20];
    struct told *told = options.arg;
    alarm(60);
    scr_log *log = open_with(&options);
    write_events(log, count);
    scr_log_close(log);
    alarm(0);
    assert_int_equal(told->lines, 2);
    assert_true(told_has(told, "LOG_TARGET_FAILED", "the database", why));
    snprintf(dropped, sizeof dropped, "%d ", count);
    assert_true(told_has(told, "LOG_EVENTS_DROPPED", dropped, "the database"));
    assert_null(strstr(told->text, "secret"));
}

/* ---- a server that works ---- */

#define NEEDS_SERVER                                                                     \
    do {                                                                                 \
        if (!server.pid) skip();                                                         \
        server_do(&server, "scr", "DELETE FROM scr_events");                             \
    } while (0)

/* A column of row i (from 0) has these bytes. */
static void check_column(MYSQL_RES *result, int i, int column, const char *bytes)
{
    mysql_data_seek(result, (unsigned long long)i);
    MYSQL_ROW row = mysql_fetch_row(result);
    unsigned long *lengths = mysql_fetch_lengths(result);
    assert_non_null(row[column]);
    assert_int_equal(lengths[column], strlen(bytes));
    assert_memory_equal(row[column], bytes, lengths[column]);
}

static void hostile_names_come_back(void **state)
{
    NEEDS_SERVER;
    struct told told;
    char name[LONG_NAME + 1];
    scr_log_options options = good_options(&told);
    options.user = "it's";
    scr_log *log = open_with(&options);
    for (int i = 0; hostile_text(i, name); i++)
        scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_FLUSH_FAILED,
                                            .dset = i,
                                            .name = name,
                                            .from = name,
                                            .note = name});
    scr_log_close(log);
    assert_string_equal(told.text, "");
    MYSQL *mysql = server_connect(&server, "scr");
    assert_int_equal(
        mysql_query(mysql, "SELECT name, `from`, note, user FROM scr_events ORDER BY id"),
        0);
    MYSQL_RES *result = mysql_store_result(mysql);
    int i = 0;
    for (; hostile_text(i, name); i++) {
        for (int column = 0; column < 3; column++)
            check_column(result, i, column, name);
        check_column(result, i, 3, "it's");
    }
    assert_int_equal(mysql_num_rows(result), i);
    mysql_free_result(result);
    mysql_close(mysql);
}

static void every_event_has_its_columns(void **state)
{
    NEEDS_SERVER;
    struct told told;
    scr_log_options options = good_options(&told);
    scr_log *log = open_with(&options);
    for (int kind = 0; kind < SCR_LOG_KINDS; kind++)
        scr_log_write(log, &(scr_log_event){.kind = (scr_log_kind)kind,
                                            .time = 1795297227123456,
                                            .dset = 3,
                                            .name = "n",
                                            .ranks = 8,
                                            .bytes = INT64_MAX,
                                            .secs = 2.5,
                                            .code = kind});
    scr_log_close(log);
    assert_string_equal(told.text, "");
    assert_int_equal(server_number(&server, "SELECT COUNT(*) FROM scr_events"),
                     SCR_LOG_KINDS);
    assert_int_equal(
        server_number(&server, "SELECT COUNT(*) FROM scr_events WHERE run = 'run-1' AND "
                               "time = '2026-11-21 21:40:27.123456'"),
        SCR_LOG_KINDS);
    for (int kind = 0; kind < SCR_LOG_KINDS; kind++)
        for (int i = 6; scr_log_fields[i].name; i++) {
            char query[300];
            int has = scr_log_types[kind].fields >> i & 1;
            if (scr_log_fields[i].type == SCR_LOG_FIELD_TEXT) continue;
            snprintf(query, sizeof query,
                     "SELECT COUNT(`%s`) FROM scr_events WHERE event = '%s'",
                     scr_log_fields[i].name, scr_log_types[kind].name);
            assert_int_equal(server_number(&server, query), has);
        }
    assert_int_equal(server_number(&server, "SELECT secs * 2 FROM scr_events WHERE event "
                                            "= 'FLUSH_COMPLETE' AND bytes = "
                                            "9223372036854775807"),
                     5);
    assert_int_equal(server_number(&server, "SELECT COUNT(*) FROM scr_runs WHERE ranks = "
                                            "8 AND started = ended"),
                     1);
    assert_int_equal(server_number(&server, "SELECT COUNT(*) FROM scr_outputs"), 1);
    assert_int_equal(server_number(&server, "SELECT COUNT(*) FROM scr_transfers"), 4);
    assert_int_equal(server_number(&server, "SELECT COUNT(*) FROM scr_failures"), 8);
}

static void statements_are_shown(void **state)
{
    NEEDS_SERVER;
    struct told told;
    scr_log_options options = good_options(&told);
    options.set.db_debug = 1;
    scr_log *log = open_with(&options);
    scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_HALT, .note = "a\nb"});
    scr_log_close(log);
    assert_int_equal(told.lines, 1);
    assert_says(told.text, "INSERT INTO scr_events (`time`, `event`, ");
    assert_says(told.text, "\"HALT\", \"run-1\", \"me\", \"17\", \"n1\", NULL, ");
    assert_says(told.text, ", \"a\\nb\")");
    assert_null(strstr(told.text, "secret"));
}

/* Two processes of one job; each has a connection. */
static void two_writers(void **state)
{
    NEEDS_SERVER;
    int status;
    pid_t pid = fork();
    if (pid == 0) { /* the child has the parent's connection, but none was made yet */
        struct told told;
        scr_log_options options = good_options(&told);
        scr_log *log = open_with(&options);
        write_events(log, 100);
        scr_log_close(log);
        _exit(told.lines != 0);
    }
    struct told told;
    scr_log_options options = good_options(&told);
    scr_log *log = open_with(&options);
    write_events(log, 100);
    scr_log_close(log);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(told.lines, 0);
    assert_int_equal(server_number(&server, "SELECT COUNT(*) FROM scr_events"), 200);
}

/* ---- a server that refuses ---- */

/* What the server counted so far. */
static long status(const char *name)
{
    char query[200];
    snprintf(query, sizeof query,
             "SELECT variable_value FROM information_schema.global_status WHERE "
             "variable_name = '%s'",
             name);
    return server_number(&server, query);
}

/* The server counts a connection after its end; waits until it has counted to wanted. */
static void wait_for_status(const char *name, long wanted)
{
    for (int i = 0; i < 6000 && status(name) < wanted; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(status(name), wanted);
}

/* The server is asked once, also when the log ends later: another answer is not to be
 * expected. */
static void asked_once(const scr_log_options *options, const char *counter)
{
    long before = status(counter);
    const struct told *told = options->arg;
    scr_log *log = open_with(options);
    for (int i = 0; i < 6000 && told->lines == 0; i++) {
        write_events(log, 1);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_int_equal(told->lines, 1);
    scr_log_close(log);
    wait_for_status(counter, before + 1);
}

static void wrong_password(void **state)
{
    NEEDS_SERVER;
    struct told told;
    scr_log_options options = db_options(&told, server.socket);
    options.db_end = 100;
    options.set.db_pass = "guess";
    long before = status("ABORTED_CONNECTS");
    in_vain(options, 30, "connect: Access denied for user 'scr'@'localhost'");
    wait_for_status("ABORTED_CONNECTS", before + 1);
    memset(&told, 0, sizeof told);
    asked_once(&options, "ABORTED_CONNECTS");
}

static void unknown_database(void **state)
{
    NEEDS_SERVER;
    struct told told;
    scr_log_options options = db_options(&told, server.socket);
    options.db_end = 100;
    options.set.db_name = "scrap";
    in_vain(options, 30, "connect: ");
    options = db_options(&told, server.socket);
    options.db_end = 100;
    options.set.db_name = NULL;
    in_vain(options, 30, "No database selected");
}

static void no_table(void **state)
{
    NEEDS_SERVER;
    struct told told;
    scr_log_options options = db_options(&told, server.socket);
    options.db_end = 100;
    server_do(&server, "scr", "RENAME TABLE scr_events TO elsewhere");
    in_vain(options, 30, "prepare: Table 'scr.scr_events' doesn't exist (1146)");
    memset(&told, 0, sizeof told);
    asked_once(&options, "COM_STMT_PREPARE");
    server_do(&server, "scr", "RENAME TABLE elsewhere TO scr_events");
}

/* ---- a server that goes away ---- */

static void wait_for_rows(int rows)
{
    for (int i = 0; i < 6000; i++) {
        if (server_number(&server, "SELECT COUNT(*) FROM scr_events") >= rows) return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("%d rows did not come", rows);
}

/* The server ends the connection; the next event makes a new one. */
static void a_lost_connection_is_made_anew(void **state)
{
    NEEDS_SERVER;
    struct told told;
    scr_log_options options = good_options(&told);
    scr_log *log = open_with(&options);
    write_events(log, 2);
    wait_for_rows(2);
    server_do(&server, "scr",
              "BEGIN NOT ATOMIC FOR c IN (SELECT id FROM information_schema.processlist "
              "WHERE user = 'scr') DO KILL c.id; END FOR; END");
    write_events(log, 3);
    scr_log_close(log);
    assert_int_equal(server_number(&server, "SELECT COUNT(*) FROM scr_events"), 5);
    assert_string_equal(told.text, "");
}

/* It stands still in the middle of a job. */
static void a_server_that_hangs(void **state)
{
    NEEDS_SERVER;
    struct told told;
    scr_log_options options = db_options(&told, server.socket);
    options.db_end = 30; /* of which it gets but the second for an answer */
    scr_log *log = open_with(&options);
    write_events(log, 2);
    wait_for_rows(2);
    server_stand_still(&server);
    alarm(60);
    write_events(log, 3000);
    scr_log_close(log);
    alarm(0);
    kill(server.pid, SIGCONT);
    assert_int_equal(told.lines, 2);
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", "3000 ", "the database"));
    /* the server ends the connection when it notices, and the next test comes after that
     */
    while (server_number(&server, "SELECT COUNT(*) FROM information_schema.processlist "
                                  "WHERE user = 'scr'") > 0)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* It dies in the middle of a job, and a new one takes its place later. */
static void a_server_that_dies(void **state)
{
    NEEDS_SERVER;
    struct told told;
    scr_log_options options = db_options(&told, server.socket);
    scr_log *log = open_with(&options);
    write_events(log, 2);
    wait_for_rows(2);
    server_stop(&server);
    write_events(log, 30);
    alarm(60);
    scr_log_close(log);
    alarm(0);
    assert_int_equal(told.lines, 2);
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", "30 ", "the database"));
    server_run(&server);
    options = good_options(&told);
    log = open_with(&options);
    write_events(log, 2);
    scr_log_close(log);
    assert_string_equal(told.text, "");
}

/* ---- what only looks like a server ---- */

/* A socket that takes connections. */
static int start_stand_in(const struct scratch *s, char path[100])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, 100, "%s/db", s->path);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 5), 0);
    return fd;
}

static void one_that_never_answers(void **state)
{
    struct told told;
    char path[100];
    int fd = start_stand_in(*state, path);
    scr_log_options options = db_options(&told, path);
    options.db_end = 30; /* of which one attempt after the other takes a second */
    in_vain(options, 3000, "connect: ");
    close(fd);
}

/* The end of the job comes while it is waited for. */
static void one_that_never_answers_at_the_end(void **state)
{
    struct told told;
    char path[100];
    int fd = start_stand_in(*state, path);
    scr_log_options options = db_options(&told, path);
    options.db_answer = 2;
    options.db_end = 0.05;
    alarm(60);
    scr_log *log = open_with(&options);
    write_events(log, 5);
    scr_log_close(log);
    alarm(0);
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", "5 ", "the database"));
    close(fd);
}

/* An error packet with what a terminal would obey, and then nothing. */
static void one_that_talks_nonsense(void **state)
{
    static const char packet[] = "\x12\0\0\0\xff\x10\x04#08004\x1b[31mred\n!";
    struct told told;
    char path[100];
    int fd = start_stand_in(*state, path);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            int c = accept(fd, NULL, NULL);
            if (write(c, packet, sizeof packet - 1) < 0) _exit(1);
            close(c);
        }
    }
    scr_log_options options = db_options(&told, path);
    options.db_end = 30;
    in_vain(options, 10, "connect: ");
    assert_null(strchr(told.text, '\x1b'));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(fd);
}

static void nobody_there(void **state)
{
    struct told told;
    char path[100];
    int fd = start_stand_in(*state, path);
    close(fd);
    in_vain(db_options(&told, path), 10, "connect: ");
    in_vain(db_options(&told, "127.0.0.1:1"), 10, "connect: ");
}

/* Many logs, one after the other, leave nothing open. */
static void nothing_stays_open(void **state)
{
    struct told told;
    char path[100];
    int before = dup(0);
    close(before);
    int fd = start_stand_in(*state, path);
    close(fd);
    for (int i = 0; i < 5; i++)
        in_vain(db_options(&told, path), 2, "connect: ");
    int after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

static int start_server(void **state)
{
    static char folder[] = "/tmp/scr-test-XXXXXX";
    if (!server_can_run()) return 0;
    if (!mkdtemp(folder)) return -1;
    server_start(&server, folder);
    struct scratch here = {.dir = AT_FDCWD};
    char *statements = log_read(&here, SCR_MYSQL);
    server_do(&server, "scr", statements);
    server_do(&server, "scr", statements); /* a second time does no harm */
    free(statements);
    return 0;
}

static int stop_server(void **state)
{
    char command[120];
    if (!server.folder[0]) return 0;
    server_stop(&server);
    snprintf(command, sizeof command, "rm -rf %s", server.folder);
    mysql_library_end();
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_names_come_back),
        cmocka_unit_test(every_event_has_its_columns),
        cmocka_unit_test(statements_are_shown),
        cmocka_unit_test(two_writers),
        cmocka_unit_test(wrong_password),
        cmocka_unit_test(unknown_database),
        cmocka_unit_test(no_table),
        cmocka_unit_test(a_lost_connection_is_made_anew),
        cmocka_unit_test(a_server_that_hangs),
        cmocka_unit_test(a_server_that_dies),
        scratch_test(one_that_never_answers),
        scratch_test(one_that_never_answers_at_the_end),
        scratch_test(one_that_talks_nonsense),
        scratch_test(nobody_there),
        scratch_test(nothing_stays_open),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
