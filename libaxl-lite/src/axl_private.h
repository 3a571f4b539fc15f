/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_PRIVATE_H
#define AXL_PRIVATE_H

/* What the sources of libaxl-lite share: a transfer seen from inside, and what a method
 * has to provide. A new method is one source file that defines an axl_method, and one row
 * in the table of axl_method.c.
 *
 *     axl.c           the list and the states of a transfer
 *     axl_method.c    the table of methods; axl_sync.c, axl_pthread.c, axl_daemon.c: they
 *     axl_work.c      workers, who take pieces of files from the list until none is left
 *     axl_piece.c     one piece, from one descriptor to another
 *     axl_place.c     what is written to: temporary files that get their names, or parts
 *     axl_throttle.c  when the next piece may be moved
 *     axl_state.c     the state file: written, read
 *     axl_owner.c     who works on it, and whether he lives
 *     axl_save.c      what workers write into it
 *     axl_resume.c    what an earlier process did
 *     axl_continue.c  whether that was the same list
 *     axl_serve.c     what the process scr_transfer does */

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

/* Files are cut into pieces of this many bytes, so that several workers can share one. */
#define AXL_PIECE ((uint64_t)32 << 20)
#define AXL_INTERVAL 1.0

/* A file of the list, or a part of one. While workers run, their lock protects what
 * changes. Bytes are counted from where the part begins. */
typedef struct axl_item {
    axl_file file;                /* as callers see it */
    bool part;                    /* written in place, ... */
    uint64_t from, to;            /* ... from here in the source to there; else 0 */
    uint64_t size;                /* bytes to move: of the part, else of the source */
    struct timespec atime, mtime; /* of the source, ... */
    uint64_t source_size;         /* ... its size, ... */
    dev_t device;                 /* ... where it lies, ... */
    ino_t inode;
    mode_t mode;          /* ... its mode when it was dispatched */
    bool dense;           /* it has no holes */
    bool seen;            /* all this is known from axl_look, before that */
    dev_t checked_device; /* the caller has checked this one; 0: any */
    ino_t checked_inode;
    uint64_t begin;      /* bytes that an earlier process copied: pieces begin there */
    uint32_t begin_crc;  /* their checksum */
    uint64_t claimed;    /* bytes that it says to have copied: compared first */
    uint64_t synced;     /* bytes that are on disk for sure, from the start on ... */
    uint32_t synced_crc; /* ... and their checksum */
    bool made;           /* what is written to is there */
    bool open;           /* ... and pieces may be written to it */
    size_t holder;       /* number of the first of the parts that are moved one after the
                            other to the same destination; else its own */
    size_t held;         /* of a holder: its parts that are not complete */
    size_t last;         /* of a holder: number of the last of them */
    bool given;          /* fd is the caller's: the file may be shorter than the part */
    int fd;              /* of a holder, while pieces are moved, or given; else -1 */
    size_t pieces, left; /* of it; not done yet */
    uint32_t *crcs;      /* of the pieces */
    uint8_t *moved;      /* 1 of those that are done */
} axl_item;

/* A destination in the index: of a file, or of the part that goes to an offset. The first
 * part of a destination is there as a file, too. */
typedef struct axl_slot {
    size_t item; /* its number + 1; 0: free */
    uint64_t offset;
} axl_slot;

#define AXL_FILE_ITSELF UINT64_MAX /* as offset */

typedef struct axl_work axl_work;
typedef struct axl_worker axl_worker;
typedef struct axl_folder axl_folder;
typedef struct axl_method axl_method;

/* Signs of life that scr_transfer leaves in the lock file: a text that changes every
 * AXL_BEAT seconds, and says how many bytes it has copied. */
#define AXL_BEAT 0.25
enum { AXL_SIGN_SIZE = 64 };

typedef struct axl_pulse {
    int owner; /* the lock file */
    unsigned long beats;
    double next; /* time of the next one */
} axl_pulse;

