/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_report: reports how all runs in a prefix directory spent their time, according to
 * the log. */
#include "common/batch.h"
#include "common/io.h"
#include "lib/tool.h"
#include "lib/tool_prefix.h"
#include "report/metrics.h"
#include "report/report.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct request {
    const char *dir, *html, *metrics;
    int json;
} request;

typedef void scr_report_writer(FILE *out, const report *r);

/* Opens the directory of the file; *name points to its last component. */
static int scr_report_open_folder(const char *path, int *folder, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    char *above = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!above) return -ENOMEM;
    *folder = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = *folder < 0 ? -errno : 0;
    free(above);
    return rc;
}

/* Writes a complete new file in place of the old one. */
static int scr_report_write(const char *path, scr_report_writer *writer, const report *r)
{
    kvtree_error err = {""};
    const char *name;
    char *text = NULL;
    size_t size = 0;
    int folder = -1;
    int rc = scr_report_open_folder(path, &folder, &name);
    if (rc) return tool_say(REPORT_NOT_WRITTEN, "%s: %s", path, strerror(-rc));
    FILE *out = open_memstream(&text, &size);
    if (out) writer(out, r);
    if (!out || fclose(out) != 0) {
        free(text);
        io_close(&folder);
        return tool_no_memory();
    }
    rc = batch_write(folder, name, 0644, text, size, &err);
    free(text);
    io_close(&folder);
    return rc ? tool_say(REPORT_NOT_WRITTEN, "%s: %s", path, err.text) : COMMAND_GOOD;
}

static void scr_report_write_metrics(FILE *out, const report *r)
{
    scr_metrics_write(out, r->prefix, r->ledger, &r->sum);
}

static int scr_report_make(const tool_prefix *prefix, const request *q)
{
    kvtree_error err = {""};
    scr_ledger l;
    int rc = scr_ledger_read(prefix->dir, &l, &err);
    if (rc == -ENOENT)
        return tool_say(LOG_UNREADABLE, "%s: there is no log; SCR_LOG_ENABLE=1 makes one",
                        prefix->path);
    if (rc) return tool_say(LOG_UNREADABLE, "%s", err.text);
    const report r = {prefix->path, &l, scr_ledger_add_up(&l)};
    int code = COMMAND_GOOD;
    if (q->html) code = scr_report_write(q->html, report_write_html, &r);
    if (q->metrics && code == COMMAND_GOOD)
        code = scr_report_write(q->metrics, scr_report_write_metrics, &r);
    if (code == COMMAND_GOOD && q->json)
        code = report_print_json(&r);
    else if (code == COMMAND_GOOD && !q->html && !q->metrics)
        code = report_print(&r);
    scr_ledger_done(&l);
    return code;
}

int main(int argc, char **argv)
{
    request r = {.dir = NULL};
    const tool_option options[] = {
        TOOL_PREFIX_OPTION(&r.dir),
        {'j', "json", NULL, "print JSON: a summary, and levels, runs and spans of time",
         .flag = &r.json},
        {'H', "html", "FILE", "write a page of HTML that needs no other file",
         .text = &r.html},
        {'m', "metrics", "FILE", "write metrics, as node_exporter reads them",
         .text = &r.metrics},
        {0}};
    const tool t = {
        .arguments = "[OPTION]...",
        .about =
            "Reports what the time of all runs in the prefix directory was spent on, by "
            "their\nlog (SCR_LOG_ENABLE=1): useful computing, checkpoints, failures and "
            "what they\ncost, bandwidths, and the time between checkpoints that would "
            "have been best.\n",
        .codes = "0 done, 1 an error, or there is no log, 2 wrong usage.\n",
        .options = options};
    tool_args args;
    tool_prefix prefix;
    int code = tool_start(&t, argc, argv, &args);
    if (code >= 0) return code;
    code = tool_prefix_open(&prefix, r.dir);
    if (code == COMMAND_GOOD) code = scr_report_make(&prefix, &r);
    tool_prefix_close(&prefix);
    return tool_finish(code);
}
