/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_WORK_H
#define AXL_WORK_H

/* What workers share (axl_work.c), and who writes down what they did (axl_save.c). */

#include "src/axl_private.h"

struct axl_work {
    axl_transfer *transfer;
    pthread_mutex_t lock; /* for all below, and for the items of the transfer */
    pthread_cond_t changed;
    pthread_t *threads;
    int started, running; /* workers; running ones */
    int batch;            /* most files that one of them has in a batch */
    size_t item, piece;   /* that are taken next */
    bool stop, cancelled; /* ... for good: nothing is kept */
    int rc;               /* the first error ... */
    axl_error err;
    axl_throttle throttle;
    bool entering, entered; /* a worker waits for a slot; the transfer may move files */
    uint64_t looks;         /* for a slot */
    bool saving;            /* a worker writes the state file */
    double next_save;       /* when it is to be written again */
    axl_command command;
    uint64_t bytes;    /* copied */
    size_t files_done; /* with their names */
};

struct axl_worker {
    axl_work *work;
    axl_folder folder;
    axl_batch batch;
    uint64_t batch_bytes;
    char *buffer;
    size_t buffer_size;
    double cpu; /* seconds of this thread that were paid for */
    int in;     /* the source of the last piece, which stays open for the next one ... */
    const axl_item *from; /* ... of parts that have the same; NULL: none */
    const axl_item *into; /* holder of the last destination, ... */
    struct stat there;    /* ... as it was, if it has several parts, ... */
    bool by_kernel;       /* ... and whether the kernel copies to it */
    axl_extent data;      /* that was found last */
};

/* The first error counts, and ends the work. */
void axl_work_fail(axl_work *work, int rc, const char *text);

/* Whether it is stopped, or failed; the lock is held. */
bool axl_work_is_over(const axl_work *work);

/* Waits until a time of CLOCK_MONOTONIC, or the end; the lock is held. */
void axl_work_pause_until(axl_work *work, double when);

/* Whether rc says that no descriptor was free, and the files of the batch, which got
 * their names now, held some: what failed may be tried again. */
bool axl_worker_make_room(axl_worker *worker, int rc);

uint64_t axl_piece_length(const axl_transfer *transfer, const axl_item *item,
                          size_t piece);

/* ---- axl_save.c ---- */

/* The bytes of a file that are copied, from its start on without a gap, and their
 * checksum. */
uint64_t axl_copied(const axl_transfer *transfer, const axl_item *item, uint32_t *crc);

/* Writes the state file, with the news. */
int axl_save(axl_work *work, const axl_news *news, axl_error *err);

/* The same, by a worker, when the last time was long enough ago; what was copied so far
 * is synced before. Obeys commands that stand in the file. */
void axl_save_sometimes(axl_worker *worker);

#endif