/* Who waits for it listens. */
typedef struct axl_listener {
    char sign[AXL_SIGN_SIZE];
    double looked;        /* when; 0: never */
    double silent, still; /* seconds without a beat; without a byte */
    char why[64];         /* what is wrong; "": nothing */
} axl_listener;

/* Seconds that a process may be silent, by default. */
#define AXL_PATIENCE 60.0

struct axl_transfer {
    const axl_method *method;
    unsigned flags;
    int workers;
    size_t buffer;
    uint64_t piece;  /* AXL_PIECE; tests take less */
    double interval; /* seconds between two writes of the state file */
    double bandwidth, percent;
    void (*report)(void *arg, uint64_t done, uint64_t total); /* or NULL */
    void *report_arg;
    char *state_path;  /* of the state file; NULL: none */
    int owner;         /* its lock; -1: we do not have it */
    bool ours;         /* state file and temporary files are those of this transfer */
    bool resumed;      /* an earlier process may have left temporary files */
    bool continues;    /* it had the same list, and may still work on it */
    bool obeys;        /* the one that dispatches was told so by the state file */
    char *daemon_path; /* of scr_transfer; NULL: in $PATH */
    int starts;        /* of it, since it moved some bytes */
    double patience;   /* seconds that it may give no sign of life */
    axl_listener listener;
    axl_pulse *pulse; /* of scr_transfer itself; NULL: without a listener */
    int unsaved;      /* -errno: the result could not be written to the state file */
    axl_state state;
    int result;           /* once finished: 0 or the first error ... */
    axl_error error;      /* ... and its text */
    char *base;           /* directory of all destinations; NULL: any */
    char *private_folder; /* of all destinations, below the base (axl_set_private);
                             NULL: none */
    char *slot_path;      /* absolute name of slots (axl_set_slots); NULL: none */
    int slot_count;
    int slot, slot_fd; /* the one that it has; -1: none */
    int top_dir;       /* the innermost of both, held open; -1: none, or not yet */
    uint64_t id;       /* random, in the names of temporary files */
    size_t count;
    axl_item *items;
    size_t slots, used;  /* of the index: a power of two, at least twice used, or 0 */
    axl_slot *index;     /* open hash of destinations */
    uint64_t bytes;      /* of all sources, once dispatched */
    uint64_t bytes_done; /* and once finished */
    size_t files_done;
    axl_work *work; /* of methods that move files in this process */
};

/* Whether it can be one: none, or a number that a state file can hold. */
bool axl_is_limit(double limit);

/* The time of a clock, in seconds. */
double axl_seconds(clockid_t clock);

/* Ends the transfer with its result and, unless that is 0, its text. */
void axl_transfer_finish(axl_transfer *transfer, int result, const char *error);

/* Reports that so many bytes are done, if somebody wants to know. */
void axl_transfer_report(const axl_transfer *transfer, uint64_t done);

/* ---- methods ---- */

/* A method leaves its result in the transfer by axl_transfer_finish. */
struct axl_method {
    const char *name;
    bool remote; /* another process works on the state file */

    /* Starts to move all files of the list; their sources were there a moment ago. NULL:
     * a method that this build does not have. */
    int (*start)(axl_transfer *transfer, axl_error *err);

    /* AXL_RUNNING, or 0 once the transfer is finished. */
    int (*test)(axl_transfer *transfer);

    /* Returns when the transfer is finished. */
    void (*wait)(axl_transfer *transfer);

    /* Ends a transfer that still runs; nothing moves afterwards. for_good: nothing of
     * what is unfinished is kept. */
    void (*stop)(axl_transfer *transfer, bool for_good);

    /* How far it is while it runs: file number i, if file is not NULL, and the whole,
     * if progress is not NULL. */
    void (*look)(const axl_transfer *transfer, size_t i, axl_file *file,
                 axl_progress *progress);
};

extern const axl_method axl_sync, axl_pthread, axl_daemon;

/* The method of that name, ready for use; -EINVAL or -ENOTSUP as axl_create tells. */
int axl_method_find(const char *name, const axl_method **method, axl_error *err);

/* ---- axl_throttle.c ---- */

