/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_PRIVATE_H
#define AXL_PRIVATE_H

/* Declarations shared by the sources of libaxl-lite: the internals of a transfer, and the
 * interface of a method. A new method is one source file that defines an axl_method, and
 * one row in the table of axl_method.c.
 *
 *     axl.c           the list and the states of a transfer
 *     axl_method.c    the table of methods: axl_sync.c, axl_pthread.c, axl_daemon.c
 *     axl_work.c      workers, which take pieces of files from the list until none is
 * left axl_piece.c     one piece, from one descriptor to another axl_place.c     what is
 * written to: temporary files and their renaming, or parts axl_throttle.c  when the next
 * piece may be moved axl_state.c     writing and reading the state file axl_owner.c the
 * process that works on the state file, and its signs of life axl_save.c      what
 * workers write into the state file axl_resume.c    the progress of an earlier process
 *     axl_continue.c  whether that process had the same list
 *     axl_serve.c     the work of the process scr_transfer */

#include "common/errtext.h"
#include "src/axl_names_private.h"
#include <axl/axl.h>
#include <kvtree/kvtree.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

/* ---- a transfer ---- */

typedef enum axl_state { AXL_FILLING, AXL_STARTED, AXL_FINISHED } axl_state;

enum { AXL_WORKERS_MAX = 256 };
#define AXL_BUFFER_MAX ((size_t)1 << 30)

/* Files are cut into pieces of this number of bytes, so that several workers can share
 * one. */
#define AXL_PIECE ((uint64_t)32 << 20)
#define AXL_INTERVAL 1.0

/* A file of the list, or a part of one. While workers run, their lock protects the
 * members that change. Bytes are counted from the start of the part. */
typedef struct axl_item {
    axl_file file;                /* the view of the caller */
    bool part;                    /* a part; it is written in place */
    uint64_t from, to;            /* offsets of a part in source and destination, or 0 */
    uint64_t size;                /* bytes to move: of the part, or of the whole source */
    struct timespec atime, mtime; /* times of the source */
    uint64_t source_size;         /* size of the whole source */
    dev_t device;                 /* device and inode of the source */
    ino_t inode;
    mode_t mode;          /* mode of the source at dispatch */
    bool dense;           /* the source has no holes */
    bool seen;            /* these facts came from axl_look, before axl_dispatch */
    dev_t checked_device; /* the source that the caller has checked; inode 0: any */
    ino_t checked_inode;
    uint64_t begin;      /* bytes that an earlier process copied: pieces begin there */
    uint32_t begin_crc;  /* their checksum */
    uint64_t claimed;    /* bytes recorded by an earlier process; compared first */
    uint64_t synced;     /* bytes from the start that are certainly on disk */
    uint32_t synced_crc; /* their checksum */
    bool made;           /* the file to write to exists */
    bool open;           /* pieces may be written to it */
    size_t holder;       /* consecutive parts with the same destination are written
                          * through the descriptor of the first one: its number; else the
                          * item's own number */
    size_t held;         /* of a holder: number of its incomplete parts */
    size_t last;         /* of a holder: number of its last part */
    bool given;          /* fd is the caller's: the file may be shorter than the part */
    int fd;              /* of a holder, while pieces are moved, or supplied; else -1 */
    size_t pieces, left; /* number of all pieces; of unfinished pieces */
    uint32_t *crcs;      /* checksums of the pieces */
    uint8_t *moved;      /* 1 for each finished piece */
} axl_item;

/* An entry of the index: the destination of a file, or the destination and offset of a
 * part. The first part of a destination also has an entry as a whole file. */
typedef struct axl_slot {
    size_t item; /* number of the item + 1; 0: free */
    uint64_t offset;
} axl_slot;

#define AXL_FILE_ITSELF UINT64_MAX /* offset of a whole file */

typedef struct axl_work axl_work;
typedef struct axl_worker axl_worker;
typedef struct axl_folder axl_folder;
typedef struct axl_method axl_method;

/* Signs of life that scr_transfer writes into the lock file: a text that changes every
 * AXL_BEAT seconds and contains the number of bytes copied. */
#define AXL_BEAT 0.25
enum { AXL_SIGN_SIZE = 64 };

