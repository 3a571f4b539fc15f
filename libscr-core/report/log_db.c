/* SPDX-License-Identifier: BSD-3-Clause */
/* The database as a target of the log. Each event is a row of the table that scr.mysql
 * creates; a plugin stores it (report/log_plugin.h). */
#include "report/log_private.h"

#include "common/errtext.h"
#include "common/io.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *scr_log_statement(const scr_log_event *event)
{
    char *text = NULL, buffer[SCR_LOG_VALUE_SIZE];
    size_t size;
    const scr_log_field *f;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    for (f = scr_log_fields; f->name; f++)
        fprintf(out, "%s`%s`", f == scr_log_fields ? "INSERT INTO scr_events (" : ", ",
                f->name);
    for (f = scr_log_fields; f->name; f++) {
        const char *value = event ? scr_log_value(event, f, buffer) : NULL;
        fputs(f == scr_log_fields ? ") VALUES (" : ", ", out);
        if (value)
            scr_log_quote(out, value);
        else
            fputs(event ? "NULL" : "?", out);
    }
    fputc(')', out);
    return io_text_end(out, &text);
}

struct log_db {
    const scr_log_plugin *plugin;
    void *server;
};

static int log_db_write(void *self, const scr_log_event *event, kvtree_error *err)
{
    struct log_db *db = self;
    char buffer[SCR_LOG_VALUES_MOST][SCR_LOG_VALUE_SIZE];
    const char *values[SCR_LOG_VALUES_MOST];
    int n = 0;
    for (const scr_log_field *f = scr_log_fields; f->name; f++, n++) {
        values[n] = scr_log_value(event, f, buffer[n]);
        if (values[n] && f->type == SCR_LOG_FIELD_TIME)
            buffer[n][strlen(buffer[n]) - 1] = 0; /* time columns have no 'Z' */
    }
    kvtree_error cause = {""};
    int rc = db->plugin->insert(db->server, values, n, cause.text, sizeof cause.text);
    return rc ? err_set(err, rc, "%s", cause.text) : 0;
}

static void log_db_done(void *self)
{
    struct log_db *db = self;
    db->plugin->close(db->server);
    free(db);
}

int scr_log_db_open(const scr_log_options *options, scr_log_sink *sink, kvtree_error *err)
{
    const scr_log_plugin *plugin;
    int rc = scr_log_plugin_load(options->db_plugin, &plugin, err);
    if (rc) return rc;
    const scr_log_server server = {
        .host = options->set.db_host,
        .database = options->set.db_name,
        .user = options->set.db_user,
        .password = options->set.db_pass,
        /* clients count whole seconds */
        .answer = options->db_answer > 0 ? (unsigned)(options->db_answer + 0.999) : 5};
    struct log_db *db = malloc(sizeof *db);
    char *statement = scr_log_statement(NULL);
    void *opened = db && statement ? plugin->open(&server, statement) : NULL;
    free(statement);
    if (!opened) {
        free(db);
        return err_set(err, -ENOMEM, "no memory");
    }
    *db = (struct log_db){plugin, opened};
    *sink = (scr_log_sink){.write = log_db_write, .done = log_db_done, .self = db};
    return 0;
}
