/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMANDS_SCR_INDEX_H
#define COMMANDS_SCR_INDEX_H

/* Shared by the sources of scr_index. Unless documented otherwise, functions return an
 * exit code, after a message. */

#include "lib/tool_prefix.h"
#include "lib/tool_table.h"
#include "prefix/index.h"
#include "prefix/scan.h"

typedef struct index_request {
    const char *dir, *name;
    const char *dataset, *map; /* values of --import */
    int id;                    /* instead of a name */
    int json;
    int width; /* sets that are rebuilt in parallel */
    int names; /* number of names to verify; 0: all datasets */
    char **list;
} index_request;

/* ---- scr_index.c ---- */

/* Reads the index, to be freed. */
int index_read(const tool_prefix *prefix, kvtree **index);

/* Reads the index, to be freed, and the entry of a dataset in it. */
int index_find(const tool_prefix *prefix, const char *name, kvtree **index,
               scr_dataset *d);

/* Enters the datasets of a scan; creates the index if it is lost. */
int index_enter_all(const tool_prefix *prefix, const scr_scan *scan, int *added);

/* Prints "<name>: <what>". */
void index_report(const char *name, const char *what);

/* ---- scr_index_add.c ---- */

int index_add(const tool_prefix *prefix, const index_request *r);

/* Like index_add, for the dataset with that id, wherever it is. */
int index_build(const tool_prefix *prefix, const index_request *r);

/* Prints the content of a dataset's staging directory. */
int index_print_scan(const tool_prefix *prefix, const index_request *r);

/* ---- scr_index_import.c ---- */

int index_import(const tool_prefix *prefix, const index_request *r);

/* ---- scr_index_show.c ---- */

/* Makes a table of datasets: a short list, or with all fields. */
tool_table *index_table(int all);

/* Adds a dataset; index may be NULL, which leaves its values empty. */
void index_row(tool_table *table, int all, const scr_index *index, const scr_dataset *d);

/* ---- scr_index_verify.c ---- */

int index_verify(const tool_prefix *prefix, const index_request *r);

#endif