/* Two limits, each with the time until which what was done so far is paid for. All times
 * are in seconds on one clock. */
typedef struct axl_throttle {
    double bandwidth; /* bytes per second; 0: no limit */
    double share;     /* of a processor, 0 to 1; 0: no limit */
    double paid_bytes, paid_time;
    double last; /* time of the last payment */
} axl_throttle;

/* Nothing is paid before now. */
void axl_throttle_begin(axl_throttle *throttle, double bandwidth, double percent,
                        double now);

/* That number of bytes was moved until now, in cpu seconds of the processor. Returns
 * the seconds to wait before more may be moved. */
double axl_throttle_pay(axl_throttle *throttle, double now, uint64_t bytes, double cpu);

/* ---- axl_work.c ---- */

/* Lets workers move all files: that number of threads, or, for 0, the caller before this
 * returns. */
int axl_work_start(axl_transfer *transfer, int threads, axl_error *err);

/* For methods: all but the last finish the transfer when no worker is left. */
int axl_work_test(axl_transfer *transfer);
void axl_work_wait(axl_transfer *transfer);
void axl_work_stop(axl_transfer *transfer, bool for_good);
void axl_work_look(const axl_transfer *transfer, size_t i, axl_file *file,
                   axl_progress *progress);

/* Called by a worker after some bytes: pays for them, and waits as long as it has to.
 * -ECANCELED when the transfer ends. */
int axl_worker_pay(axl_worker *worker, uint64_t bytes);

/* The same for bytes that need not move, and cost nothing: holes. */
void axl_worker_skip(axl_worker *worker, uint64_t bytes);

/* ---- axl_slots.c ---- */

enum { AXL_SLOTS_MAX = 65536 };

/* Called by each worker before it moves anything: waits for a slot of the transfer, if it
 * has slots, or for the end. */
void axl_slots_enter(axl_work *work);

/* The last worker has moved what it could. */
void axl_slots_leave(axl_transfer *transfer);

/* How often a transfer that runs has looked for a slot: one that waits is alive. */
uint64_t axl_slots_looks(const axl_transfer *transfer);

/* ---- axl_daemon.c ---- */

/* Stops the process that works on a state file, and waits until nothing moves, at most
 * patience seconds: then it is killed. for_good: where that cannot be written the file is
 * removed. -ETIMEDOUT when it could not be killed. */
int axl_daemon_halt(const char *path, double patience, bool for_good, axl_error *err);

/* ---- axl_resume.c ---- */

/* Finds out how far item number i of a transfer that is resumed came. */
int axl_look_again(axl_transfer *transfer, size_t i, axl_folder *folder, axl_error *err);

/* ---- axl_state.c ---- */

typedef enum axl_command {
    AXL_COMMAND_STOP,
    AXL_COMMAND_RUN,
    AXL_COMMAND_EXIT
} axl_command;

/* What the mover of files says about himself. */
typedef struct axl_news {
    bool fresh;   /* a command that stands in the file was meant for another one */
    bool follows; /* without this list in the file there is nothing to tell: -ENOENT */
    bool running, done;
    uint64_t id; /* of the transfer whose list the file has, when read; 0: without one */
    int result;  /* 0 or an error ... */
    axl_error error;
} axl_news;

/* The path from the root on, to be freed; NULL without memory. */
char *axl_absolute(const char *path);

/* A tree with the list and the options; -ENOMEM. */
int axl_state_build(const axl_transfer *transfer, kvtree **state);

/* Writes state, with the news added, to the file. A command that stands there stays, and
 * becomes *command; otherwise *command is written. */
int axl_state_write(const char *path, kvtree *state, const axl_news *news,
                    axl_command *command, axl_error *err);

/* Changes the command in a file that is there. Other processes may hold its lock for that
 * number of seconds: -ETIMEDOUT. */
int axl_state_command(const char *path, axl_command command, int seconds, axl_error *err);

/* Reads the file. */
int axl_state_read(const char *path, kvtree *state, axl_news *news, axl_command *command,
                   axl_error *err);

