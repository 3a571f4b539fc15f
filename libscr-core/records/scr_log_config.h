/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_LOG_CONFIG_H
#define SCR_LOG_CONFIG_H

#include "records/scr_log.h"
#include "records/scr_param.h"

/* Sets the targets and the database in options, as the parameters SCR_LOG_... say; the
 * texts are those of config. What is wrong goes to problems. */
void scr_log_configure(const scr_config *config, scr_log_options *options,
                       scr_problems *problems);

#endif
