/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_AXL_H
#define AXL_AXL_H

/* Moving files between two paths on one node.
 *
 * A transfer is a list of files and a method that moves them. A destination appears under
 * its name only when it is complete and on disk: the data is written to a temporary file
 * in the same directory, synced and renamed. Missing parent directories are created. The
 * checksum is computed while the data is copied, so each byte is read once.
 *
 *     axl_transfer *t;
 *     axl_error err;
 *     axl_options options = {.flags = AXL_CHECKSUM, .workers = 4};
 *     rc = axl_create("pthread", &options, &t, &err);
 *     if (rc == 0) rc = axl_add(t, "/dev/shm/a", "/pfs/a", &err);
 *     if (rc == 0) rc = axl_dispatch(t, &err);
 *     ...                                         the program continues meanwhile
 *     if (rc == 0) rc = axl_wait(t, &err);
 *     axl_free(t);
 *
 * Functions return 0, a negative error (-errno), or a positive verdict where one is
 * listed. Only one thread may use a transfer at a time. */

#include <axl/axl_names.h>
#include <kvtree/kvtree_error.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text of a failure: a struct with the member char text[512]. Each `axl_error *err`
 * may be NULL. Otherwise it receives a readable text when the function fails, and is
 * unchanged when the function succeeds. */
typedef kvtree_error axl_error;

/* Verdict of axl_test: the transfer is still running. */
#define AXL_RUNNING 1

/* Verdict of axl_continue: the transfer resumes the work of an earlier process. */
#define AXL_CONTINUES 2

/* Flags of axl_options and, except the last one, of axl_copy. */
#define AXL_CHECKSUM 1u   /* compute the CRC32 (zlib's polynomial) of each file */
#define AXL_KEEP_MODE 2u  /* keep the mode of the source, else 0666 less umask */
#define AXL_KEEP_TIMES 4u /* keep the times of the source */
#define AXL_COMPARE 8u    /* compare what an earlier process copied with the source */

/* Options of a transfer. Zeros are the defaults. A limit is at least 1e-6. */
typedef struct axl_options {
    unsigned flags;
    int workers;        /* threads (pthread, daemon); 0: one per processor, at most 8 */
    size_t buffer;      /* bytes copied at a time; 0: 256 KiB */
    double bandwidth;   /* limit in bytes per second, all workers together; 0: no limit */
    double percent;     /* limit of processor time, all workers together, in percent of
                         * one processor; 0: no limit */
    const char *state;  /* path of the state file, which records the progress, so that
                         * axl_resume can continue after the program ended or died; each
                         * running transfer needs its own (-EBUSY); NULL: none, but
                         * "daemon" requires one */
    const char *daemon; /* path of the program scr_transfer; NULL: searched in $PATH */
    const char *base;   /* directory that all destinations lie below and begin with; it
                         * must exist by axl_dispatch. Each process that moves files opens
                         * it once and keeps it open, and follows no link on the way from
                         * it to a destination (-ELOOP). NULL: links on the way are
                         * followed */
} axl_options;

typedef struct axl_transfer axl_transfer;

/* One file of a transfer. */
typedef struct axl_file {
    const char *source;      /* owned by the transfer */
    const char *destination; /* owned by the transfer */
    uint64_t size;           /* bytes; valid once the file is in place */
    uint32_t crc;            /* with AXL_CHECKSUM; valid once the file is in place */
    int done;                /* 1: in place; 0: not in place yet, or not at all */
} axl_file;

/* A part of a file. */
typedef struct axl_part {
    const char *source;
    uint64_t source_offset;      /* bytes */
    const char *destination;     /* an existing regular file, not a link */
    uint64_t destination_offset; /* bytes */
    uint64_t length;             /* bytes */
    uint64_t device, inode;  /* of the source that the caller has checked: another file
                              * at this path is refused (-ESTALE); inode 0: any */
    const struct stat *seen; /* the source as found by axl_look, which must not change
                              * before it is read; NULL: axl_dispatch looks */
} axl_part;

/* The progress of a transfer. */
typedef struct axl_progress {
    size_t files, files_done;   /* total; in place */
    uint64_t bytes, bytes_done; /* of the sources, holes included, known once dispatched;
                                 * copied so far */
} axl_progress;

/* Creates a transfer with one of these methods:
 *
 *     sync      by the thread that calls axl_dispatch, before axl_dispatch returns
 *     pthread   by threads of this process, which share large files
 *     daemon    by the process scr_transfer, which continues when this process ends
 *
 * A known method that this build lacks ("bbapi", "dw") is -ENOTSUP, an unknown name
 * -EINVAL, and err lists the available methods. options may be NULL. The caller frees the
 * transfer with axl_free. */
