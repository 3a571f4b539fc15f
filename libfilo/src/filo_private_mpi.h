/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_PRIVATE_MPI_H
#define FILO_PRIVATE_MPI_H

/* What the sources of the MPI part share.
 *
 *     filo_mpi.c               the arguments of a call, checked
 *     filo_flush_mpi.c         filo_flush and its asynchronous form
 *     filo_abandon_mpi.c       filo_flush_abandon
 *     filo_register_mpi.c      filo_register
 *     filo_commit_mpi.c        the step in which a directory changes
 *     filo_fetch_mpi.c         filo_fetch
 *     filo_read_map_mpi.c      filo_read_map
 *     filo_write_map_mpi.c     the map of a flush
 *     filo_names_mpi.c         no name twice; the owner of a name
 *     filo_folders_mpi.c       directories, each made by one rank
 *     filo_containers_mpi.c    where in containers files go; filo_layout.c: the numbers
 *     filo_lead_mpi.c          one rank that copies for all of its node
 *     filo_shared_mpi.c        files that ranks write together
 *     filo_move_mpi.c          what this rank copies, when it is its turn
 *     filo_flow_control_mpi.c  when this rank may copy
 *
 * Files are written under temporary names and renamed when those of all ranks are
 * complete (common/batch.h): a flush makes them in its directory of the stage, a fetch
 * beside the final name.
 *
 * Functions marked "collective" are entered by all ranks, whatever happened before on one
 * of them, and return the same value everywhere. All others return this rank's own result
 * and the caller agrees on it (common/agree_mpi.h) before the next step. */

#include "common/agree_mpi.h"
#include "common/batch.h"
#include "src/filo_private.h"

#include <axl/axl.h>
#include <filo/filo_mpi.h>
#include <kvtree/kvtree_mpi.h>
#include <mpi.h>
#include <stdbool.h>

/* ---- filo_mpi.c ---- */

/* Number of ranks with files in one subdirectory of the stage. */
enum { FILO_STAGE_SPREAD = 256 };

/* With the option align the lowest rank of each node, its leader, copies for all of them.
 * Neighboring nodes form a group, which has one container. */
typedef struct filo_lead {
    MPI_Comm node;    /* the ranks of this node; MPI_COMM_NULL: each copies its own */
    MPI_Comm leaders; /* on leaders: all of them, ... */
    MPI_Comm group;   /* ... and those of the group; else MPI_COMM_NULL */
    int rank, size;   /* within the node */
    int number;       /* of the node, by lowest ranks */
    int nodes;        /* number of all */
    uint64_t *sizes, *offsets; /* on leaders: of ranks of the node, or of the group */
    char *told; /* what the leader is to know of the parts of this rank, until then: */
    size_t told_size, told_room; /* bytes */
    int parts;                   /* of this rank */
    int *counts, *starts;        /* on leaders: numbers in found by rank of the node */
    uint64_t *found; /* sizes and checksums of the parts of this rank, and then,
                        on leaders, of all others */
} filo_lead;

typedef struct filo_job {
    MPI_Comm comm; /* of the caller, for libkvtree, which keeps a duplicate of its own */
    MPI_Comm own;  /* duplicate for the time of the call, or of the transfer */
    MPI_Comm over; /* of the next agreement: comm until all ranks are known to have a
                      duplicate, then own */
    int rank, size;
    const char *folder; /* see filo_place */
    const char *map;    /* name of the root of the map below folder */
    filo_options options;
    int dir; /* directory, once open; else -1 */
    filo_lead lead;
    bool unmapped; /* there is no map; known on rank 0 */
    bool shares;   /* some rank has parts of files that ranks write together, if only an
                      empty one */
    uint64_t key;  /* of the call, in temporary names; random unless the flush
                      has an identity */
    char stage[BENEATH_NAME_MAX]; /* of a flush: its directory in the stage, below folder
                                   */
    bool staged;                  /* it may be there; the same on all ranks */
    int stage_dir;  /* what this rank writes to in it, once open; else -1. Private to this
                       user. */
    filo_error err; /* why a step failed: the err of all inner functions */
    filo_error left; /* on rank 0: why the stage stays; "": it does not */
} filo_job;

/* Collective, the result is this rank's own. Takes over the arguments, with defaults, and
 * checks them. To be ended in any case. */
