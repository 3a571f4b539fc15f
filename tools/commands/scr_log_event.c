/* SPDX-License-Identifier: BSD-3-Clause */
/* scr_log_event: adds an event to the log, for job scripts (SCR Developer Guide 1.2,
 * section 2.14). */
#include "lib/tool_log.h"

int main(int argc, char **argv)
{
    return tool_log_main(argc, argv, 0);
}
