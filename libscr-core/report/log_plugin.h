/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_PLUGIN_H
#define SCR_LOG_PLUGIN_H

/* The interface between the log and the plugin that writes to a database. The plugin is a
 * shared module, so that libscr and applications need no database client. It exports one
 * object, scr_log_plugin_table, and uses no symbol of libscr. It stays loaded until the
 * process ends, because a thread that waits for the server may still be inside. */

#include <stddef.h>

#define SCR_LOG_PLUGIN_VERSION 1
#define SCR_LOG_PLUGIN_NAME "scr_log_mariadb.so"
#define SCR_LOG_PLUGIN_SYMBOL "scr_log_plugin_table"

/* Strings may be NULL. */
typedef struct scr_log_server {
    const char *host; /* name, name:port or the path of a socket; NULL: this machine */
    const char *database, *user, *password;
    unsigned answer; /* time for the server to answer, in seconds */
} scr_log_server;

/* Positive results of an insert. The text gives the reason. */
#define SCR_LOG_REFUSED 1 /* the server never takes this event */
#define SCR_LOG_CLOSED 2  /* the server takes no event of this run */

#define SCR_LOG_VALUES_MOST 32 /* maximum number of values in a statement */

typedef struct scr_log_plugin {
    int version; /* SCR_LOG_PLUGIN_VERSION; the first member in every version */

    /* Copies server and statement (an INSERT with a question mark for each value), and
     * does not connect yet. NULL: no memory. */
    void *(*open)(const scr_log_server *server, const char *statement);

    /* Connects if necessary, and stores a row; NULL values are NULL in the database.
     * Returns 0; -errno with a text of at most size bytes if a later attempt may succeed;
     * or a positive result as above. */
    int (*insert)(void *self, const char *const values[], int count, char *err,
                  size_t size);

    /* Disconnects and frees, in the thread that inserts. */
    void (*close)(void *self);
} scr_log_plugin;

extern const scr_log_plugin scr_log_plugin_table __attribute__((visibility("default")));

#endif
