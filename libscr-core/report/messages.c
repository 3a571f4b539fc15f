/* SPDX-License-Identifier: BSD-3-Clause */
/* Identifiers and severities of messages.def. */
#include "report/messages.h"

#define MESSAGE(identifier, severity, meaning, cause, remedy)                            \
    {#identifier, MESSAGE_##severity},

const message_kind scr_messages[SCR_MESSAGES] = {
#include "report/messages.def"
};
