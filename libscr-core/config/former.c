/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of earlier versions; see config/former.h. */
#include "config/former.h"

#include <stddef.h>
#include <string.h>

#define CAPACITY                                                                         \
    "the field CAPACITY of a STORE, or SCR_NODE_CAPACITY, says how large its file "      \
    "system must be"
#define OPENS "an open that fails is reported at once"
#define NUMBERED "redundancy sets are chosen by SCR_GROUP and SCR_SET_SIZE"
#define IDENTITY "SCR_JOB_ID names the job"
#define DESCRIPTORS "GROUPS, STORE and CKPT are the kinds of descriptors"

static const struct {
    const char *former, *name;
} former_names[] = {
    {"SCR_DB_ENABLE", "SCR_LOG_DB_ENABLE"},
    {"SCR_DB_DEBUG", "SCR_LOG_DB_DEBUG"},
    {"SCR_DB_HOST", "SCR_LOG_DB_HOST"},
    {"SCR_DB_NAME", "SCR_LOG_DB_NAME"},
    {"SCR_DB_USER", "SCR_LOG_DB_USER"},
    {"SCR_DB_PASS", "SCR_LOG_DB_PASS"},
    {"SCR_HALT_ENABLED", "SCR_HALT_EXIT"},
    {"SCR_CHECKPOINT_FREQUENCY", "SCR_CHECKPOINT_INTERVAL"},
};

#define FORMER_NAMES (sizeof former_names / sizeof *former_names)

const char *scr_former_name(const char *former)
{
    for (size_t i = 0; i < FORMER_NAMES; i++)
        if (strcmp(former_names[i].former, former) == 0) return former_names[i].name;
    return NULL;
}

const char *scr_former_of(const char *name)
{
    for (size_t i = 0; i < FORMER_NAMES; i++)
        if (strcmp(former_names[i].name, name) == 0) return former_names[i].former;
    return NULL;
}

static const struct {
    const char *name, *reason;
} former_reasons[] = {
    /* parameters of SCR 3.1 */
    {"SCR_FLUSH_POSTSTAGE",
     "SCR_FLUSH_TYPE=DAEMON continues a flush after the program ends"},
    {"SCR_FLUSH_ASYNC_USLEEP", "SCR does not poll for the end of a flush"},
    {"SCR_FETCH_TYPE", "each process fetches its own files"},
    {"SCR_COPY_METADATA",
     "a copy has a time of its own, and permissions by the rules of docs/security.md"},
    {"SCR_AXL_MKDIR", "SCR always creates the directories of its files"},
    {"SCR_DROP_AFTER_CURRENT",
     "a restart from an older checkpoint leaves newer ones on the prefix directory, and "
     "the next one that is complete is the newest"},
    {"SCR_OPEN_TRIES", OPENS},
    {"SCR_OPEN_USLEEP", OPENS},
    /* lines of the system file scr.conf of SCR 3.1 */
    {"CNTLDIR", CAPACITY},
    {"CACHEDIR", CAPACITY},
    /* names in examples of SCR 3.1 */
    {"jobid", IDENTITY},
    {"SCR_jobid", IDENTITY},
    /* older names that configurations still contain */
    {"SCR_HOP_DISTANCE", NUMBERED},
    {"SCR_PARTNER_DISTANCE", NUMBERED},
    {"SCR_XOR_SIZE", "SCR_SET_SIZE is the size of redundancy sets"},
    {"SCR_PRESERVE_DIRECTORIES", "files always keep their directories"},
    {"SCR_TRANSFER_SECS", "scr_transfer is called, and does not look for work itself"},
    {"CACHEDESC", DESCRIPTORS},
    {"CKPTDESC", DESCRIPTORS},
    {"GROUPDESC", DESCRIPTORS},
    {"STOREDESC", DESCRIPTORS},
};

const char *scr_former_reason(const char *name)
{
    for (size_t i = 0; i < sizeof former_reasons / sizeof *former_reasons; i++)
        if (strcmp(former_reasons[i].name, name) == 0) return former_reasons[i].reason;
    return NULL;
}