int filo_job_begin(filo_job *job, MPI_Comm comm, const char *folder, const char *map,
                   const filo_options *options);

/* Opens the directory, if it is not open yet. */
int filo_job_open(filo_job *job);

/* The same, and the directory in the stage that this rank writes to: where files lie
 * under their names and no ranks share one, it is the subdirectory of the rank; else that
 * of the flush. */
int filo_job_enter(filo_job *job);

/* Its name below the job's directory. */
enum { FILO_PART_SIZE = BENEATH_NAME_MAX + 16 };
void filo_job_name_part(const filo_job *job, char name[FILO_PART_SIZE]);

/* Collective, agreed. rc is of this rank so far. Afterwards all ranks have the same key,
 * and know whether they share files. -EINVAL where they were not called with the same
 * folder, map and options. */
int filo_job_agree_key(filo_job *job, int rc);

/* Collective, agreed; rc is of this rank so far. Creates the directory of a flush in the
 * stage, or finds that of an earlier flush with the same key, and, unless files are
 * packed, the subdirectory that this rank writes to. Each rank that copies may enter it
 * then, and holds it: it is private (beneath_open_private), so that files in it are those
 * of the flush, even if another user can change the directories above it. */
int filo_job_make_stage(filo_job *job, int rc);

/* Rank 0 removes it with all that is in it, and the stage where no other flush is in it.
 * Where that fails, it stays, and job->left has the reason. */
void filo_job_remove_stage(filo_job *job);

/* Collective, agreed. The first one after filo_job_begin is that all ranks have begun. */
int filo_job_agree(filo_job *job, int rc);

/* The same, and each of count numbers becomes a sum (agree_sum). */
int filo_job_agree_sum(filo_job *job, int rc, int count, int64_t numbers[]);

/* Collective. Returns when all ranks came here: after a failure, when each has removed
 * its temporary files, so that no rank finds those of another. */
void filo_job_meet(const filo_job *job);

/* Collective. The same where some ranks work for long: the others sleep meanwhile, a
 * small part of the time for which they have slept already, and take no processor time
 * from those. A failure of MPI is left to the next call. */
void filo_job_rest(const filo_job *job);

/* Collective. Closes the directory; passes on rc, agreed, and, if that is not 0, the
 * text, after a filo_job_meet. */
int filo_job_end(filo_job *job, int rc, filo_error *err);

/* Checks each file before any of them is copied: what is wrong is not found halfway. */
int filo_list_check(filo_job *job, int count, filo_file files[],
                    int (*check)(filo_job *, filo_file *));

/* Where the map is, for libkvtree, which writes and reads it. */
kvtree_gather filo_map_place(filo_job *job);

/* ---- filo_lead_mpi.c ---- */

/* Collective, agreed. */
int filo_lead_split_node(filo_job *job, MPI_Comm *node);

/* Collective, agreed: nodes and their leaders. To be ended in any case. */
int filo_lead_meet(filo_job *job);

/* Collective after that, the result is this rank's own. *wish becomes the greatest one of
 * the node. */
int filo_lead_begin(filo_job *job, int *wish);

/* Whether this rank copies: it is a leader, or each rank copies its own. */
bool filo_lead_is_here(const filo_job *job);

/* Collective, the result is this rank's own. Where the bytes of this rank begin in the
 * container of its group. *size, on leaders: of the container. */
int filo_lead_place(filo_job *job, uint64_t bytes, uint64_t *offset, uint64_t *size);

/* The number of this rank's container; whether the rank makes it; how many there are. */
int filo_lead_container(const filo_job *job);
bool filo_lead_makes_container(const filo_job *job);
int filo_lead_count_containers(const filo_job *job);

/* Lists a part with what was seen of its source; all of it is copied. */
int filo_lead_add(filo_job *job, const axl_part *part);

/* Collective, the result is this rank's own; rc is of this rank so far. All parts of the
 * node become those of the leader's transfer, in the order of ranks. most: bytes of all
 * lists together, which MPI counts; the leader returns -EFBIG for more. */
int filo_lead_hand(filo_job *job, int rc, int most, axl_transfer *transfer);

/* Collective, the result is this rank's own. All parts are copied: each rank gets to know
 * what was found in its own. */
