/* SPDX-License-Identifier: BSD-3-Clause */
/* What a message looks like, who prints it, and at which level. */
#include "report/report.h"

#include "check.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- ranks of one node ---- */

enum { RANKS = 3 };

typedef struct node {
    char path[40];
    int folder, end;
    scr_once once[RANKS];
} node;

static void node_begin(node *n, int end)
{
    strcpy(n->path, "/tmp/scr-report-XXXXXX");
    CHECK(mkdtemp(n->path) != NULL);
    n->end = end;
    n->folder = open(n->path, O_RDONLY | O_DIRECTORY);
    for (int r = 0; r < RANKS; r++)
        n->once[r] = (scr_once){.folder = &n->folder};
}

/* Its entries are gone. */
static void node_end(node *n)
{
    for (int r = 0; r < RANKS; r++)
        scr_once_end(&n->once[r]);
    CHECK(rmdir(n->path) == 0);
    close(n->folder);
}

/* Whether the rank prints a text about that file. */
static int node_prints(node *n, int rank, const char *file)
{
    const scr_report report = {.rank = rank, .once = &n->once[rank]};
    char text[LONG];
    scr_fail_local(&report, SCR_MSG_ROUTE_REFUSED, 1, "rank %d: \"%s\" is missing", rank,
                   file);
    return strstr(printed(n->end, text, sizeof text), file) != NULL;
}

static void check_reasons(int end)
{
    node n;
    node_begin(&n, end);
    CHECK_INT(node_prints(&n, 0, "mesh"), 1);
    CHECK_INT(node_prints(&n, 1, "mesh"), 0);
    CHECK_INT(node_prints(&n, 1, "atoms"), 1); /* another file is another reason */
    CHECK_INT(node_prints(&n, 0, "atoms"), 0);
    CHECK_INT(node_prints(&n, 2, "rank_2"), 1);
    CHECK_INT(node_prints(&n, 1, "rank_1"), 0);  /* that of another rank is not */
    CHECK_INT(node_prints(&n, 2, "rank_77"), 1); /* a second one of the same rank is */
    CHECK_INT(node_prints(&n, 1, "mesh"), 0);
    for (int r = 0; r < RANKS; r++)
        n.once[r].phase++;
    CHECK_INT(node_prints(&n, 1, "mesh"), 1);
    CHECK_INT(node_prints(&n, 1, "atoms"), 1);
    CHECK_INT(node_prints(&n, 0, "mesh"), 0);
    node_end(&n);
}

static void check_bound(int end)
{
    node n;
    int lines = 0;
    node_begin(&n, end);
    for (int i = 0; i < 20 * 26; i++) {
        char file[] = {(char)('a' + i % 26), (char)('a' + i / 26), 0};
        lines += node_prints(&n, i % RANKS, file);
        lines += node_prints(&n, 0, "rank_1");
    }
    CHECK_INT(lines, SCR_ONCE_LINES);
    node_end(&n);
}

/* Where nothing can be claimed, all print. */
static void check_no_folder(int end)
{
    node n;
    node_begin(&n, end);
    CHECK(rmdir(n.path) == 0);
    CHECK_INT(node_prints(&n, 0, "mesh"), 1);
    CHECK_INT(node_prints(&n, 1, "mesh"), 1);
    CHECK(mkdir(n.path, 0700) == 0);
    node_end(&n);
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
    check_reasons(ends[0]);
    check_bound(ends[0]);
    check_no_folder(ends[0]);
    dup2(before, STDERR_FILENO);
    if (check_failures) puts("see the checks above, which went to a pipe");
    return check_end();
}
