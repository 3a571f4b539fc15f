/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_PRIVATE_H
#define AXL_PRIVATE_H

/* What the sources of libaxl-lite share: a transfer seen from inside, and what a method
 * has to provide. A new method is one source file that defines an axl_method, and one row
 * in the table of axl_method.c. */

#include "common/errtext.h"
#include <axl/axl.h>

/* The methods of a transfer. A method leaves its result in the transfer by
 * axl_transfer_finish. */
typedef struct axl_method {
    const char *name;

    /* Starts to move all files of the list, whose sources were there a moment ago. NULL:
     * a method that this build does not have. */
    int (*start)(axl_transfer *transfer, char *err);

    /* AXL_RUNNING, or 0 once the transfer is finished. */
    int (*test)(axl_transfer *transfer);

    /* Returns when the transfer is finished. */
    void (*wait)(axl_transfer *transfer);

    /* Ends a transfer that may still run, and gives back what start took. */
    void (*stop)(axl_transfer *transfer);
} axl_method;

typedef enum axl_state { AXL_FILLING, AXL_STARTED, AXL_FINISHED } axl_state;

struct axl_transfer {
    const axl_method *method;
    unsigned flags;
    axl_state state;
    int result;                 /* once finished: 0 or the first error ... */
    char error[AXL_ERROR_SIZE]; /* ... and its text */
    size_t count, capacity;
    axl_file *files;
    size_t slots;  /* of the index: a power of two, at least twice count, or 0 */
    size_t *index; /* open hash of destinations: number of the file + 1, or 0 */
};

extern const axl_method axl_sync;

/* The method of that name, ready for use; -EINVAL or -ENOTSUP as axl_create tells. */
int axl_method_find(const char *name, const axl_method **method, char *err);

/* Ends the transfer with its result and, unless that is 0, its text. */
void axl_transfer_finish(axl_transfer *transfer, int result, const char *error);

/* Opens a file to be copied: a regular file, no link. */
int axl_open_source(const char *path, int *fd, char *err);

#endif
