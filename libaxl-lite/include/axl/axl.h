/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_AXL_H
#define AXL_AXL_H

/* Moving files between two paths on one node.
 *
 * A transfer is a list of files and a method that moves them. A destination appears under
 * its name only when it is whole and on disk: data is written to a temporary file in the
 * same directory (missing parent directories are made), synced and renamed. The checksum
 * is made while the data passes, so each byte is read once.
 *
 *     axl_transfer *t;
 *     axl_error err;
 *     axl_options options = {.flags = AXL_CHECKSUM, .workers = 4};
 *     rc = axl_create("pthread", &options, &t, &err);
 *     if (rc == 0) rc = axl_add(t, "/dev/shm/a", "/pfs/a", &err);
 *     if (rc == 0) rc = axl_dispatch(t, &err);
 *     ...                                         the program goes on meanwhile
 *     if (rc == 0) rc = axl_wait(t, &err);
 *     axl_free(t);
 *
 * Functions return 0, a negative error (-errno), or a positive verdict where one is
 * listed. A transfer is for one thread at a time. */

#include <axl/axl_names.h>
#include <kvtree/kvtree_error.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text of a failure: a struct with the member char text[512]. Every `axl_error *err`
 * is NULL, or gets a text for people when the function fails, and is unchanged otherwise.
 */
typedef kvtree_error axl_error;

/* Verdict of axl_test: still moving. */
#define AXL_RUNNING 1

/* Verdict of axl_continue: there is something to go on with. */
#define AXL_CONTINUES 2

/* Flags of axl_options and, but for the last one, of axl_copy. */
#define AXL_CHECKSUM 1u   /* compute the CRC32 (zlib's polynomial) of each file */
#define AXL_KEEP_MODE 2u  /* give the mode of the source, else 0666 less the umask */
#define AXL_KEEP_TIMES 4u /* give the times of the source */
#define AXL_COMPARE 8u    /* what an earlier process copied is compared with the source */

/* How files shall move. Zeros are the defaults. A limit is at least 1e-6. */
typedef struct axl_options {
    unsigned flags;
    int workers;        /* threads (pthread, daemon); 0: one per processor, at most 8 */
    size_t buffer;      /* bytes that pass at a time; 0: 256 KiB */
    double bandwidth;   /* most bytes per second, all workers together; 0: no limit */
    double percent;     /* most time of one processor that the transfer takes, in percent,
                         * all workers together; 0: no limit */
    const char *state;  /* state file: what was done, so that axl_resume can go on after
                         * the program ended, or died; one for each transfer that runs
                         * (-EBUSY); NULL: none, but for "daemon", which needs one */
    const char *daemon; /* path of the program scr_transfer; NULL: found in $PATH */
    const char *base;   /* a directory that all destinations lie below, and begin with; it
                         * is there by axl_dispatch. Each process that moves files opens
                         * it once and holds it; no link is followed on the way from it to
                         * a destination (-ELOOP). NULL: links on the way are followed */
} axl_options;

typedef struct axl_transfer axl_transfer;

/* What is known of a file that is moved. */
typedef struct axl_file {
    const char *source;      /* owned by the transfer */
    const char *destination; /* owned by the transfer */
    uint64_t size;           /* bytes; of a file that is in place */
    uint32_t crc;            /* with AXL_CHECKSUM, of a file that is in place */
    int done;                /* 1: in place; 0: not, or not yet */
} axl_file;

/* A part of a file. */
typedef struct axl_part {
    const char *source;
    uint64_t source_offset;      /* bytes */
    const char *destination;     /* is there, and a regular file, no link */
    uint64_t destination_offset; /* bytes */
    uint64_t length;             /* bytes */
    uint64_t device, inode;  /* of the source that the caller has checked: another file in
                              * its place is refused (-ESTALE); inode 0: any */
    const struct stat *seen; /* the source as axl_look found it, which must be that when
                              * it is read; NULL: axl_dispatch looks at it */
} axl_part;

/* How far a transfer is. */
typedef struct axl_progress {
    size_t files, files_done;   /* in all; in place */
    uint64_t bytes, bytes_done; /* of sources, holes among them, known once dispatched;
                                 * copied so far */
} axl_progress;

