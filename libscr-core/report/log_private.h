/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_PRIVATE_H
#define SCR_LOG_PRIVATE_H

/* What the sources of the log share; see report/log.h. */

#include "report/log.h"
#include "report/log_plugin.h"
#include <stdbool.h>
#include <stdio.h>

/* ---- report/log_event.c: events in memory and as text ---- */

/* A copy in one piece, to be freed: texts are cut, and empty fields that every event has
 * are filled in from options and by the clock. NULL: no memory. */
scr_log_event *scr_log_copy(const scr_log_event *event, const scr_log_options *options);

/* The value of a field as bare text, in buffer or in the event; NULL: it has none. */
#define SCR_LOG_VALUE_SIZE 40
const char *scr_log_value(const scr_log_event *event, const scr_log_field *field,
                          char buffer[SCR_LOG_VALUE_SIZE]);

/* The event as a line with its newline, to be freed; NULL: no memory. *size: bytes. */
char *scr_log_text_line(const scr_log_event *event, size_t *size);
char *scr_log_json_line(const scr_log_event *event, size_t *size);

/* Writes the text form of one value. */
void scr_log_quote(FILE *out, const char *text);

/* ---- report/log_file.c: a file that lines are appended to ---- */

typedef struct scr_log_file {
    int prefix, fd;
    const char *name; /* below the prefix directory */
    uint64_t most;    /* bytes at which the file is put aside; 0: never */
    bool is_torn;     /* the file does not end with a newline */
} scr_log_file;

/* Bytes of a name of a log with SCR_LOG_BEFORE. */
#define SCR_LOG_NAME_SIZE 32

/* Sets the members, and opens the file. 0 or -errno with a text. */
int scr_log_file_open(scr_log_file *file, int prefix, const char *name, uint64_t most,
                      kvtree_error *err);

/* Appends the line in one write, to a new file where the old one was removed, put aside
 * or has reached its size. 0, or -errno with a text. */
int scr_log_file_write(scr_log_file *file, const char *line, size_t size,
                       kvtree_error *err);

/* ---- report/log_syslog.c ---- */

typedef struct scr_log_syslog {
    int fd;
    const char *path;
} scr_log_syslog;

int scr_log_syslog_open(scr_log_syslog *target, const char *path, kvtree_error *err);

/* Sends the line (without its time) and never waits. 0, or -errno with a text: -EAGAIN
 * when the daemon does not keep up. */
int scr_log_syslog_write(scr_log_syslog *target, const scr_log_settings *set,
                         const char *line, size_t size, kvtree_error *err);

/* ---- report/log_queue.c: a thread that serves a slow target ---- */

/* A slow target. write, in the thread: 0; -errno with a text when a later attempt may
 * succeed; or SCR_LOG_REFUSED or SCR_LOG_CLOSED with a text. */
typedef struct scr_log_sink {
    int (*write)(void *self, const scr_log_event *event, kvtree_error *err);
    void (*done)(void *self); /* frees self */
    void *self;
} scr_log_sink;

#define SCR_LOG_QUEUE_LENGTH 1024
#define SCR_LOG_RETRY 10.0 /* seconds between attempts */

typedef struct scr_log_queue scr_log_queue;

/* Takes the sink over if it succeeds. 0 or -errno. */
int scr_log_queue_new(const scr_log_sink *sink, scr_log_queue **queue);

/* Takes the event over, which is from scr_log_copy. */
void scr_log_queue_add(scr_log_queue *queue, scr_log_event *event);

/* Whether the target failed since the last call; err gets the text, or "". */
bool scr_log_queue_failed(scr_log_queue *queue, kvtree_error *err);

/* Waits at most this number of seconds until the queue is empty; afterwards the thread
 * keeps a slower target and ends by itself. Returns the number of events dropped in all;
 * err gets the text of a failure that scr_log_queue_failed has not returned, or "". */
long scr_log_queue_close(scr_log_queue *queue, double seconds, kvtree_error *err);

/* ---- report/log_plugin.c, report/log_db.c ---- */

#define SCR_LOG_PLUGIN_PATH 4400 /* bytes of the path of a plugin */

/* Loads the plugin from path, or from its place in this installation (NULL). 0 or -errno
 * with a text that names the file. */
int scr_log_plugin_load(const char *path, const scr_log_plugin **plugin,
                        kvtree_error *err);

/* The statement of an INSERT, with question marks (event NULL) or with the values of an
 * event, for people; to be freed. NULL: no memory. */
char *scr_log_statement(const scr_log_event *event);

/* 0 or -errno with a text. */
int scr_log_db_open(const scr_log_options *options, scr_log_sink *sink,
                    kvtree_error *err);

#endif