typedef struct axl_pulse {
    int owner; /* descriptor of the lock file */
    unsigned long beats;
    double next; /* time of the next sign */
} axl_pulse;

/* State of a process that watches the signs of life of scr_transfer. */
typedef struct axl_listener {
    char sign[AXL_SIGN_SIZE];
    double looked;        /* time of the last look; 0: never */
    double silent, still; /* seconds without a sign of life; without a byte copied */
    char why[64];         /* the problem; "": none */
} axl_listener;

/* Default number of seconds without a sign of life. */
#define AXL_PATIENCE 60.0

struct axl_transfer {
    const axl_method *method;
    unsigned flags;
    int workers;
    size_t buffer;
    uint64_t piece;  /* AXL_PIECE; tests use less */
    double interval; /* seconds between two writes of the state file */
    double bandwidth, percent;
    void (*report)(void *arg, uint64_t done, uint64_t total); /* or NULL */
    void *report_arg;
    char *state_path;  /* path of the state file; NULL: none */
    int owner;         /* lock of the state file; -1: not held */
    bool ours;         /* state file and temporary files belong to this transfer */
    bool resumed;      /* an earlier process may have left temporary files */
    bool continues;    /* an earlier process had the same list and may still run */
    bool obeys;        /* runs in scr_transfer, on the command of the state file */
    char *daemon_path; /* path of scr_transfer; NULL: searched in $PATH */
    int starts;        /* starts of scr_transfer since it last moved bytes */
    double patience;   /* seconds that scr_transfer may give no sign of life */
    axl_listener listener;
    axl_pulse *pulse; /* set in scr_transfer itself; NULL: no signs of life */
    int unsaved;      /* -errno: the result could not be written to the state file */
    axl_state state;
    int result;           /* once finished: 0, or the first error */
    axl_error error;      /* text of result */
    char *base;           /* directory above all destinations; NULL: any */
    char *private_folder; /* directory above all destinations, below the base
                           * (axl_set_private); NULL: none */
    char *slot_path;      /* absolute path that begins the names of slots (axl_set_slots);
                           * NULL: none */
    int slot_count;
    int slot, slot_fd; /* number and lock of the slot held; -1: none */
    int top_dir;       /* descriptor of private_folder, else of base; -1: none, or not
                        * open yet */
    uint64_t id;       /* random, in the names of temporary files */
    size_t count;
    axl_item *items;
    size_t slots, used;  /* slots of the index: 0 or a power of two >= 2 * used */
    axl_slot *index;     /* hash table of destinations, with open addressing */
    uint64_t bytes;      /* bytes of all sources, once dispatched */
    uint64_t bytes_done; /* bytes copied, once finished */
    size_t files_done;
    axl_work *work; /* state of methods that move files in this process */
};

/* Whether limit is valid: 0 (no limit), or a number that a state file can hold. */
bool axl_is_limit(double limit);

/* Returns the time of a clock, in seconds. */
double axl_seconds(clockid_t clock);

/* Finishes the transfer with a result and, unless it is 0, its error text. */
void axl_transfer_finish(axl_transfer *transfer, int result, const char *error);

/* Reports the number of bytes done to the caller's function, if there is one. */
void axl_transfer_report(const axl_transfer *transfer, uint64_t done);

/* ---- methods ---- */

/* A method sets the result of the transfer with axl_transfer_finish. */
struct axl_method {
    const char *name;
    bool remote; /* another process works on the state file */

    /* Starts to move all files of the list. Their sources were checked just before. NULL:
     * this build lacks the method. */
    int (*start)(axl_transfer *transfer, axl_error *err);

    /* Returns AXL_RUNNING, or 0 once the transfer is finished. */
    int (*test)(axl_transfer *transfer);

    /* Returns when the transfer is finished. */
    void (*wait)(axl_transfer *transfer);

    /* Stops a running transfer. for_good: unfinished data is not kept, and nothing moves
     * afterwards. Without for_good, scr_transfer continues; other methods stop. */
    void (*stop)(axl_transfer *transfer, bool for_good);

    /* Reports the progress of a running transfer: of file number i if file is not NULL,
     * and of the whole transfer if progress is not NULL. */
    void (*look)(const axl_transfer *transfer, size_t i, axl_file *file,
                 axl_progress *progress);
};

extern const axl_method axl_sync, axl_pthread, axl_daemon;