int filo_lead_return(filo_job *job, const axl_transfer *transfer);

/* After that: size and checksum of a part of this rank. */
void filo_lead_get(const filo_job *job, size_t part, axl_file *file);

void filo_lead_end(filo_lead *lead);

/* ---- filo_write_map_mpi.c ---- */

/* What this rank adds to the map: the entry of its files, or those of the ranks that they
 * are of. 0 or -ENOMEM with a text. */
int filo_map_make(filo_job *job, int count, const filo_file files[], kvtree **entry);

/* Collective, agreed. Writes the map of which each rank has its part. */
int filo_map_write_all(filo_job *job, const kvtree *entry);

/* ---- filo_commit_mpi.c ---- */

/* Whether a file of the map, a container or the stage has this name, or would lie where a
 * directory of this name must be. */
bool filo_map_owns(const filo_job *job, const char *name);

/* -ENAMETOOLONG when the map's lower files, or staged ones, would have impossible names.
 */
int filo_map_check_name(filo_job *job);

/* Collective, agreed. All ranks have all data in place or in their stage (NULL: there is
 * none). An earlier map is removed, staged files get their names, directories (that this
 * rank looks after) are synced, containers beyond that number are removed, and the map is
 * written with this rank's entry. */
int filo_commit(filo_job *job, batch *stage, const kvtree *folders, const kvtree *entry,
                int64_t containers);

/* ---- filo_shared_mpi.c ---- */

/* Name of a shared file in the stage: "shared.<home>.<number>". */
#define FILO_SHARED_STAGED "shared."
enum { FILO_SHARED_STAGED_SIZE = 40 };

/* The shared files that this rank has parts of. */
typedef struct filo_shared {
    int count; /* those that it makes, with name, size, mode, group, rank */
    filo_file *files;
    kvtree *known; /* of all: <name>/{STAGED, ...} */
} filo_shared;

/* Collective, agreed. -EEXIST where parts of a file overlap. shared was all zeros, and is
 * to be ended in any case. */
int filo_shared_plan(filo_job *job, int count, const filo_file files[],
                     filo_shared *shared);

/* Its name in the stage; NULL: it is no shared file. */
const char *filo_shared_find(const filo_shared *shared, const char *name);

/* The list of this rank and the shared files that it makes (shared NULL: none): all, or
 * those that get a name of their own. To be freed, but not what is in it; NULL without
 * memory, and *all is 0. */
typedef enum filo_which { FILO_ALL, FILO_NAMED } filo_which;
filo_file *filo_shared_join(const filo_shared *shared, int count, const filo_file files[],
                            filo_which which, int *all);

void filo_shared_end(filo_shared *shared);

/* ---- filo_names_mpi.c ---- */

/* Selects the rank that has to do with a name: 24 bits. */
unsigned filo_name_hash(const char *name);

/* Collective, agreed; rc is of this rank so far where leaders copy, else agreed. -EEXIST
 * when a name is in the lists of two ranks, or twice in one. Where ranks share files
 * (else shared may be NULL), *shared, which was all zeros, gets those, whose names count,
 * and is to be ended in any case. */
int filo_names_compare(filo_job *job, int rc, int count, const filo_file files[],
                       filo_shared *shared);

/* ---- filo_folders_mpi.c ---- */

/* Collective, agreed. rc is of this rank so far. Makes the directories of all files of
 * all ranks below the job's directory. *own gets those that this rank looks after: no two
 * ranks have the same. */
int filo_folders_make(filo_job *job, int rc, int count, const filo_file files[],
                      kvtree **own);

/* Syncs them, after files got their names. */
int filo_folders_sync(filo_job *job, const kvtree *own);

/* ---- filo_containers_mpi.c ---- */

/* Collective, agreed, but where leaders copy; then the result is this rank's own. rc is
 * of this rank so far. Packs the files: their segments are filled in. stage gets the
 * containers that begin with bytes of this rank; *containers is their number on all ranks
 * together. */
int filo_containers_plan(filo_job *job, int rc, int count, filo_file files[],
                         batch *stage, int64_t *containers);

/* The name of a container in the directory of the flush in the stage. */
const char *filo_containers_stage(const char *name);

/* ---- filo_flow_control_mpi.c ---- */

