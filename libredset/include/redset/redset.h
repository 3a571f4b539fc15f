/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_REDSET_H
#define REDSET_REDSET_H

/* Redundancy sets: protecting files of many processes against the loss of some of them.
 *
 * Processes that may fail together (all on one node, say) form a failure group. A
 * redundancy set has at most one member from each failure group. Its members compute
 * redundancy data over their files, and each member stores its share in a redundancy file
 * beside its own files. The files of lost members can be rebuilt from the files of the
 * other members.
 *
 * This header is the part without MPI: names, layouts, headers of redundancy files, and
 * verification and rebuild in a directory that holds the files of all processes.
 * redset_mpi.h creates sets, encodes and rebuilds within a job. Format of the redundancy
 * file: docs/formats/redset.md. */

#include <kvtree/kvtree.h>
#include <redset/redset_names.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The text of a failure: a struct with the member char text[512]. Every `redset_error
 * *err` is NULL, or receives a readable text if the function fails and is unchanged
 * otherwise. */
typedef kvtree_error redset_error;

/* Verdict: more is lost than the scheme can rebuild. err names the set and the members.
 * Files that cannot be read, because of a missing permission or a disk error, count as
 * lost and are rebuilt, too. If the loss is too large only because of such files, the
 * result is -EIO instead, with the same text. */
#define REDSET_UNRECOVERABLE 1

/* Verdict: something is lost, and all of it can be rebuilt. err names the loss and its
 * reason. */
#define REDSET_RECOVERABLE 2

/* Longest name of a redundancy file, with its NUL. */
#define REDSET_NAME_SIZE 64

typedef enum redset_scheme {
    REDSET_SINGLE = 1,  /* no redundancy: files survive the end of processes, but not the
                           loss of their storage */
    REDSET_PARTNER = 2, /* the next members to the right keep copies of the files; any
                           members may be lost if a copy of each survives */
    REDSET_XOR = 3,     /* one member of each set may be lost */
    REDSET_RS = 4       /* Reed-Solomon: any k members of each set may be lost */
} redset_scheme;

/* Returns "SINGLE", "PARTNER", "XOR" or "RS"; NULL for any other value. */
const char *redset_scheme_name(redset_scheme scheme);

/* Sets *scheme to the scheme of that name; upper and lower case are equal. -EINVAL if
 * there is none. */
int redset_scheme_from_name(const char *name, redset_scheme *scheme);

/* A process's place in its set. */
typedef struct redset_place {
    redset_scheme scheme;
    int sets;     /* number of sets */
    int set;      /* number of this set, 0 .. sets-1 */
    int id;       /* id of this set in file names: the lowest rank among its members */
    int members;  /* number of members */
    int member;   /* number of this process, 0 .. members-1 */
    int failures; /* members that may be lost: 0 for SINGLE, 1 for XOR, k for RS; for
                     PARTNER the number of copies */
} redset_place;

/* Maximum number of members of a set with RS. */
#define REDSET_RS_MEMBERS_MAX 255

/* Assigns a process to a set, from four numbers: a pure function.
 *
 * Take a list of all procs processes, one failure group after the other. position is the
 * index of the process in this list, and no group has more than largest_group processes.
 * The number of sets is the greatest multiple of largest_group that gives each set at
 * least set_size members, but not less than largest_group; with set_size 1 each process
 * has its own set. Processes are assigned round robin, so no two processes of a group are
 * in one set, and set sizes differ by at most one. If all groups have the same size, all
 * sets with a process of one group have processes of the same other groups. Sets set,
 * sets, members and member of *place. -EINVAL for impossible numbers. */
int redset_choose(int procs, int largest_group, int set_size, int position,
                  redset_place *place);

/* Writes the name of the redundancy file: "<member+1>_of_<members>_in_<id>.xor"
 * (".single", ".partner", ".rs"). -EINVAL if place is invalid. */
int redset_file_name(const redset_place *place, char name[REDSET_NAME_SIZE]);

/* The inverse of redset_file_name: sets scheme, member, members and id of *place from the
 * name of a redundancy file. -EINVAL for any other name. */
int redset_file_name_parse(const char *name, redset_place *place);

/* A protected file. */
typedef struct redset_file {
    const char
        *name; /* relative to the directory, shorter than 1024 bytes, without empty,
                * "." and ".." components and control characters (-EINVAL) */
    const kvtree *meta; /* stored with the file and restored after a loss; may be NULL.
                           The keys FILE, SIZE, MODE and CRC are reserved */
    uint64_t size;      /* bytes; set by an encode */
    uint32_t crc;       /* CRC32 of its bytes; set by an encode; 0 without checksums */
    unsigned mode;      /* permissions, which a rebuilt file gets; set by an encode */
} redset_file;

/* Options of redset_encode_with (redset_mpi.h); each may be NULL. */
typedef struct redset_extras {
    /* A directory in the same file system with an obsolete redundancy file of an earlier
     * encode. If that file has the same name, the new file is written over it, because
     * allocating new pages takes more time than writing them. The old file may be gone
     * afterwards, whatever the result of the encode. It is not an error if the old file
     * cannot be used. */
    const char *spare;

    /* Called when the redundancy file of this process is in place: a last step of the
     * caller, covered by the same agreement as the encode. Returns 0, or -errno with a
     * text, which then is the result on all ranks. files[] has sizes and checksums
     * already, and keeps them if only this step, or another process, fails. */
    int (*last)(void *arg, redset_error *err);
    void *arg;
} redset_extras;

/* What one process protected, as returned by redset_rebuild and redset_read_header. */
typedef struct redset_manifest {
    int rank;  /* in the communicator that encoded */
    int ranks; /* size of that communicator */
    redset_place place;
    char file[REDSET_NAME_SIZE]; /* name of the redundancy file */
    uint64_t file_size;          /* size in bytes; 0, like file_crc, while it is lost */
    uint32_t file_crc; /* CRC32 of its redundancy data (all bytes after the header) */
    int checksums;     /* 0: without checksums; file_crc and crc of all files are 0 */
    kvtree *about;     /* description of the whole, as given to the encode; never NULL */
    int count;
    redset_file *files; /* count files */
} redset_manifest;

/* A rank of an encode for which another process acts (redset_adopt in redset_mpi.h). */
typedef struct redset_acted {
    int rank;                  /* of the encode */
    const char *file;          /* its redundancy file below folder; NULL: lost */
    redset_manifest *manifest; /* output: what the rank has then; the caller frees it */
    int rebuilt;               /* output: 1 if files of the rank were rebuilt */
} redset_acted;

/* Reads the header of the redundancy file name below folder, and checks everything in it.
 * Returns -EBADMSG if it is invalid. dir is the open directory, and folder its name in
 * texts; or dir is AT_FDCWD, and folder its path. The caller frees *manifest. */
int redset_read_header(int dir, const char *folder, const char *name,
                       redset_manifest **manifest, redset_error *err);

/* Frees manifest. NULL is allowed. Returns NULL. */
redset_manifest *redset_manifest_free(redset_manifest *manifest);

/* ---- sets in a directory ----
 *
 * One process, without MPI, has the files of all processes in one directory, under the
 * names by which they were protected. All redundancy files are together in that directory
 * or in one subdirectory:
 *
 *     rc = redset_rebuild_folder(AT_FDCWD, "/lustre/run/ckpt.7", NULL, REDSET_ALL,
 *                                &found, &err);
 *     if (rc) fprintf(stderr, "%s\n", err.text);
 *     redset_found_free(found);
 *
 * Protected files of different processes must have different names, and no file may have
 * the name of another file's directory: -EINVAL otherwise. */

/* One member of a set. */
typedef struct redset_found_member {
    int rank;
    int lost;                  /* 1: a file of this member was missing or damaged */
    char *reason;              /* the loss and its cause; NULL if nothing is lost */
    redset_manifest *manifest; /* files that the member protected; NULL if no survivor
                                  knows them */
} redset_found_member;

typedef struct redset_found_set {
    redset_place place;           /* its member is -1 */
    int lost;                     /* number of lost members */
    int verdict;                  /* 0: complete now; or REDSET_... */
    char *text;                   /* reason of the verdict; NULL if complete now */
    redset_found_member *members; /* place.members */
} redset_found_set;

typedef struct redset_found {
    int ranks; /* of the communicator that encoded */
    int count;
    redset_found_set *sets; /* in the order of their ids */
} redset_found;

/* In place of the id of a set: all sets of the encode. The verdict is
 * REDSET_UNRECOVERABLE if a set has no valid redundancy file. */
#define REDSET_ALL (-1)

/* Reports the state of the set with that id, or of all sets, without changing it: reads
 * all files and compares sizes and checksums. dir is the open directory, and folder its
 * name in texts; or dir is AT_FDCWD, and folder its path. redundancy is the subdirectory
 * of folder that holds the redundancy files; NULL: folder itself. Returns 0 if nothing is
 * lost, REDSET_RECOVERABLE, or REDSET_UNRECOVERABLE; with all three *found is set, and
 * the caller frees it. -ENOENT if there is no redundancy file (of that set). */
int redset_verify_folder(int dir, const char *folder, const char *redundancy, int id,
                         redset_found **found, redset_error *err);

/* Verifies as redset_verify_folder does, and rebuilds lost files and redundancy files.
 * Files get their names only when all requested sets are rebuilt with the recorded
 * checksums. Returns 0 when nothing is lost any more (`lost` in *found is the state
 * before), or REDSET_UNRECOVERABLE, with nothing changed. */
int redset_rebuild_folder(int dir, const char *folder, const char *redundancy, int id,
                          redset_found **found, redset_error *err);

/* Like redset_rebuild_folder, and calls report repeatedly with the number of bytes read
 * or written so far, of the total. Both grow with each further set, and when a survivor
 * turns out to be damaged. report must return at once, and must not call this library. */
int redset_rebuild_folder_with(int dir, const char *folder, const char *redundancy,
                               int id,
                               void (*report)(void *arg, uint64_t done, uint64_t total),
                               void *arg, redset_found **found, redset_error *err);

/* Frees found. NULL is allowed. Returns NULL. */
redset_found *redset_found_free(redset_found *found);

#ifdef __cplusplus
}
#endif
#endif
