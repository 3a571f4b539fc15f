/* SPDX-License-Identifier: BSD-3-Clause */
/* From parameters to the targets of the log; see config/log_config.h. */
#include "config/log_config.h"

void scr_log_configure(const scr_config *config, scr_log_settings *settings,
                       scr_problems *problems)
{
    static const char *const switches[] = {[SCR_LOG_TEXT] = "SCR_LOG_TXT_ENABLE",
                                           [SCR_LOG_JSON] = "SCR_LOG_JSON_ENABLE",
                                           [SCR_LOG_SYSLOG] = "SCR_LOG_SYSLOG_ENABLE",
                                           [SCR_LOG_DATABASE] = "SCR_LOG_DB_ENABLE"};
    int all = 0;
    settings->targets = 0;
    scr_config_switch(config, "SCR_LOG_ENABLE", &all, problems);
    for (int i = 0; i < SCR_LOG_TARGETS; i++) {
        int on = 0;
        scr_config_switch(config, switches[i], &on, problems);
        if (all && on) settings->targets |= 1u << i;
    }
    settings->db_host = scr_config_get(config, "SCR_LOG_DB_HOST", NULL);
    settings->db_name = scr_config_get(config, "SCR_LOG_DB_NAME", NULL);
    settings->db_user = scr_config_get(config, "SCR_LOG_DB_USER", NULL);
    settings->db_pass = scr_config_get(config, "SCR_LOG_DB_PASS", NULL);
    scr_config_switch(config, "SCR_LOG_DB_DEBUG", &settings->db_debug, problems);
}
