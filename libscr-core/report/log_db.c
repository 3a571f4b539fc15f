/* SPDX-License-Identifier: BSD-3-Clause */
/* A database that speaks the protocol of MySQL, by MariaDB's client library; see
 * report/log.h. All of an event goes into one row of the table that scr.mysql makes.
 * Values travel beside the statement, never within it. */
#include "report/log_private.h"

#include "common/errtext.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE "scr_events"

/* "INSERT INTO scr_events (`time`, ...) VALUES (" */
static void put_columns(FILE *out)
{
    fputs("INSERT INTO " TABLE " (", out);
    for (const scr_log_field *f = scr_log_fields; f->name; f++)
        fprintf(out, "%s`%s`", f == scr_log_fields ? "" : ", ", f->name);
    fputs(") VALUES (", out);
}

static void put_value(FILE *out, const scr_log_event *event, const scr_log_field *f)
{
    char buffer[SCR_LOG_VALUE_SIZE], *quoted = NULL;
    const char *value = event ? scr_log_value(event, f, buffer) : "?";
    if (event && value && scr_log_quote(value, &quoted) == 0) value = quoted;
    fprintf(out, "%s%s", f == scr_log_fields ? "" : ", ", value ? value : "NULL");
    free(quoted);
}

char *scr_log_statement(const scr_log_event *event)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    put_columns(out);
    for (const scr_log_field *f = scr_log_fields; f->name; f++)
        put_value(out, event, f);
    fputc(')', out);
    int bad = ferror(out);
    if (fclose(out) == 0 && !bad) return text;
    free(text);
    return NULL;
}

#ifdef HAVE_MARIADB

#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>

#define FIELDS_MOST 32 /* bits of scr_log_type.fields */

struct database {
    char *host, *socket, *name, *user, *pass;
    unsigned port, answer; /* seconds */
    MYSQL *mysql;          /* NULL: not connected */
    MYSQL_STMT *statement;
};

static void disconnect(struct database *db)
{
    if (db->statement) mysql_stmt_close(db->statement);
    if (db->mysql) mysql_close(db->mysql);
    db->statement = NULL;
    db->mysql = NULL;
}

static void done(void *self)
{
    struct database *db = self;
    disconnect(db);
    mysql_thread_end();
    free(db->host);
    free(db->socket);
    free(db->name);
    free(db->user);
    free(db->pass);
    free(db);
}

/* What the server will say to every event, and what it says to this one only. */
static int verdict_of(unsigned code)
{
    switch (code) {
    case ER_ACCESS_DENIED_ERROR:
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_BAD_DB_ERROR:
    case ER_NO_DB_ERROR:
    case ER_NO_SUCH_TABLE:
    case ER_BAD_FIELD_ERROR:
    case ER_PARSE_ERROR:
        return SCR_LOG_CLOSED;
    case ER_DATA_TOO_LONG:
    case ER_TRUNCATED_WRONG_VALUE:
    case ER_TRUNCATED_WRONG_VALUE_FOR_FIELD:
    case ER_WARN_DATA_OUT_OF_RANGE:
        return SCR_LOG_REFUSED;
    default:
        return -EIO;
    }
}

