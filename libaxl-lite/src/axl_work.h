/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_WORK_H
#define AXL_WORK_H

/* The state that workers share (axl_work.c), and the recording of their progress
 * (axl_save.c). */

#include "src/axl_private.h"

struct axl_work {
    axl_transfer *transfer;
    pthread_mutex_t lock; /* protects all members below, and the items of the transfer */
    pthread_cond_t changed;
    pthread_t *threads;
    int started, running; /* workers started; still running */
    int batch;            /* most files in the batch of one worker */
    size_t item, piece;   /* next to be taken */
    bool stop, cancelled; /* cancelled: stop, and keep nothing unfinished */
    int rc;               /* the first error, with its text */
    axl_error err;
    axl_throttle throttle;
    bool entering, entered; /* a worker waits for a slot; the transfer may move files */
    uint64_t looks;         /* number of looks for a slot */
    bool saving;            /* a worker writes the state file */
    double next_save;       /* time of the next write */
    axl_command command;
    uint64_t bytes;    /* bytes copied */
    size_t files_done; /* files in place */
};

struct axl_worker {
    axl_work *work;
    axl_folder folder;
    axl_batch batch;
    uint64_t batch_bytes;
    char *buffer;
    size_t buffer_size;
    double cpu; /* processor seconds of this thread already accounted for */
    int in;     /* the source of the last piece; it stays open for further parts of the
                 * same source */
    const axl_item *from; /* the item whose source is open; NULL: none */
    const axl_item *into; /* holder of the last destination */
    struct stat there;    /* status of that destination, if it has several parts */
    bool by_kernel;       /* the kernel copies to that destination */
    axl_extent data;      /* the extent found last */
};

/* Records an error and ends the work. Only the first error is kept. */
void axl_work_fail(axl_work *work, int rc, const char *text);

/* Whether the work is stopped or has failed. The lock is held. */
bool axl_work_is_over(const axl_work *work);

/* Waits until a time of CLOCK_MONOTONIC, or until the work is over. The lock is held. */
void axl_work_pause_until(axl_work *work, double when);

/* If rc means that no descriptor was free, places the files of the batch, which closes
 * their descriptors. Returns whether this freed some, so that the failed step may be
 * repeated. */
bool axl_worker_make_room(axl_worker *worker, int rc);

uint64_t axl_piece_length(const axl_transfer *transfer, const axl_item *item,
                          size_t piece);

/* ---- axl_save.c ---- */

/* Returns the number of bytes of an item that are copied without a gap from its start,
 * and their checksum. */
uint64_t axl_copied(const axl_transfer *transfer, const axl_item *item, uint32_t *crc);

/* Writes the state file, with news. */
int axl_save(axl_work *work, const axl_news *news, axl_error *err);

/* Writes the state file from a worker when the last write was long enough ago. The data
 * copied so far is synced before. Commands in the state file are obeyed. */
void axl_save_sometimes(axl_worker *worker);

#endif
