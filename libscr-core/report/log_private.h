/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_PRIVATE_H
#define SCR_LOG_PRIVATE_H

/* What the sources of the log share; see report/log.h. */

#include "report/log.h"

/* ---- report/log_event.c: events in memory and as text ---- */

/* A copy in one piece, to be freed: texts are cut, and what may be left open is filled
 * in from options and by the clock. NULL: no memory. */
scr_log_event *scr_log_copy(const scr_log_event *event, const scr_log_options *options);

/* The value of a field as bare text, in buffer or in the event; NULL: it has none. */
#define SCR_LOG_VALUE_SIZE 40
const char *scr_log_value(const scr_log_event *event, const scr_log_field *field,
                          char buffer[SCR_LOG_VALUE_SIZE]);

/* The event as a line with its newline, to be freed; NULL: no memory. *size: bytes. */
char *scr_log_text_line(const scr_log_event *event, size_t *size);
char *scr_log_json_line(const scr_log_event *event, size_t *size);

/* The text form of one value. 0 or -ENOMEM. */
int scr_log_quote(const char *text, char **quoted);

/* ---- report/log_file.c: a file that lines are appended to ---- */

typedef struct scr_log_file {
    int prefix, fd;
    const char *name; /* below the prefix folder */
    int torn;         /* the file does not end with a newline */
} scr_log_file;

/* 0 or -errno with a text. */
int scr_log_file_open(scr_log_file *file, int prefix, const char *name, char *err);

/* Appends the line in one write. 0, or -errno with a text. */
int scr_log_file_write(scr_log_file *file, const char *line, size_t size, char *err);
void scr_log_file_close(scr_log_file *file);

/* ---- report/log_syslog.c ---- */

typedef struct scr_log_syslog {
    int fd;
    const char *path;
} scr_log_syslog;

int scr_log_syslog_open(scr_log_syslog *target, const char *path, char *err);

/* Sends the line (without its time) and never waits. 0, or -errno with a text: -EAGAIN
 * when the daemon does not keep up. */
int scr_log_syslog_write(scr_log_syslog *target, const char *line, size_t size,
                         char *err);
void scr_log_syslog_close(scr_log_syslog *target);

/* ---- report/log_queue.c: a thread that serves a slow target ---- */

/* How a target takes an event, in the thread: 0; -errno with a text when it may take it
 * later; or a verdict, also with a text. */
#define SCR_LOG_REFUSED 1 /* it never takes this one */
#define SCR_LOG_CLOSED 2  /* it takes none in this run */
typedef struct scr_log_sink {
    int (*write)(void *self, const scr_log_event *event, char *err);
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

/* 1, and a text in err, when the target failed since the last call. */
int scr_log_queue_news(scr_log_queue *queue, char *err);

/* Waits so many seconds for the rest to be written; a target that takes longer is left to
 * the thread, which then ends by itself. Returns how many events were dropped in all; err
 * gets what scr_log_queue_news would still have told, or "". */
long scr_log_queue_close(scr_log_queue *queue, double seconds, char *err);

/* ---- report/log_db.c ---- */

/* The statement that the database gets, or with an event the same with its values in
 * place, for people; to be freed. NULL: no memory. */
char *scr_log_statement(const scr_log_event *event);

/* 0 or -errno with a text: -ENOSYS in a build without MariaDB's client library. */
int scr_log_db_open(const scr_log_options *options, scr_log_sink *sink, char *err);

#endif
