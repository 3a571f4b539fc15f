/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_H
#define SCR_LOG_H

/* The log of events (SCR Developer Guide 1.2, section 2.14): to a text file and a file of
 * JSON lines below the prefix directory, to syslog, and to a database.
 *
 *     scr_log_options options = {.prefix = fd, .set.targets = 1 << SCR_LOG_TEXT, ...};
 *     scr_log_open(&options, &log);
 *     scr_log_write(log, &(scr_log_event){.kind = SCR_LOG_OUTPUT_COMPLETE, .dset = 3,
 *                                         .name = "ckpt.3", .bytes = 8000, .secs = 0.1});
 *     scr_log_close(log);
 *
 * The log never makes its caller fail, and never waits for a target: a file gets one
 * write per event, syslog one datagram or none, and a separate thread serves the database
 * behind a queue of limited length. Events that a target does not accept are counted, and
 * reported once.
 *
 * One table defines the events and the fields of each (report/log_table.c).
 * docs/formats/log.md and the tables of the database are derived from it. */

#include "config/log_config.h"
#include "report/messages.h"
#include <stddef.h>
#include <stdint.h>

/* In the order of the table. */
typedef enum scr_log_kind {
    SCR_LOG_RUN_START,
    SCR_LOG_RUN_READY,
    SCR_LOG_RUN_END,
    SCR_LOG_RUN_INTERRUPTED,
    SCR_LOG_OUTPUT_START,
    SCR_LOG_OUTPUT_COMPLETE,
    SCR_LOG_OUTPUT_FAILED,
    SCR_LOG_FLUSH_START,
    SCR_LOG_FLUSH_COMPLETE,
    SCR_LOG_FLUSH_FAILED,
    SCR_LOG_FLUSH_STOPPED,
    SCR_LOG_FETCH_START,
    SCR_LOG_FETCH_COMPLETE,
    SCR_LOG_FETCH_FAILED,
    SCR_LOG_REBUILD_START,
    SCR_LOG_DISTRIBUTE_COMPLETE,
    SCR_LOG_REBUILD_COMPLETE,
    SCR_LOG_REBUILD_FAILED,
    SCR_LOG_RESTART_OFFERED,
    SCR_LOG_RESTART_START,
    SCR_LOG_RESTART_COMPLETE,
    SCR_LOG_RESTART_FAILED,
    SCR_LOG_HALT,
    SCR_LOG_NODE_LOST,
    SCR_LOG_LAUNCH_START,
    SCR_LOG_LAUNCH_END,
    SCR_LOG_SCAVENGE_START,
    SCR_LOG_SCAVENGE_COMPLETE,
    SCR_LOG_SCAVENGE_FAILED,
    SCR_LOG_SCRIPT,
    SCR_LOG_ERROR,
    SCR_LOG_KINDS
} scr_log_kind;

/* One event. Only the fields that the table gives its kind, and the fields of every
 * event, are used. Fields of every event that are 0 or NULL are filled in. A text that is
 * NULL or empty is omitted; a text that is longer than its field is cut. */
typedef struct scr_log_event {
    scr_log_kind kind;
    int64_t time;                           /* microseconds since 1970; 0: now */
    const char *run, *user, *job_id, *host; /* NULL: as in the options */
    const char *job_name, *cluster, *prefix;
    int64_t ranks, nodes;
    int64_t dset;
    const char *name, *type;
    const char *from, *to, *method;
    int64_t files, bytes;
    double secs;
    int64_t bandwidth; /* bytes per second; 0: from bytes and secs */
    int64_t rebuilt;
    double compute;
    const char *node;
    int64_t code;
    const char *note;
} scr_log_event;

/* ---- the table ---- */

typedef enum scr_log_field_type {
    SCR_LOG_FIELD_TIME,   /* microseconds; written in UTC: 2026-11-21T21:40:27.123456Z */
    SCR_LOG_FIELD_KIND,   /* name of the event */
    SCR_LOG_FIELD_TEXT,   /* any bytes except NUL */
    SCR_LOG_FIELD_NUMBER, /* int64_t */
    SCR_LOG_FIELD_SECONDS /* double; written with six decimals */
} scr_log_field_type;

typedef struct scr_log_field {
    const char *name;
    scr_log_field_type type;
    size_t offset; /* in scr_log_event */
    size_t most;   /* bytes of a text */
    const char *help;
} scr_log_field;

typedef struct scr_log_type {
    const char *name;
    uint32_t fields; /* bit i: it has scr_log_fields[i] */
    const char *help;
} scr_log_type;

/* All fields in the order in which they are written. An entry without a name ends the
 * list. */
extern const scr_log_field scr_log_fields[];

extern const scr_log_type scr_log_types[SCR_LOG_KINDS];

/* Finds the kind of that name. Returns -ENOENT if there is none. */
int scr_log_find(const char *name, scr_log_kind *kind);

/* ---- the log ---- */

#define SCR_LOG_TEXT_NAME ".scr/log"
#define SCR_LOG_JSON_NAME ".scr/log.jsonl"

/* Suffix of the name of a file that was put aside when its size reached SCR_LOG_SIZE. */
#define SCR_LOG_BEFORE ".1"

/* Strings must outlive the log. */
typedef struct scr_log_options {
    scr_log_settings set;
    int prefix; /* descriptor of the prefix directory, open until the log is closed */
    const char *prefix_path;                /* its path, for metrics */
    const char *run, *user, *job_id, *host; /* for every event */

    const char *syslog_socket; /* NULL: /dev/log */
    const char *db_plugin;     /* file of the plugin; NULL: that of this installation */

    double db_answer; /* time for the server to answer, in seconds; 0: 5 */
    double db_end;    /* time that scr_log_close waits for it, in seconds; 0: 2 */

    /* Called for each message, during a call of the functions below. */
    void (*report)(void *arg, scr_message message, const char *text);
    void *arg;
} scr_log_options;

typedef struct scr_log scr_log;

/* Opens the targets. Failures are reported. Returns 0; or -ENOMEM, and *log is NULL. */
int scr_log_open(const scr_log_options *options, scr_log **log);

/* Logs an event to all targets. log may be NULL. */
void scr_log_write(scr_log *log, const scr_log_event *event);

/* Waits a limited time for a slow target, reports the numbers of dropped events, and
 * frees the log. log may be NULL. Returns NULL. */
scr_log *scr_log_close(scr_log *log);

/* Creates an id for a run from the time and a random number. */
#define SCR_LOG_RUN_SIZE 40
void scr_log_run_id(char id[SCR_LOG_RUN_SIZE]);

#endif
