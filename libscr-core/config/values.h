/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_VALUES_H
#define SCR_VALUES_H

/* The values of all parameters of a run, and the mistakes in them: for SCR_Init, and for
 * commands that check a configuration before a job. */

#include "config/descs.h"
#include "config/parameters.h"
#include <stdint.h>

/* How a flush packs the files of a dataset. */
typedef enum scr_packing {
    SCR_PACKS_NOT,   /* each file keeps its name */
    SCR_PACKS_SIZED, /* containers of SCR_CONTAINER_SIZE */
    SCR_PACKS_NODES  /* one container per SCR_CONTAINER_NODES nodes */
} scr_packing;

/* The highest SCR_FLUSH_ALIGN: 1 GB. */
#define SCR_ALIGN_MAX ((uint64_t)1 << 30)

/* Values of parameters. Only cntl_base differs between ranks. */
struct scr_settings {
    int enable, debug, progress;
    const char *cntl_base; /* of this node */
    int cache_purge, cache_keep;
    const char *current; /* or NULL */
    int distribute, fetch, fetch_bypass, fetch_on_init, flush, flush_on_restart,
        crc_on_flush;
    int crc_on_copy, crc_on_delete;
    int flush_width, fetch_width, flush_async;
    scr_packing packing;
    int container_nodes;
    int any_ranks; /* also offers checkpoints of other numbers of ranks */
    int prefix_size, prefix_purge, global_restart;
    const char *flush_method;
    unsigned log_targets; /* bits of config/log_config.h */
    uint64_t flush_bandwidth, container_size, flush_align; /* bytes (per second) */
    uint64_t file_buffer, message; /* bytes of file data per call; 0: the default */
    double flush_percent;
    int interval, interval_auto;
    int node_timeout; /* seconds without a sign of life until another process counts as
                         down */
    int64_t seconds, halt_seconds, mtbf;
    double overhead;
    int halt_exit;
    int64_t end_time;      /* of the allocation, in seconds since 1970; 0: not given */
    unsigned halt_signals; /* bits of config/signals.h */
};

/* Returns the transfer method for SCR_FLUSH_TYPE=type (ignoring case; NULL: not set), in
 * the background or not; NULL: there is no such type. PTHREAD replaces types that only
 * other machines have, such as BBAPI. */
const char *scr_flush_method(const char *type, int background);

/* Whether the program can restart with any number of ranks (SCR_RESTART_RANKS). */
int scr_config_any_ranks(const scr_config *config, scr_problems *problems);

/* Returns the packing that SCR_FLUSH_FORM sets or, if it is not set,
 * SCR_USE_CONTAINERS. */
scr_packing scr_config_packing(const scr_config *config, scr_problems *problems);

/* Reads all parameters and descriptors. Mistakes are added to problems, and defaults are
 * used instead. The caller frees descs with scr_descs_done. */
void scr_values_load(const scr_config *config, struct scr_settings *values,
                     scr_descs *descs, scr_problems *problems);

#endif
