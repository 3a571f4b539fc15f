/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_REDSET_MPI_H
#define REDSET_REDSET_MPI_H

/* Redundancy sets under MPI: make them, encode, find them again, rebuild.
 *
 *     redset_config config = {REDSET_RS, 8, node_name, .failures = 2};
 *     redset_file files[] = {{.name = "rank_3.ckpt"}};
 *     rc = redset_create(comm, &config, &set, err);
 *     if (rc == 0) rc = redset_encode(set, "/ssd/ckpt.7", NULL, 1, files, err);
 *     redset_free(set);
 *
 * and after a restart on nodes of which some are new and empty:
 *
 *     rc = redset_recover(comm, "/ssd/ckpt.7", own_redundancy_file_or_null, &set, err);
 *     if (rc == 0)
 *         rc = redset_rebuild(set, "/ssd/ckpt.7", &manifest, &rebuilt, err);
 *
 * Every function here, but redset_get_place and redset_set_piece, is collective over the
 * communicator that the set was made from, and returns the same value on every rank: 0,
 * -errno, or a verdict where one is listed.
 * Where MPI itself fails, -ECOMM or -EIO may be of some ranks only, and the set is of no
 * use. */

#include <mpi.h>
#include <redset/redset.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redset redset;

typedef struct redset_config {
    redset_scheme scheme;
    int set_size;              /* wanted members per set, at least 2 but for SINGLE */
    const char *failure_group; /* processes that name the same string may fail together */
    size_t piece;  /* most bytes of a sum in a message; 0: chosen to suit the cache */
    int failures;  /* members that may be lost (RS), number of copies (PARTNER); 0: one. A
                    * set of no more members than that takes one less than it has */
    size_t memory; /* bytes for all buffers of a process; 0: 8 MiB. At least what it takes
                    * for pieces of 4 KiB */
    int no_checksums; /* 1: no checksums are made. Then only sizes tell what is lost:
                       * damage is not noticed, and spoils what is rebuilt. In exchange
                       * nothing is read that no sum is made of: no file at all where
                       * there is no redundancy, nor to verify one */
    int unsynced; /* 1: an encode does not sync its redundancy file. For files that nobody
                   * syncs either: both survive the death of processes, and may be lost,
                   * or cut, when a node loses its power */
} redset_config;

/* Makes the sets for a new encode. When more than half of all processes name one failure
 * group, some sets have one member only (when all do, each has), and any scheme becomes
 * SINGLE there: the place of the set tells. comm is duplicated; MPI_COMM_NULL and an
 * intercommunicator are -EINVAL, as in redset_recover. */
int redset_create(MPI_Comm comm, const redset_config *config, redset **set, char *err);

/* Finds the sets of an earlier encode by their redundancy files. Each process gives the
 * name, below its folder, of the redundancy file that belongs to its own rank, or NULL if
 * that was lost, whatever is there under its name; a damaged file counts as lost.
 * Survivors tell the lost members where they belong. Verdict REDSET_UNRECOVERABLE when a
 * process remains that no survivor knows, when survivors contradict each other, or when
 * comm does not have as many ranks as the encode. The set has the piece and memory of a
 * configuration with zeros. */
int redset_recover(MPI_Comm comm, const char *folder, const char *file, redset **set,
                   char *err);

/* From now on messages have at most piece bytes of a sum, as in redset_config. Not
 * collective, but the same on every rank. -EINVAL for more than 1 GiB. */
int redset_set_piece(redset *set, size_t piece);

/* Frees set, NULL is fine; returns NULL. */
redset *redset_free(redset *set);

/* This process's place in its set. */
const redset_place *redset_get_place(const redset *set);

/* Protects count files below folder, of which no two have one name, each read once; fills
 * size and crc of each. about (may be NULL) describes the whole and must be the same on
 * every rank. The redundancy file named by the place gets its name when it is complete
 * and synced (unless unsynced); what had that name is removed on all ranks before, so
 * that those of two encodes are never mixed, and on failure no rank keeps one. Source
 * files are never changed; one that changes its size meanwhile is -ESTALE. */
int redset_encode(redset *set, const char *folder, const kvtree *about, int count,
                  redset_file files[], char *err);

/* redset_encode with those. */
int redset_encode_with(redset *set, const char *folder, const kvtree *about, int count,
                       redset_file files[], const redset_extras *extras, char *err);

/* Verifies what is below folder, which exists, by size and checksum, and rebuilds what
 * members of the set have lost: files and redundancy file. Survivors are read once; one
 * that turns out to be damaged counts as lost, and the rebuild begins again. *manifest
 * (the caller frees it) tells what this process has then; *rebuilt is 1 on a process
 * whose files were rebuilt. A file gets its name only when its bytes have the recorded
 * checksum; a folder that stands in its place is set aside as "<name>.<16 hex
 * digits>.old", and so is what is no folder where one belongs. Verdict
 * REDSET_UNRECOVERABLE on all ranks, with nothing changed, when any set lost too much;
 * err says which set lacks which members and why. */
int redset_rebuild(redset *set, const char *folder, redset_manifest **manifest,
                   int *rebuilt, char *err);

/* Tells the state of all sets without changing it: reads all that is below folder, which
 * exists, and compares sizes and checksums. Returns 0 if nothing is lost,
 * REDSET_RECOVERABLE, or REDSET_UNRECOVERABLE, with a text as from redset_rebuild; with
 * all three *lost is 1 on a process that lost something. */
int redset_verify(redset *set, const char *folder, int *lost, char *err);

/* Tells by headers, names and sizes alone whether anything is missing, which takes no
 * longer for large files than for small ones: damage within a file is not noticed.
 * Returns and err are those of redset_verify; with 0 *manifest (the caller frees it)
 * tells what this process has. */
int redset_measure(redset *set, const char *folder, redset_manifest **manifest,
                   char *err);

#ifdef __cplusplus
}
#endif
#endif