/* At most width ranks copy at a time. Ranks are cut into waves of width ranks; the first
 * wave may start at once, and for each rank that finishes, one of the next wave may. A
 * rank that finishes notifies the keeper of the next wave, its last rank, which admits
 * the others of its wave and starts last. So a rank exchanges messages with the two
 * neighboring waves at most, however many there are. A failure travels with both
 * messages: a rank that is admitted after one does not copy, and passes the failure on.
 */
typedef struct filo_flow {
    MPI_Comm comm;
    bool is_ordered; /* comm is its own */
    int rank, size, width;
    bool admitted; /* this rank may start */
    bool failed;   /* a rank reported a failure: no other rank needs to start */
    int finished;  /* keeper: ranks of the previous wave that finished */
    int sent;      /* messages, perhaps under way */
    MPI_Request *requests;
} filo_flow;

int filo_flow_begin(filo_flow *flow, MPI_Comm comm, int width, filo_error *err);

/* Collective, agreed, before the first admission. Waves have ranks in the order of their
 * turns, then of their numbers in comm; without this call, of their numbers. */
int filo_flow_order(filo_flow *flow, int turn, filo_error *err);

/* Polls for admission; with wait, blocks until this rank is admitted. flow->failed is
 * set when it should not start. */
int filo_flow_admit(filo_flow *flow, bool wait, filo_error *err);

/* Called once by each rank that was admitted. failed: it did, or did not start. */
int filo_flow_finish(filo_flow *flow, bool failed, filo_error *err);

/* *settled: nothing is left to do for other ranks; with wait, does it first. */
int filo_flow_settle(filo_flow *flow, bool wait, bool *settled, filo_error *err);

/* Not collective: gives up what was sent and has not arrived. */
void filo_flow_forget(filo_flow *flow);

void filo_flow_end(filo_flow *flow);

/* ---- filo_move_mpi.c ---- */

typedef enum filo_step { FILO_WAITS, FILO_MOVES, FILO_DONE, FILO_SETTLED } filo_step;

/* What this rank has to move. */
typedef struct filo_move {
    filo_job *job;
    filo_flow flow;
    filo_step step;
    batch *stage; /* all files of the list, in its order, which are made when it is this
                     rank's turn; or NULL */
    int count;
    filo_file *files;
    size_t parts;
    int *owner; /* of each part: number of its file */
    axl_transfer *transfer;
    int rc; /* of this rank */
    /* compares a file with its size and checksum as it passed by, which it becomes */
    int (*check)(filo_job *job, const filo_file *given, const filo_file *moved);
} filo_move;

/* Prepares it; moves nothing. base: as in axl_options. checksum: some file needs one, so
 * that of all parts is computed. move was all zeros before, but for check, and is to be
 * ended in any case. */
int filo_move_begin(filo_move *move, filo_job *job, const char *base, int count,
                    filo_file files[], bool checksum);

/* Adds a part of file number i. checked: what the source was found to be, so that another
 * file in its place is refused; NULL: any. Where leaders copy it is what axl_look found,
 * and a source that was changed since is refused as well. Paths are taken over, also on
 * failure; NULL is -ENOMEM. */
int filo_move_add(filo_move *move, int i, const struct stat *checked, char *source,
                  uint64_t source_offset, char *destination, uint64_t destination_offset,
                  uint64_t length);

/* Collective where leaders copy. All parts are added; rc is of this rank so far, and the
 * result, too. */
int filo_move_hand(filo_move *move, int rc);

/* Where the flush has an identity: resumes from what an earlier process copied of all
 * these parts, if it had the same ones. Before their destinations are made, but after the
 * last one was added. */
int filo_move_continue(filo_move *move);

/* Goes on, with wait to the end. FILO_RUNNING, or 0 when this rank has nothing left to
 * do: then move->rc tells how it went, and job->text why. */
int filo_move_go_on(filo_move *move, bool wait);

/* Where leaders copy: collective, the result is this rank's own. All ranks have copied
 * all: compares each file of this rank. */
int filo_move_return(filo_move *move);

/* Collective. Ends it, after an error or for good: nothing of this rank moves any more.
 */
void filo_move_abort(filo_move *move);

/* The same on this rank alone, without a message to the others. */
void filo_move_forget(filo_move *move);

void filo_move_end(filo_move *move);

#endif