/* Fills a new transfer from a tree; nothing in it is believed. -EBADMSG. */
int axl_state_fill(axl_transfer *transfer, const kvtree *state, axl_error *err);

/* Copies into item what the entry of a file says of it; returns the bytes that are
 * written. */
uint64_t axl_state_take(const axl_transfer *transfer, const kvtree *entry,
                        axl_item *item);

/* Writes the error of a transfer that could not be dispatched into its file; what goes
 * wrong with that is returned. */
int axl_state_fail(const axl_transfer *transfer, int result, axl_error *err);

/* Reads what the file says of the transfer, but not the list. */
int axl_state_peek(const char *path, axl_news *news, axl_command *command);

/* ---- axl_owner.c ---- */

/* Only one process at a time works on a state file: -EBUSY for others. The lock is a file
 * beside it, and ends with its owner. */
int axl_owner_take(const char *path, int *owner, axl_error *err);
void axl_owner_drop(const char *path, int *owner);

/* Whether some process does. */
bool axl_owner_is_there(const char *path);

/* It is time for a sign of life, perhaps. NULL is fine. */
void axl_pulse_beat(axl_pulse *pulse, uint64_t bytes);

/* Checks the signs of an owner that is there, and fills in why. */
void axl_listen(axl_listener *listener, const char *path, double patience);

/* Kills an owner that is stopped or hangs. From then on it does nothing in any file, but
 * for the call of the system in which it hangs: a part is written to its temporary file.
 * Returns the process, or 0 if none could be found or killed. */
pid_t axl_owner_kill(const char *path);

/* ---- axl_serve.c ---- */

/* Exit code of scr_transfer: another process attends the file. */
enum { AXL_ATTENDED = 3 };

/* How a state file is attended. */
typedef struct axl_service {
    const char *path;
    double interval;          /* seconds between two looks at the file */
    bool leave;               /* end when there is nothing to do */
    bool background;          /* a child does it; 0 when it has the file */
    const volatile int *stop; /* not 0: end now, so that it can be resumed */
    int owner;
    axl_pulse pulse;
} axl_service;

/* Attends it until it says EXIT, or as service tells. -EBUSY when another process does.
 */
int axl_serve(axl_service *service, axl_error *err);

/* ---- axl_piece.c ---- */

/* Bytes of a source without a hole, as far as is known. */
typedef struct axl_extent {
    const axl_item *item; /* whose source it is; NULL: none */
    uint64_t begin, end;
} axl_extent;

/* Some bytes of an item on their way. */
typedef struct axl_piece {
    const axl_item *item;
    axl_extent *data;        /* is kept from piece to piece; NULL: it is not */
    int in, out;             /* out -1: only the checksum is wanted */
    int there;               /* what out has is read here, and written only where it
                              * differs from in; -1: it is written */
    uint64_t offset, length; /* within the item */
    bool checksum;
    bool by_kernel; /* it copies, if nobody has to see the bytes */
    uint32_t crc;   /* of the piece, with checksum */
    char *buffer;   /* of buffer_size bytes */
    size_t buffer_size;
    size_t kernel_step; /* most bytes that the kernel is asked to copy at a time */
    axl_worker *worker; /* NULL: it is not stopped, and does not pay */
} axl_piece;

/* Whether an open file is on no disk, nor on a server. */
bool axl_is_in_memory(int fd);

/* Moves it. Holes are not written: the destination of a file has its final size already,
 * and that of a part gets them punched. -ESTALE when the source ends before the piece. */
int axl_piece_move(axl_piece *piece, axl_error *err);

/* ---- axl_place.c ---- */

/* Opens a file to be copied: a regular file, no link. *st describes it. */
int axl_open_source(const char *path, int *fd, struct stat *st, axl_error *err);

/* Whether a file has memory or disk for all its bytes, so that there is no hole. */
bool axl_is_dense(const struct stat *st);

/* Takes down what the source is now: it must be that when it is read. *unchanged: it is
 * what was taken down before. -ENODATA when it is shorter than a part of it. */
int axl_look_at_source(axl_item *item, bool *unchanged, axl_error *err);