/* Finds the method of that name. -EINVAL or -ENOTSUP as described at axl_create. */
int axl_method_find(const char *name, const axl_method **method, axl_error *err);

/* ---- axl_throttle.c ---- */

/* Two limits. For each, paid_* is the time until which the work done so far is paid for.
 * All times are in seconds on one clock. */
typedef struct axl_throttle {
    double bandwidth; /* bytes per second; 0: no limit */
    double share;     /* share of a processor, 0 to 1; 0: no limit */
    double paid_bytes, paid_time;
    double last; /* time of the last payment */
} axl_throttle;

/* Sets the limits; accounting starts at the time now. */
void axl_throttle_begin(axl_throttle *throttle, double bandwidth, double percent,
                        double now);

/* Records that a number of bytes was moved until now, using cpu seconds of processor
 * time. Returns the seconds to wait before more may be moved. */
double axl_throttle_pay(axl_throttle *throttle, double now, uint64_t bytes, double cpu);

/* ---- axl_work.c ---- */

/* Starts workers that move all files: threads threads or, for 0, the calling thread,
 * which then moves them before this function returns. */
int axl_work_start(axl_transfer *transfer, int threads, axl_error *err);

/* Functions for methods. The first three finish the transfer once no worker is left. */
int axl_work_test(axl_transfer *transfer);
void axl_work_wait(axl_transfer *transfer);
void axl_work_stop(axl_transfer *transfer, bool for_good);
void axl_work_look(const axl_transfer *transfer, size_t i, axl_file *file,
                   axl_progress *progress);

/* Accounts for bytes that a worker has moved, and waits as long as the limits require.
 * -ECANCELED when the transfer ends. */
int axl_worker_pay(axl_worker *worker, uint64_t bytes);

/* Accounts for holes, which need not be moved and cost nothing. */
void axl_worker_skip(axl_worker *worker, uint64_t bytes);

/* ---- axl_slots.c ---- */

enum { AXL_SLOTS_MAX = 65536 };

/* Waits for a slot of the transfer, if it has slots, or for its end. Each worker calls
 * this before it moves anything. */
void axl_slots_enter(axl_work *work);

/* Releases the slot, when the last worker has finished. */
void axl_slots_leave(axl_transfer *transfer);

/* Returns how often a running transfer has looked for a slot. The count shows that a
 * waiting transfer is alive. */
uint64_t axl_slots_looks(const axl_transfer *transfer);

/* ---- axl_daemon.c ---- */

/* Stops the process that works on a state file, and waits at most patience seconds until
 * nothing moves; then kills the process. for_good: if the command cannot be written, the
 * state file is removed. -ETIMEDOUT when the process could not be killed. */
int axl_daemon_halt(const char *path, double patience, bool for_good, axl_error *err);

/* ---- axl_resume.c ---- */

/* Determines how far item number i of a resumed transfer was copied. */
int axl_look_again(axl_transfer *transfer, size_t i, axl_folder *folder, axl_error *err);

/* ---- axl_state.c ---- */

typedef enum axl_command {
    AXL_COMMAND_STOP,
    AXL_COMMAND_RUN,
    AXL_COMMAND_EXIT
} axl_command;

/* The status that the process moving the files records in the state file. */
typedef struct axl_news {
    bool fresh;   /* ignore a command in the file: it was meant for another process */
    bool follows; /* do not write to a file without the list of this transfer: -ENOENT */
    bool running, done;
    uint64_t id; /* when read: ID of the transfer whose list the file has; 0: none */
    int result;  /* 0 or an error, with its text */
    axl_error error;
} axl_news;

/* Returns the absolute path, which the caller frees; NULL without memory. */
char *axl_absolute(const char *path);

/* Builds a tree with the list and the options; -ENOMEM. */
int axl_state_build(const axl_transfer *transfer, kvtree **state);

/* Writes state and news to the file. A command in the file is kept and copied to *command
 * (but see axl_news.fresh); otherwise *command is written. */
int axl_state_write(const char *path, kvtree *state, const axl_news *news,
                    axl_command *command, axl_error *err);

/* Changes the command in an existing state file. Waits for its lock at most that number
 * of seconds: -ETIMEDOUT. */
int axl_state_command(const char *path, axl_command command, int seconds, axl_error *err);

