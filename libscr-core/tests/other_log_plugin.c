/* SPDX-License-Identifier: BSD-3-Clause */
/* A plugin of another version, for test_scr_log_db. */
#include "report/log_plugin.h"

const scr_log_plugin scr_log_plugin_table = {.version = SCR_LOG_PLUGIN_VERSION + 1};
