/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMANDS_SCR_INDEX_H
#define COMMANDS_SCR_INDEX_H

/* What the sources of scr_index share. */

#include "common/beneath.h"
#include "common/io.h"
#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include "prefix/index.h"
#include "prefix/scan.h"

enum index_task {
    INDEX_LIST,
    INDEX_ADD,
    INDEX_DROP,
    INDEX_CURRENT,
    INDEX_INSPECT,
    INDEX_SUMMARY,
    INDEX_SCAN,
    INDEX_REBUILD,
    INDEX_VERIFY
};

enum { INDEX_NAMED = 7 }; /* options that take the name of a dataset */

typedef struct index_request {
    enum index_task task;
    const char *dir, *name;
    int json;
    int width; /* sets that are rebuilt at a time */
    int names; /* to verify; 0: all */
    char **list;
} index_request;

/* ---- scr_index.c ---- */

/* Into the empty tree; an exit code, as all functions without another word return it. */
int index_read(const tool_prefix *prefix, scr_index *index);

/* Puts what was found into the index; or, where that is lost, into a new one. */
int index_enter_all(const tool_prefix *prefix, const scr_scan *scan, int *added);

/* Prints "<name>: <what>". */
void index_say(const char *name, const char *what);

/* ---- scr_index_add.c ---- */

int index_add(const tool_prefix *prefix, const index_request *r);

/* Prints what was scavenged of a dataset. */
int index_scan(const tool_prefix *prefix, const index_request *r);

/* ---- scr_index_show.c ---- */

/* A table of datasets: short, for a list, or with all that is known. */
tool_table *index_table(int whole);

/* Adds a dataset to such a table; what is not in the index has no value. */
void index_row(tool_table *table, int whole, const scr_index *index,
               const scr_dataset *d);

/* ---- scr_index_verify.c ---- */

/* Opens the folder of a dataset; no link is followed below the prefix folder. */
int index_open_folder(const tool_prefix *prefix, const char *name, int *folder,
                      char *err);

/* An exit code. */
int index_verify(const tool_prefix *prefix, const index_request *r);

#endif
