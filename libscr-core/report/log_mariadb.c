/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugin of the log for databases with the protocol of MySQL, using MariaDB's client
 * library; see report/log_plugin.h. Values are sent separately from the statement, never
 * within it. */
#include "report/log_plugin.h"

#include <errmsg.h>
#include <errno.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct maria {
    char *host, *socket, *database, *user, *password, *text;
    unsigned port, answer; /* seconds */
    MYSQL *mysql;          /* NULL: not connected */
    MYSQL_STMT *statement;
    char *err; /* text buffer of the current insert */
    size_t err_size;
};

static void maria_disconnect(struct maria *db)
{
    if (db->statement) mysql_stmt_close(db->statement);
    if (db->mysql) mysql_close(db->mysql);
    db->statement = NULL;
    db->mysql = NULL;
}

static void maria_close(void *self)
{
    struct maria *db = self;
    maria_disconnect(db);
    mysql_thread_end();
    free(db->host);
    free(db->socket);
    free(db->database);
    free(db->user);
    free(db->password);
    free(db->text);
    free(db);
}

/* ---- failures ---- */

/* Returns whether an error of the server affects all events, one event, or may pass. */
static int maria_result(unsigned code)
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

static int maria_no_memory(struct maria *db)
{
    maria_disconnect(db);
    snprintf(db->err, db->err_size, "no memory");
    return -ENOMEM;
}

/* Sets the error text, and disconnects unless only one event was refused. code and text
 * belong to the connection, so they are used before that. */
static int maria_fail(struct maria *db, const char *what, unsigned code, const char *text)
{
    int rc = maria_result(code);
    snprintf(db->err, db->err_size, "%s: %.300s (%u)", what, text, code);
    if (rc != SCR_LOG_REFUSED) maria_disconnect(db);
    return rc;
}

static int maria_fail_statement(struct maria *db, const char *what)
{
    return maria_fail(db, what, mysql_stmt_errno(db->statement),
                      mysql_stmt_error(db->statement));
}

/* ---- connection ---- */

static bool maria_set_options(struct maria *db)
{
    unsigned off = 0;
    return mysql_options(db->mysql, MYSQL_OPT_CONNECT_TIMEOUT, &db->answer) == 0 &&
           mysql_options(db->mysql, MYSQL_OPT_READ_TIMEOUT, &db->answer) == 0 &&
           mysql_options(db->mysql, MYSQL_OPT_WRITE_TIMEOUT, &db->answer) == 0 &&
           mysql_options(db->mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4") == 0 &&
           /* a server may otherwise request files of this machine */
           mysql_options(db->mysql, MYSQL_OPT_LOCAL_INFILE, &off) == 0;
}

static int maria_connect(struct maria *db)
{
    db->mysql = mysql_init(NULL);
    if (!db->mysql || !maria_set_options(db)) return maria_no_memory(db);
    if (!mysql_real_connect(db->mysql, db->host, db->user, db->password, db->database,
                            db->port, db->socket, 0))
        return maria_fail(db, "connect", mysql_errno(db->mysql), mysql_error(db->mysql));
    db->statement = mysql_stmt_init(db->mysql);
    if (!db->statement) return maria_no_memory(db);
    if (mysql_stmt_prepare(db->statement, db->text, (unsigned long)strlen(db->text)) != 0)
        return maria_fail_statement(db, "prepare");
    return 0;
}

/* ---- rows ---- */

/* Executes the statement. All values are texts, which the server converts to the types of
 * the columns. */
static bool maria_execute(struct maria *db, const char *const values[], int count)
{
    MYSQL_BIND bind[SCR_LOG_VALUES_MOST];
    memset(bind, 0, sizeof bind);
    for (int i = 0; i < count; i++) {
        bind[i].buffer_type = values[i] ? MYSQL_TYPE_STRING : MYSQL_TYPE_NULL;
        bind[i].buffer = (void *)(size_t)values[i];
        bind[i].buffer_length = values[i] ? (unsigned long)strlen(values[i]) : 0;
        bind[i].length = &bind[i].buffer_length;
    }
    return mysql_stmt_bind_param(db->statement, bind) == 0 &&
           mysql_stmt_execute(db->statement) == 0;
}

/* Inserts a row. The server closes idle connections, so a lost connection is replaced at
 * once. */
static int maria_insert(void *self, const char *const values[], int count, char *err,
                        size_t size)
{
    struct maria *db = self;
    db->err = err;
    db->err_size = size;
    bool is_new = !db->mysql;
    int rc = is_new ? maria_connect(db) : 0;
    if (rc || maria_execute(db, values, count)) return rc;
    unsigned code = mysql_stmt_errno(db->statement);
    if (is_new || (code != CR_SERVER_GONE_ERROR && code != CR_SERVER_LOST))
        return maria_fail_statement(db, "insert");
    maria_disconnect(db);
    return maria_insert(db, values, count, err, size);
}

/* ---- open ---- */

/* Copies text; NULL stays NULL. */
static bool maria_copy(const char *text, char **to)
{
    *to = text ? strdup(text) : NULL;
    return !text || *to;
}

/* Parses "/path", "name" or "name:port". */
static bool maria_set_host(struct maria *db, const char *host)
{
    if (host && host[0] == '/') return maria_copy(host, &db->socket);
    if (!maria_copy(host, &db->host)) return false;
    char *colon = host ? strchr(db->host, ':') : NULL;
    if (!colon || strchr(colon + 1, ':')) return true; /* IPv6 has several colons */
    *colon = 0;
    db->port = (unsigned)strtoul(colon + 1, NULL, 10);
    return true;
}

static void *maria_open(const scr_log_server *server, const char *statement)
{
    struct maria *db = calloc(1, sizeof *db);
    if (!db) return NULL;
    db->answer = server->answer;
    if (maria_set_host(db, server->host) && maria_copy(server->database, &db->database) &&
        maria_copy(server->user, &db->user) &&
        maria_copy(server->password, &db->password) && maria_copy(statement, &db->text))
        return db;
    maria_close(db);
    return NULL;
}

const scr_log_plugin scr_log_plugin_table = {.version = SCR_LOG_PLUGIN_VERSION,
                                             .open = maria_open,
                                             .insert = maria_insert,
                                             .close = maria_close};
