/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_H
#define PROBE_H

/* Shared by the sources of probe; see probe.c for its purpose.
 *
 *     probe.c         the script: reading operations, gathering and printing results
 *     probe_verbs.c   the operations: calls of SCR, and a few of the program itself
 *     probe_data.c    contents of files, which are derived from a name
 *     probe_load.c    repeated operations: checkpoints, files, hours
 *     probe_ranks.c   files of other ranks, in restarts with more or fewer ranks
 *     probe_parts.c   files that ranks write together
 *     probe_count.c   resources of the process: communicators, memory
 *     probe_clock.c   clocks that can be put forward
 *     probe_crash.c   death at the n-th change of a file system, names without room, ...
 *     probe_size.c    sizes of single transfers */

#include <mpi.h>
#include <stddef.h>

#define PROBE_TEXT 2100

struct probe {
    int rank, ranks;
    int ended;             /* MPI_Finalize has been called */
    char tag[PROBE_TEXT];  /* basis of contents: the name of the dataset */
    char file[PROBE_TEXT]; /* last one given to SCR_Route_file ... */
    char path[PROBE_TEXT]; /* ... and the answer */
};

/* The result of an operation on one rank. Plain bytes, which are gathered as such. */
struct result {
    int here; /* 0: this rank did not take part */
    int code;
    int has_flag, flag;
    int has_text;
    char text[PROBE_TEXT];
};

struct verb {
    const char *name;
    int collective; /* all ranks must get the same */
    void (*run)(struct probe *p, const char *arg, struct result *r);
};

/* Returns the verb of that name, or NULL. */
const struct verb *probe_verb(const char *name);

/* FIRST:LAST: checkpoints c<FIRST> to c<LAST>, a file per rank in each. */
void probe_series(struct probe *p, const char *arg, struct result *r);

/* NAME:COUNT: that number of files of 100 bytes of this rank in an open dataset. */
void probe_put_many(struct probe *p, const char *arg, struct result *r);
void probe_get_many(struct probe *p, const char *arg, struct result *r);

/* SIZE: brings and compares the files of every writer of the checkpoint in the open
 * restart whose rank, modulo the number of ranks, is this rank. Returns the number of
 * writers. */
void probe_take(struct probe *p, const char *arg, struct result *r);

/* NAME:WRITER:SIZE: the same for one file, on every rank. */
void probe_take_file(struct probe *p, const char *arg, struct result *r);

/* NAME: SCR_Fetch_files; without a name, of no file; "-": of -1 files. */
void probe_fetch_files(struct probe *p, const char *arg, struct result *r);

/* RANK:NUMBER: returns name and size of a file of the open restart. */
void probe_dataset_file(struct probe *p, const char *arg, struct result *r);

/* NAME:UNIT:ROUNDS: this rank's parts of a file that all ranks write; about UNIT bytes
 * per round. */
void probe_put_parts(struct probe *p, const char *arg, struct result *r);
void probe_get_parts(struct probe *p, const char *arg, struct result *r);

/* NAME:OFFSET:LENGTH: these bytes of the file. */
void probe_put_range(struct probe *p, const char *arg, struct result *r);
void probe_get_range(struct probe *p, const char *arg, struct result *r);

/* NAME:OFFSET:LENGTH: every rank brings and reads these bytes, or its share of them. */
void probe_fetch_range(struct probe *p, const char *arg, struct result *r);
void probe_fetch_share(struct probe *p, const char *arg, struct result *r);

/* NAME:OFFSET:LENGTH: the same for bytes that no rank wrote. */
void probe_fetch_hole(struct probe *p, const char *arg, struct result *r);

/* NAME:OFFSET:LENGTH: only SCR_Route_file_part; and without a buffer for the first
 * answer, for the second, and for both, which must give the same result. */
void probe_part(struct probe *p, const char *arg, struct result *r);
void probe_part_nowhere(struct probe *p, const char *arg, struct result *r);

/* "": SCR_Fetch_file_parts of nothing; "-": of -1 files; "n", "o", "l", or several of
 * these: of one file, without a list of names, of offsets, of lengths. */
void probe_fetch_parts(struct probe *p, const char *arg, struct result *r);

/* COUNT: that number of consecutive runs, each of which restarts, writes a checkpoint and
 * is abandoned in the next restart. */
void probe_abandon_many(struct probe *p, const char *arg, struct result *r);

/* HOURS:STEP:COST: computes for that number of hours in steps of STEP seconds. After each
 * step, asks whether a checkpoint is needed, which costs COST seconds, and whether to
 * stop. Returns the number of checkpoints, and as text the seconds until then. No time
 * passes. */
void probe_compute(struct probe *p, const char *arg, struct result *r);

/* Puts all clocks of this process forward. */
void probe_advance(long seconds);

/* Time since some moment, unaffected by probe_advance. */
long probe_milliseconds(void);

/* Writes (compares) the contents for tag, rank and the last routed file to (with) the
 * file at p->path. A size of 0 is an empty file; other sizes grow by 13 bytes per rank,
 * so that ranks differ. 0, or 1 with the reason in text. */
int probe_write(const struct probe *p, long size, char text[PROBE_TEXT]);
int probe_compare(const struct probe *p, long size, char text[PROBE_TEXT]);

/* From now on the n-th fsync, rename, unlink, or mkdir of this process kills it before
 * the call; 0: none. Returns the number of these calls since the last call of this
 * function. */
int probe_crash_at(int n);

/* Number of communicators that this process has made and not freed. */
int probe_communicators(void);

/* Allocated bytes; resident bytes. */
long probe_allocated(void);
long probe_resident(void);

/* Maximum bytes of a single call since the last query: reads from files ("read"), writes
 * to files ("write"), or sends ("message"). */
long probe_largest(const char *what);

/* From now on a rename, unlink or mkdir of a path with that last component gives ENOSPC;
 * "": none. */
void probe_no_room_for(const char *name);

/* From now on opening a file or directory of that name gives EIO; "": none. */
void probe_unreadable(const char *name);

/* From now on an unlink takes that long. */
void probe_slow(long milliseconds);

#endif