int axl_create(const char *method, const axl_options *options, axl_transfer **transfer,
               axl_error *err);

/* Sets how many seconds the process scr_transfer may give no sign of life before it
 * counts as stopped, or as hanging in a file system. 0 selects the default, 60. A process
 * that gives signs of life may copy nothing for ten times as long. After that,
 * scr_transfer is killed and the transfer fails with -ETIMEDOUT. axl_cancel and
 * axl_continue kill scr_transfer when it does not obey within this number of seconds. */
void axl_set_patience(axl_transfer *transfer, int seconds);

/* Requires that all destinations lie below folder and begin with it. folder itself must
 * be below the base. Call this at most once, and before any file is added (else -EINVAL).
 * Each process that moves files opens folder once and keeps it open; the directory must
 * belong to the effective user and grant group and others nothing (-EPERM), so that no
 * other user can replace a destination. This is for transfers of parts in a directory
 * that others can change. A caller that has opened and checked the directory passes the
 * descriptor as dir, which this process then uses; other callers pass -1. folder and dir
 * are copied. */
int axl_set_private(axl_transfer *transfer, const char *folder, int dir, axl_error *err);

/* Sets a function that reports progress while files move. Any thread that moves files
 * calls report after every few bytes; with the method "daemon", axl_test and axl_wait
 * call it. done never exceeds total, the bytes of axl_progress. report must return at
 * once and must not call this library. NULL: no reports. Call this before axl_dispatch.
 */
void axl_set_progress(axl_transfer *transfer,
                      void (*report)(void *arg, uint64_t done, uint64_t total),
                      void *arg);

/* Lets at most count transfers with this name move files at a time, over all processes of
 * this node. count is 1 to 65536. A dispatched transfer waits for a slot and releases it
 * at the end; the slot of a process that dies becomes free. name is copied. It begins the
 * names of lock files, <name>.<number>.lock, in a directory that only this user can
 * change. If locks cannot be created at all, the transfer does not wait. Call this at
 * most once (-EINVAL), and before axl_dispatch. */
int axl_set_slots(axl_transfer *transfer, const char *name, int count, axl_error *err);

/* Adds a file. Both paths are copied. A destination that is already in the list, spelled
 * the same, is -EEXIST. A destination that is not below the base, or a call after
 * axl_dispatch, is -EINVAL. */
int axl_add(axl_transfer *transfer, const char *source, const char *destination,
            axl_error *err);

/* Adds a part of a file. Its bytes are written in place into an existing file, without a
 * temporary file; mode and times are not kept. The bytes are synced before the part
 * counts as done; the directory of the file is not synced. The file may be shorter than
 * destination_offset: it grows as needed and keeps all other bytes. Several transfers,
 * also in different processes, may write different parts of one file at the same time;
 * the caller must ensure that parts do not overlap. Holes of the source read as zeros in
 * the destination, whatever the destination contained. After a failure or axl_cancel, the
 * bytes already written remain.
 *
 * Consecutive parts of the list with the same destination are written through one
 * descriptor, synced once, and count as done when the last of them is written.
 *
 * In axl_file, size and crc are those of the part. A destination and offset that are
 * already in the list are -EEXIST, and so is a destination of both a part and a whole
 * file. An offset or end above INT64_MAX is -EINVAL. */
int axl_add_part(axl_transfer *transfer, const axl_part *part, axl_error *err);

/* Supplies an open file for part number i of the list, so that the path is not opened.
 * Parts that follow it and have the same destination use the file, too. fd must be open
 * for writing a regular file at that path that is not the source of any part. The
 * transfer owns fd from now on, also on failure: fd is synced and closed when these parts
 * are written, or closed when the transfer fails or by axl_free. scr_transfer (the method
 * "daemon") and a transfer resumed by axl_continue open the path nevertheless. Call this
 * once per part, before axl_dispatch; otherwise it returns -EINVAL. */
int axl_set_opened(axl_transfer *transfer, size_t i, int fd, axl_error *err);

/* Opens a source and returns its status in seen, as axl_dispatch does for files, and for
 * parts without seen. -EINVAL unless it is a regular file, -ELOOP for a link. */
int axl_look(const char *source, struct stat *seen, axl_error *err);

/* Starts the transfer. A transfer starts only once. Fails at once, with nothing moved,
 * when a source is missing, not a regular file, or shorter than its part (-ENODATA). With
 * every method, axl_test and axl_wait report errors that occur while files move; both
 * also repeat an error of axl_dispatch. */
