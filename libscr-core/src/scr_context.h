/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_CONTEXT_H
#define SCR_CONTEXT_H

/* Everything a run knows hangs off one struct scr; there are no other variables. The
 * SCR_* calls in scr.c are a face over one default context.
 *
 * Functions here return SCR_SUCCESS or an SCR_ERR_ code, the same on every rank where
 * they are collective over scr->world (most are). Whoever first knows what went wrong
 * says so, once, by scr_fail. */

#include "records/scr_dataset.h"
#include "records/scr_decide.h"
#include "records/scr_descs.h"
#include "records/scr_filemap.h"
#include "records/scr_identity.h"
#include "records/scr_log.h"
#include "records/scr_param.h"
#include "records/scr_state.h"
#include "scr.h"
#include <mpi.h>
#include <redset/redset_mpi.h>
#include <stdint.h>

#define SCR_ERR_TEXT 512
#define SCR_OWNER_SIZE 400

/* Values of parameters, the same on every rank but for the bases. */
struct scr_settings {
    int enable, debug;
    const char *cntl_base, *cache_base; /* of this node */
    const char *cache_named;            /* what the user calls cache_base */
    int cache_size, cache_purge;
    const char *current; /* or NULL */
    redset_scheme scheme;
    const char *group; /* of processes that may fail together */
    int set_size, set_failures;
    int distribute, fetch, flush, flush_on_restart, crc_on_flush;
    int flush_width, fetch_width, flush_async, containers;
    const char *flush_method;
    unsigned log_targets; /* of scr_log.h */
    int log_db_debug;
    uint64_t flush_bandwidth, container_size; /* bytes (per second) */
    double flush_percent;
    int interval;
    int64_t seconds, halt_seconds;
    double overhead;
};

struct scr {
    scr_state state;
    int disabled;    /* SCR_ENABLE=0 */
    int init_failed; /* said once: an application that ignores it makes thousands of calls
                      */
    scr_config config;
    scr_descs descs;
    struct scr_settings set;

    MPI_Comm world, node; /* all ranks; those on this node */
    int rank, ranks, node_rank, node_ranks, nodes;
    char node_name[SCR_NODE_SIZE];
    const char *failure_group; /* what those that may fail with this process have in
                                  common */

    char *prefix;      /* as given, absolute */
    char *prefix_real; /* the same folder without links */
    int prefix_fd;
    char user[SCR_USER_SIZE], job_id[SCR_JOB_ID_SIZE], job_name[128], cluster[128];
    char owner[SCR_OWNER_SIZE]; /* "<user>/scr.<job id>", or beside it (scr_claim.c) */
    char *control, *cache;      /* <base>/<owner> */
    int control_fd, cache_fd;
    int lock_fd; /* at the leader of a node: of this run; else -1 */

    kvtree *aside; /* cached datasets that this run cannot use, the same on every rank:
                      ID/<id> could not be rebuilt here, but may be in another run;
                      OTHER/<id> was written by another number of ranks */
    scr_filemap *map;
    char map_name[64];
    kvtree *flush,
        *halt; /* flush file and halt file; rank 0's copies are the ones that count */
    redset *redset; /* sets for new datasets */

    struct scr_flush *flushing; /* under way; or NULL */
    int flush_failed;           /* code of one that failed, until a call returns it */

    int dataset_id, ckpt_id; /* last ones used */

    scr_dataset open; /* the dataset of an output or a restart */
    kvtree *routed; /* files of an output: <name below the prefix folder>/{ORIG, PATH} */
    int restart_offered; /* id of the dataset that SCR_Have_restart offered; 0: none */
    int fetch_below;     /* only checkpoints with lower ids are fetched; INT_MAX: all */

    int need_calls;      /* of SCR_Need_checkpoint since the last checkpoint */
    double last_ckpt;    /* MPI_Wtime when the last checkpoint was complete */
    double output_start; /* ... when the open output was started */
    double idle_since;   /* ... when the application went on by itself */
    double ckpt_cost;    /* mean seconds of a checkpoint so far */
    int ckpt_count;      /* completed in this run */

    double restart_start;
    int halt_told;             /* the halt condition that holds has been logged */
    struct scr_events *events; /* NULL: nothing is logged */
};

/* ---- scr_message.c ---- */

