/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_PRIVATE_H
#define REDSET_PRIVATE_H

/* What the sources of libredset share; the MPI part uses it too (the symbols are in a
 * private node of redset.map and may change with any version).
 *
 * From the ground up: a list is the files of one process, a layout is the members of its
 * set, a header is both as they stand in a redundancy file. A logical file is the bytes
 * of a list, cut into chunks; a store is a redundancy file that is being written; streams
 * are both, as flows see them. A salvage is one member in a rebuild, a group all members
 * of a set in one process. Every `char *err` is as in redset.h, and functions return 0 or
 * -errno where nothing else is said. */

#include "common/replace.h"
#include "src/flow.h"
#include "src/redset_names_private.h"
#include <redset/redset.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes per message and buffer when the caller doesn't care. What a member is working on
 * fits into the second-level cache of today's processors; with a quarter of that, which
 * leaves room for all that is under way, messages cost more than the cache saves. */
#define REDSET_PIECE ((size_t)512 * 1024)

/* Smaller ones take too long; that much memory is taken in any case. */
#define REDSET_PIECE_MIN ((size_t)4096)

/* Bytes for all buffers together. */
#define REDSET_MEMORY ((size_t)8 << 20)

/* ---- name.c ---- */

/* folder/name, or one of them where the other is NULL; -ENAMETOOLONG. */
int redset_join(char *path, size_t size, const char *folder, const char *name);

/* ---- choose.c ---- */

/* Number of members of one of sets sets that procs processes were dealt out to. */
int redset_members_of(int procs, int sets, int set);

/* What a set of place->members can do of what is wanted: fills scheme and failures of
 * *place. -EINVAL for more members than RS can have. */
int redset_choose_scheme(redset_scheme scheme, int failures, redset_place *place,
                         char *err);

/* ---- plan.c ---- */

/* A member that something keeps from being read, a disk that fails or a missing right,
 * counts as lost, too; but it may come back. */
enum redset_loss { REDSET_LOST = 1, REDSET_UNREAD = 2 };

/* What one member of a set knows of itself, in checksums. */
typedef struct redset_state {
    uint32_t lost;   /* enum redset_loss; if there is one, the rest is 0 */
    uint32_t layout; /* all that headers of a set have in common */
    uint32_t list[]; /* that of its files, and those of its `failures` left neighbours */
} redset_state;

/* Bytes of a state, and that of a member among those of a set, one behind the other. */
size_t redset_state_size(const redset_shape *shape);
const redset_state *redset_state_of(const redset_shape *shape, const void *states,
                                    int member);

typedef enum redset_plan_kind {
    REDSET_PLAN_NOTHING,  /* all is there */
    REDSET_PLAN_REBUILD,  /* the lost members can be rebuilt from the others */
    REDSET_PLAN_WAIT,     /* the same if those came back that cannot be read */
    REDSET_PLAN_HOPELESS, /* more is lost than can be rebuilt */
    REDSET_PLAN_MIXED     /* survivors tell of different encodes */
} redset_plan_kind;

typedef struct redset_plan {
    redset_plan_kind kind;
    int lost;   /* number of lost members */
    int member; /* MIXED: one on which survivors disagree */
} redset_plan;

/* Fills lost[members] with 1 for lost members and 0 for others. */
redset_plan redset_plan_make(const redset_shape *shape, const void *states,
                             uint8_t lost[]);

/* 0, REDSET_RECOVERABLE, REDSET_UNRECOVERABLE, or -EIO for those that have to wait. Not
 * for MIXED. */
int redset_plan_verdict(const redset_plan *plan);

/* ---- list.c: the files of one process ---- */

typedef struct redset_list {
    int rank; /* of the process */
    int count;
    redset_file *files;
    uint64_t size;  /* sum of their sizes, at most INT64_MAX */
    bool unchecked; /* without checksums: crc of each file is 0 */
} redset_list;

/* Checks name and meta of a file that somebody wants to protect: -EINVAL. */
int redset_file_check(const redset_file *file, char *err);

/* Adds up the sizes of the files into list->size; -EOVERFLOW. */
int redset_list_sum(redset_list *list, char *err);

/* -EINVAL when a name is there twice. */
int redset_list_check(const redset_list *list, char *err);