/* Reads the state file. */
int axl_state_read(const char *path, kvtree *state, axl_news *news, axl_command *command,
                   axl_error *err);

/* Fills a new transfer from a tree, whose content is not trusted. -EBADMSG. */
int axl_state_fill(axl_transfer *transfer, const kvtree *state, axl_error *err);

/* Copies the progress in the entry of a state file into item. Returns the number of bytes
 * written. */
uint64_t axl_state_take(const axl_transfer *transfer, const kvtree *entry,
                        axl_item *item);

/* Writes the error of a transfer that could not be dispatched into its state file.
 * Returns the error of that write. */
int axl_state_fail(const axl_transfer *transfer, int result, axl_error *err);

/* Reads the status and the command from the state file, without the list. */
int axl_state_peek(const char *path, axl_news *news, axl_command *command);

/* ---- axl_owner.c ---- */

/* Takes the lock of a state file: only one process at a time works on the file, others
 * get -EBUSY. The lock is on a file beside the state file, and ends with its owner. */
int axl_owner_take(const char *path, int *owner, axl_error *err);
void axl_owner_drop(const char *path, int *owner);

/* Whether a process holds the lock. */
bool axl_owner_is_there(const char *path);

/* Writes a sign of life if one is due. pulse may be NULL. */
void axl_pulse_beat(axl_pulse *pulse, uint64_t bytes);

/* Checks the signs of life of an existing owner, and sets why if they are missing. */
void axl_listen(axl_listener *listener, const char *path, double patience);

/* Kills an owner that is stopped or hangs. Afterwards the owner changes no file, except
 * by the system call in which it hangs, such as a write to a temporary file. Returns the
 * process ID, or 0 if no process could be found or killed. */
pid_t axl_owner_kill(const char *path);

/* ---- axl_serve.c ---- */

/* Exit code of scr_transfer: another process serves the file. */
enum { AXL_ATTENDED = 3 };

/* How scr_transfer serves a state file. */
typedef struct axl_service {
    const char *path;
    double interval;          /* seconds between two looks at the file */
    bool leave;               /* end when there is nothing to do */
    bool background;          /* serve in a child process; the parent returns 0 once it
                               * holds the lock */
    const volatile int *stop; /* not 0: end now, so that the transfer can be resumed */
    int owner;
    axl_pulse pulse;
} axl_service;

/* Serves a state file until its command is EXIT, or as the members of service require.
 * -EBUSY when another process serves the file. */
int axl_serve(axl_service *service, axl_error *err);

/* ---- axl_piece.c ---- */

/* A range of bytes of a source that is known to have no hole. */
typedef struct axl_extent {
    const axl_item *item; /* the item with that source; NULL: none */
    uint64_t begin, end;
} axl_extent;

/* Bytes of an item that are being moved. */
typedef struct axl_piece {
    const axl_item *item;
    axl_extent *data;        /* extent kept from piece to piece; NULL: not kept */
    int in, out;             /* out -1: only compute the checksum */
    int there;               /* descriptor to read what out already contains: only bytes
                              * that differ from in are written; -1: all are written */
    uint64_t offset, length; /* within the item */
    bool checksum;
    bool by_kernel; /* the kernel copies, if no checksum or comparison needs the bytes */
    uint32_t crc;   /* checksum of the piece, with checksum */
    char *buffer;   /* of buffer_size bytes */
    size_t buffer_size;
    size_t kernel_step; /* most bytes that the kernel copies in one call */
    axl_worker *worker; /* NULL: no cancellation and no limits */
} axl_piece;

/* Whether an open file is in memory: neither on a disk nor on a server. */
bool axl_is_in_memory(int fd);

/* Moves a piece. Holes are not written: the destination of a file already has its final
 * size, and holes are punched into the destination of a part. -ESTALE when the source
 * ends before the piece. */
int axl_piece_move(axl_piece *piece, axl_error *err);

/* ---- axl_place.c ---- */

/* Opens a source: a regular file, not a link. *st describes it. */
int axl_open_source(const char *path, int *fd, struct stat *st, axl_error *err);

/* Whether a file has memory or disk space for all its bytes, and so no hole. */
bool axl_is_dense(const struct stat *st);

