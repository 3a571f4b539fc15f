/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of parameters and of the fields of descriptors; see config/parameters.h and
 * config/desc.h. Documentation is generated from them, so help texts are sentences for
 * users. */
#include "config/desc.h"
#include "config/parameters.h"

#include <stddef.h>

#define LOCAL SCR_PARAM_LOCAL
#define ENVIRONMENT SCR_PARAM_ENVIRONMENT
#define OUTSIDE SCR_PARAM_OUTSIDE
#define BOOL SCR_PARAM_BOOL
#define INT SCR_PARAM_INT
#define AUTO SCR_PARAM_AUTO
#define BYTES SCR_PARAM_BYTES
#define SECONDS SCR_PARAM_SECONDS
#define DOUBLE SCR_PARAM_DOUBLE
#define SCHEME SCR_PARAM_SCHEME
#define TEXT SCR_PARAM_TEXT

/* clang-format off */
const scr_param scr_param_table[] = {
    /* switches */
    {"SCR_ENABLE", BOOL, "1", 0, "0 turns SCR off: every call fails without doing anything"},
    {"SCR_DEBUG", INT, "0", 0, "messages: 0 warnings and errors, 1 events, 2 details"},
    /* places */
    {"SCR_PREFIX", TEXT, NULL, 0, "folder on the parallel file system, whose parent has to be there; ~/ is the home folder (default: the current folder)"},
    {"SCR_CNTL_BASE", TEXT, "/dev/shm", LOCAL, "folder below which SCR keeps its own records"},
    {"SCR_CACHE_BASE", TEXT, "/dev/shm", LOCAL, "folder below which datasets are cached"},
    {"SCR_CACHE_SIZE", INT, "2", 0, "datasets kept in the cache; more only while some cannot be flushed"},
    {"SCR_CACHE_BYPASS", BOOL, "0", 0, "1: write to the prefix folder directly"},
    {"SCR_CACHE_PURGE", BOOL, "0", 0, "1: delete all cached datasets at start"},
    {"SCR_CACHE_KEEP", BOOL, "0", 0, "1: the cache stays after SCR_Finalize, for the next run on these nodes"},
    {"SCR_PREFIX_SIZE", INT, "0", 0, "checkpoints kept in the prefix folder, besides output (0: all)"},
    {"SCR_PREFIX_PURGE", BOOL, "0", 0, "1: delete all datasets in the prefix folder at start, output as well"},
    {"SCR_CURRENT", TEXT, NULL, 0, "name of the checkpoint to restart from"},
    {"SCR_TRUSTED_OWNERS", TEXT, NULL, OUTSIDE, "users, with commas, whose configuration files in prefix folders are read, besides your own and root's"},
    /* redundancy */
    {"SCR_COPY_TYPE", SCHEME, "XOR", 0, "redundancy scheme: SINGLE, PARTNER, XOR, RS, or FILE: as the descriptors CKPT say"},
    {"SCR_GROUP", TEXT, "NODE", 0, "processes that may fail together: NODE, WORLD, or a group of the descriptors GROUPS"},
    {"SCR_SET_SIZE", INT, "8", 0, "least number of processes per redundancy set"},
    {"SCR_SET_FAILURES", INT, "2", 0, "members of a Reed-Solomon set that may be lost"},
    /* restart */
    {"SCR_DISTRIBUTE", BOOL, "1", 0, "0: do not use cached datasets at start"},
    {"SCR_FETCH", BOOL, "1", 0, "0: do not fetch checkpoints from the prefix folder"},
    {"SCR_FETCH_BYPASS", BOOL, "0", 0, "1: read checkpoints in the prefix folder directly"},
    {"SCR_FETCH_ON_INIT", BOOL, "0", 0, "1: SCR_Init fetches the newest checkpoint, for programs that restart by SCR_Route_file alone"},
    {"SCR_FETCH_WIDTH", INT, "256", 0, "processes that read from the prefix folder at once"},
    {"SCR_GLOBAL_RESTART", BOOL, "0", 0, "1: at start, flush what the cache has, empty it, and restart from the prefix folder"},
    /* flush */
    {"SCR_FLUSH", INT, "10", 0, "flush every n-th checkpoint (0: none, also not at the end)"},
    {"SCR_FLUSH_WIDTH", INT, "256", 0, "processes that write to the prefix folder at once"},
    {"SCR_FLUSH_ASYNC", BOOL, "0", 0, "1: flush in the background, while the application goes on"},
    {"SCR_FLUSH_TYPE", TEXT, NULL, 0, "how files move: SYNC, PTHREAD or DAEMON, which goes on when the application dies, and the next run finishes it (default: SYNC, in the background PTHREAD)"},
    {"SCR_FLUSH_ASYNC_BW", BYTES, NULL, 0, "most bytes per second and node of background flushes"},
    {"SCR_FLUSH_ASYNC_PERCENT", DOUBLE, NULL, 0, "most time of one processor per node that background flushes take, in percent"},
    {"SCR_FLUSH_ON_RESTART", BOOL, "0", 0, "1: flush the newest cached checkpoint at start"},
    {"SCR_USE_CONTAINERS", BOOL, "0", 0, "1: files are packed into a few large ones on the prefix folder"},
    {"SCR_CONTAINER_SIZE", BYTES, "100GB", 0, "most bytes of such a large file"},
    /* when to checkpoint and to stop */
    {"SCR_CHECKPOINT_INTERVAL", AUTO, "0", 0, "calls of SCR_Need_checkpoint per checkpoint; auto: what wastes the least time, see below"},
    {"SCR_CHECKPOINT_SECONDS", SECONDS, "0", 0, "longest time between checkpoints"},
    {"SCR_CHECKPOINT_OVERHEAD", DOUBLE, "0", 0, "percent of the run time that checkpoints may take"},
    {"SCR_MTBF", SECONDS, NULL, 0, "mean time between failures of the whole job, for SCR_CHECKPOINT_INTERVAL=auto (default: learned from the log)"},
    {"SCR_HALT_SECONDS", SECONDS, "0", 0, "stop this long before the allocation ends, and before ExitBefore of the halt file"},
    {"SCR_END_TIME", INT, NULL, 0, "when the allocation ends, in seconds since 1970 (default: SLURM_JOB_END_TIME)"},
    {"SCR_HALT_EXIT", BOOL, "0", 0, "1: SCR_Init and SCR_Complete_output end the process when a halt condition holds"},
    {"SCR_HALT_SIGNALS", TEXT, "TERM,USR1", 0, "signals that are a wish to end: any of TERM, USR1, USR2, INT, HUP, QUIT, XCPU; or NONE"},
    /* batch jobs */
    {"SCR_RUNS", INT, "1", 0, "runs within an allocation (-1: unlimited)"},
    {"SCR_MIN_NODES", INT, NULL, 0, "least number of nodes to run on (default: as many as before)"},
    {"SCR_EXCLUDE_NODES", TEXT, NULL, 0, "nodes not to run on"},
    {"SCR_NODELIST", TEXT, NULL, 0, "nodes of the allocation, for commands: atlas[3,5-7] (default: as the batch system says)"},
    {"SCR_WATCHDOG", BOOL, "0", 0, "1: end runs that hang"},
    {"SCR_WATCHDOG_TIMEOUT", SECONDS, NULL, 0, "longest time without a checkpoint; a run that takes longer hangs"},
    {"SCR_WATCHDOG_TIMEOUT_PFS", SECONDS, NULL, 0, "the same while a flush is under way (default: SCR_WATCHDOG_TIMEOUT)"},
    {"SCR_RUN_PAUSE", SECONDS, NULL, 0, "time between two runs, in which nodes clean up (default: 60, on simulated nodes 0)"},
    {"SCR_NODE_INTERVAL", SECONDS, NULL, 0, "time between two checks of the nodes while a program runs (default: 60, on simulated nodes 2; 0: none)"},
    {"SCR_NODE_TIMEOUT", SECONDS, "60", 0, "longest time for the check of a node, and without a sign of one that copies, which then counts as down; a process scr_transfer that gives no sign for so long is killed, and its flush fails; a launch whose job step of Slurm does not begin within it fails"},
    {"SCR_NODE_CAPACITY", BYTES, "0", 0, "least size of the file systems of cache folders, for STORE without CAPACITY; a node with a smaller one counts as down (0: any)"},
    {"SCR_NODE_TESTS", TEXT, NULL, 0, "folder of programs that check a node, each of which exits with 0 on a good one"},
    {"SCR_SITE_HOOKS", TEXT, NULL, 0, "folder of programs of the site: prerun, node_down, postrun; scr_run calls those that are there"},
    {"SCR_REMOTE", TEXT, NULL, 0, "how commands reach other nodes: local, simulate, srun, flux, pdsh or shell (default: what is there)"},
    {"SCR_REMOTE_SHELL", TEXT, NULL, 0, "the program for SCR_REMOTE=shell, called with a node and a command line (default: HYDRA_LAUNCHER_EXEC, or ssh)"},
    {"SCR_SIMULATE", TEXT, NULL, ENVIRONMENT, "folder of simulated nodes; scr_run --simulate sets it"},
    /* logging */
    {"SCR_LOG_ENABLE", BOOL, "0", 0, "1: log events; the next ones say where to"},
    {"SCR_LOG_TXT_ENABLE", BOOL, "1", 0, "log to the text file .scr/log in the prefix folder"},
    {"SCR_LOG_JSON_ENABLE", BOOL, "0", 0, "1: log to .scr/log.jsonl in the prefix folder, a JSON object per line"},
    {"SCR_LOG_SYSLOG_ENABLE", BOOL, "1", 0, "log to syslog"},
    {"SCR_LOG_DB_ENABLE", BOOL, "0", 0, "1: log to a database of MariaDB or MySQL"},
    {"SCR_LOG_DB_DEBUG", BOOL, "0", 0, "1: show database statements"},
    {"SCR_LOG_DB_HOST", TEXT, NULL, 0, "host of the database, host:port, or the path of a socket (default: this machine)"},
    {"SCR_LOG_DB_NAME", TEXT, NULL, 0, "name of the database"},
    {"SCR_LOG_DB_USER", TEXT, NULL, 0, "user of the database"},
    {"SCR_LOG_DB_PASS", TEXT, NULL, 0, "password of the database"},
    /* input and output */
    {"SCR_MPI_BUF_SIZE", BYTES, "0", 0, "most bytes per message of file data, 4KB to 1GB (0: 512KB for redundancy, 1MB for files that move to another node)"},
    {"SCR_FILE_BUF_SIZE", BYTES, "0", 0, "most bytes per read and write of a file that is copied, 4KB to 1GB (0: 256KB for flushes and fetches, a message for files that move to another node)"},
    {"SCR_CRC_ON_COPY", BOOL, "1", 0, "0: no checksums of cached files, see below"},
    {"SCR_CRC_ON_DELETE", BOOL, "0", 0, "1: files that leave the cache are read once more, and one that has not its checksum is a warning"},
    {"SCR_CRC_ON_FLUSH", BOOL, "1", 0, "0: no checksums of flushed files"},
    /* who and where */
    {"SCR_USER_NAME", TEXT, NULL, 0, "user (default: the effective user)"},
    {"SCR_JOB_ID", TEXT, NULL, 0, "allocation (default: of the batch system, else made from the prefix)"},
    {"SCR_JOB_NAME", TEXT, NULL, 0, "name of the job, for records"},
    {"SCR_CLUSTER_NAME", TEXT, NULL, 0, "name of the cluster, for records"},
    {"SCR_NODE_NAME", TEXT, NULL, LOCAL | ENVIRONMENT, "name of this node (default: the host name)"},
    {NULL, TEXT, NULL, 0, NULL},
};