/* The list as it stands under CURRENT and PARTNER; NULL without memory. */
kvtree *redset_list_to_tree(const redset_list *list);

/* Checks tree and fills list, with checksums or without; names and metas (with redset's
 * own keys among them) stay owned by tree. -EBADMSG. */
int redset_list_from_tree(const kvtree *tree, bool unchecked, redset_list *list,
                          char *err);

/* Whether tree has so many keys: when all that it must have are among them, then it has
 * no others. -EBADMSG. */
int redset_keys_check(const kvtree *tree, int keys, char *err);

/* Continues crc over the packed bytes of tree; -ENOMEM. */
int redset_tree_crc(const kvtree *tree, uint32_t *crc);

/* Frees the array only. */
void redset_list_done(redset_list *list);

/* ---- layout.c: a set ---- */

typedef struct redset_layout {
    int ranks;          /* size of the communicator */
    redset_place place; /* member is -1 until somebody asked for one */
    int *members;       /* rank of each of place.members members */
    bool unchecked;     /* files and redundancy data have no checksums */
} redset_layout;

/* Adds TYPE, RANKS, GROUP and the like to tree. */
int redset_layout_to_tree(const redset_layout *layout, kvtree *tree);

/* Checks them and fills layout; -EBADMSG. */
int redset_layout_from_tree(const kvtree *tree, redset_layout *layout, char *err);

/* Makes rank's place that of the layout; -ENOENT when rank is not a member. */
int redset_layout_find(redset_layout *layout, int rank);

/* The rank of the member so many places to the right; negative: to the left. */
int redset_layout_neighbour(const redset_layout *layout, int distance);

/* Whether both describe the same set, whoever the member is. */
bool redset_layout_equal(const redset_layout *a, const redset_layout *b);

void redset_layout_done(redset_layout *layout);

/* ---- header.c ---- */

typedef struct redset_header {
    kvtree *tree; /* the whole, owner of all strings in the lists */
    redset_layout layout;
    redset_shape shape;
    uint64_t chunk;    /* bytes of a chunk; 0 where data is not cut (SINGLE, PARTNER) */
    uint64_t encode;   /* tells the encode: the sum of the checksums of all lists, or of
                        * a random number of each process */
    uint64_t data;     /* bytes of redundancy data */
    uint32_t crc;      /* their CRC32, or 0 */
    redset_list *list; /* of the files of this process, and of shape.failures left
                        * neighbours, the nearest one first */
    uint64_t size;     /* bytes of the header in its file */
} redset_header;

/* The tree of the list of a neighbour at a distance, 0 for the process itself; NULL: it
 * is not there. */
kvtree *redset_header_list(const kvtree *header, int distance);

/* Puts a header together, always in the same order. lists has failures + 1 trees, as in
 * redset_header; they and about are copied. NULL without memory. */
kvtree *redset_header_build(const redset_layout *layout, uint64_t chunk, uint64_t encode,
                            const kvtree *about, kvtree *const lists[]);

/* Puts the number of an encode into a tree, with a fixed number of digits, or gets it
 * from there; -EBADMSG. */
int redset_encode_to_tree(uint64_t encode, kvtree *tree);
int redset_encode_from_tree(const kvtree *tree, uint64_t *encode, char *err);

/* Takes tree, also on failure, and checks everything in it; -EBADMSG. */
int redset_header_parse(kvtree *tree, redset_header **header, char *err);

/* The same for the header of a lost process, put together from what others know; it must
 * be that of rank. */
int redset_header_inherit(kvtree *tree, int rank, redset_header **header, char *err);

/* Reads and checks the header of the redundancy file name below dir, its name and its
 * length. */
int redset_header_read(int dir, const char *name, redset_header **header, char *err);

/* Checksums that tell whether headers belong together; the lost flag is 0. state has room
 * for redset_state_size(&header->shape). */
int redset_header_state(const redset_header *header, redset_state *state);

/* Bytes of redundancy stream number part. */
uint64_t redset_part_length(const redset_header *header, int part);

/* Bytes that flow i moves of each stream, for all flows in which the member of header
 * takes part: length[shape.members]. */
void redset_header_lengths(const redset_header *header, uint64_t length[]);

