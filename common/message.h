/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_MESSAGE_H
#define COMMON_MESSAGE_H

/* Messages to users. Each ends with its identifier, which never changes, while texts may:
 * "SCR: warning: 3 events were not logged to syslog [LOG_EVENTS_DROPPED]".
 *
 * A table lists the identifiers, their severities, and their descriptions in
 * docs/messages.md. The table is a file of sorted entries, included with a different
 * macro for each use:
 *
 *     MESSAGE(LOG_EVENTS_DROPPED, WARNING, "meaning", "cause", "remedy") */

#include "common/prefix.h"
#include <stdarg.h>
#include <stddef.h>

#define message_format COMMON(message_format)
#define message_level COMMON(message_level)
#define message_word COMMON(message_word)

typedef enum message_severity {
    MESSAGE_ERROR,
    MESSAGE_WARNING,
    MESSAGE_NOTICE, /* always printed, like errors and warnings */
    MESSAGE_INFO,   /* SCR_DEBUG=1 */
    MESSAGE_DEBUG   /* SCR_DEBUG=2 */
} message_severity;

typedef struct message_kind {
    const char *identifier;
    message_severity severity;
} message_kind;

/* Writes "text [IDENTIFIER]". A text that is too long is truncated, its identifier is
 * not; size must exceed that of an identifier (at most 40 bytes) by 4. */
void message_format(char *line, size_t size, const message_kind *kind, const char *format,
                    va_list args) __attribute__((format(printf, 4, 0)));

/* Returns the level of SCR_DEBUG from which on the message is printed. */
int message_level(const message_kind *kind);

/* Returns the word before the text: "error: ", "warning: " or "". */
const char *message_word(const message_kind *kind);

#endif
