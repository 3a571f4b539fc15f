/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_STAGE_H
#define FILO_STAGE_H

/* Files that are made and filled under temporary names, in the folders where they belong,
 * and get their names when all of all ranks are whole. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FILO_TEMPORARY_SIZE = 64 };

typedef struct filo_staged {
    char *name; /* see filo_stage */
    char temporary[FILO_TEMPORARY_SIZE];
    uint64_t size; /* bytes; holes until they are written */
    mode_t mode;   /* permissions; 0: 0666 less the umask */
    bool made;     /* its temporary file is there */
    bool named;
} filo_staged;

typedef struct filo_stage {
    bool resumed; /* temporary files that are there already are of an earlier process, and
                     ours now */
    int dir; /* names are below this folder, links are not followed; -1: names are paths,
                and missing folders on the way are made */
    size_t count;
    filo_staged *items;
} filo_stage;

/* Temporary names for file i of a rank, and for a container: the same on all ranks. */
void filo_stage_file_name(char temporary[FILO_TEMPORARY_SIZE], uint64_t id, int rank,
                          int i);
void filo_stage_container_name(char temporary[FILO_TEMPORARY_SIZE], uint64_t id,
                               const char *container);

/* The path of a temporary file beside folder/name, or beside name; NULL without memory.
 * To be freed. */
char *filo_stage_path(const char *folder, const char *name, const char *temporary);

/* Adds a file; the name is copied, made and named are false. */
int filo_stage_add(filo_stage *stage, const filo_staged *file);

/* Makes all temporary files; an error where one could not get its name later, such as
 * -EISDIR where a folder has it. */
int filo_stage_make(filo_stage *stage, char *err);

/* Gives all of them their names, and replaces what has them. Where names are paths, their
 * folders are synced, too. */
int filo_stage_commit(filo_stage *stage, char *err);

/* Removes those that are temporary; with all also what has their names, be it new or as
 * it was before. */
void filo_stage_drop(filo_stage *stage, bool all);

void filo_stage_free(filo_stage *stage);

#endif