/* Whether two parts are read from one file that was checked alike. */
bool axl_has_same_source(const axl_item *item, const axl_item *other);

/* The same as axl_look_at_source for one that has the source of another item, which was
 * looked at just before. */
int axl_look_as_before(axl_item *item, const axl_item *before, axl_error *err);

/* What the caller has seen becomes what was taken down, and what is expected. */
void axl_take_seen(axl_item *item, const struct stat *seen);

/* -ENODATA when the source, as it was taken down, is shorter than a part of it. */
int axl_check_range(const axl_item *item, axl_error *err);

/* Opens the source, which must be what it was when it was looked at. */
int axl_open_looked_at(const axl_item *item, int *fd, axl_error *err);

/* -ESTALE unless the open source is what it was when it was dispatched. */
int axl_check_source(const axl_item *item, int fd, axl_error *err);

/* Directories of destinations; the last one stays open, as the next file is mostly there.
 */
struct axl_folder {
    char *path; /* with its slash; NULL: none yet */
    int fd;
};

void axl_folder_done(axl_folder *folder);

/* The directory that all destinations lie below, as a path; NULL: any. */
const char *axl_place_top(const axl_transfer *transfer);

/* Opens it, if there is one and it is not open yet. */
int axl_place_begin(axl_transfer *transfer, axl_error *err);

/* Opens what item number i is written to: its temporary file in the directory of its
 * destination, both of which are made unless they are there, or, for a part, the
 * destination itself. Its length reaches the end of the item. */
int axl_place_open(const axl_transfer *transfer, size_t i, axl_folder *folder, int *fd,
                   axl_error *err);

/* For a part of a destination that is open already, and is, or was lately, as in *st:
 * checks the same, and lets its length reach the end of the item. */
int axl_place_reach_end(const axl_item *item, const struct stat *st, int fd,
                        axl_error *err);

/* Opens the same, which is there, to read what it has. */
int axl_place_open_again(const axl_transfer *transfer, size_t i, axl_folder *folder,
                         int *fd);

/* Syncs what was written for item number i up to now, if it has no name yet. */
int axl_place_sync(const axl_transfer *transfer, size_t i, axl_folder *folder,
                   axl_error *err);

/* Opens the destination of item, which is there, to read it. */
int axl_place_open_named(const axl_transfer *transfer, const axl_item *item, int *fd,
                         struct stat *st, axl_error *err);

/* Syncs the directory of a destination, so that a name that is there stays so. */
int axl_place_sync_named(const axl_transfer *transfer, const axl_item *item,
                         axl_error *err);

/* Syncs the directory of any file, so that a name that is there, or is gone, stays so. */
int axl_place_sync_folder(const char *path, axl_error *err);

/* Files that are complete, but still have temporary names. They are synced together: the
 * journals of file systems make that one wait instead of many. */
enum { AXL_BATCH = 256 };

typedef struct axl_batch {
    int count;
    size_t items[AXL_BATCH];
    int fds[AXL_BATCH];
} axl_batch;

/* Syncs, closes and names all of the batch, and syncs their directories; it is empty
 * then. Parts need no names. *placed is the number of those that are in place for good.
 */
int axl_place_batch(const axl_transfer *transfer, axl_batch *batch, int *placed,
                    axl_error *err);

/* 1 if there is a temporary file of item number i, 0 if not, or -ENOMEM. *fits: it, or
 * the destination of a part, is such that some of the item may have been written to it.
 */
int axl_place_find(const axl_transfer *transfer, size_t i, axl_folder *folder, bool *fits,
                   axl_error *err);

/* Removes the temporary file that axl_place_find has found, with the directory of then.
 */
void axl_place_drop(const axl_transfer *transfer, size_t i, const axl_folder *folder);

/* Whether what a part is written to is there, and reaches its end. */
bool axl_place_reaches(const axl_transfer *transfer, const axl_item *item);

/* Removes the temporary file of item number i, if it has one. */
void axl_place_remove(const axl_transfer *transfer, size_t i);

#endif
