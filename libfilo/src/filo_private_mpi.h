/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_PRIVATE_MPI_H
#define FILO_PRIVATE_MPI_H

/* What the sources of the MPI part share.
 *
 *     filo_mpi.c               checks the arguments of a call; the stage
 *     filo_flush_mpi.c         filo_flush and its asynchronous form
 *     filo_abandon_mpi.c       filo_flush_abandon
 *     filo_register_mpi.c      filo_register
 *     filo_commit_mpi.c        the step that changes a directory
 *     filo_fetch_mpi.c         filo_fetch
 *     filo_read_map_mpi.c      filo_read_map
 *     filo_write_map_mpi.c     the map of a flush; filo_write_map
 *     filo_names_mpi.c         duplicate names; the owner of a name
 *     filo_folders_mpi.c       directories, each created by one rank
 *     filo_containers_mpi.c    places of files in containers (numbers: filo_layout.c)
 *     filo_lead_mpi.c          one rank that copies for all ranks of its node
 *     filo_shared_mpi.c        files that ranks write together
 *     filo_move_mpi.c          what this rank copies, when it is its turn
 *     filo_flow_control_mpi.c  when this rank may copy
 *
 * Files are written under temporary names and renamed when the files of all ranks are
 * complete (common/batch.h). A flush creates the temporary files in its directory of the
 * stage, a fetch beside the final names.
 *
 * Functions marked "collective" are entered by all ranks, even if one of them has failed
 * before. Those marked "agreed" return the same value on every rank. All other functions
 * return this rank's own result, and the caller agrees on it (common/agree_mpi.h) before
 * the next step. */

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

/* With the option align the lowest rank of each node, its leader, copies for all ranks of
 * the node. Neighboring nodes form a group, which has one container. */
typedef struct filo_lead {
    MPI_Comm node;    /* the ranks of this node; MPI_COMM_NULL: each rank copies its own
                         files */
    MPI_Comm leaders; /* on leaders: all leaders; else MPI_COMM_NULL */
    MPI_Comm group;   /* on leaders: the leaders of the group; else MPI_COMM_NULL */
    int rank, size;   /* within the node */
    int number;       /* of the node, in the order of lowest ranks */
    int nodes;        /* number of nodes */
    uint64_t *sizes, *offsets; /* on leaders: of the ranks of the node, or of the nodes of
                                  the group */
    char *told; /* list of the parts of this rank, until the leader has it */
    size_t told_size, told_room; /* bytes */
    int parts;                   /* of this rank */
    int *counts, *starts;        /* on leaders: counts and first indexes in `found`, by
                                    rank of the node */
    uint64_t *found; /* sizes and checksums of the parts of this rank; on leaders,
                        followed by those of all other ranks of the node */
} filo_lead;

typedef struct filo_job {
    MPI_Comm comm; /* of the caller, for libkvtree, which keeps its own duplicate */
    MPI_Comm own;  /* duplicate, for the duration of the call or transfer */
    MPI_Comm over; /* for the next agreement: comm until all ranks are known to have a
                      duplicate, then own */
    int rank, size;
    const char *folder; /* see filo_place */
    const char *map;    /* name of the root of the map below folder */
    filo_options options;
    int dir; /* descriptor of the directory once open; else -1 */
    filo_lead lead;
    bool unmapped; /* there is no map; valid on rank 0 */
    bool shares;   /* some rank has parts of shared files, possibly empty ones only */
    uint64_t key;  /* of the call, for temporary names; random unless the flush has an
                      identity */
    char stage[BENEATH_NAME_MAX]; /* of a flush: its directory in the stage, relative to
                                     folder */
    bool staged;                  /* the directory in the stage may exist; the same on all
                                     ranks */
    int stage_dir;   /* the directory in it that this rank writes to, once open; else -1.
                        Private to this user */
    filo_error err;  /* why a step failed; inner functions write to it */
    filo_error left; /* on rank 0: why the stage was not removed; "": no failure */
} filo_job;

/* Collective, the result is this rank's own. Stores the arguments, with defaults, and
 * checks them. The caller calls filo_job_end in any case. */
int filo_job_begin(filo_job *job, MPI_Comm comm, const char *folder, const char *map,
                   const filo_options *options);

/* Opens the directory, unless it is open. */
int filo_job_open(filo_job *job);

/* Opens the directory, and the directory in the stage that this rank writes to: the
 * subdirectory of the rank if files are neither packed nor shared, else the directory of
 * the flush. */