/* Records the status of the source, which must not change before the source is read.
 * *unchanged: the status equals the one recorded before. -ENODATA when the source is
 * shorter than the part. */
int axl_look_at_source(axl_item *item, bool *unchanged, axl_error *err);

/* Whether two parts have the same source, with the same identity checked by the caller.
 */
bool axl_has_same_source(const axl_item *item, const axl_item *other);

/* Like axl_look_at_source for an item with the same source as another item, before, whose
 * source was looked at just before. */
int axl_look_as_before(axl_item *item, const axl_item *before, axl_error *err);

/* Records the status of the source as seen by the caller; the source must still be this
 * file when it is read. */
void axl_take_seen(axl_item *item, const struct stat *seen);

/* -ENODATA when the recorded size of the source is too small for the part. */
int axl_check_range(const axl_item *item, axl_error *err);

/* Opens the source, which must not have changed since its status was recorded. */
int axl_open_looked_at(const axl_item *item, int *fd, axl_error *err);

/* -ESTALE if the open source has changed since it was dispatched. */
int axl_check_source(const axl_item *item, int fd, axl_error *err);

/* The directory of the last destination. It stays open because the next file is usually
 * in the same directory. */
struct axl_folder {
    char *path; /* with a trailing slash; NULL: none yet */
    int fd;
};

void axl_folder_done(axl_folder *folder);

/* Returns the path of the directory that all destinations lie below; NULL: any. */
const char *axl_place_top(const axl_transfer *transfer);

/* Opens that directory, if there is one and it is not open yet. */
int axl_place_begin(axl_transfer *transfer, axl_error *err);

/* Opens the file that item number i is written to. For a part this is the destination
 * itself. Otherwise it is the temporary file in the directory of the destination; both
 * are created if they are missing. The file is made long enough for the item. */
int axl_place_open(const axl_transfer *transfer, size_t i, axl_folder *folder, int *fd,
                   axl_error *err);

/* Makes an already open destination long enough for a part, with the same check as
 * axl_place_open. *st is the status of the destination, now or recently. */
int axl_place_reach_end(const axl_item *item, const struct stat *st, int fd,
                        axl_error *err);

/* Opens the same existing file for reading. */
int axl_place_open_again(const axl_transfer *transfer, size_t i, axl_folder *folder,
                         int *fd);

/* Syncs the data written for item number i so far, unless it already has its name. */
int axl_place_sync(const axl_transfer *transfer, size_t i, axl_folder *folder,
                   axl_error *err);

/* Opens the existing destination of item for reading. */
int axl_place_open_named(const axl_transfer *transfer, const axl_item *item, int *fd,
                         struct stat *st, axl_error *err);

/* Syncs the directory of a destination, so that the name of the file is durable. */
int axl_place_sync_named(const axl_transfer *transfer, const axl_item *item,
                         axl_error *err);

/* Syncs the directory of any file, so that its creation or removal is durable. */
int axl_place_sync_folder(const char *path, axl_error *err);

/* Complete files that still have temporary names. They are synced together, so that the
 * journal of the file system makes them wait once instead of many times. */
enum { AXL_BATCH = 256 };

typedef struct axl_batch {
    int count;
    size_t items[AXL_BATCH];
    int fds[AXL_BATCH];
} axl_batch;

/* Syncs, closes and renames all files of the batch, syncs their directories, and empties
 * the batch. Parts are not renamed. *placed is the number of items that are durably in
 * place. */
int axl_place_batch(const axl_transfer *transfer, axl_batch *batch, int *placed,
                    axl_error *err);

/* Returns 1 if item number i has a temporary file, 0 if not, or -ENOMEM. *fits: the
 * temporary file, or the destination of a part, may contain data of the item. */
int axl_place_find(const axl_transfer *transfer, size_t i, axl_folder *folder, bool *fits,
                   axl_error *err);

/* Removes the temporary file that axl_place_find has found, in the directory opened then.
 */
void axl_place_drop(const axl_transfer *transfer, size_t i, const axl_folder *folder);

/* Whether the destination of a part exists and reaches the end of the part. */
bool axl_place_reaches(const axl_transfer *transfer, const axl_item *item);

/* Removes the temporary file of item number i, if it has one. */
void axl_place_remove(const axl_transfer *transfer, size_t i);

#endif
