/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROBE_H
#define PROBE_H

/* What the sources of probe share; see probe.c for what it does.
 *
 *     probe.c         the script: reading operations, gathering and printing results
 *     probe_verbs.c   the operations: calls of SCR, and a few of the program itself
 *     probe_data.c    contents of files, which can be told from a name
 *     probe_load.c    much of the same: checkpoints, files, hours
 *     probe_ranks.c   files of other ranks, which may have been more or fewer
 *     probe_parts.c   files that ranks write together
 *     probe_count.c   what the process holds: communicators, memory
 *     probe_clock.c   clocks that can be put forward
 *     probe_crash.c   death at the n-th change of a file system, names without room, ...
 *     probe_size.c    how much goes through one call
 */

#include <mpi.h>
#include <stddef.h>

#define PROBE_TEXT 2100

struct probe {
    int rank, ranks;
    int ended;             /* MPI_Finalize has been called */
    char tag[PROBE_TEXT];  /* contents are derived from it: the name of the dataset */
    char file[PROBE_TEXT]; /* last one given to SCR_Route_file ... */
    char path[PROBE_TEXT]; /* ... and the answer */
};

/* What one operation gave on one rank. Plain bytes: it is gathered as such. */
struct result {
    int here; /* 0: this rank was not asked */
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

/* The verb of that name, or NULL. */
const struct verb *probe_verb(const char *name);

/* FIRST:LAST: checkpoints c<FIRST> to c<LAST>, a file per rank in each. */
void probe_series(struct probe *p, const char *arg, struct result *r);

/* NAME:COUNT: that many files of 100 bytes of this rank in a dataset that is open. */
void probe_put_many(struct probe *p, const char *arg, struct result *r);
void probe_get_many(struct probe *p, const char *arg, struct result *r);

/* SIZE: brings and compares the files of every rank that wrote the checkpoint of the open
 * restart and whose number leaves this rank as a remainder. Gives the number of ranks
 * that wrote it. */
void probe_take(struct probe *p, const char *arg, struct result *r);

/* NAME:WRITER:SIZE: the same for one file, on every rank. */
void probe_take_file(struct probe *p, const char *arg, struct result *r);

/* NAME: SCR_Fetch_files; without a name, of no file; "-": of -1 files. */
void probe_fetch_files(struct probe *p, const char *arg, struct result *r);

/* RANK:NUMBER: gives name and size of a file of the open restart. */
void probe_dataset_file(struct probe *p, const char *arg, struct result *r);

/* NAME:UNIT:ROUNDS: the parts of this rank of a file that all ranks write; of each round
 * about UNIT bytes. */
void probe_put_parts(struct probe *p, const char *arg, struct result *r);
void probe_get_parts(struct probe *p, const char *arg, struct result *r);

/* NAME:OFFSET:LENGTH: these bytes of it. */
void probe_put_range(struct probe *p, const char *arg, struct result *r);
void probe_get_range(struct probe *p, const char *arg, struct result *r);

/* NAME:OFFSET:LENGTH: every rank brings and reads these bytes; its share of them. */
void probe_fetch_range(struct probe *p, const char *arg, struct result *r);
void probe_fetch_share(struct probe *p, const char *arg, struct result *r);

/* NAME:OFFSET:LENGTH: the same for bytes that no rank wrote. */
void probe_fetch_hole(struct probe *p, const char *arg, struct result *r);

/* NAME:OFFSET:LENGTH: SCR_Route_file_part alone; and without a place for one answer, for
 * the other and for both, which all give the same. */
void probe_part(struct probe *p, const char *arg, struct result *r);
void probe_part_nowhere(struct probe *p, const char *arg, struct result *r);

/* "": SCR_Fetch_file_parts of nothing; "-": of -1 files; "n", "o", "l", or several: of
 * one, without a list of names, of offsets, of lengths. */
void probe_fetch_parts(struct probe *p, const char *arg, struct result *r);

/* COUNT: so many runs one after the other, each of which restarts, writes a checkpoint
 * and is abandoned in the next restart. */
void probe_abandon_many(struct probe *p, const char *arg, struct result *r);

/* HOURS:STEP:COST: computes for so long, in steps of so many seconds; asks after each
 * whether a checkpoint is wanted, which costs so many seconds, and whether to stop. Gives
 * the number of checkpoints, and as text the seconds until then. No time passes. */
void probe_compute(struct probe *p, const char *arg, struct result *r);

/* Puts all clocks of this process forward. */
void probe_advance(long seconds);

/* Since some moment, whatever was put forward. */
long probe_milliseconds(void);

/* Writes (compares) the contents that tag, rank and the last routed file stand for to
 * (with) the file at p->path. A size of 0 is an empty file; any other grows by 13 bytes
 * per rank, so that ranks differ. 0, or 1 and why in text. */
int probe_write(const struct probe *p, long size, char text[PROBE_TEXT]);
int probe_compare(const struct probe *p, long size, char text[PROBE_TEXT]);

/* From now on the n-th fsync, rename, unlink, or mkdir of this process kills it before it
 * is done; 0: none does. Returns how many there were since the last call. */
int probe_crash_at(int n);

/* Communicators that this process has made and not freed. */
int probe_communicators(void);

/* Bytes that are allocated now; that are resident. */
long probe_allocated(void);
long probe_resident(void);

/* The most bytes, since the last time that it was asked, that one call read from a file
 * ("read"), wrote to one ("write"), or sent ("message"). */
long probe_largest(const char *what);

/* From now on a rename, unlink or mkdir of that name, without its directories, gives
 * ENOSPC;
 * "": none does. */
void probe_no_room_for(const char *name);

/* From now on opening a file or directory of that name gives EIO; "": of none. */
void probe_unreadable(const char *name);

/* From now on an unlink takes so long. */
void probe_slow(long milliseconds);

#endif