redset_header *redset_header_free(redset_header *header);

/* ---- manifest.c ---- */

/* A copy of what the header says, in the public form; NULL without memory. */
redset_manifest *redset_manifest_new(const redset_header *header);

/* ---- logical.c: the files of a process as one string of bytes ---- */

/* Files held open at a time. */
enum { REDSET_OPEN_FILES = 32 };

/* A part of a file that lies in one chunk. */
typedef struct redset_segment {
    int file;
    uint64_t offset, length;
    uint32_t crc; /* of what went through so far */
} redset_segment;

/* How far a chunk was read or written. */
typedef struct redset_chunk {
    size_t next, end; /* its segments */
    uint64_t done;    /* bytes done of the next one */
} redset_chunk;

typedef struct redset_slot {
    int file, fd;  /* fd -1: free */
    uint64_t used; /* when, to close what was not used for longest */
} redset_slot;

/* Files in their order, padded with zeros to chunks * chunk bytes. Each chunk is read
 * (written) from its start to its end in steps, and the chunks take turns in any order;
 * so every byte goes through once, and checksums are kept on the way. */
typedef struct redset_logical {
    int dir;
    const redset_list *list;
    size_t segment_count;
    redset_segment *segments;
    int chunk_count;
    redset_chunk *chunks; /* how far each is */
    redset_slot slots[REDSET_OPEN_FILES];
    int open_files; /* slots that may be used: all, unless somebody sets less */
    uint64_t clock;
    bool shared;     /* others may change the list */
    bool writing;    /* to temporary files in dir ... */
    uint64_t unique; /* ... with this number in their names */
    int created;     /* how many of them there are */
    int committed;   /* how many have their final names */
} redset_logical;

/* Reads list's files below dir; both stay in use until the end. list->size is at most
 * chunks * chunk. */
int redset_logical_open(int dir, const redset_list *list, int chunks, uint64_t chunk,
                        redset_logical **logical, char *err);

/* The next size bytes of a chunk. -ESTALE when a file is shorter than its list says. */
int redset_logical_read(redset_logical *logical, int chunk, void *buf, size_t size,
                        char *err);

/* To be called when all chunks were read: -ESTALE if a file has not the size that its
 * list says any more; otherwise fills crcs[list->count]. */
int redset_logical_finish(redset_logical *logical, uint32_t crcs[], char *err);

/* Reads what was not read so far, piece by piece, for the checksums. */
int redset_logical_skim(redset_logical *logical, size_t piece, char *err);

/* Removes temporary files that did not get their names; NULL is fine; returns NULL. */
redset_logical *redset_logical_free(redset_logical *logical);

/* The checksum of each file, joined from its segments. */
void redset_logical_crcs(const redset_logical *logical, uint32_t crcs[]);

/* Name of the temporary file number i. */
void redset_logical_temporary(const redset_logical *logical, int i, char name[64]);

/* ---- output.c: the writing side of a logical file ---- */

/* Creates an empty temporary file in dir for each file of list. */
int redset_output_create(int dir, const redset_list *list, int chunks, uint64_t chunk,
                         redset_logical **logical, char *err);

/* The next size bytes of a chunk; what lies behind the files is ignored. */
int redset_output_write(redset_logical *logical, int chunk, const void *buf, size_t size,
                        char *err);

/* Compares each file's checksum with its list (-EBADMSG) and syncs it. */
int redset_output_complete(redset_logical *logical, char *err);

/* Sets aside what stands in the way of a file of that name, a folder, or what is no
 * folder where one belongs, under "<name>.<16 hex digits>.old": it is not ours to remove.
 * shared: the name is from a list that others may change (common/others.h). */
int redset_clear_way(int dir, const char *name, bool shared, char *err);

/* The same for all files. Whoever else writes to that folder clears its way, too, before
 * any file gets its name, so that no new file is ever in the way. */
int redset_output_clear_way(const redset_logical *logical, char *err);

/* Makes folders and gives the files their names. */
int redset_output_commit(redset_logical *logical, char *err);

/* ---- store.c: writing a redundancy file ---- */