#define STORE SCR_DESC_STORE
#define CKPT SCR_DESC_CKPT

const scr_desc_field scr_desc_field_table[] = {
    {STORE, "GROUP", TEXT, "NODE", "processes that share the storage"},
    {STORE, "COUNT", INT, "SCR_CACHE_SIZE", "datasets kept there"},
    {STORE, "ENABLED", BOOL, "1", "0: not to be used, and no CKPT that names it"},
    {STORE, "CAPACITY", BYTES, "SCR_NODE_CAPACITY", "least size of its file system on a node; a node with a smaller one counts as down (0: any)"},
    {STORE, "MKDIR", BOOL, "1", "0: the folder must be there; SCR makes its own in it, but not this one"},
    {STORE, "TYPE", TEXT, "PTHREAD", "how files get away from there: SYNC, PTHREAD, DAEMON, BBAPI or DW (default: SCR_FLUSH_TYPE where that is set); FLUSH is another name of it"},
    {STORE, "VIEW", TEXT, NULL, "PRIVATE, or GLOBAL: all nodes see the same files (default: GLOBAL if GROUP is WORLD)"},
    {CKPT, "INTERVAL", INT, "1", "for every n-th checkpoint; the largest that divides the number of a checkpoint counts"},
    {CKPT, "TYPE", SCHEME, "SCR_COPY_TYPE", "redundancy scheme: SINGLE, PARTNER, XOR or RS (XOR where SCR_COPY_TYPE is FILE)"},
    {CKPT, "GROUP", TEXT, "SCR_GROUP", "processes that may fail together"},
    {CKPT, "STORE", TEXT, "SCR_CACHE_BASE", "where datasets are cached"},
    {CKPT, "SET_SIZE", INT, "SCR_SET_SIZE", "least number of processes per redundancy set"},
    {CKPT, "SET_FAILURES", INT, "SCR_SET_FAILURES", "members of a Reed-Solomon set that may be lost"},
    {CKPT, "ENABLED", BOOL, "1", "0: not to be used"},
    {CKPT, "OUTPUT", BOOL, "0", "1: for datasets that are output; the first such one counts"},
    {CKPT, "BYPASS", BOOL, "SCR_CACHE_BYPASS", "1: write to the prefix folder directly"},
    {SCR_DESC_KINDS, NULL, TEXT, NULL, NULL},
};
/* clang-format on */
