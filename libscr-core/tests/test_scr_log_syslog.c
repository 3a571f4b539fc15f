/* SPDX-License-Identifier: BSD-3-Clause */
/* The log to syslog, with a socket that stands in for /dev/log. */
#include "log_records.h"

#include <regex.h>
#include <sys/socket.h>
#include <sys/un.h>

static char path[100];

/* The daemon's socket. */
static int start_daemon(const struct scratch *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "%s/log", s->path);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void stop_daemon(int fd)
{
    close(fd);
    assert_int_equal(unlink(path), 0);
}

static scr_log *open_log(const struct scratch *s, struct told *told)
{
    scr_log *log;
    scr_log_options options = log_options(s, 1u << SCR_LOG_SYSLOG, told);
    options.syslog_socket = path;
    assert_int_equal(scr_log_open(&options, &log), 0);
    return log;
}

static void write_name(scr_log *log, int dset, const char *name)
{
    scr_log_write(
        log, &(scr_log_event){.kind = SCR_LOG_FETCH_START, .dset = dset, .name = name});
}

/* The next message, or "". */
static void receive(int fd, char text[20000])
{
    ssize_t n = recv(fd, text, 19999, 0);
    text[n > 0 ? n : 0] = 0;
}

static void name_and_priority_of_messages(void **state)
{
    struct told told;
    char text[20000];
    scr_log *log;
    int fd = start_daemon(*state);
    scr_log_options options = log_options(*state, 1u << SCR_LOG_SYSLOG, &told);
    options.syslog_socket = path;
    options.set.syslog_priority = LOG_USER | LOG_ERR;
    options.set.syslog_prefix = "atlas";
    assert_int_equal(scr_log_open(&options, &log), 0);
    write_name(log, 1, "a");
    receive(fd, text);
    assert_int_equal(strncmp(text, "<11>", 4), 0);
    assert_non_null(strstr(text, " atlas["));
    scr_log_close(log);
    stop_daemon(fd);
}

static void messages_are_those_of_syslog(void **state)
{
    struct told told;
    char text[20000], got[20000], name[LONG_NAME + 1];
    regex_t header;
    int fd = start_daemon(*state);
    scr_log *log = open_log(*state, &told);
    assert_int_equal(regcomp(&header,
                             "^<190>[A-Z][a-z][a-z] [ 1-3][0-9] "
                             "[0-9:]{8} SCR\\[[0-9]+\\]: FETCH_START run=\"run-1\" ",
                             REG_EXTENDED),
                     0);
    for (int i = 0; hostile_text(i, name); i++) {
        write_name(log, i, name);
        receive(fd, text);
        assert_int_equal(regexec(&header, text, 0, NULL, 0), 0);
        assert_null(strchr(text, '\n'));
        /* behind the header it is a line of the text form without its time */
        char *line = strstr(text, "]: ") + 3 - 28;
        memcpy(line, "2026-11-21T21:40:27.123456Z ", 28);
        strcat(line, "\n");
        assert_int_equal(text_field(line, "name", got), 1);
        assert_string_equal(got, name);
        text_field(line, "dset", got);
        assert_int_equal(atoi(got), i);
    }
    scr_log_close(log);
    assert_int_equal(told.lines, 0);
    regfree(&header);
    stop_daemon(fd);
}

static void without_a_daemon(void **state)
{
    const struct scratch *s = *state;
    struct told told;
    snprintf(path, sizeof path, "%s/log", s->path);
    scr_log *log = open_log(s, &told);
    write_name(log, 1, "one");
    write_name(log, 2, "two");
    assert_int_equal(told.lines, 1);
    assert_true(
        told_has(&told, "LOG_TARGET_FAILED", "syslog", "No such file or directory"));
    scr_log_close(log);
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", "2 ", "syslog"));
    assert_int_equal(told.lines, 2);
}

/* What comes while it is away is lost, and counted. */
static void a_daemon_is_started_anew(void **state)
{
    struct told told;
    char text[20000];
    int fd = start_daemon(*state);
    scr_log *log = open_log(*state, &told);
    write_name(log, 1, "one");
    stop_daemon(fd);
    write_name(log, 2, "two");
    write_name(log, 3, "three");
    fd = start_daemon(*state);
    write_name(log, 4, "four");
    receive(fd, text);
    assert_says(text, "dset=4 name=\"four\"");
    stop_daemon(fd);
    fd = start_daemon(*state);
    write_name(log, 5, "five");
    receive(fd, text);
    assert_says(text, "dset=5 name=\"five\"");
    scr_log_close(log);
    assert_int_equal(told.lines, 2);
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", "2 ", "syslog"));
    stop_daemon(fd);
}

/* The daemon takes nothing: syslog(3) would wait. alarm ends the test if this does. */
static void a_daemon_that_hangs_is_not_waited_for(void **state)
{
    struct told told;
    char text[20000], count[100];
    int fd = start_daemon(*state), received = 0;
    scr_log *log = open_log(*state, &told);
    alarm(100);
    for (int i = 0; i < 5000; i++)
        write_name(log, i, "a name");
    alarm(0);
    for (receive(fd, text); text[0]; receive(fd, text))
        received++;
    assert_true(received > 0 && received < 5000);
    scr_log_close(log);
    assert_int_equal(told.lines, 2);
    assert_says(told.text, "Resource temporarily unavailable");
    snprintf(count, sizeof count, "%d ", 5000 - received);
    assert_true(told_has(&told, "LOG_EVENTS_DROPPED", count, "syslog"));
    stop_daemon(fd);
}

static void a_path_that_no_socket_has(void **state)
{
    struct told told;
    scr_log *log;
    scr_log_options options = log_options(*state, 1u << SCR_LOG_SYSLOG, &told);
    char longer[300];
    memset(longer, 'x', sizeof longer);
    longer[299] = 0;
    options.syslog_socket = longer;
    assert_int_equal(scr_log_open(&options, &log), 0);
    assert_says(told.text, "File name too long");
    scr_log_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(messages_are_those_of_syslog),
        scratch_test(name_and_priority_of_messages),
        scratch_test(without_a_daemon),
        scratch_test(a_daemon_is_started_anew),
        scratch_test(a_daemon_that_hangs_is_not_waited_for),
        scratch_test(a_path_that_no_socket_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
