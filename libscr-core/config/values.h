/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_VALUES_H
#define SCR_VALUES_H

/* The values of all parameters of a run, and what is wrong with them: for SCR_Init, and
 * for commands that say before a job what SCR_Init will refuse. */

#include "config/descs.h"
#include "config/parameters.h"
#include <stdint.h>

/* Values of parameters, the same on every rank but for the bases. */
struct scr_settings {
    int enable, debug;
    const char *cntl_base; /* of this node */
    int cache_purge, cache_keep;
    const char *current; /* or NULL */
    int distribute, fetch, fetch_bypass, fetch_on_init, flush, flush_on_restart,
        crc_on_flush;
    int crc_on_copy, crc_on_delete;
    int flush_width, fetch_width, flush_async, containers;
    int prefix_size, prefix_purge, global_restart;
    const char *flush_method;
    unsigned log_targets;                     /* of config/log_config.h */
    uint64_t flush_bandwidth, container_size; /* bytes (per second) */
    uint64_t file_buffer, message; /* bytes of file data per call; 0: what suits best */
    double flush_percent;
    int interval, interval_auto;
    int node_timeout; /* seconds that other processes may be silent */
    int64_t seconds, halt_seconds, mtbf;
    double overhead;
    int halt_exit;
    int64_t end_time;      /* of the allocation, in seconds since 1970; 0: not given */
    unsigned halt_signals; /* of config/signals.h */
};

/* The transfer method for SCR_FLUSH_TYPE=type (in any case; NULL: not given), in the
 * background or not; NULL: there is no such type. */
const char *scr_flush_method(const char *type, int background);

/* Reads all parameters and descriptors. What is wrong goes to problems, and has its
 * default then. The caller frees descs with scr_descs_done. */
void scr_values_load(const scr_config *config, struct scr_settings *values,
                     scr_descs *descs, scr_problems *problems);

#endif
