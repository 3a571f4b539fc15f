/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_REDSET_MPI_H
#define REDSET_REDSET_MPI_H

/* Redundancy sets under MPI: create, encode, recover, rebuild, adopt.
 *
 *     redset_config config = {REDSET_RS, 8, node_name, .failures = 2};
 *     redset_file files[] = {{.name = "rank_3.ckpt"}};
 *     rc = redset_create(comm, &config, &set, &err);
 *     if (rc == 0) rc = redset_encode(set, "/ssd/ckpt.7", NULL, 1, files, &err);
 *     redset_free(set);
 *
 * and after a restart, where some nodes are new and empty:
 *
 *     rc = redset_recover(comm, "/ssd/ckpt.7", own_redundancy_file_or_null, &set, &err);
 *     if (rc == 0)
 *         rc = redset_rebuild(set, "/ssd/ckpt.7", &manifest, &rebuilt, &err);
 *
 * Every function here, but redset_get_place and those that set something, is collective
 * over the communicator that the set was made from, and returns the same value on every
 * rank: 0, -errno, or a verdict where one is listed. If MPI itself fails, some ranks only
 * may get -ECOMM or -EIO, and the set is unusable.
 */

#include <mpi.h>
#include <redset/redset.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redset redset;

typedef struct redset_config {
    redset_scheme scheme;
    int set_size;              /* desired members per set, at least 2 except for SINGLE */
    const char *failure_group; /* processes that name the same string may fail together */
    size_t piece;  /* most bytes of a sum in a message; 0: chosen to suit the cache */
    int failures;  /* members that may be lost (RS), number of copies (PARTNER); 0: one.
                    * Limited to the members of the set minus one */
    size_t memory; /* bytes of all buffers of a process; 0: 8 MiB. Buffers for pieces of
                    * 4 KiB are always allocated */
    int no_checksums; /* 1: without checksums. Losses are detected by sizes only: damage
                       * is not detected, and corrupts what is rebuilt. In exchange,
                       * bytes are read only to compute redundancy: no files at all with
                       * SINGLE, and none to verify */
    int unsynced; /* 1: an encode does not sync its redundancy file. For files that are
                   * not synced either: both survive the end of processes, and may be
                   * lost or truncated after a power failure */
} redset_config;

/* Creates the sets of a new encode. If more than half of all processes name one failure
 * group, some sets have one member only (all sets, if all processes do), and the scheme
 * becomes SINGLE there, as redset_get_place shows. comm is duplicated; MPI_COMM_NULL and
 * an intercommunicator are -EINVAL, as in redset_recover. */
int redset_create(MPI_Comm comm, const redset_config *config, redset **set,
                  redset_error *err);

/* Locates the sets of an earlier encode by their redundancy files. Each process passes
 * the name, below its directory, of the redundancy file of its own rank, or NULL if that
 * is lost, whatever has its name; a damaged file counts as lost. Lost members get their
 * places from survivors. Verdict REDSET_UNRECOVERABLE if no survivor knows a process, if
 * survivors contradict each other, or if comm does not have as many ranks as the encode.
 * The set has the piece and memory of a configuration with zeros. */
int redset_recover(MPI_Comm comm, const char *folder, const char *file, redset **set,
                   redset_error *err);

/* Sets the most bytes of a sum in a message, as in redset_config. Not collective, but the
 * same on every rank. -EINVAL for more than 1 GiB. */
int redset_set_piece(redset *set, size_t piece);

/* Has report called while files of this process are read or written by redset_rebuild and
 * redset_verify, after each few bytes: done of total, both of this process. A rebuild
 * that begins again adds to both. report returns at once, and calls nothing of this
 * library. NULL: none. Not collective. */
void redset_set_progress(redset *set,
                         void (*report)(void *arg, uint64_t done, uint64_t total),
                         void *arg);

/* Frees set, NULL is fine; returns NULL. */
redset *redset_free(redset *set);

/* This process's place in its set. */
const redset_place *redset_get_place(const redset *set);

/* Protects count files below folder, with distinct names; each is read once, and its size
 * and crc are set. about (may be NULL) describes the whole and must be the same on every
 * rank. The redundancy file gets its name (redset_file_name of the place) when it is
 * complete and synced (unless unsynced). An earlier file of that name is removed on all
 * ranks before, so that two encodes are never mixed, and after a failure no rank has one.
 * Source files are never changed; -ESTALE if one changes its size meanwhile. A process
 * without memory for the name of folder gives NULL: -ENOMEM on all ranks. */
int redset_encode(redset *set, const char *folder, const kvtree *about, int count,
                  redset_file files[], redset_error *err);

/* redset_encode with options. */
int redset_encode_with(redset *set, const char *folder, const kvtree *about, int count,
                       redset_file files[], const redset_extras *extras,
                       redset_error *err);

/* Verifies the files below folder, which exists, by size and checksum, and rebuilds what
 * members of the set have lost: files and redundancy file. Survivors are read once; one
 * that turns out to be damaged counts as lost, and the rebuild starts again. *manifest
 * (the caller frees it) describes what this process has then; *rebuilt is 1 on a process
 * with rebuilt files. A file gets its name only when its bytes have the recorded
 * checksum; a directory in its place, or another kind of entry where a directory is
 * needed, is set aside as
 * "<name>.<16 hex digits>.old". Verdict REDSET_UNRECOVERABLE on all ranks, with nothing
 * changed, if any set lost too much; err has the set, the lost members and the reasons.
 */
int redset_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                   int *rebuilt, redset_error *err);

/* Reports the state of all sets without changing it: reads all files below folder, which
 * exists, and compares sizes and checksums. Returns 0 if nothing is lost,
 * REDSET_RECOVERABLE, or REDSET_UNRECOVERABLE, with a text as from redset_rebuild; with
 * all three *lost is 1 on a process that lost something. */
int redset_verify(redset *set, const char *folder, int *lost, redset_error *err);

/* Reports by headers, names and sizes alone whether anything is missing, in a time that
 * does not depend on the sizes of files; damage within a file is not detected. Returns
 * and err are those of redset_verify; with 0 *manifest (the caller frees it) describes
 * what this process has. */
int redset_measure(redset *set, const char *folder, redset_manifest **manifest,
                   redset_error *err);

/* ---- other processes than those that encoded ----
 *
 * More or fewer processes may continue with the files of an encode, on other nodes. Each
 * acts for some ranks of the encode: for those with files below its folder, and for a
 * share of the lost ones, whose files are rebuilt there. */

/* Collective over comm. Verifies and rebuilds, as redset_rebuild does, what `ranks` ranks
 * encoded, of which this process acts for those in list. Each rank has one process that
 * acts for it: otherwise -EINVAL. Protected files below one folder have different names.
 * A set is rebuilt by the processes that act for its members; sets without a loss are
 * verified by each process alone. Returns the same on every rank: 0, with all manifests
 * set; REDSET_UNRECOVERABLE, where sets that lost less may be rebuilt all the same; or
 * -errno. */
int redset_adopt(MPI_Comm comm, const char *folder, int ranks, int count,
                 redset_acted list[], redset_error *err);

/* redset_adopt, which has report called as redset_set_progress describes. */
int redset_adopt_with(MPI_Comm comm, const char *folder, int ranks, int count,
                      redset_acted list[],
                      void (*report)(void *arg, uint64_t done, uint64_t total), void *arg,
                      redset_error *err);

#ifdef __cplusplus
}
#endif
#endif
