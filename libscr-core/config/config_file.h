/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CONFIG_FILE_H
#define SCR_CONFIG_FILE_H

/* Configuration files, in two forms that are told apart by what is in them:
 *
 *     SCR_FLUSH: 5                         YAML, see config/config_yaml.c
 *     CKPT:
 *       0: {INTERVAL: 1, TYPE: XOR}
 *
 *     SCR_FLUSH=5                          lines, see config/config_lines.c
 *     CKPT=0 INTERVAL=1 TYPE=XOR
 *
 * and the text of SCR_Config, which is such a line. */

#include "config/desc.h"
#include "config/parameters.h"
#include <kvtree/kvtree.h>

/* Bytes that a configuration file may have. */
#define SCR_CONFIG_FILE_MAX (1 << 20)

/* Reads a file into layer, which is empty. A missing file is -ENOENT and no problem; all
 * else that is wrong goes to problems, and what is not wrong to layer. A file that is
 * neither form, or is no file of at most SCR_CONFIG_FILE_MAX bytes, gives a negative
 * error, too. */
int scr_config_file_read(const char *path, kvtree *layer, scr_problems *problems);

/* The same for a text that lies in memory; path is what it is called in messages. */
int scr_config_text_read(const char *path, const char *text, size_t size, kvtree *layer,
                         scr_problems *problems);

/* Reads the system file, if it is there, into the layer of that name, and then the
 * user's: $SCR_CONF_FILE, which must be there, else scr.yaml or .scrconf in the prefix
 * folder; it is a mistake if both are there. */
void scr_config_read_files(scr_config *config, const char *system_file,
                           scr_problems *problems);

/* ---- SCR_Config ---- */

/* 1 for a question: "SCR_FLUSH", "CKPT", "CKPT=0 TYPE". */
int scr_config_is_question(const char *text);

/* Anything else: "SCR_FLUSH=5", "SCR_FLUSH=" (no longer set), "CKPT=0 TYPE=XOR", "CKPT=0
 * TYPE=" (this field is no longer set), "CKPT=" (no CKPT is set). 0, -EINVAL for a
 * mistake, which err tells, with nothing changed, or -ENOMEM. */
int scr_config_set(scr_config *config, const char *text, char *err);

/* A question about descriptors; NULL for a key and field that are not there. What they
 * point to is to be freed. 0, -ENOENT for a key that no descriptor can have, -EINVAL for
 * what is no such question, or -ENOMEM. */
typedef struct scr_question {
    scr_desc_kind kind;
    char *key, *field;
} scr_question;
int scr_config_question(const char *text, scr_question *question);
void scr_question_done(scr_question *question);

/* ---- what the readers of both forms share ---- */

/* Counted from 1. */
typedef struct scr_mark {
    size_t line, column;
} scr_mark;

typedef struct scr_reader {
    const char *path;
    kvtree *layer;
    scr_problems *problems;
    int plain; /* 1: values may be empty, and have no variables; all stand at path */
} scr_reader;

/* "<path>:<line>:<column>: <text> "<name>"". */
void scr_read_problem(const scr_reader *r, scr_mark mark, const char *text,
                      const char *name);
void scr_read_no_memory(const scr_reader *r, scr_mark mark);

/* A name on the left, and where it stands. */
typedef struct scr_read_name {
    const char *text;
    scr_mark mark;
} scr_read_name;

/* NAME: value, for a parameter. Variables in value are expanded. */
void scr_read_param(const scr_reader *r, scr_read_name name, scr_mark mark,
                    const char *value);

/* 1 if name, on the left, is that of a parameter that was not there before; otherwise a
 * problem. */
int scr_read_param_name(const scr_reader *r, scr_read_name name);

/* A name in the list of SCR_LOCKED. */
void scr_read_locked(const scr_reader *r, scr_mark mark, const char *name);

/* A descriptor begins; text is its key. NULL after a problem. */
kvtree *scr_read_desc(const scr_reader *r, scr_desc_kind kind, scr_mark mark,
                      const char *text);

/* A field of it. */
typedef struct scr_read_field {
    kvtree *desc;
    scr_desc_kind kind;
    scr_read_name name;
} scr_read_field;
void scr_read_field_value(const scr_reader *r, scr_read_field field, scr_mark mark,
                          const char *value);

int scr_read_yaml(const scr_reader *r, const char *text, size_t size);
int scr_read_lines(const scr_reader *r, const char *text, size_t size);

/* 1 for a file of lines: the first of them that is not empty or a comment begins with
 * NAME=. */
int scr_is_lines(const char *text, size_t size);

#endif