int filo_job_enter(filo_job *job);

/* Writes the name of the directory that this rank writes to, relative to the job's
 * directory. */
enum { FILO_PART_SIZE = BENEATH_NAME_MAX + 16 };
void filo_job_name_part(const filo_job *job, char name[FILO_PART_SIZE]);

/* Collective, agreed. rc is the result of this rank so far. Afterwards all ranks have the
 * same key, and know whether they share files. -EINVAL if folder, map or options differ
 * between ranks. */
int filo_job_agree_key(filo_job *job, int rc);

/* Collective, agreed. rc is the result of this rank so far. Creates the directory of a
 * flush in the stage, or finds the directory of an earlier flush with the same key, and,
 * unless files are packed, the subdirectory that this rank writes to. Each rank that
 * copies may then open it with filo_job_enter. The directory is private
 * (beneath_open_private), so its files are those of the flush, even if another user can
 * change the directories above it. */
int filo_job_make_stage(filo_job *job, int rc);

/* On rank 0: removes the directory of the flush and its contents, and the stage unless
 * another flush is in it. On failure the directory stays, and job->left has the reason.
 */
void filo_job_remove_stage(filo_job *job);

/* Collective, agreed. The first agreement after filo_job_begin also ensures that all
 * ranks have a duplicate of the communicator. */
int filo_job_agree(filo_job *job, int rc);

/* Like filo_job_agree; each of the count numbers also becomes its sum over all ranks
 * (agree_sum). */
int filo_job_agree_sum(filo_job *job, int rc, int count, int64_t numbers[]);

/* Collective. Returns when all ranks have called it. After a failure, each rank has then
 * removed its temporary files, so that no rank finds the files of another. */
void filo_job_meet(const filo_job *job);

/* Collective. Like filo_job_meet, for steps in which some ranks work for long. Waiting
 * ranks sleep in naps that are a small part of the time slept so far, and leave the
 * processor to the working ranks. A failure of MPI is left to the next call. */
void filo_job_rest(const filo_job *job);

/* Collective. Closes the directory and returns rc, which is agreed. If rc is not 0, first
 * waits for all ranks (filo_job_meet) and sets err. */
int filo_job_end(filo_job *job, int rc, filo_error *err);

/* Checks each file, so that errors are found before any data is copied. */
int filo_list_check(filo_job *job, int count, filo_file files[],
                    int (*check)(filo_job *, filo_file *));

/* Returns the place of the map, for libkvtree, which writes and reads it. */
kvtree_gather filo_map_place(filo_job *job);

/* ---- filo_lead_mpi.c ---- */

/* Collective, agreed. Creates the communicator of the ranks of this node. */
int filo_lead_split_node(filo_job *job, MPI_Comm *node);

/* Collective, agreed. Finds the nodes and their leaders. The caller calls filo_lead_end
 * in any case. */
int filo_lead_meet(filo_job *job);

/* Collective, the result is this rank's own. Called after filo_lead_meet. Numbers the
 * nodes; *wish becomes the maximum over the node. */
int filo_lead_begin(filo_job *job, int *wish);

/* Whether this rank copies: it is a leader, or each rank copies its own files. */
bool filo_lead_is_here(const filo_job *job);

/* Collective, the result is this rank's own. *offset: where the bytes of this rank begin
 * in the container of its group. *size: on leaders, size of this container. */
int filo_lead_place(filo_job *job, uint64_t bytes, uint64_t *offset, uint64_t *size);

/* The number of this rank's container; whether this rank creates it; the number of
 * containers. */
int filo_lead_container(const filo_job *job);
bool filo_lead_makes_container(const filo_job *job);
int filo_lead_count_containers(const filo_job *job);

/* Lists a part, with the attributes of its source as seen; all of the part is copied. */
int filo_lead_add(filo_job *job, const axl_part *part);

/* Collective, the result is this rank's own; rc is the result of this rank so far. Adds
 * all parts of the node to the leader's transfer, in the order of ranks. most: maximum
 * bytes of all lists together, because MPI counts with int; the leader returns -EFBIG for
 * more. */
int filo_lead_hand(filo_job *job, int rc, int most, axl_transfer *transfer);

/* Collective, the result is this rank's own. Called when all parts are copied: sends each
 * rank the sizes and checksums of its parts. */
int filo_lead_return(filo_job *job, const axl_transfer *transfer);

