/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_AXL_H
#define AXL_AXL_H

/* Moving files between two paths on one node.
 *
 * A transfer is a list of files and a method that moves them. A destination appears under
 * its name only when it is whole and on disk: data is written to a temporary file in the
 * same folder (missing parent folders are made), synced and renamed. The checksum is made
 * while the data passes, so each byte is read once.
 *
 *     axl_transfer *t;
 *     char err[AXL_ERROR_SIZE];
 *     rc = axl_create("sync", AXL_CHECKSUM, &t, err);
 *     if (rc == 0) rc = axl_add(t, "/dev/shm/a", "/pfs/a", err);
 *     if (rc == 0) rc = axl_dispatch(t, err);
 *     if (rc == 0) rc = axl_wait(t, err);
 *     axl_free(t);
 *
 * Functions return 0, a negative error (-errno), or a positive verdict where one is
 * listed. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Size of every `char *err`: NULL, or a buffer of at least this many bytes that gets a
 * text for people when the function fails, and is left alone otherwise. */
#define AXL_ERROR_SIZE 512

/* Verdict of axl_test: still moving. */
#define AXL_RUNNING 1

/* Flags of axl_create and axl_copy. */
#define AXL_CHECKSUM 1u  /* compute the CRC32 (zlib's polynomial) of each file */
#define AXL_KEEP_MODE 2u /* give the mode of the source, else 0666 less the umask */

typedef struct axl_transfer axl_transfer;

/* What is known of a file that was moved. */
typedef struct axl_file {
    const char *source;      /* owned by the transfer */
    const char *destination; /* owned by the transfer */
    uint64_t size;           /* bytes written */
    uint32_t crc;            /* with AXL_CHECKSUM */
    int done;                /* 1: in place; 0: not, or not yet */
} axl_file;

/* A new transfer by method: "sync" moves the files within axl_dispatch. A name that this
 * build has no method for is -ENOTSUP ("pthread", "daemon", "bbapi", "dw"), an unknown
 * one -EINVAL, and err lists the available ones. The caller frees it with axl_free. */
int axl_create(const char *method, unsigned flags, axl_transfer **transfer, char *err);

/* Adds a file. Both paths are copied. A destination that is in the list already (letter
 * by letter) is -EEXIST. After axl_dispatch: -EINVAL. */
int axl_add(axl_transfer *transfer, const char *source, const char *destination,
            char *err);

/* Starts the transfer, once. Fails at once, with nothing moved, when a source is missing
 * or no regular file. What goes wrong while files move is told by axl_test and axl_wait,
 * with every method; both repeat an error of axl_dispatch, too. */
int axl_dispatch(axl_transfer *transfer, char *err);

/* 0: all files are in place; AXL_RUNNING; negative: the first error. Before axl_dispatch:
 * -EINVAL. */
int axl_test(axl_transfer *transfer, char *err);

/* Waits for the end: 0 or the first error. */
int axl_wait(axl_transfer *transfer, char *err);

/* Number of files, and the i-th of them. The pointers are good until the transfer is
 * freed. */
size_t axl_count(const axl_transfer *transfer);
int axl_get(const axl_transfer *transfer, size_t i, axl_file *file);

/* Stops a running transfer and frees it. Temporary files are removed; files in place
 * stay. NULL is fine. Returns NULL. */
axl_transfer *axl_free(axl_transfer *transfer);

/* One file, in the calling thread, as axl_dispatch moves it. size and crc may be NULL.
 * The source must be a regular file, not a link (-ELOOP), a folder (-EISDIR) or anything
 * else (-EINVAL). A source that is written to meanwhile is -ESTALE. On failure the
 * destination is what it was before, and no temporary file stays; folders that were made
 * do. (Only where the very last step fails, the fsync of the folder, the new file is in
 * place; err says so.) */
int axl_copy(const char *source, const char *destination, unsigned flags, uint64_t *size,
             uint32_t *crc, char *err);

/* Size and CRC32 of a regular file; size and crc may be NULL. */
int axl_checksum(const char *path, uint64_t *size, uint32_t *crc, char *err);

#ifdef __cplusplus
}
#endif
#endif
