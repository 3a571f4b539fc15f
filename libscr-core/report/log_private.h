/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_PRIVATE_H
#define SCR_LOG_PRIVATE_H

/* Declarations that the sources of the log share; see report/log.h. */

#include "report/log.h"
#include "report/log_plugin.h"
#include <stdbool.h>
#include <stdio.h>

/* ---- report/log_event.c: events in memory and as text ---- */

/* Returns a copy in one block, which the caller frees. Texts are cut to the size of their
 * fields. Empty fields of every event are filled in from options and the clock. NULL: no
 * memory. */
scr_log_event *scr_log_copy(const scr_log_event *event, const scr_log_options *options);

/* Returns the value of a field as plain text, in buffer or in the event; NULL: no
 * value. */
#define SCR_LOG_VALUE_SIZE 40
const char *scr_log_value(const scr_log_event *event, const scr_log_field *field,
                          char buffer[SCR_LOG_VALUE_SIZE]);

/* Return the event as a line with its newline, which the caller frees; NULL: no memory.
 * *size: bytes. */
char *scr_log_text_line(const scr_log_event *event, size_t *size);
char *scr_log_json_line(const scr_log_event *event, size_t *size);

/* Writes the text form of a value. */
void scr_log_quote(FILE *out, const char *text);

/* ---- report/log_file.c: a file that lines are appended to ---- */

typedef struct scr_log_file {
    int prefix, fd;
    const char *name; /* relative to the prefix directory */
    uint64_t most;    /* size in bytes at which the file is put aside; 0: never */
    bool is_torn;     /* the file does not end with a newline */
} scr_log_file;

/* Size of a file name in .scr with SCR_LOG_BEFORE. */
#define SCR_LOG_NAME_SIZE 32

/* Sets the members and opens the file. Returns 0 or -errno with a text. */
int scr_log_file_open(scr_log_file *file, int prefix, const char *name, uint64_t most,
                      kvtree_error *err);

/* Appends the line in one write. If the file was removed, put aside or has reached its
 * size, appends to a new file. Returns 0, or -errno with a text. */
int scr_log_file_write(scr_log_file *file, const char *line, size_t size,
                       kvtree_error *err);

/* ---- report/log_syslog.c ---- */

typedef struct scr_log_syslog {
    int fd;
    const char *path;
} scr_log_syslog;

int scr_log_syslog_open(scr_log_syslog *target, const char *path, kvtree_error *err);

/* Sends the line (without its time) and never waits. Returns 0, or -errno with a text:
 * -EAGAIN if the daemon does not keep up. */
int scr_log_syslog_write(scr_log_syslog *target, const scr_log_settings *set,
                         const char *line, size_t size, kvtree_error *err);

/* ---- report/log_queue.c: a thread that serves a slow target ---- */

/* A slow target. The thread calls write, which returns 0; -errno with a text if a later
 * attempt may succeed; or SCR_LOG_REFUSED or SCR_LOG_CLOSED with a text. */
typedef struct scr_log_sink {
    int (*write)(void *self, const scr_log_event *event, kvtree_error *err);
    void (*done)(void *self); /* frees self */
    void *self;
} scr_log_sink;

#define SCR_LOG_QUEUE_LENGTH 1024
#define SCR_LOG_RETRY 10.0 /* seconds between attempts */

typedef struct scr_log_queue scr_log_queue;

/* Starts the thread. Takes ownership of the sink on success. Returns 0 or -errno. */
int scr_log_queue_new(const scr_log_sink *sink, scr_log_queue **queue);

/* Adds an event that scr_log_copy returned. Takes ownership of it. */
void scr_log_queue_add(scr_log_queue *queue, scr_log_event *event);

/* Whether the target failed since the last call. err receives the text, or "". */
bool scr_log_queue_failed(scr_log_queue *queue, kvtree_error *err);

/* Waits at most this number of seconds until the queue is empty. If the target is slower,
 * the thread keeps the target and ends by itself. Returns the total number of dropped
 * events. err receives the text of a failure that scr_log_queue_failed has not returned,
 * or "". */
long scr_log_queue_close(scr_log_queue *queue, double seconds, kvtree_error *err);

/* ---- report/log_plugin.c, report/log_db.c ---- */

#define SCR_LOG_PLUGIN_PATH 4400 /* size of the path of a plugin */

/* Loads the plugin from path, or from its place in this installation (NULL). Returns 0 or
 * -errno with a text that names the file. */
int scr_log_plugin_load(const char *path, const scr_log_plugin **plugin,
                        kvtree_error *err);

/* Returns the text of an INSERT, with question marks (event NULL) or, for users, with the
 * values of an event. The caller frees it. NULL: no memory. */
char *scr_log_statement(const scr_log_event *event);

/* Returns 0 or -errno with a text. */
int scr_log_db_open(const scr_log_options *options, scr_log_sink *sink,
                    kvtree_error *err);

#endif
