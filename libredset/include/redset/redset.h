/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_REDSET_H
#define REDSET_REDSET_H

/* Redundancy sets: protecting files of many processes against the loss of some of them.
 *
 * Processes that may fail together (all on one node, say) form a failure group. A
 * redundancy set has at most one member from each failure group. Its members compute
 * redundancy data over their files, each stores its share in a redundancy file beside its
 * own files, and the files of lost members can be rebuilt from those of the others.
 *
 * This header is the part without MPI: names, layouts, headers of redundancy files, and
 * verification and rebuild in a directory that holds the files of all processes.
 * redset_mpi.h makes sets, encodes and rebuilds within a job. Format of the redundancy
 * file: docs/formats/redset.md. */

#include <kvtree/kvtree.h>
#include <redset/redset_names.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text of a failure: a struct with the member char text[512]. Every `redset_error
 * *err` is NULL, or gets a text for people when the function fails, and is unchanged
 * otherwise. */
typedef kvtree_error redset_error;

/* Verdict: more is lost than the scheme can rebuild. err names the set and the members.
 * Files that cannot be read, because of a missing permission or a disk error, count as
 * lost and are rebuilt, too. If too much is lost only because of these, the result is
 * -EIO instead, with the same text. */
#define REDSET_UNRECOVERABLE 1

/* Verdict: something is lost, and all of it can be rebuilt. err has what, and why. */
#define REDSET_RECOVERABLE 2

/* Longest name of a redundancy file, with its NUL. */
#define REDSET_NAME_SIZE 64

typedef enum redset_scheme {
    REDSET_SINGLE = 1,  /* no redundancy: survives the processes, not their storage */
    REDSET_PARTNER = 2, /* the next members to the right keep copies of the files; any
                         * members may be lost if a copy of each survives */
    REDSET_XOR = 3,     /* one member of each set may be lost */
    REDSET_RS = 4       /* Reed-Solomon: any k members of each set may be lost */
} redset_scheme;

/* "SINGLE", "PARTNER", "XOR", "RS"; NULL for another value. */
const char *redset_scheme_name(redset_scheme scheme);

/* The scheme of that name, in any case; -EINVAL if there is none. */
int redset_scheme_from_name(const char *name, redset_scheme *scheme);

/* A process's place in its set. */
typedef struct redset_place {
    redset_scheme scheme;
    int sets;     /* number of sets */
    int set;      /* this one, 0 .. sets-1 */
    int id;       /* its id in file names: the lowest rank among its members */
    int members;  /* number of members */
    int member;   /* this process, 0 .. members-1 */
    int failures; /* members that may be lost: 0 for SINGLE, 1 for XOR, k for RS; for
                   * PARTNER the number of copies */
} redset_place;

/* Limit of members of a set with RS. */
#define REDSET_RS_MEMBERS_MAX 255

/* Assigns a process to a set, from four numbers: a pure function.
 *
 * Take a list of all procs processes, one failure group after the other; position is the
 * index of the process in it, and no group has more than largest_group. The number of
 * sets is the greatest multiple of largest_group that gives each at least set_size
 * members, but not less than largest_group; with set_size 1 each is alone. Processes are
 * assigned round robin, so no two processes of a group are in one set, and set sizes
 * differ by at most one. Where all groups are of one size, the sets of a group's
 * processes meet the same other groups. Sets set, sets, members and member of *place.
 * -EINVAL for impossible numbers. */
int redset_choose(int procs, int largest_group, int set_size, int position,
                  redset_place *place);

/* Name of the redundancy file: "<member+1>_of_<members>_in_<id>.xor" (".single",
 * ".partner", ".rs"). -EINVAL if place makes no sense. */
int redset_file_name(const redset_place *place, char name[REDSET_NAME_SIZE]);

/* The inverse: sets scheme, member, members and id of *place from the name of a
 * redundancy file; -EINVAL for any other name. */
int redset_file_name_parse(const char *name, redset_place *place);

/* A protected file. */
typedef struct redset_file {
    const char
        *name; /* relative to the directory, shorter than 1024 bytes, without empty,
                * "." and ".." components and control characters (-EINVAL) */
    const kvtree *meta; /* stored with it and restored after a loss; may be NULL. The keys
                         * FILE, SIZE, MODE and CRC are reserved */
    uint64_t size;      /* bytes; set by an encode */
    uint32_t crc;       /* CRC32 of its bytes; set by an encode; 0 without checksums */
    unsigned mode;      /* permissions, which a rebuilt file gets; set by an encode */
} redset_file;

/* Options of redset_encode_with (redset_mpi.h); each may be NULL. */
typedef struct redset_extras {
    /* A directory in the same file system with an obsolete redundancy file of an earlier
     * encode. If that has the same name, the new one is written over it, because new
     * pages take more time than the bytes in them. It may be gone then, however the
     * encode ends. If it cannot be used, that is not an error. */
    const char *spare;

    /* Called when the redundancy file of this process is in place: a last step of the
     * caller that shares the agreement of the encode. Returns 0, or -errno with a text,
     * which then is the result on all ranks. files[] has sizes and checksums already, and
     * keeps them if only this step, or another process, fails. */
    int (*last)(void *arg, redset_error *err);
    void *arg;
} redset_extras;

/* What one process protected, as returned by redset_rebuild and redset_read_header. */
typedef struct redset_manifest {
    int rank;  /* in the communicator that encoded */
    int ranks; /* size of that communicator */
    redset_place place;
    char file[REDSET_NAME_SIZE]; /* name of the redundancy file */
    uint64_t file_size;          /* its bytes; 0, as file_crc, while it is lost */
    uint32_t file_crc; /* CRC32 of its redundancy data (all bytes after the header) */
    int checksums; /* 0: it was encoded without; file_crc, and crc of all files, are 0 */
    kvtree *about; /* description of the whole that encode was given; never NULL */
    int count;
    redset_file *files; /* count files */
} redset_manifest;

/* A rank of an encode for which another process acts (redset_adopt of redset_mpi.h). */
typedef struct redset_acted {
    int rank;                  /* of the encode */
    const char *file;          /* its redundancy file below folder; NULL: lost */
    redset_manifest *manifest; /* set: what is there of it afterwards; the caller frees */
    int rebuilt;               /* set: 1 if files of it were rebuilt */
} redset_acted;

/* Reads the header of the redundancy file name below folder, and checks everything in it:
 * -EBADMSG if it is invalid. dir is that directory, open, and folder its name in texts;
 * or AT_FDCWD, and folder its path. The caller frees *manifest. */
int redset_read_header(int dir, const char *folder, const char *name,
                       redset_manifest **manifest, redset_error *err);

/* Frees manifest, NULL is fine; returns NULL. */
redset_manifest *redset_manifest_free(redset_manifest *manifest);

/* ---- sets in a directory ----
 *
 * One process, without MPI, has the files of all others in one directory, under the names
 * by which they were protected, and all redundancy files together in that directory or in
 * one below it:
 *
 *     rc = redset_rebuild_folder(AT_FDCWD, "/lustre/run/ckpt.7", NULL, REDSET_ALL,
 *                                &found, &err);
 *     if (rc) fprintf(stderr, "%s\n", err.text);
 *     redset_found_free(found);
 *
 * Protected files of different processes must have different names, of which none is that
 * of a directory of another: -EINVAL otherwise. */

/* One member of a set. */
typedef struct redset_found_member {
    int rank;
    int lost;                  /* 1: something of it was missing or damaged */
    char *reason;              /* what; NULL if nothing is lost */
    redset_manifest *manifest; /* what it protected; NULL if no survivor has it */
} redset_found_member;

typedef struct redset_found_set {
    redset_place place;           /* its member is -1 */
    int lost;                     /* number of lost members */
    int verdict;                  /* 0: all is there now; or REDSET_... */
    char *text;                   /* why; NULL if all is there now */
    redset_found_member *members; /* place.members */
} redset_found_set;

typedef struct redset_found {
    int ranks; /* of the communicator that encoded */
    int count;
    redset_found_set *sets; /* in the order of their ids */
} redset_found;

/* In place of the id of a set: all sets of the encode. If a set has no valid redundancy
 * file, the verdict is REDSET_UNRECOVERABLE. */
#define REDSET_ALL (-1)

/* Reports the state of the set with that id, or of all, without changing it: reads all
 * files and compares sizes and checksums. dir is the directory, open, and folder its
 * name in texts; or AT_FDCWD, and folder its path. redundancy is the subdirectory of
 * folder that holds the redundancy files; NULL: folder itself. Returns 0 if nothing is
 * lost, REDSET_RECOVERABLE, or REDSET_UNRECOVERABLE; *found is set with all three, and
 * the caller frees it. -ENOENT if there is no redundancy file (of that set). */
int redset_verify_folder(int dir, const char *folder, const char *redundancy, int id,
                         redset_found **found, redset_error *err);

/* The same, and rebuilds what is lost, files and redundancy files. Files get their names
 * only when all requested sets are rebuilt with the recorded checksums. Returns 0 when
 * nothing is lost any more (lost of *found is what was), or REDSET_UNRECOVERABLE, with
 * nothing changed. */
int redset_rebuild_folder(int dir, const char *folder, const char *redundancy, int id,
                          redset_found **found, redset_error *err);

/* redset_rebuild_folder, which has report called after each few bytes that are read or
 * written: done of total. Both grow with each further set, and where a survivor turns out
 * to be damaged. report returns at once, and calls nothing of this library. */
int redset_rebuild_folder_with(int dir, const char *folder, const char *redundancy,
                               int id,
                               void (*report)(void *arg, uint64_t done, uint64_t total),
                               void *arg, redset_found **found, redset_error *err);

/* Frees found, NULL is fine; returns NULL. */
redset_found *redset_found_free(redset_found *found);

#ifdef __cplusplus
}
#endif
#endif