/* Prints one line for people, on rank 0 only, at level 0 (warnings, errors), 1 or 2. */
void scr_say(const struct scr *scr, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The one place that writes: a line to stderr, whatever the rank. */
void scr_print_line(const char *line);

/* Prints text as an error (on rank 0) and returns code. */
int scr_fail(const struct scr *scr, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- scr_events.c: what happens, said and logged by one call ---- */

/* Begins the log, where one is wanted. Collective; whatever fails is only said. */
void scr_events_open(struct scr *scr);
void scr_events_ready(struct scr *scr);         /* SCR_Init is done */
void scr_events_end(struct scr *scr, int code); /* SCR_Finalize is */
void scr_events_close(struct scr *scr);

/* An event of a dataset: kind, id, name and type. */
scr_log_event scr_event_of(int kind, const scr_dataset *dataset);

/* On rank 0: prints the text as scr_say does, and logs the event; where the event has a
 * note and gives none, it is the text. */
void scr_event(const struct scr *scr, int level, const scr_log_event *event,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same as an error, which scr_fail would print. Returns code. */
int scr_event_fail(const struct scr *scr, int code, const scr_log_event *event,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Logs an error that is said elsewhere, on whatever rank it is called. */
void scr_event_error(const struct scr *scr, int code, const char *text);

/* Prints and logs a failure that only this rank sees; code 0: a warning. */
void scr_event_local(const struct scr *scr, int code, const char *text);

/* ---- scr_settings.c: parameters to settings ---- */
int scr_settings_load(struct scr *scr);

/* ---- scr_query.c ---- */

/* The answer to a question of SCR_Config, to be freed; NULL: there is none. Local. */
char *scr_query(struct scr *scr, const char *question);

/* ---- scr_folders.c: prefix, control and cache folders ---- */
int scr_folders_open(struct scr *scr);
void scr_folders_close(struct scr *scr);

/* The control folder of scr->owner on this node. Local; 0 or -errno with a text. */
int scr_control_open(struct scr *scr, char *err);
void scr_control_close(struct scr *scr);

/* 1 when this node has a control folder of that owner. Local. */
int scr_control_exists(const struct scr *scr, const char *owner);

/* ---- scr_claim.c ---- */

/* Finds out whether control and cache folder of this job are those of this calculation,
 * takes others if not, opens the control folder, and keeps other runs away. Agreed; 0 or
 * -errno with a text. */
int scr_claim(struct scr *scr, char *err);
void scr_unclaim(struct scr *scr);

/* Name of a cached file below scr->cache_fd: "scr.dataset.<id>/<name>". Cut if name is
 * longer than a file's name may be, and then refused by beneath.h. */
#define SCR_CACHED_NAME_SIZE (SCR_NAME_SIZE + 64)
void scr_cached_name(int id, const char *name, char path[SCR_CACHED_NAME_SIZE]);

/* Path of a dataset's folder in the cache; the caller frees it. */
char *scr_dataset_folder(const struct scr *scr, int id);

/* Creates it. Local; 0 or -errno with a text. */
int scr_dataset_folder_make(struct scr *scr, int id, char *err);

/* ---- scr_init.c ---- */
int scr_start(struct scr *scr, MPI_Comm comm);

/* The work of SCR_Finalize before everything is freed. */
int scr_finish(struct scr *scr);
void scr_release(struct scr *scr);

/* ---- scr_cache.c: what is in the cache ---- */

/* The cached datasets that this run can use, the same on every rank; to be freed. */
scr_cached *scr_cached_list(const struct scr *scr, int *count);

/* Id of the newest checkpoint among them; 0: none. */
int scr_cached_newest(const struct scr *scr);

/* The description of a cached dataset. Local; 0 or -ENOENT. */
int scr_cached_get(const struct scr *scr, int id, scr_dataset *dataset);

/* Adds up this rank's own files of a dataset, without redundancy, and their bytes. */
void scr_cached_sums(const struct scr *scr, int id, unsigned long sums[2]);

/* Removes what could not be rebuilt and has an id above this one. */
void scr_cache_delete_aside(struct scr *scr, int above);

/* Removes the oldest datasets until there are less than capacity; with spare_newest, the
 * newest checkpoint stays even if that makes one too many. */
void scr_cache_make_room(struct scr *scr, int capacity, int spare_newest);

/* Removes a dataset from the cache: files and records. A failure is said, and not fatal.
 */
void scr_cache_delete(struct scr *scr, int id);

/* Removes folders of datasets that no map knows: left by runs that were killed. */
void scr_cache_sweep(struct scr *scr);

/* Writes this process's filemap. Local; 0 or -errno with a text. */
int scr_map_write(const struct scr *scr, char *err);

/* Puts what redset tells of a rank's own files into the map: after an encode or a
 * rebuild. */
int scr_map_record(struct scr *scr, const scr_dataset *dataset,
                   const redset_manifest *manifest, char *err);

/* Records on rank 0 where a dataset is, and writes the flush file. */
void scr_location(struct scr *scr, const scr_dataset *dataset, const char *location,
                  int on);
int scr_location_has(struct scr *scr, int id, const char *location);

/* ---- restart: scr_scatter.c, scr_distribute.c, scr_move.c, scr_rebuild.c ---- */

/* The leader of each node reads all filemaps of the control folder and hands them to the
 * processes. */
int scr_scatter_maps(struct scr *scr);

/* Brings the files of a dataset to the ranks that wrote them; moved gets number and bytes
 * of files that came to this rank. Verdict text in err; 0 or -errno. */
int scr_distribute(struct scr *scr, const scr_dataset *dataset, unsigned long moved[2],
                   char *err);

/* Forgets the files of a rank in a dataset; with delete, also removes them. Local. */
void scr_drop_files(struct scr *scr, int id, int rank, int delete);

/* Gives the files of rank to (MPI_PROC_NULL: none) to it, and gets our own from rank
 * from. Between the ranks named only. What could not be moved stays with the sender; the
 * receiver has none of it then. */
void scr_move_files(struct scr *scr, const scr_dataset *dataset, int to, int from);

/* Distributes and rebuilds all cached datasets, oldest first. */
int scr_rebuild_cache(struct scr *scr);

/* ---- scr_output.c, scr_route.c ---- */
int scr_output_start(struct scr *scr, const char *name, int flags);
int scr_output_complete(struct scr *scr, int valid);
int scr_route_output(struct scr *scr, const char *name, char *file);
int scr_route_restart(struct scr *scr, const char *name, char *file);

/* 1 for names below the prefix folder that SCR uses itself: with a component ".scr", and
 * those of redundancy files. */
int scr_name_is_reserved(const char *name);

/* Protects the files of this rank (named in the map or routed) and records them. names:
 * below the dataset's folder. Collective; 0 or -errno with a text. */
int scr_protect(struct scr *scr, const scr_dataset *dataset, int count,
                redset_file *files, char *err);

/* ---- scr_flush.c, scr_fetch.c ---- */

/* Flushes a dataset, and returns when that is done. */
int scr_flush_dataset(struct scr *scr, int id);

/* Starts to flush a dataset, in the background where SCR_FLUSH_ASYNC says so. One that is
 * under way already is waited for. */
int scr_flush_start(struct scr *scr, int id);

/* Looks after a flush that is under way; it may be done then. What went wrong is said,
 * and returned by the next call of scr_flush_result. */
void scr_flush_look(struct scr *scr);

/* Waits for it. */
void scr_flush_wait(struct scr *scr);

/* Stops it, if it is one of dataset id (0: of any); local files are free then. */
void scr_flush_stop(struct scr *scr, int id);

/* The code of a flush that failed in the background, once. */
int scr_flush_result(struct scr *scr);

/* Id of the dataset that is being flushed; 0: none. */
int scr_flush_id(const struct scr *scr);

/* The checkpoint on the prefix folder to restart from next (see scr_index_next_fetch); 0,
 * -ENOENT, or, when the index cannot be read, another -errno: that is said. */
int scr_fetch_candidate(struct scr *scr, int below, scr_dataset *dataset);

/* Brings it into the cache. 0; a positive verdict when it is damaged (it is marked as
 * failed then); or -errno. Says what went wrong. */
int scr_fetch_dataset(struct scr *scr, const scr_dataset *dataset);

/* Rank 0 reads the index into the empty tree index; a damaged one is set aside first, and
 * said. Local. */
int scr_index_load(struct scr *scr, kvtree *index, char *err);

/* Rank 0 reads the index, lets change alter the entry of dataset id, which is there under
 * name, and writes it. Local; 0, -ENOENT when there is no such entry, or another -errno.
 */
int scr_index_change(struct scr *scr, const char *name, int id,
                     int (*change)(kvtree *, const char *), char *err);

/* Where a flushed dataset lies: its folder (absolute, to be freed), the map in it, and
 * the prefix that the names of its files have in the cache ("" or "<name>/"). Local; 0 or
 * -ENOMEM. */
typedef struct scr_place {
    char *folder;
    char map[SCR_NAME_SIZE + 32];
    char cache_prefix[SCR_NAME_SIZE + 2];
} scr_place;
int scr_place_of(const struct scr *scr, const scr_dataset *dataset, scr_place *place);

/* ---- scr_restart.c ---- */
int scr_restart_have(struct scr *scr, int *flag, char *name);
int scr_restart_start(struct scr *scr, char *name);
int scr_restart_complete(struct scr *scr, int valid);

/* ---- scr_manage.c ---- */
int scr_manage_current(struct scr *scr, const char *name);
int scr_manage_delete(struct scr *scr, const char *name, int files_too);

/* ---- scr_halt_check.c ---- */

/* Rank 0 reads the halt file again: scripts change it while the program runs, and nothing
 * of that is to be overwritten. One that cannot be read leaves what was known before in
 * force. Local. */
void scr_halt_refresh(struct scr *scr);

/* Rank 0 reads the halt file; *halt is 1 everywhere when a condition holds. */
int scr_halt_now(struct scr *scr, int *halt);

#endif