/* code and text are of the connection, which goes away here. */
static int fail(struct database *db, const char *what, unsigned code, const char *text,
                char *err)
{
    int rc = verdict_of(code);
    err_set(err, rc, "%s: %.300s (%u)", what, text, code);
    /* the text comes from the other side */
    for (char *c = err; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    if (rc != SCR_LOG_REFUSED) disconnect(db);
    return rc;
}

static int set_options(struct database *db)
{
    unsigned off = 0;
    int bad = mysql_options(db->mysql, MYSQL_OPT_CONNECT_TIMEOUT, &db->answer);
    bad |= mysql_options(db->mysql, MYSQL_OPT_READ_TIMEOUT, &db->answer);
    bad |= mysql_options(db->mysql, MYSQL_OPT_WRITE_TIMEOUT, &db->answer);
    bad |= mysql_options(db->mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    /* a server may otherwise ask for files of this machine */
    bad |= mysql_options(db->mysql, MYSQL_OPT_LOCAL_INFILE, &off);
    return bad;
}

static int prepare(struct database *db, char *err)
{
    char *text = scr_log_statement(NULL);
    db->statement = text ? mysql_stmt_init(db->mysql) : NULL;
    int bad = !db->statement ||
              mysql_stmt_prepare(db->statement, text, (unsigned long)strlen(text)) != 0;
    free(text);
    if (!db->statement) {
        disconnect(db);
        return err_set(err, -ENOMEM, "no memory");
    }
    return bad ? fail(db, "prepare", mysql_stmt_errno(db->statement),
                      mysql_stmt_error(db->statement), err)
               : 0;
}

static int open_connection(struct database *db, char *err)
{
    db->mysql = mysql_init(NULL);
    if (!db->mysql || set_options(db) != 0) {
        disconnect(db);
        return err_set(err, -ENOMEM, "no memory");
    }
    if (!mysql_real_connect(db->mysql, db->host, db->user, db->pass, db->name, db->port,
                            db->socket, 0))
        return fail(db, "connect", mysql_errno(db->mysql), mysql_error(db->mysql), err);
    return prepare(db, err);
}

/* Everything as text, which the server makes into what the column is. */
static int execute(struct database *db, const scr_log_event *event)
{
    MYSQL_BIND bind[FIELDS_MOST];
    char buffer[FIELDS_MOST][SCR_LOG_VALUE_SIZE];
    unsigned long length[FIELDS_MOST];
    char null = 1;
    memset(bind, 0, sizeof bind);
    for (int i = 0; scr_log_fields[i].name; i++) {
        const scr_log_field *f = &scr_log_fields[i];
        const char *value = scr_log_value(event, f, buffer[i]);
        length[i] = value ? (unsigned long)strlen(value) : 0;
        if (value && f->type == SCR_LOG_FIELD_TIME) length[i]--; /* no 'Z' there */
        bind[i].buffer_type = value ? MYSQL_TYPE_STRING : MYSQL_TYPE_NULL;
        bind[i].buffer = (void *)(uintptr_t)value;
        bind[i].buffer_length = length[i];
        bind[i].length = &length[i];
        bind[i].is_null = value ? NULL : &null;
    }
    return mysql_stmt_bind_param(db->statement, bind) != 0 ||
           mysql_stmt_execute(db->statement) != 0;
}

/* A connection that the server closed meanwhile, because it was idle, is made anew. */
static int store(void *self, const scr_log_event *event, char *err)
{
    struct database *db = self;
    int fresh = !db->mysql, rc = fresh ? open_connection(db, err) : 0;
    if (rc) return rc;
    if (execute(db, event) == 0) return 0;
    unsigned code = mysql_stmt_errno(db->statement);
    if (!fresh && (code == CR_SERVER_GONE_ERROR || code == CR_SERVER_LOST)) {
        disconnect(db);
        return store(db, event, err);
    }
    return fail(db, "insert", code, mysql_stmt_error(db->statement), err);
}

/* NULL stays NULL. */
static int copy(const char *text, char **to)
{
    *to = text ? strdup(text) : NULL;
    return text && !*to;
}

/* "/path", "name" or "name:port". */
static int set_host(struct database *db, const char *host)
{
    if (!host) return 0;
    if (host[0] == '/') return copy(host, &db->socket);
    const char *colon = strchr(host, ':');
    if (copy(host, &db->host) != 0) return 1;
    if (!colon || strchr(colon + 1, ':')) return 0; /* an address of IPv6 has several */
    db->host[colon - host] = 0;
    db->port = (unsigned)strtoul(colon + 1, NULL, 10);
    return 0;
}

int scr_log_db_open(const scr_log_options *options, scr_log_sink *sink, char *err)
{
    struct database *db = calloc(1, sizeof *db);
    if (!db || set_host(db, options->set.db_host) ||
        copy(options->set.db_name, &db->name) || copy(options->set.db_user, &db->user) ||
        copy(options->set.db_pass, &db->pass)) {
        if (db) done(db);
        return err_set(err, -ENOMEM, "no memory");
    }
    /* whole seconds are what the client library knows */
    db->answer = options->db_answer > 0 ? (unsigned)(options->db_answer + 0.999) : 5;
    *sink = (scr_log_sink){.write = store, .done = done, .self = db};
    return 0;
}

#else

int scr_log_db_open(const scr_log_options *options, scr_log_sink *sink, char *err)
{
    return err_set(err, -ENOSYS, "this SCR was built without MariaDB's client library");
}

#endif