typedef struct redset_store {
    bool open;
    bool unsynced; /* nothing of it is synced */
    int reused;    /* it is written over another file, and has to be cut */
    replacement file;
    const char *name;
    uint64_t header; /* bytes of the header */
    uint64_t data;   /* bytes behind it, so far */
} redset_store;

/* Starts the file with a header whose checksums may still be wrong. name stays in use. A
 * file of that name in the open folder spare (-1: none) is written over, where it can be,
 * and gone. */
int redset_store_begin(int dir, const char *name, int spare, kvtree *header,
                       redset_store *store, char *err);

/* Writes redundancy data at an offset behind the header. */
int redset_store_write(redset_store *store, uint64_t offset, const void *buf, size_t size,
                       char *err);

/* Puts the checksum of the data into header, if that has one, writes it over the first
 * one, and syncs. */
int redset_store_complete(redset_store *store, kvtree *header, uint32_t crc, char *err);

/* Sets aside what stands in its way. */
int redset_store_clear_way(const redset_store *store, char *err);

/* The same, and removes for good what has its name so far. */
int redset_store_retire(const redset_store *store, char *err);

/* Gives the file its name, once it is complete. */
int redset_store_commit(redset_store *store, char *err);

/* Removes it, if it is not committed. */
void redset_store_abort(redset_store *store);

/* ---- streams.c: what a member has, by the numbers of flow.h ---- */

/* The bytes of one redundancy stream, a part of the redundancy file. */
typedef struct redset_part {
    uint64_t offset, length; /* behind the header */
    uint64_t done;
    uint32_t crc; /* of what went through so far */
} redset_part;

/* Each stream is read, or written, from its start to its end. The caller fills in where:
 */
typedef struct redset_streams {
    int data, parts;         /* numbers of data and redundancy streams */
    bool unchecked;          /* nobody wants checksums */
    uint64_t chunk;          /* bytes of a data stream */
    redset_logical *logical; /* the data, to be read or written; freed with this */
    int fd;                  /* the file with redundancy data to be read, closed ... */
    uint64_t start;          /* ... with this, and where the data begins; or ... */
    redset_store *store;     /* ... where it is written */
    redset_part *part;
} redset_streams;

/* Those that header tells of; nothing is open. */
int redset_streams_init(const redset_header *header, redset_streams *streams, char *err);

/* Those of the redundancy file name and the files of header, all below dir, to be read.
 */
int redset_streams_open(int dir, const char *name, const redset_header *header,
                        redset_streams *streams, char *err);

void redset_streams_done(redset_streams *streams);

/* The next size bytes of a stream. -ESTALE when there are less than promised. */
int redset_streams_read(redset_streams *streams, int stream, void *buf, size_t size,
                        char *err);
int redset_streams_write(redset_streams *streams, int stream, const void *buf,
                         size_t size, char *err);

/* Reads what was not read so far of all streams, piece by piece, for the checksums. */
int redset_streams_skim(redset_streams *streams, size_t piece, char *err);

/* The checksum of all redundancy data, when it went through. */
uint32_t redset_streams_crc(const redset_streams *streams);

/* ---- verify.c ---- */

/* Whether the files are there with their sizes: -EBADMSG, or why they cannot be seen. */
int redset_sizes_check(int dir, const redset_list *list, char *err);

/* Reads what was not read so far of the redundancy file name and the files of header. All
 * checksums must be the recorded ones: -EBADMSG. Without any only the sizes are compared.
 */
int redset_streams_verify(redset_streams *streams, const char *name,
                          const redset_header *header, size_t piece, char *err);

/* What an error that came up while reading says of the data; 0: nothing, this process
 * lacks memory or descriptors. */
enum redset_loss redset_loss_of(int code);

/* ---- salvage.c: what is left of one member, and what comes back ---- */

typedef struct redset_salvage {
    const redset_layout *layout;
    int member;
    int dir;                     /* what names are relative to; not owned */
    char name[BENEATH_NAME_MAX]; /* of the redundancy file */
    redset_state *state;         /* not owned */
    redset_header *header; /* of a lost member: inherited, when there is a plan for it */
    redset_streams streams;
    redset_store store;
    char lost[REDSET_ERROR_SIZE]; /* why it counts as lost */
} redset_salvage;

