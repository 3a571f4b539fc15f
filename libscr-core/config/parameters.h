/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PARAM_H
#define SCR_PARAM_H

/* The parameters of SCR: one table, and the layers in which a value is looked for:
 *
 *     environment, user file, SCR_Config, system file, default
 *
 * The layers also hold descriptors, see config/desc.h. */

#include "config/problems.h"
#include <kvtree/kvtree.h>
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

#define SCR_PARAM_LOCAL                                                                  \
    1 /* each node may have its own value; otherwise rank 0's holds for all */
#define SCR_PARAM_ENVIRONMENT 2 /* may only be set in the environment */
#define SCR_PARAM_OUTSIDE                                                                \
    4 /* may only be set in the environment and the system file: it decides on user      \
         files */

typedef struct scr_param {
    const char *name;
    scr_param_type type;
    const char *value; /* default; NULL: none */
    unsigned flags;
    const char *help; /* one line */
} scr_param;

/* All parameters, ended by an entry without a name. */
extern const scr_param scr_param_table[];

/* The parameter of that name, or NULL. */
const scr_param *scr_param_find(const char *name);

/* The name in the table that is most like name. */
const char *scr_param_nearest(const char *name);

/* What a type is called: "bytes". */
const char *scr_param_type_name(scr_param_type type);

/* A variable of the environment that looks like one of SCR's, but is no parameter. */
typedef void scr_param_told(void *arg, const char *name, const char *nearest);
void scr_param_find_unknown(scr_param_told *tell, void *arg);

/* ---- layers ---- */

/* In the system file: the parameters that nobody may set elsewhere. */
#define SCR_LOCKED "SCR_LOCKED"

/* A layer is a kvtree <name>/{VALUE/<value>, SOURCE/<where it stands>}, with
 * SCR_LOCKED/<name>/{SOURCE/...} and the descriptors of config/desc.h beside these. */
typedef struct scr_config {
    kvtree *env; /* rank 0's environment once it is known; before that the process's own
                    is read */
    kvtree *user, *set, *system;
    int have_env;
} scr_config;

int scr_config_init(scr_config *config);
void scr_config_done(scr_config *config);

/* Puts a value into a layer; source is for people: "scr.yaml:3:1". 0 or -ENOMEM. */
int scr_layer_set(kvtree *layer, const char *name, const char *value, const char *source);

/* Fills the layer env from this process's environment. */
int scr_config_capture_env(scr_config *config);

/* The value in force, not to be freed, and where it comes from; NULL if there is none. An
 * empty environment variable counts as unset. */
const char *scr_config_get(const scr_config *config, const char *name,
                           const char **source);

/* SCR_PREFIX, with HOME in place of "~" at its begin, or "."; to be freed, NULL without
 * memory. What scr_config_check_places refuses stays as it is. */
char *scr_config_prefix(const scr_config *config);

/* Adds a problem for a SCR_PREFIX with a "~" that is not expanded, and for each parameter
 * that is set where it may not be: one of SCR_LOCKED
 * outside of the system file, one of SCR_PARAM_ENVIRONMENT outside of the environment,
 * SCR_LOCKED itself outside of the system file. */
void scr_config_check_places(const scr_config *config, scr_problems *problems);

/* ---- typed values ----
 *
 * Text that is not of the type, or a number below least, is a problem, and *value stays.
 * Without a text (no value, no default) it stays as well. */

/* A text, what it is a value of ("SCR_FLUSH", "CKPT=0 INTERVAL"), and where it stands. */
typedef struct scr_value {
    const char *name, *text, *source;
} scr_value;

void scr_value_bad(const scr_value *value, scr_problems *problems, const char *format,
                   ...) __attribute__((format(printf, 3, 4)));
void scr_value_switch(const scr_value *value, int *number, scr_problems *problems);
void scr_value_int(const scr_value *value, int least, int *number,
                   scr_problems *problems);

void scr_value_bytes(const scr_value *value, uint64_t *bytes, scr_problems *problems);

/* Those of parameters; least is INT_MIN and -infinity where any number will do. */
scr_value scr_config_value(const scr_config *config, const char *name);
void scr_config_switch(const scr_config *config, const char *name, int *value,
                       scr_problems *problems);
void scr_config_int(const scr_config *config, const char *name, int least, int *value,
                    scr_problems *problems);
void scr_config_int64(const scr_config *config, const char *name, int64_t least,
                      int64_t *value, scr_problems *problems);

/* "auto" sets *automatic, and *value to 0. */
void scr_config_auto(const scr_config *config, const char *name, int *value,
                     int *automatic, scr_problems *problems);
void scr_config_double(const scr_config *config, const char *name, double least,
                       double *value, scr_problems *problems);
void scr_config_seconds(const scr_config *config, const char *name, int64_t *value,
                        scr_problems *problems);
void scr_config_bytes(const scr_config *config, const char *name, uint64_t *value,
                      scr_problems *problems);

/* Text with a unit: bytes ("10GB", "512kb", "1MiB"), seconds ("90", "30min"). Parts of a
 * byte or second are rounded; what is not zero does not become zero. 0, -EINVAL or
 * -ERANGE. */
int scr_parse_bytes(const char *text, uint64_t *bytes);
int scr_parse_seconds(const char *text, int64_t *seconds);

#endif