/* A new transfer by method:
 *
 *     sync      by the thread that calls axl_dispatch, before that returns
 *     pthread   by threads of this process, which share large files
 *     daemon    by the process scr_transfer, which goes on when this one ends
 *
 * A name that this build has no method for is -ENOTSUP ("bbapi", "dw"), an unknown one
 * -EINVAL, and err lists the available ones. options may be NULL. The caller frees it
 * with axl_free. */
int axl_create(const char *method, const axl_options *options, axl_transfer **transfer,
               axl_error *err);

/* How many seconds the process scr_transfer may give no sign of life before it counts as
 * stopped, or as hanging in a file system; 0, and without this call: 60. Ten times as
 * long it may live and copy nothing. Then it is killed, and the transfer fails with
 * -ETIMEDOUT; axl_cancel and axl_continue kill it when it does not obey for so long. */
void axl_set_patience(axl_transfer *transfer, int seconds);

/* All destinations that are added from now on lie below folder, which is below the base
 * (-EINVAL), and begin with it. Each process that moves files opens it once and holds it;
 * it must belong to the effective user and grant group and others nothing (-EPERM), so
 * that no other user can replace a destination. For transfers of parts in a directory
 * that others can change. A caller that has opened it, and checked that, gives the
 * descriptor dir, which this process uses then; else -1. folder and dir are copied. */
int axl_set_private(axl_transfer *transfer, const char *folder, int dir, axl_error *err);

/* Has report called while files move: by any thread that moves them (with the method
 * "daemon": by axl_test and axl_wait), after each few bytes. done is never above total,
 * the bytes of axl_progress. It returns at once, and calls nothing of this library. NULL:
 * none. Before axl_dispatch. */
void axl_set_progress(axl_transfer *transfer,
                      void (*report)(void *arg, uint64_t done, uint64_t total),
                      void *arg);

/* Lets at most count transfers with this name move files at a time, of all processes of
 * this node: 1 to 65536. A transfer that is dispatched waits for a slot, and gives it
 * back at its end; the slot of a process that dies is free. name is copied: it begins the
 * names of files, <name>.<number>.lock, in a directory that only this user can change.
 * Where a lock cannot be had at all the transfer does not wait. Once, before axl_dispatch
 * (-EINVAL). */
int axl_set_slots(axl_transfer *transfer, const char *name, int count, axl_error *err);

/* Adds a file. Both paths are copied. A destination that is in the list already (letter
 * by letter) is -EEXIST. One that is not below the base is -EINVAL. After axl_dispatch:
 * -EINVAL. */
int axl_add(axl_transfer *transfer, const char *source, const char *destination,
            axl_error *err);

/* Adds a part: its bytes are written into the file that is there, in place, with no
 * temporary name; neither mode nor times are kept. They are synced before the part counts
 * as done; the directory of the file is not. The file may be shorter than
 * destination_offset: it grows as needed, and keeps all other bytes. Several transfers,
 * also of several processes, may write different parts of one file at the same time;
 * parts that overlap are the caller's mistake. Holes of the source read as zeros in the
 * destination, whatever was there. After a failure, or axl_cancel, what was written
 * stays.
 *
 * Parts that follow each other in the list and have one destination are written through
 * one descriptor and synced once, and count when the last of them is written.
 *
 * In axl_file, size and crc are those of the part. A destination and offset that are in
 * the list already are -EEXIST, and so are a part and a whole file for one destination.
 * An offset or end above INT64_MAX is -EINVAL. */
int axl_add_part(axl_transfer *transfer, const axl_part *part, axl_error *err);

/* Gives part number i of the list an open file to be written to, so that its path is not
 * opened; parts that follow it and have the same destination go there, too. fd is open
 * for writing, and its file is a regular one, has that path, and is the source of no
 * part. It belongs to the transfer from now on, also on failure: it is synced and closed
 * when these parts are written, or closed when the transfer fails, or by axl_free.
 * scr_transfer (the method "daemon") opens the path all the same, and so does what
 * axl_continue goes on with. Once for a part, before axl_dispatch: else -EINVAL. */
int axl_set_opened(axl_transfer *transfer, size_t i, int fd, axl_error *err);

/* Opens a source and looks at it, as axl_dispatch does with those of files, and of parts
 * that nobody has seen. -EINVAL unless it is a regular file, -ELOOP for a link. */
int axl_look(const char *source, struct stat *seen, axl_error *err);