/* Reads the header and fills *state. Nothing may be open. That the member is lost is no
 * failure, here and below. */
int redset_salvage_look(redset_salvage *salvage, char *err);

/* Compares the sizes of its files; that costs little, too. */
int redset_salvage_measure(redset_salvage *salvage, char *err);

/* The member counts as lost, if that is what rc says; its reason is in salvage->lost
 * already. Otherwise returns rc. */
int redset_salvage_lose(redset_salvage *salvage, int rc, char *err);

/* Opens the streams of a member: to be read, or to be written. */
int redset_salvage_read(redset_salvage *salvage, char *err);
int redset_salvage_write(redset_salvage *salvage, char *err);

/* Reads what was not read so far and compares all checksums. */
int redset_salvage_verify(redset_salvage *salvage, size_t piece, char *err);

/* What was written is what was lost, and durable: -EBADMSG otherwise. */
int redset_salvage_complete(redset_salvage *salvage, char *err);

/* Sets aside what stands in the way of its names. */
int redset_salvage_clear_way(const redset_salvage *salvage, char *err);

/* Gives it its names; the redundancy file comes last: while that is missing, the member
 * counts as lost. */
int redset_salvage_commit(redset_salvage *salvage, char *err);

/* Closes streams, removes what has no name yet, and forgets an inherited header. */
void redset_salvage_drop(redset_salvage *salvage);

/* The same, and frees the header. */
void redset_salvage_done(redset_salvage *salvage);

/* ---- verdict.c: what is told about sets that are not whole ---- */

/* Starts text (REDSET_ERROR_SIZE bytes) with the set and its lost members. */
void redset_verdict_lost(const redset_layout *layout, const uint8_t lost[], char *text);

/* Appends what happened to one of them; a few are enough. */
enum { REDSET_EXPLAINED = 2, REDSET_REASON_SIZE = 160 };
void redset_verdict_reason(int rank, const char *reason, char *text);

/* REDSET_UNRECOVERABLE, and the text for a plan that is MIXED. */
int redset_verdict_mixed(const redset_layout *layout, const redset_plan *plan,
                         char *text);

/* ---- group.c: all members of a set in one process ---- */

typedef struct redset_group {
    redset_layout layout;
    redset_shape shape;
    int looked;             /* members in use: all, once made */
    redset_salvage *member; /* layout.place.members */
    void *states;
    uint8_t *lost; /* one of each member, when there is a plan */
    redset_plan plan;
    int verdict; /* that follows from plan: 0, RECOVERABLE, UNRECOVERABLE; 0 after a
                    commit */
    char text[REDSET_ERROR_SIZE]; /* for it */
} redset_group;

/* Takes layout, also on failure. Files are below dir, redundancy files in the folder
 * redundancy (NULL: none) below that. Reads the headers of all
 * members. */
int redset_group_new(int dir, const char *redundancy, redset_layout *layout,
                     redset_group **group, char *err);

/* Compares the sizes of all files. */
int redset_group_measure(redset_group *group, char *err);

/* The plan, by what is known of the members so far; returns the verdict. */
int redset_group_judge(redset_group *group);

/* Reads all; returns the verdict. */
int redset_group_verify(redset_group *group, char *err);

/* Rebuilds what is lost, without names yet; 0 or REDSET_UNRECOVERABLE. */
int redset_group_rebuild(redset_group *group, char *err);

/* Gives the names. */
int redset_group_commit(redset_group *group, char *err);

redset_group *redset_group_free(redset_group *group);

/* ---- flows.c: all flows of a group, without MPI ---- */

/* Moves all bytes from the streams of survivors to those of lost members. A survivor that
 * cannot be read is lost from then on, and no more is moved: that is no failure. */
int redset_group_flow(redset_group *group, char *err);

/* ---- together.c: sets in one folder ---- */

/* -EINVAL when two processes claim the name of a file. */
int redset_groups_check_names(redset_group *const groups[], int count, char *err);

/* REDSET_UNRECOVERABLE when they are not of one encode. */
int redset_groups_check_encode(redset_group *const groups[], int count, char *err);

/* ---- found.c: what callers are told about groups ---- */

/* NULL without memory. */
redset_found *redset_found_new(int count, redset_group *const groups[]);

#endif
