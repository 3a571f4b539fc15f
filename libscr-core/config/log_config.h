/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_CONFIG_H
#define SCR_LOG_CONFIG_H

#include "config/parameters.h"
#include <stdint.h>

/* The targets of the event log, from the parameters SCR_LOG_... */

enum {
    SCR_LOG_TEXT,
    SCR_LOG_JSON,
    SCR_LOG_SYSLOG,
    SCR_LOG_DATABASE,
    SCR_LOG_METRICS,
    SCR_LOG_TARGETS
};

typedef struct scr_log_settings {
    unsigned targets; /* bit i: target i of the enumeration above */

    uint64_t file_size;  /* size in bytes at which a log file is rotated; 0: never */
    const char *metrics; /* path of the file; NULL: none */

    int syslog_priority; /* facility and level */
    const char *syslog_prefix;

    /* host: a name, name:port, or the path of a socket; NULL: this machine */
    const char *db_host, *db_name, *db_user, *db_pass;
    int db_debug; /* reports each statement */
} scr_log_settings;

/* Reads the parameters. Texts in settings belong to config. Mistakes are added to
 * problems. */
void scr_log_configure(const scr_config *config, scr_log_settings *settings,
                       scr_problems *problems);

#endif