/* Starts the transfer, once. Fails at once, with nothing moved, when a source is missing
 * or no regular file, or shorter than its part (-ENODATA). What goes wrong while files
 * move is reported by axl_test and axl_wait, with every method; both repeat an error of
 * axl_dispatch, too. */
int axl_dispatch(axl_transfer *transfer, axl_error *err);

/* 0: all files are in place; AXL_RUNNING; negative: the first error. Before axl_dispatch:
 * -EINVAL. */
int axl_test(axl_transfer *transfer, axl_error *err);

/* Waits for the end: 0 or the first error. */
int axl_wait(axl_transfer *transfer, axl_error *err);

/* Stops a transfer for good: returns when nothing moves any more. Temporary files and the
 * state file are removed, files in place stay; axl_test and axl_wait return -ECANCELED.
 * 0, also when the transfer was finished before, which then stays as it is. One of
 * axl_resume or axl_continue may be stopped before axl_dispatch: by the method "daemon"
 * also while scr_transfer works on it; otherwise that is -EBUSY. */
int axl_cancel(axl_transfer *transfer, axl_error *err);

/* Takes up the transfer of a state file again, whatever became of the one that wrote it:
 * the list, flags and limits of then, by any method. axl_dispatch goes on where it was:
 * files in place are not copied again, and of a large one that was copied in part only
 * the rest, unless its source was changed since. Destinations of parts must be the same
 * files still; one that became too short gets its part again. It is -EBUSY while another
 * process works on the state file. -ENODATA when that process ended before it had moved
 * anything: there is no list, then. -EBADMSG for a damaged file.
 *
 * What the state file calls copied was synced. With AXL_COMPARE not even that is relied
 * on: a file server that lost its power, or another process, may have removed it since.
 * Each byte is read where it is and compared with the source, and what differs, or cannot
 * be read, is copied again. That is done as the files move, by the same workers and
 * within the same limits; files that have their names already are compared by
 * axl_dispatch. What one process copies itself is never read back. */
int axl_resume(const char *state, const char *method, axl_transfer **transfer,
               axl_error *err);

/* The same for who makes the list anew, after all of it was added and before
 * axl_dispatch: looks for what an earlier process did of the very same list. That is so
 * when the state file of the options names the same files and parts in the same order,
 * the flags are the same, no source was changed since, and each destination of a part
 * still reaches its end. Then the verdict is AXL_CONTINUES, and axl_dispatch goes on
 * where that process was; by the method "daemon" one that still works is just looked
 * after, with the limits that it has. By another method, or with AXL_COMPARE, it is
 * stopped first.
 *
 * Otherwise 0: the process that works on the state file was stopped for good, the file is
 * gone, durably, and the transfer begins from nothing. */
int axl_continue(axl_transfer *transfer, axl_error *err);

/* 1 when a process works on the transfer of that state file just now, as scr_transfer may
 * when its program has died; 0 when none does; -errno where that is not known. Only
 * looks. */
int axl_is_busy(const char *state);

/* How far the transfer is. */
int axl_progress_get(const axl_transfer *transfer, axl_progress *progress);

/* Number of files, and the i-th of them. The pointers are good until the transfer is
 * freed. */
size_t axl_count(const axl_transfer *transfer);
int axl_get(const axl_transfer *transfer, size_t i, axl_file *file);

/* Frees a transfer. One that still runs is stopped: with a state file so that axl_resume
 * can go on ("daemon": it just goes on), without one as by axl_cancel. The state file of
 * a transfer that moved all files is removed. NULL is fine. Returns NULL. */
axl_transfer *axl_free(axl_transfer *transfer);

/* One file, in the calling thread, as axl_dispatch moves it. size and crc may be NULL.
 * flags are those above without AXL_COMPARE (-EINVAL).
 * The source must be a regular file, not a link (-ELOOP), a directory (-EISDIR) or
 * anything else (-EINVAL). A source that is written to meanwhile is -ESTALE. Holes stay
 * holes. On failure the destination is what it was before, and no temporary file stays;
 * directories that were made do. (Only where the very last step fails, the fsync of the
 * directory, the new file is in place; err says so.) */
int axl_copy(const char *source, const char *destination, unsigned flags, uint64_t *size,
             uint32_t *crc, axl_error *err);

/* Size and CRC32 of a regular file; size and crc may be NULL. */
int axl_checksum(const char *path, uint64_t *size, uint32_t *crc, axl_error *err);

#ifdef __cplusplus
}
#endif
#endif