/* After filo_lead_return: size and checksum of a part of this rank. */
void filo_lead_get(const filo_job *job, size_t part, axl_file *file);

void filo_lead_end(filo_lead *lead);

/* ---- filo_write_map_mpi.c ---- */

/* Builds what this rank adds to the map: the entry of its files, or, with the option
 * ranks, the entries of the ranks that wrote them. 0 or -ENOMEM with a text. */
int filo_map_make(filo_job *job, int count, const filo_file files[], kvtree **entry);

/* Collective, agreed. Writes the map from the entries of all ranks. */
int filo_map_write_all(filo_job *job, const kvtree *entry);

/* ---- filo_commit_mpi.c ---- */

/* Whether name is that of a map file, a container or the stage, or lies below such a
 * name. */
bool filo_map_owns(const filo_job *job, const char *name);

/* -ENAMETOOLONG if names of the map's lower files or of staged files would be too long.
 */
int filo_map_check_name(filo_job *job);

/* Collective, agreed. Called when all data is in place or in the stage (stage is NULL if
 * there is none). Removes an earlier map, renames staged files, syncs the directories in
 * `folders` (each has one rank), removes surplus containers with numbers from
 * `containers` on, and writes the map with this rank's entry. */
int filo_commit(filo_job *job, batch *stage, const kvtree *folders, const kvtree *entry,
                int64_t containers);

/* ---- filo_shared_mpi.c ---- */

/* Name of a shared file in the stage: "shared.<home>.<number>". */
#define FILO_SHARED_STAGED "shared."
enum { FILO_SHARED_STAGED_SIZE = 40 };

/* The shared files that have parts on this rank. */
typedef struct filo_shared {
    int count; /* shared files that this rank creates, with name, size, mode, group,
                  rank */
    filo_file *files;
    kvtree *known; /* all shared files: <name>/{STAGED, ...} */
} filo_shared;

/* Collective, agreed. Distributes the shared files: see filo_shared_mpi.c. -EEXIST if
 * parts of a file overlap. *shared must be zeroed; the caller calls filo_shared_end in
 * any case. */
int filo_shared_plan(filo_job *job, int count, const filo_file files[],
                     filo_shared *shared);

/* Returns the name of a shared file in the stage; NULL if name is not a shared file. */
const char *filo_shared_find(const filo_shared *shared, const char *name);

/* Returns the list of this rank followed by the shared files that it creates (shared
 * NULL: none): all files, or only those that get their own name. The caller frees the
 * list, but not the contents of its elements. NULL without memory; *all is 0 then. */
typedef enum filo_which { FILO_ALL, FILO_NAMED } filo_which;
filo_file *filo_shared_join(const filo_shared *shared, int count, const filo_file files[],
                            filo_which which, int *all);

void filo_shared_end(filo_shared *shared);

/* ---- filo_names_mpi.c ---- */

/* Hash of a name, 24 bits. It selects the rank that handles the name. */
unsigned filo_name_hash(const char *name);

/* Collective, agreed. rc is the result of this rank so far if leaders copy, else agreed.
 * -EEXIST if a name is in the lists of two ranks, or twice in one. If ranks share files
 * (else shared may be NULL), *shared, which must be zeroed, gets the shared files, whose
 * names are compared as well; the caller calls filo_shared_end in any case. */
int filo_names_compare(filo_job *job, int rc, int count, const filo_file files[],
                       filo_shared *shared);

/* ---- filo_folders_mpi.c ---- */

/* Collective, agreed. rc is the result of this rank so far. Creates the directories of
 * all files of all ranks below the job's directory. *own gets the directories that this
 * rank is responsible for: each directory has one rank. */
int filo_folders_make(filo_job *job, int rc, int count, const filo_file files[],
                      kvtree **own);

/* Syncs the directories in own, after files were renamed. */
int filo_folders_sync(filo_job *job, const kvtree *own);

/* ---- filo_containers_mpi.c ---- */

/* Collective, agreed; the result is this rank's own if leaders copy. rc is the result of
 * this rank so far. Packs the files: fills in their segments. stage gets the containers
 * that this rank creates; *containers is the number of containers of all ranks. */
int filo_containers_plan(filo_job *job, int rc, int count, filo_file files[],
                         batch *stage, int64_t *containers);

/* Returns the name of a container in the directory of the flush in the stage. */
const char *filo_containers_stage(const char *name);

/* ---- filo_flow_control_mpi.c ---- */

