/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of parameters and of the fields of descriptors; see config/parameters.h and
 * config/desc.h. The documentation is generated from them, so help texts address users.
 */
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
    {"SCR_ENABLE", BOOL, "1", 0, "0: SCR is off, and every call fails without an effect"},
    {"SCR_DEBUG", INT, "0", 0, "messages: 0 warnings and errors, 1 also events, 2 also details"},
    {"SCR_PROGRESS", BOOL, "0", 0, "1: a line every 10 seconds while the program waits for a flush, a fetch, a rebuild or a deletion: bytes done, rate, time left"},
    /* places */
    {"SCR_PREFIX", TEXT, NULL, 0, "directory on the parallel file system; its parent must exist; ~/ is the home directory (default: the current directory)"},
    {"SCR_CNTL_BASE", TEXT, "/dev/shm", LOCAL, "directory below which SCR keeps its own records on a node"},
    {"SCR_CACHE_BASE", TEXT, "/dev/shm", LOCAL, "directory below which datasets are cached on a node"},
    {"SCR_CACHE_SIZE", INT, "2", 0, "number of datasets in the cache; exceeded only by datasets that cannot be flushed"},
    {"SCR_CACHE_BYPASS", BOOL, "0", 0, "1: write datasets to the prefix directory directly"},
    {"SCR_CACHE_PURGE", BOOL, "0", 0, "1: delete all cached datasets in SCR_Init"},
    {"SCR_CACHE_KEEP", BOOL, "0", 0, "1: keep the cache after SCR_Finalize, for the next run on these nodes"},
    {"SCR_PREFIX_SIZE", INT, "0", 0, "number of checkpoints on the prefix directory, in addition to output (0: all)"},
    {"SCR_PREFIX_PURGE", BOOL, "0", 0, "1: delete all datasets on the prefix directory in SCR_Init, including output"},
    {"SCR_CURRENT", TEXT, NULL, 0, "name of the checkpoint to restart from"},
    {"SCR_TRUSTED_OWNERS", TEXT, NULL, OUTSIDE, "users, separated by commas, from whom SCR accepts configuration files in prefix directories, in addition to the caller and root"},
    /* redundancy */
    {"SCR_COPY_TYPE", SCHEME, "XOR", 0, "redundancy scheme: SINGLE, PARTNER, XOR or RS; FILE: use the descriptors CKPT"},
    {"SCR_GROUP", TEXT, "NODE", 0, "failure group, the processes that may fail together: NODE, WORLD, or a group of the descriptors GROUPS"},
    {"SCR_SET_SIZE", INT, "8", 0, "least number of processes per redundancy set"},
    {"SCR_SET_FAILURES", INT, "2", 0, "number of members that a Reed-Solomon set can lose"},
    /* restart */
    {"SCR_RESTART_RANKS", TEXT, "same", 0, "any: the application can restart from checkpoints that another number of ranks wrote; same: it cannot"},
    {"SCR_DISTRIBUTE", BOOL, "1", 0, "0: ignore cached datasets in SCR_Init"},
    {"SCR_FETCH", BOOL, "1", 0, "0: do not fetch checkpoints from the prefix directory"},
    {"SCR_FETCH_BYPASS", BOOL, "0", 0, "1: read checkpoints on the prefix directory directly"},
    {"SCR_FETCH_ON_INIT", BOOL, "0", 0, "1: SCR_Init fetches the newest checkpoint, for applications that restart by SCR_Route_file alone"},
    {"SCR_FETCH_WIDTH", INT, "256", 0, "number of processes that read from the prefix directory at a time"},
    {"SCR_GLOBAL_RESTART", BOOL, "0", 0, "1: SCR_Init flushes the cache and empties it, and the run reads its checkpoint on the prefix directory"},
    /* flush */
    {"SCR_FLUSH", INT, "10", 0, "flush every n-th checkpoint (0: none, not even in SCR_Finalize)"},
    {"SCR_FLUSH_WIDTH", INT, "256", 0, "number of processes that write to the prefix directory at a time; a background flush "
     "divides it among nodes, with at least 1 for each"},
    {"SCR_FLUSH_ASYNC", BOOL, "0", 0, "1: flush in the background while the application computes"},
    {"SCR_FLUSH_TYPE", TEXT, NULL, 0, "transfer method: SYNC, PTHREAD, or DAEMON, a process that continues after the application ends; the next run completes its flush (default: SYNC, in the background PTHREAD)"},
    {"SCR_FLUSH_ASYNC_BW", BYTES, NULL, 0, "maximum bytes per second and node of background flushes"},
    {"SCR_FLUSH_ASYNC_PERCENT", DOUBLE, NULL, 0, "maximum load of background flushes per node, in percent of one processor"},
    {"SCR_FLUSH_ON_RESTART", BOOL, "0", 0, "1: SCR_Init flushes the newest cached checkpoint"},
    {"SCR_FLUSH_FORM", TEXT, NULL, 0, "files: each file lies under its name on the prefix directory; containers: each node packs its files into one container file (default: files, or as SCR_USE_CONTAINERS says)"},
    {"SCR_FLUSH_ALIGN", BYTES, "16MB", 0, "with SCR_FLUSH_FORM=containers the files of each process begin at a multiple of this in the container, up to 1GB; a multiple of the stripe or block size of the file system"},
    {"SCR_CONTAINER_NODES", INT, "1", 0, "with SCR_FLUSH_FORM=containers: number of nodes that share a container"},
    {"SCR_USE_CONTAINERS", BOOL, "0", 0, "without SCR_FLUSH_FORM; 1: pack files into few large container files on the prefix directory"},
    {"SCR_CONTAINER_SIZE", BYTES, "100GB", 0, "with SCR_USE_CONTAINERS: maximum size of a container file"},
    /* when to checkpoint and to stop */
    {"SCR_CHECKPOINT_INTERVAL", AUTO, "0", 0, "calls of SCR_Need_checkpoint per checkpoint; auto: the interval that wastes the least time, see below"},
    {"SCR_CHECKPOINT_SECONDS", SECONDS, "0", 0, "maximum time between checkpoints"},
    {"SCR_CHECKPOINT_OVERHEAD", DOUBLE, "0", 0, "maximum share of the run time for checkpoints, in percent"},
    {"SCR_MTBF", SECONDS, NULL, 0, "mean time between failures of the whole job, for SCR_CHECKPOINT_INTERVAL=auto (default: estimated from the log)"},
    {"SCR_HALT_SECONDS", SECONDS, "0", 0, "stop this long before the allocation ends, and before ExitBefore of the halt file"},
    {"SCR_END_TIME", INT, NULL, 0, "end of the allocation, in seconds since 1970 (default: SLURM_JOB_END_TIME; scr_run asks the batch system)"},
    {"SCR_SAVE_SECONDS", SECONDS, NULL, 0, "scr_run ends the program this long before the allocation ends, and saves (default: 120 within Flux, else 0: it does not)"},
    {"SCR_HALT_EXIT", BOOL, "0", 0, "1: SCR_Init and SCR_Complete_output end the process when a halt condition holds"},
    {"SCR_HALT_SIGNALS", TEXT, "TERM,USR1", 0, "signals that are a halt condition: any of TERM, USR1, USR2, INT, HUP, QUIT, XCPU; or NONE"},
    /* batch jobs */
    {"SCR_RUNS", INT, "1", 0, "number of runs within an allocation (-1: unlimited)"},
    {"SCR_MIN_NODES", INT, NULL, 0, "least number of nodes for a run (default: that of the previous run)"},
    {"SCR_EXCLUDE_NODES", TEXT, NULL, 0, "nodes that runs must not use"},
    {"SCR_NODELIST", TEXT, NULL, 0, "nodes of the allocation, for commands: atlas[3,5-7] (default: from the batch system)"},
    {"SCR_WATCHDOG", BOOL, "0", 0, "1: terminate runs that hang"},
    {"SCR_WATCHDOG_TIMEOUT", SECONDS, NULL, 0, "maximum time without a checkpoint before a run counts as hanging"},
    {"SCR_WATCHDOG_TIMEOUT_PFS", SECONDS, NULL, 0, "the same during a flush (default: SCR_WATCHDOG_TIMEOUT)"},
    {"SCR_RUN_PAUSE", SECONDS, NULL, 0, "time between two runs, for cleanup on the nodes (default: 60, on simulated nodes 0)"},
    {"SCR_NODE_INTERVAL", SECONDS, NULL, 0, "time between two checks of the nodes during a run (default: 60, on simulated nodes 2; 0: no checks)"},
    {"SCR_NODE_TIMEOUT", SECONDS, "60", 0, "maximum time for the check of a node, and without progress of a node that copies; the node then counts as down. Also the maximum time without a sign of life of scr_transfer, which is then killed and its flush fails; and the maximum time until a job step of Slurm starts, after which the launch fails"},
    {"SCR_NODE_CAPACITY", BYTES, "0", 0, "least size of the file system of a cache directory, for a STORE without CAPACITY; a node with less counts as down (0: any)"},
    {"SCR_NODE_TESTS", TEXT, NULL, 0, "directory of programs that test a node; each exits with 0 on a good node"},
    {"SCR_LAUNCHER", TEXT, NULL, 0, "what starts programs: slurm, flux, jsrun, aprun, pals, hydra, openmpi, intel, mpirun (any of the last four), or the name of a LAUNCHER (default: a LAUNCHER, else that of the batch system, else that of the MPI that SCR was built with, else the first that exists)"},
    {"SCR_SITE_HOOKS", TEXT, NULL, 0, "directory of programs of the site: prerun, node_down, postrun; scr_run calls those that exist"},
    {"SCR_REMOTE", TEXT, NULL, 0, "how commands reach other nodes: local, simulate, srun, flux, pdsh or shell (default: the first that is available)"},
    {"SCR_REMOTE_SHELL", TEXT, NULL, 0, "program for SCR_REMOTE=shell, called with a node and a command line (default: HYDRA_LAUNCHER_EXEC, or ssh)"},
    {"SCR_SIMULATE", TEXT, NULL, ENVIRONMENT, "directory of simulated nodes, set by scr_run --simulate"},
    {"SCR_RUN_ID", TEXT, NULL, ENVIRONMENT, "id of the run in the log, set by scr_run for each launch (default: a new one)"},
    /* logging */
    {"SCR_LOG_ENABLE", BOOL, "0", 0, "1: log events, to the targets below"},
    {"SCR_LOG_TXT_ENABLE", BOOL, "1", 0, "log to the text file .scr/log on the prefix directory"},
    {"SCR_LOG_JSON_ENABLE", BOOL, "0", 0, "1: log to .scr/log.jsonl on the prefix directory, one JSON object per line"},
    {"SCR_LOG_SIZE", BYTES, "16MB", 0, "size at which one of these two files becomes .scr/log.1 or .scr/log.jsonl.1, in place of the one before, and a new one begins (0: never)"},
    {"SCR_METRICS", TEXT, NULL, 0, "absolute path of a file that is replaced at each event of the log, with the metrics of scr_report in the text format of OpenMetrics, as NAME.prom for node_exporter; it needs the text file"},
    {"SCR_LOG_SYSLOG_ENABLE", BOOL, "1", 0, "log to syslog"},
    {"SCR_LOG_SYSLOG_FACILITY", TEXT, "LOCAL7", 0, "facility of these messages: USER, DAEMON, LOCAL0 to LOCAL7, or another of syslog(3), with or without LOG_"},
    {"SCR_LOG_SYSLOG_LEVEL", TEXT, "INFO", 0, "their level: DEBUG, INFO, NOTICE, WARNING, ERR, CRIT, ALERT or EMERG, with or without LOG_"},
    {"SCR_LOG_SYSLOG_PREFIX", TEXT, "SCR", 0, "the name of the program in these messages, of at most 32 bytes"},
    {"SCR_LOG_DB_ENABLE", BOOL, "0", 0, "1: log to a MariaDB or MySQL database"},
    {"SCR_LOG_DB_DEBUG", BOOL, "0", 0, "1: show database statements"},
    {"SCR_LOG_DB_HOST", TEXT, NULL, 0, "host of the database, host:port, or the path of a socket (default: this machine)"},
    {"SCR_LOG_DB_NAME", TEXT, NULL, 0, "name of the database"},
    {"SCR_LOG_DB_USER", TEXT, NULL, 0, "user of the database"},
    {"SCR_LOG_DB_PASS", TEXT, NULL, 0, "password of the database"},
    /* buffers and timeouts */
    {"SCR_MPI_BUF_SIZE", BYTES, "0", 0, "maximum size of a message with file data, 4KB to 1GB (0: 512KB for redundancy, 1MB for files that move to another node)"},
    {"SCR_FILE_BUF_SIZE", BYTES, "0", 0, "maximum size of a read or write when a file is copied, 4KB to 1GB (0: 256KB for flushes and fetches, one message for files that move to another node)"},
    {"SCR_CRC_ON_COPY", BOOL, "1", 0, "0: no checksums of cached files, see below"},
    {"SCR_CRC_ON_DELETE", BOOL, "0", 0, "1: verify files before they are removed from the cache; a mismatch is a warning"},
    {"SCR_CRC_ON_FLUSH", BOOL, "1", 0, "0: no checksums of flushed files"},
    /* identity and environment */
    {"SCR_USER_NAME", TEXT, NULL, 0, "user (default: the effective user)"},
    {"SCR_JOB_ID", TEXT, NULL, 0, "identifier of the allocation (default: from the batch system, else derived from the prefix directory)"},
    {"SCR_JOB_NAME", TEXT, NULL, 0, "name of the job, for records"},
    {"SCR_CLUSTER_NAME", TEXT, NULL, 0, "name of the cluster, for records"},
    {"SCR_NODE_NAME", TEXT, NULL, LOCAL | ENVIRONMENT, "name of this node (default: the host name)"},
    {NULL, TEXT, NULL, 0, NULL},
};

