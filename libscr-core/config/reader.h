/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_READER_H
#define SCR_READER_H

/* The common parts of the readers for both forms of configuration files. The readers
 * split a text into tokens; these functions check the tokens and store them in a layer.
 * Each mistake becomes a problem with its place. */

#include "config/desc.h"
#include "config/parameters.h"
#include <kvtree/kvtree.h>
#include <stdbool.h>
#include <stddef.h>

/* A place in the text; both count from 1. */
typedef struct scr_mark {
    size_t line, column;
} scr_mark;

/* A name or value, and its place. */
typedef struct scr_token {
    const char *text;
    scr_mark mark;
} scr_token;

typedef struct scr_reader {
    const char *path; /* for messages */
    kvtree *layer;
    scr_problems *problems;
    bool plain; /* for SCR_Config: values may be empty, and have no place in a file */
} scr_reader;

/* Adds "<path>:<line>:<column>: <text> "<name>"". */
void scr_read_problem(const scr_reader *r, scr_mark mark, const char *text,
                      const char *name);
void scr_read_no_memory(const scr_reader *r, scr_mark mark);

/* Expands environment variables into *value, which the caller frees. Returns -EINVAL
 * after a problem, or -ENOMEM; *value is then NULL. */
int scr_read_expand(const scr_reader *r, scr_mark mark, const char *text, char **value);

/* Reads a parameter. A value without text is a list or mapping, which is a problem.
 * Variables in values are expanded. */
void scr_read_param(const scr_reader *r, scr_token name, scr_token value);

/* Reads a name in the list of SCR_LOCKED. */
void scr_read_locked(const scr_reader *r, scr_token name);

/* Begins a descriptor. Returns NULL after a problem. */
kvtree *scr_read_desc(const scr_reader *r, scr_desc_kind kind, scr_token key);

/* Reads a field of a descriptor; value is as for scr_read_param. */
void scr_read_field(const scr_reader *r, scr_desc_kind kind, kvtree *desc, scr_token name,
                    scr_token value);

/* Read a text in YAML, or in lines. Return 0; -EBADMSG for a text that is not YAML;
 * -ENOMEM. */
int scr_read_yaml(const scr_reader *r, const char *text, size_t size);
int scr_read_lines(const scr_reader *r, const char *text, size_t size);

/* Whether the text has the form of lines: the first line that is neither empty nor a
 * comment begins with NAME=. */
bool scr_is_lines(const char *text, size_t size);

#endif
