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
 * Every function here, except redset_get_place and the functions that set something, is
 * collective over the communicator that the set was created from. It returns the same
 * value on every rank: 0, -errno, or a verdict where one is listed. If MPI itself fails,
 * only some ranks may get -ECOMM or -EIO, and the set is unusable. */

#include <mpi.h>
#include <redset/redset.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redset redset;

typedef struct redset_config {
    redset_scheme scheme;
    int set_size;              /* desired members per set, at least 2 except for SINGLE */
    const char *failure_group; /* processes with the same string may fail together */
    size_t piece;  /* maximum bytes of a sum in a message; 0: chosen to suit the cache */
    int failures;  /* members that may be lost (RS), number of copies (PARTNER); 0: one.
                      Limited to the members of the set minus one */
    size_t memory; /* bytes of all buffers of a process; 0: 8 MiB. Buffers for pieces of
                    * 4 KiB are always allocated */
    int no_checksums; /* 1: without checksums. Losses are detected by sizes only: damage
                         is not detected, and corrupts rebuilt files. In exchange, bytes
                         are read only to compute redundancy: no files at all with SINGLE,
                         and none to verify */
    int unsynced; /* 1: an encode does not sync its redundancy file. For files that are
                     not synced either: both survive the end of processes, and may be lost
                     or truncated after a power failure */
} redset_config;

/* Creates the sets of a new encode. If more than half of all processes name one failure
 * group, some sets have only one member (all sets, if all processes do). The scheme of
 * such sets becomes SINGLE, as redset_get_place shows. comm is duplicated; MPI_COMM_NULL
 * and intercommunicators are -EINVAL, as in redset_recover. */
int redset_create(MPI_Comm comm, const redset_config *config, redset **set,
                  redset_error *err);

/* Locates the sets of an earlier encode by their redundancy files. Each process passes
 * the name, below its directory, of the redundancy file of its own rank, or NULL if this
 * file is lost, even if a file with its name exists. A damaged file counts as lost. Lost
 * members get their places from survivors. Verdict REDSET_UNRECOVERABLE if no survivor
 * knows a process, if survivors contradict each other, or if comm does not have as many
 * ranks as the encode. The set has the default piece and memory of redset_config. */
int redset_recover(MPI_Comm comm, const char *folder, const char *file, redset **set,
                   redset_error *err);

/* Sets the maximum bytes of a sum in a message, as in redset_config. Not collective, but
 * piece must be the same on every rank. -EINVAL for more than 1 GiB. */
int redset_set_piece(redset *set, size_t piece);

/* Sets a function that redset_rebuild and redset_verify call repeatedly while they read
 * and write files of this process, with the number of bytes done so far, of the total;
 * both are of this process. A rebuild that starts again adds to both. report must return
 * at once, and must not call this library. NULL: no reports. Not collective. */
void redset_set_progress(redset *set,
                         void (*report)(void *arg, uint64_t done, uint64_t total),
                         void *arg);

/* Frees set. NULL is allowed. Returns NULL. */
redset *redset_free(redset *set);

/* Returns the place of this process in its set. */
const redset_place *redset_get_place(const redset *set);

/* Protects count files below folder, with distinct names. Each file is read once, and its
 * size and crc are set. about (may be NULL) describes the whole and must be the same on
 * every rank. The redundancy file gets its name (redset_file_name of the place) when it
 * is complete and synced (unless unsynced). An earlier file of that name is removed on
 * all ranks before, so that two encodes are never mixed, and after a failure no rank has
 * one. Source files are never changed; -ESTALE if the size of one changes meanwhile. A
 * process without memory for the name of folder passes NULL: -ENOMEM on all ranks. */
int redset_encode(redset *set, const char *folder, const kvtree *about, int count,
                  redset_file files[], redset_error *err);

/* Like redset_encode, with options. */
int redset_encode_with(redset *set, const char *folder, const kvtree *about, int count,
                       redset_file files[], const redset_extras *extras,
                       redset_error *err);

/* Verifies the files below folder, which must exist, by size and checksum, and rebuilds
 * lost files and redundancy files of members of the set. Survivors are read once; a
 * survivor that turns out to be damaged counts as lost, and the rebuild starts again.
 * *manifest (freed by the caller) describes what this process has then; *rebuilt is 1 on
 * a process with rebuilt files. A file gets its name only when its bytes have the
 * recorded checksum. A directory in its place, or another kind of entry where a directory
 * is needed, is renamed to "<name>.<16 hex digits>.old". Verdict REDSET_UNRECOVERABLE on
 * all ranks, with nothing changed, if any set lost too much; err has the set, the lost
 * members and the reasons. */
int redset_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                   int *rebuilt, redset_error *err);

/* Reports the state of all sets without changing it: reads all files below folder, which
 * must exist, and compares sizes and checksums. Returns 0 if nothing is lost,
 * REDSET_RECOVERABLE, or REDSET_UNRECOVERABLE, with a text as from redset_rebuild; with
 * all three *lost is 1 on a process that lost something. */
int redset_verify(redset *set, const char *folder, int *lost, redset_error *err);

/* Reports whether anything is missing, by headers, names and sizes alone, in a time that
 * does not depend on the sizes of files. Damage within a file is not detected. Returns
 * and err are those of redset_verify; with 0 *manifest (freed by the caller) describes
 * what this process has. */
int redset_measure(redset *set, const char *folder, redset_manifest **manifest,
                   redset_error *err);

/* ---- other processes than those that encoded ----
 *
 * More or fewer processes may continue with the files of an encode, on other nodes. Each
 * process acts for some ranks of the encode: for the ranks with files below its folder,
 * and for a share of the lost ranks, whose files are rebuilt there. */

/* Collective over comm. Verifies and rebuilds, as redset_rebuild does, the files that
 * `ranks` ranks encoded. This process acts for the ranks in list. Exactly one process
 * must act for each rank: otherwise -EINVAL. Protected files below one folder must have
 * different names. A set is rebuilt by the processes that act for its members; sets
 * without a loss are verified by each process alone. Returns the same on every rank: 0,
 * with all manifests set; REDSET_UNRECOVERABLE, although sets that lost less may have
 * been rebuilt; or -errno. */
int redset_adopt(MPI_Comm comm, const char *folder, int ranks, int count,
                 redset_acted list[], redset_error *err);

/* Like redset_adopt, and calls report as redset_set_progress describes. */
int redset_adopt_with(MPI_Comm comm, const char *folder, int ranks, int count,
                      redset_acted list[],
                      void (*report)(void *arg, uint64_t done, uint64_t total), void *arg,
                      redset_error *err);

#ifdef __cplusplus
}
#endif
#endif
