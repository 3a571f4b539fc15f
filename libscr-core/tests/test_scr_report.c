/* SPDX-License-Identifier: BSD-3-Clause */
/* What a message looks like, who prints it, and at which level. */
#include "report/report.h"

#include "check.h"
#include <fcntl.h>

#define LONG 5000

/* What was printed since the last call, at most size - 1 bytes. */
static const char *printed(int pipe_end, char *text, size_t size)
{
    ssize_t n = read(pipe_end, text, size - 1);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static void say_all(scr_report *report)
{
    scr_say(report, SCR_MSG_INDEX_UNREADABLE, "an error");
    scr_say(report, SCR_MSG_INDEX_REBUILT, "a warning");
    scr_say(report, SCR_MSG_FETCH_COMPLETE, "a notice of %d", 1);
    scr_say(report, SCR_MSG_FLUSH_COMPLETE, "information");
    scr_say(report, SCR_MSG_FLUSH_STARTED, "a detail");
}

#define ALWAYS                                                                           \
    "SCR: error: an error [INDEX_UNREADABLE]\n"                                          \
    "SCR: warning: a warning [INDEX_REBUILT]\n"                                          \
    "SCR: a notice of 1 [FETCH_COMPLETE]\n"
#define INFORMATION "SCR: information [FLUSH_COMPLETE]\n"
#define DETAIL "SCR: a detail [FLUSH_STARTED]\n"

static void check_levels(int end)
{
    static const char *const wanted[] = {ALWAYS, ALWAYS INFORMATION,
                                         ALWAYS INFORMATION DETAIL};
    char text[LONG];
    for (int debug = 0; debug < 3; debug++) {
        say_all(&(scr_report){.debug = debug});
        CHECK_STR(printed(end, text, sizeof text), wanted[debug]);
    }
}

/* Other ranks print only what no other rank sees. */
static void check_other_rank(int end)
{
    const scr_report report = {.rank = 1, .debug = 2};
    const scr_log_event event = {.kind = SCR_LOG_HALT, .code = 5};
    char text[LONG];
    scr_say(&report, SCR_MSG_INDEX_REBUILT, "unseen");
    CHECK_INT(scr_event(&report, SCR_MSG_HALT_REQUESTED, &event, "unseen"), 5);
    CHECK_INT(scr_fail(&report, SCR_MSG_FLUSH_FAILED, 7, "unseen"), 7);
    CHECK_INT(scr_fail_local(&report, SCR_MSG_ROUTE_REFUSED, 4, "%s", "here"), 4);
    CHECK_STR(printed(end, text, sizeof text), "SCR: error: here [ROUTE_REFUSED]\n");
}

static void check_long_text(int end)
{
    static const char tail[] = "x [FLUSH_FAILED]\n";
    char text[LONG], name[LONG];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    CHECK_INT(scr_fail(&(scr_report){0}, SCR_MSG_FLUSH_FAILED, 1, "%s", name), 1);
    printed(end, text, sizeof text);
    size_t length = strlen(text);
    CHECK(length > 1000 && length < 1200);
    CHECK_STR(text + length - strlen(tail), tail);
}

int main(int argc, char **argv)
{
    int ends[2], before;
    check_begin(&argc, &argv);
    CHECK((before = dup(STDERR_FILENO)) >= 0 && pipe2(ends, O_NONBLOCK) == 0);
    dup2(ends[1], STDERR_FILENO);
    check_levels(ends[0]);
    check_other_rank(ends[0]);
    check_long_text(ends[0]);
    dup2(before, STDERR_FILENO);
    if (check_failures) puts("see the checks above, which went to a pipe");
    return check_end();
}