#define STORE SCR_DESC_STORE
#define CKPT SCR_DESC_CKPT
#define LAUNCHER SCR_DESC_LAUNCHER

const scr_desc_field scr_desc_field_table[] = {
    {STORE, "GROUP", TEXT, "NODE", "processes that share the storage"},
    {STORE, "COUNT", INT, "SCR_CACHE_SIZE", "number of datasets in this store"},
    {STORE, "ENABLED", BOOL, "1", "0: the store is not used, nor a CKPT that names it"},
    {STORE, "CAPACITY", BYTES, "SCR_NODE_CAPACITY", "least size of its file system on a node; a node with less counts as down (0: any)"},
    {STORE, "MKDIR", BOOL, "1", "0: the directory must exist; SCR creates its own directories in it"},
    {STORE, "TYPE", TEXT, "PTHREAD", "transfer method of flushes from this store: SYNC, PTHREAD or DAEMON (default: SCR_FLUSH_TYPE if set); FLUSH is another name of this field"},
    {STORE, "VIEW", TEXT, NULL, "PRIVATE, or GLOBAL: all nodes see the same files (default: GLOBAL if GROUP is WORLD)"},
    {CKPT, "INTERVAL", INT, "1", "use for every n-th checkpoint; the largest interval that divides the number of a checkpoint is used"},
    {CKPT, "TYPE", SCHEME, "SCR_COPY_TYPE", "redundancy scheme: SINGLE, PARTNER, XOR or RS (XOR if SCR_COPY_TYPE is FILE)"},
    {CKPT, "GROUP", TEXT, "SCR_GROUP", "failure group, the processes that may fail together"},
    {CKPT, "STORE", TEXT, "SCR_CACHE_BASE", "store in which datasets are cached"},
    {CKPT, "SET_SIZE", INT, "SCR_SET_SIZE", "least number of processes per redundancy set"},
    {CKPT, "SET_FAILURES", INT, "SCR_SET_FAILURES", "number of members that a Reed-Solomon set can lose"},
    {CKPT, "ENABLED", BOOL, "1", "0: the descriptor is not used"},
    {CKPT, "OUTPUT", BOOL, "0", "1: use for datasets that are output; the first such descriptor is used"},
    {CKPT, "BYPASS", BOOL, "SCR_CACHE_BYPASS", "1: write datasets to the prefix directory directly"},
    {LAUNCHER, "RUN", TEXT, NULL, "command line that runs a program on these nodes"},
    {LAUNCHER, "ARGUMENTS", TEXT, NULL, "the same where the user gives the arguments of the launcher (scr_mpirun)"},
    {LAUNCHER, "MANAGER", TEXT, NULL, "batch system in which it is used: slurm, flux, pbs, lsf or none (default: any)"},
    {LAUNCHER, "FIND", TEXT, NULL, "command that lists what was launched, ID or ID NAME per line, for {id} in END"},
    {LAUNCHER, "END", TEXT, NULL, "command that ends what was launched (default: signals to the launcher)"},
    {SCR_DESC_KINDS, NULL, TEXT, NULL, NULL},
};
/* clang-format on */
