/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PARAM_H
#define SCR_PARAM_H

/* The parameters of SCR: one table, and the layers that are searched for a value in this
 * order:
 *
 *     environment, user file, SCR_Config, system file, default
 *
 * The layers also hold descriptors, see config/desc.h. */

#include "config/problems.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum scr_param_type {
    SCR_PARAM_BOOL, /* 0 or 1 */
    SCR_PARAM_INT,
    SCR_PARAM_AUTO,    /* a whole number, or "auto" */
    SCR_PARAM_BYTES,   /* 10GB: powers of 1024 */
    SCR_PARAM_SECONDS, /* 30min, 2h, 1d */
    SCR_PARAM_DOUBLE,
    SCR_PARAM_SCHEME, /* SINGLE, XOR, ... */
    SCR_PARAM_TEXT
} scr_param_type;

/* The value "auto" of a parameter of type SCR_PARAM_AUTO. */
#define SCR_AUTO (-1)

/* Flags. LOCAL: each node may have its own value; otherwise the value of rank 0 applies
 * to all. ENVIRONMENT: may only be set in the environment. OUTSIDE: may only be set in
 * the environment and the system file, because it controls access to user files. */
#define SCR_PARAM_LOCAL 1
#define SCR_PARAM_ENVIRONMENT 2
#define SCR_PARAM_OUTSIDE 4

typedef struct scr_param {
    const char *name;
    scr_param_type type;
    const char *value; /* default; NULL: none */
    unsigned flags;
    const char *help; /* one line */
} scr_param;

/* All parameters. An entry without a name ends the table. */
extern const scr_param scr_param_table[];

/* Returns the parameter of that name or former name (config/former.h); NULL: none. */
const scr_param *scr_param_find(const char *name);

/* Returns the name in the table that is most similar to name. */
const char *scr_param_nearest(const char *name);

/* Returns the name of a type, such as "bytes". */
const char *scr_param_type_name(scr_param_type type);

/* Calls report for each environment variable that begins with SCR_ and is no parameter:
 * with the reason why it has no meaning now (config/former.h), or with the most similar
 * name. */
typedef void scr_param_report(void *arg, const char *name, const char *reason,
                              const char *nearest);
void scr_param_find_unknown(scr_param_report *report, void *arg);

/* ---- layers ---- */

/* Key in the layer of the system file: the list of parameters that only the system file
 * may set. */
#define SCR_LOCKED "SCR_LOCKED"

/* A layer is a kvtree <name>/{VALUE/<value>, SOURCE/<place>}. It also holds
 * SCR_LOCKED/<name>/{SOURCE/...} and the descriptors of config/desc.h. */
typedef struct scr_config {
    kvtree *env; /* the environment of rank 0; used if have_env is set */
    kvtree *user, *set, *system;
    kvtree *group_names; /* group names of GROUPS, as keys, once the layers have dropped
                            the rows of GROUPS; or NULL */
    int have_env;        /* 0: the environment of this process is used */
} scr_config;

int scr_config_init(scr_config *config);
void scr_config_done(scr_config *config);

/* Stores a value in a layer; source is for messages: "scr.yaml:3:1". Returns 0 or
 * -ENOMEM. */
int scr_layer_set(kvtree *layer, const char *name, const char *value, const char *source);

/* Fills the layer env from the environment of this process. */
int scr_config_capture_env(scr_config *config);

/* Returns the effective value, owned by config or the table, and its source; NULL: none.
 * An empty environment variable counts as unset. */
const char *scr_config_get(const scr_config *config, const char *name,
                           const char **source);

/* Returns SCR_PREFIX, with a leading "~" replaced by HOME, or "." if it is not set. The
 * caller frees the result; NULL without memory. A value that scr_config_check_places
 * refuses is returned unchanged. */
char *scr_config_prefix(const scr_config *config);

/* Adds a problem for a "~" in SCR_PREFIX that cannot be expanded, and for each parameter
 * in a layer that must not set it: parameters of SCR_LOCKED outside the system file, and
 * parameters with the flags ENVIRONMENT and OUTSIDE. SCR_LOCKED is allowed in the system
 * file only. */
void scr_config_check_places(const scr_config *config, scr_problems *problems);

/* ---- typed values ----
 *
 * A text that is not of the type, or a number below the limit, is a problem. The result
 * is unchanged after a problem, and if there is no text. */

/* A text, the name of the value ("SCR_FLUSH", "CKPT=0 INTERVAL"), and its source. */
typedef struct scr_value {
    const char *name, *text, *source;
} scr_value;

void scr_value_bad(const scr_value *value, scr_problems *problems, const char *format,
                   ...) __attribute__((format(printf, 3, 4)));

/* Stores a value of the given type in *to: an int for BOOL, INT and AUTO, uint64_t for
 * BYTES, int64_t for SECONDS, double (at least 0) for DOUBLE. least: lower limit of an
 * INT. Text types are not supported. */
void scr_value_read(const scr_value *value, scr_param_type type, int least, void *to,
                    scr_problems *problems);

/* Copies the entry of words that equals the value, ignoring case, to *to. NULL ends
 * words. */
void scr_value_word(const scr_value *value, const char *const words[], char *to,
                    scr_problems *problems);

/* Read the value of a parameter; least is INT_MIN if there is no lower limit. */
scr_value scr_config_value(const scr_config *config, const char *name);
void scr_config_switch(const scr_config *config, const char *name, int *value,
                       scr_problems *problems);
void scr_config_int(const scr_config *config, const char *name, int least, int *value,
                    scr_problems *problems);
void scr_config_int64(const scr_config *config, const char *name, int64_t least,
                      int64_t *value, scr_problems *problems);

void scr_config_seconds(const scr_config *config, const char *name, int64_t *value,
                        scr_problems *problems);
void scr_config_bytes(const scr_config *config, const char *name, uint64_t *value,
                      scr_problems *problems);

/* Parse texts with a unit: bytes ("10GB", "512kb", "1MiB"), seconds ("90", "30min").
 * Fractions are rounded; one that would become 0 gives -ERANGE. Return 0, -EINVAL or
 * -ERANGE. */
int scr_parse_bytes(const char *text, uint64_t *bytes);
int scr_parse_seconds(const char *text, int64_t *seconds);

#endif
