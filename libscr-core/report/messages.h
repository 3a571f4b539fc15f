/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_MESSAGES_H
#define SCR_MESSAGES_H

/* The messages of libscr-core: SCR_MSG_<IDENTIFIER> for each entry of messages.def. */

#include "common/message.h"

#define MESSAGE(identifier, severity, meaning, cause, remedy) SCR_MSG_##identifier,
typedef enum scr_message {
#include "report/messages.def"
    SCR_MESSAGES
} scr_message;
#undef MESSAGE

extern const message_kind scr_messages[SCR_MESSAGES];

#endif