/* At most width ranks copy at a time. Ranks are divided into waves of width ranks. The
 * first wave may start at once, and each rank that finishes lets one rank of the next
 * wave start. A rank that finishes notifies the keeper of the next wave, its last rank;
 * the keeper admits the other ranks of its wave and starts last. So a rank exchanges
 * messages only with the two neighboring waves, whatever the number of waves. Both
 * messages carry failures: a rank that is admitted after a failure does not copy, and
 * passes the failure on. */
typedef struct filo_flow {
    MPI_Comm comm;
    bool is_ordered; /* comm belongs to this struct */
    int rank, size, width;
    bool admitted; /* this rank may start */
    bool failed;   /* a rank reported a failure: no further rank needs to start */
    int finished;  /* keeper: ranks of the previous wave that finished */
    int sent;      /* messages that may still be in transit */
    MPI_Request *requests;
} filo_flow;

int filo_flow_begin(filo_flow *flow, MPI_Comm comm, int width, filo_error *err);

/* Collective, agreed, before the first admission. Orders the ranks in waves by turn, then
 * by rank in comm; without this call, by rank only. */
int filo_flow_order(filo_flow *flow, int turn, filo_error *err);

/* Polls for admission; with wait, blocks until this rank is admitted. flow->failed is set
 * if it should not start. */
int filo_flow_admit(filo_flow *flow, bool wait, filo_error *err);

/* Called once by each admitted rank. failed: this rank failed, or did not start. */
int filo_flow_finish(filo_flow *flow, bool failed, filo_error *err);

/* *settled: this rank has nothing left to do for other ranks. With wait, does it first.
 */
int filo_flow_settle(filo_flow *flow, bool wait, bool *settled, filo_error *err);

/* Not collective: abandons messages that were sent and have not arrived. */
void filo_flow_forget(filo_flow *flow);

void filo_flow_end(filo_flow *flow);

/* ---- filo_move_mpi.c ---- */

typedef enum filo_step { FILO_WAITS, FILO_MOVES, FILO_DONE, FILO_SETTLED } filo_step;

/* The files that this rank has to copy, and the progress. */
typedef struct filo_move {
    filo_job *job;
    filo_flow flow;
    filo_step step;
    batch *stage; /* temporary files for all files of the list, in its order, created
                     when it is this rank's turn; or NULL */
    int count;
    filo_file *files;
    size_t parts;
    int *owner; /* of each part: index of its file */
    axl_transfer *transfer;
    int rc; /* of this rank */
    /* compares a file with the size and checksum of the copied data (moved) */
    int (*check)(filo_job *job, const filo_file *given, const filo_file *moved);
} filo_move;

/* Prepares the transfer; copies nothing. base: as in axl_options. checksum: some file
 * needs a checksum, so checksums of all parts are computed. *move must be zeroed, except
 * for check; the caller calls filo_move_end in any case. */
int filo_move_begin(filo_move *move, filo_job *job, const char *base, int count,
                    filo_file files[], bool checksum);

/* Adds a part of file number i. checked: attributes of the source as checked, so that
 * another file in its place is refused; NULL: any file. If leaders copy, checked comes
 * from axl_look, and a source that was changed since is refused as well. Takes ownership
 * of both paths, also on failure; a NULL path is -ENOMEM. */
int filo_move_add(filo_move *move, int i, const struct stat *checked, char *source,
                  uint64_t source_offset, char *destination, uint64_t destination_offset,
                  uint64_t length);

/* Collective if leaders copy. Called when all parts are added; rc and the result are of
 * this rank. */
int filo_move_hand(filo_move *move, int rc);

/* If the flush has an identity and this rank a state file: resumes from the copies that
 * an earlier process made of the same parts. Called after the last part was added, and
 * before the destinations are created. */
int filo_move_continue(filo_move *move);

/* Continues the copying; with wait, to the end. FILO_RUNNING, or 0 when this rank has
 * nothing left to do: then move->rc is the result, with the text in job->err. */
int filo_move_go_on(filo_move *move, bool wait);

/* If leaders copy: collective, the result is this rank's own. Called when all ranks have
 * copied everything: compares each file of this rank. */
int filo_move_return(filo_move *move);

/* Collective. Ends the copying, after an error or because the flush is stopped: nothing
 * of this rank is copied any more. */
void filo_move_abort(filo_move *move);

/* Ends the copying of this rank alone, without messages to other ranks. */
void filo_move_forget(filo_move *move);

void filo_move_end(filo_move *move);

#endif
