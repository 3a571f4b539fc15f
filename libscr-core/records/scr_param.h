/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_PARAM_H
#define SCR_PARAM_H

/* The parameters of SCR: one table, and the layers in which a value is looked for:
 *
 *     environment, user file, SCR_Config, system file, default
 *
 * A mistake never stops the reading: each is added to a list of problems with its place
 * and, for a name that does not exist, the nearest one that does, so that all are
 * reported in one go. */

#include <kvtree/kvtree.h>
#include <stdint.h>
#include <stdio.h>

typedef enum scr_param_type {
    SCR_PARAM_BOOL, /* 0 or 1 */
    SCR_PARAM_INT,
    SCR_PARAM_BYTES,   /* 10GB: powers of 1024 */
    SCR_PARAM_SECONDS, /* 30min, 2h, 1d */
    SCR_PARAM_DOUBLE,
    SCR_PARAM_SCHEME, /* SINGLE, XOR, ... */
    SCR_PARAM_TEXT
} scr_param_type;

#define SCR_PARAM_LOCAL                                                                  \
    1 /* each node may have its own value; otherwise rank 0's holds for all */
#define SCR_PARAM_LATER                                                                  \
    2 /* known, but without effect in this version: a warning if it is set */

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

/* ---- problems ---- */

/* Problems beyond this number are counted, but have no line. */
#define SCR_PROBLEMS_SHOWN 100

typedef struct scr_problems {
    int count;
    char *text; /* one line each, each ended by a newline; NULL when count is 0 */
} scr_problems;

/* Adds a line. Control characters, which may come out of a file, are replaced by '?'. */
void scr_problems_add(scr_problems *problems, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void scr_problems_done(scr_problems *problems);

/* ---- layers ---- */

/* Bytes that a configuration file may have. */
#define SCR_CONFIG_FILE_MAX (1 << 20)

/* A layer is a kvtree <name>/{VALUE/<value>, SOURCE/<where it stands>}. */
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

/* Reads a YAML file of NAME: value lines into layer, which is empty. A missing file is
 * -ENOENT and no problem; all else that is wrong goes to problems, and what is not wrong
 * to layer. A file that is not YAML, or is no file of at most SCR_CONFIG_FILE_MAX bytes,
 * gives a negative error, too. */
int scr_config_file_read(const char *path, kvtree *layer, scr_problems *problems);

/* The value in force, not to be freed, and where it comes from; NULL if there is none. An
 * empty environment variable counts as unset. */
const char *scr_config_get(const scr_config *config, const char *name,
                           const char **source);

/* Typed values. Text that is not of the parameter's type is a problem, and *value stays.
 */
void scr_config_int(const scr_config *config, const char *name, int *value,
                    scr_problems *problems);
void scr_config_seconds(const scr_config *config, const char *name, int64_t *value,
                        scr_problems *problems);
void scr_config_bytes(const scr_config *config, const char *name, uint64_t *value,
                      scr_problems *problems);
void scr_config_double(const scr_config *config, const char *name, double *value,
                       scr_problems *problems);

/* Text with a unit: bytes ("10GB", "512kb", "1MiB"), seconds ("90", "30min"). Parts of a
 * byte or second are rounded; what is not zero does not become zero. 0, -EINVAL or
 * -ERANGE. */
int scr_parse_bytes(const char *text, uint64_t *bytes);
int scr_parse_seconds(const char *text, int64_t *seconds);

#endif