int axl_dispatch(axl_transfer *transfer, axl_error *err);

/* Returns 0 when all files are in place, AXL_RUNNING, or the first error. Before
 * axl_dispatch: -EINVAL. */
int axl_test(axl_transfer *transfer, axl_error *err);

/* Waits until the transfer ends; returns 0 or the first error. */
int axl_wait(axl_transfer *transfer, axl_error *err);

/* Cancels a transfer and returns when nothing moves any more. Temporary files and the
 * state file are removed; files in place stay. axl_test and axl_wait then return
 * -ECANCELED. Returns 0 also for a transfer that has already finished; its result does
 * not change. A transfer of axl_resume or axl_continue may be canceled before
 * axl_dispatch. While scr_transfer works on such a transfer, only the method "daemon" can
 * cancel it; other methods return -EBUSY. */
int axl_cancel(axl_transfer *transfer, axl_error *err);

/* Resumes the transfer of a state file, however the process that wrote the file ended.
 * The list, flags and limits come from the state file; any method may be used.
 * axl_dispatch continues from the recorded progress: files in place are not copied again,
 * and a partly copied large file is continued, unless its source has changed.
 * Destinations of parts must still be the same files; if a destination became too short,
 * its part is copied again. axl_dispatch returns -EBUSY while another process works on
 * the state file. -ENODATA when that process ended before it moved anything, so that the
 * file has no list. -EBADMSG for a damaged file.
 *
 * Data that the state file records as copied was synced. With AXL_COMPARE the record is
 * not trusted, because a file server that lost power, or another process, may have
 * removed data since. Each recorded byte is read from the destination and compared with
 * the source; bytes that differ or cannot be read are copied again. The workers compare
 * as the files move, within the same limits; axl_dispatch compares files that already
 * have their names. A process never reads back what it copied itself. */
int axl_resume(const char *state, const char *method, axl_transfer **transfer,
               axl_error *err);

/* Resumes an earlier transfer of the same list, for a caller that builds the list again.
 * Call this after all files were added and before axl_dispatch. The lists are the same
 * when the state file of the options names the same files and parts in the same order,
 * the flags are the same, no source has changed since, and each destination of a part
 * still reaches the end of the part. Then the verdict is AXL_CONTINUES, and axl_dispatch
 * continues from the recorded progress. With the method "daemon", a process that still
 * works is kept and only monitored, with the limits that it already has. With another
 * method, or with AXL_COMPARE, the process is stopped first.
 *
 * Otherwise returns 0: a process that worked on the state file was stopped for good, the
 * state file is durably removed, and the transfer starts from the beginning. */
int axl_continue(axl_transfer *transfer, axl_error *err);

/* Returns 1 when a process currently works on the transfer of that state file, as
 * scr_transfer may after its program has died, 0 when none does, or -errno when this
 * cannot be determined. Changes nothing. */
int axl_is_busy(const char *state);

/* Returns the progress of the transfer. */
int axl_progress_get(const axl_transfer *transfer, axl_progress *progress);

/* Returns the number of files, or file number i. The pointers in file are valid until the
 * transfer is freed. */
size_t axl_count(const axl_transfer *transfer);
int axl_get(const axl_transfer *transfer, size_t i, axl_file *file);

/* Frees a transfer. A running transfer is stopped: with a state file so that axl_resume
 * can continue it ("daemon": it just continues), without a state file as by axl_cancel.
 * The state file of a transfer that moved all files is removed. NULL is allowed. Returns
 * NULL. */
axl_transfer *axl_free(axl_transfer *transfer);

/* Copies one file in the calling thread, in the way axl_dispatch does. size and crc may
 * be NULL. flags are those above without AXL_COMPARE (-EINVAL). The source must be a
 * regular file, not a link (-ELOOP), a directory (-EISDIR) or anything else (-EINVAL). A
 * source that is modified during the copy is -ESTALE. Holes are kept. On failure the
 * destination is unchanged and no temporary file remains; directories that were created
 * do. (The exception is the last step, the fsync of the directory: if only this fails,
 * the new file is in place, and err says so.) */
int axl_copy(const char *source, const char *destination, unsigned flags, uint64_t *size,
             uint32_t *crc, axl_error *err);

/* Returns the size and CRC32 of a regular file; size and crc may be NULL. */
int axl_checksum(const char *path, uint64_t *size, uint32_t *crc, axl_error *err);

#ifdef __cplusplus
}
#endif
#endif
