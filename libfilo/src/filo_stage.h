/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_STAGE_H
#define FILO_STAGE_H

/* Files that are filled under temporary names and renamed when those of all ranks are
 * complete: a flush makes them in its folder of the stage, a fetch beside the final name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct filo_staged {
    char *temporary, *name; /* see filo_stage */
    uint64_t size;          /* bytes; holes until they are written */
    mode_t mode;            /* permissions; 0: 0666 less the umask */
    bool renamed;
} filo_staged;

typedef struct filo_stage {
    int dir; /* names are below this folder, links are not followed; -1: names are paths,
                and missing folders on the way are made */
    size_t count;
    filo_staged *items;
} filo_stage;

/* Number of ranks with files in one subfolder of the stage. */
enum { FILO_STAGE_SPREAD = 256 };

/* A number for a flush: of equal arguments the same on all ranks and in every run. */
uint64_t filo_stage_key(const char *identity, uint64_t container, int ranks);

/* Adds a file of that size and mode. Takes over temporary, also on failure; NULL is
 * -ENOMEM. */
int filo_stage_add(filo_stage *stage, char *temporary, const char *name, uint64_t size,
                   mode_t mode);

/* Creates all temporary files; one that is there keeps its bytes. Detects what would make
 * the rename fail: a folder with the final name (-EISDIR), another file system (-EXDEV).
 */
int filo_stage_make(filo_stage *stage, char *err);

/* Renames all of them over what has their names. Where names are paths, their folders are
 * synced, too. */
int filo_stage_commit(filo_stage *stage, char *err);

/* Removes those that are not renamed; with all also what has their names, new or old. */
void filo_stage_drop(filo_stage *stage, bool all);

void filo_stage_free(filo_stage *stage);

#endif
