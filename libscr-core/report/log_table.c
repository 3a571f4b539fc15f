/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of events and their fields; see report/log.h. Documentation is generated from
 * it, so help texts are for users. */
#include "report/log.h"

#include <errno.h>
#include <string.h>

#define AT(member) offsetof(scr_log_event, member)
#define TEXT SCR_LOG_FIELD_TEXT
#define NUMBER SCR_LOG_FIELD_NUMBER
#define SECONDS SCR_LOG_FIELD_SECONDS

/* Indexes into the list of fields. */
/* clang-format off */
enum {
    TIME, EVENT, RUN, USER, JOBID, HOST, JOBNAME, CLUSTER, PREFIX, RANKS, NODES, DSET, NAME,
    TYPE, FROM, TO, METHOD, FILES, BYTES, SECS, BW, REBUILT, COMPUTE, NODE, CODE, NOTE
};

const scr_log_field scr_log_fields[] = {
    [TIME] = {"time", SCR_LOG_FIELD_TIME, AT(time), 0, "when it happened, in UTC"},
    [EVENT] = {"event", SCR_LOG_FIELD_KIND, AT(kind), 0, "what happened"},
    [RUN] = {"run", TEXT, AT(run), 64, "id of the run; all events of a run have the same"},
    [USER] = {"user", TEXT, AT(user), 128, "user (`SCR_USER_NAME`)"},
    [JOBID] = {"jobid", TEXT, AT(job_id), 128, "allocation (`SCR_JOB_ID`)"},
    [HOST] = {"host", TEXT, AT(host), 256, "node on which it was logged"},
    [JOBNAME] = {"jobname", TEXT, AT(job_name), 128, "name of the job (`SCR_JOB_NAME`)"},
    [CLUSTER] = {"cluster", TEXT, AT(cluster), 128, "name of the cluster (`SCR_CLUSTER_NAME`)"},
    [PREFIX] = {"prefix", TEXT, AT(prefix), 4096, "prefix directory"},
    [RANKS] = {"ranks", NUMBER, AT(ranks), 0, "processes of the run"},
    [NODES] = {"nodes", NUMBER, AT(nodes), 0, "nodes of the run"},
    [DSET] = {"dset", NUMBER, AT(dset), 0, "id of the dataset"},
    [NAME] = {"name", TEXT, AT(name), 1023, "name of the dataset"},
    [TYPE] = {"type", TEXT, AT(type), 32, "`checkpoint`, `output`, or both with a comma in between"},
    [FROM] = {"from", TEXT, AT(from), 4096, "directory that files come from; in the cache that of the first node"},
    [TO] = {"to", TEXT, AT(to), 4096, "directory that they go to"},
    [METHOD] = {"method", TEXT, AT(method), 64, "how files are moved; `background` behind it: while the application goes on"},
    [FILES] = {"files", NUMBER, AT(files), 0, "files, of all processes"},
    [BYTES] = {"bytes", NUMBER, AT(bytes), 0, "bytes, of all processes"},
    [SECS] = {"secs", SECONDS, AT(secs), 0, "seconds that it took"},
    [BW] = {"bw", NUMBER, AT(bandwidth), 0, "bytes per second"},
    [REBUILT] = {"rebuilt", NUMBER, AT(rebuilt), 0, "number of processes with rebuilt files"},
    [COMPUTE] = {"compute", SECONDS, AT(compute), 0, "seconds since the last output, restart or the end of `SCR_Init`"},
    [NODE] = {"node", TEXT, AT(node), 256, "node that it is about"},
    [CODE] = {"code", NUMBER, AT(code), 0, "code that the SCR call returns"},
    [NOTE] = {"note", TEXT, AT(note), 1023, "reason, for people; one that was printed ends with the identifier of the message"},
    {NULL, TEXT, 0, 0, NULL},
};

#define F(field) (1u << (field))
#define EVERY (F(TIME) | F(EVENT) | F(RUN) | F(USER) | F(JOBID) | F(HOST))
#define DATASET (EVERY | F(DSET) | F(NAME))
#define DONE (F(FILES) | F(BYTES) | F(SECS) | F(BW))
#define WAY (F(FROM) | F(TO))

const scr_log_type scr_log_types[SCR_LOG_KINDS] = {
    [SCR_LOG_RUN_START] = {"RUN_START", EVERY | F(JOBNAME) | F(CLUSTER) | F(PREFIX) | F(RANKS) | F(NODES),
        "`SCR_Init` has its configuration and its directories"},
    [SCR_LOG_RUN_READY] = {"RUN_READY", EVERY | F(SECS), "`SCR_Init` is done"},
    [SCR_LOG_RUN_END] = {"RUN_END", EVERY | F(SECS) | F(CODE) | F(NOTE),
        "`SCR_Finalize` is done"},
    [SCR_LOG_RUN_INTERRUPTED] = {"RUN_INTERRUPTED", EVERY | F(SECS) | F(NOTE),
        "the run ended without `SCR_Finalize`, after that time; `scr_run`, `scr_postrun` or the next run logs it"},
    [SCR_LOG_OUTPUT_START] = {"OUTPUT_START", DATASET | F(TYPE) | F(COMPUTE), "`SCR_Start_output`"},
    [SCR_LOG_OUTPUT_COMPLETE] = {"OUTPUT_COMPLETE", DATASET | F(TYPE) | DONE,
        "the dataset is complete and protected in the cache"},
    [SCR_LOG_OUTPUT_FAILED] = {"OUTPUT_FAILED", DATASET | F(TYPE) | F(SECS) | F(CODE) | F(NOTE),
        "it is not, and was removed"},
    [SCR_LOG_FLUSH_START] = {"FLUSH_START", DATASET | WAY | F(METHOD), "a flush begins"},
    [SCR_LOG_FLUSH_COMPLETE] = {"FLUSH_COMPLETE", DATASET | WAY | F(METHOD) | DONE,
        "the dataset is complete on the prefix directory"},
    [SCR_LOG_FLUSH_FAILED] = {"FLUSH_FAILED", DATASET | WAY | F(METHOD) | F(SECS) | F(CODE) | F(NOTE),
        "the flush failed"},
    [SCR_LOG_FLUSH_STOPPED] = {"FLUSH_STOPPED", DATASET | WAY | F(METHOD) | F(SECS),
        "the flush was stopped, because its dataset leaves the cache or the run ends"},
    [SCR_LOG_FETCH_START] = {"FETCH_START", DATASET | WAY, "a fetch begins"},
    [SCR_LOG_FETCH_COMPLETE] = {"FETCH_COMPLETE", DATASET | WAY | DONE,
        "the dataset is complete and protected in the cache"},
    [SCR_LOG_FETCH_FAILED] = {"FETCH_FAILED", DATASET | WAY | F(SECS) | F(NOTE), "the fetch failed"},
    [SCR_LOG_REBUILD_START] = {"REBUILD_START", DATASET,
        "a dataset of an earlier run is found in the cache"},
    [SCR_LOG_DISTRIBUTE_COMPLETE] = {"DISTRIBUTE_COMPLETE", DATASET | WAY | DONE,
        "files of it were brought to the processes that own them"},
    [SCR_LOG_REBUILD_COMPLETE] = {"REBUILD_COMPLETE", DATASET | WAY | DONE | F(REBUILT),
        "it is complete again; files and bytes are those that were rebuilt, and may be 0"},
    [SCR_LOG_REBUILD_FAILED] = {"REBUILD_FAILED", DATASET | F(SECS) | F(NOTE),
        "it is not, or is not used in this run"},
    [SCR_LOG_RESTART_OFFERED] = {"RESTART_OFFERED", DATASET, "`SCR_Have_restart` offers a checkpoint"},
    [SCR_LOG_RESTART_START] = {"RESTART_START", DATASET, "`SCR_Start_restart`"},
    [SCR_LOG_RESTART_COMPLETE] = {"RESTART_COMPLETE", DATASET | F(SECS),
        "the application goes on from it"},
    [SCR_LOG_RESTART_FAILED] = {"RESTART_FAILED", DATASET | F(SECS) | F(CODE) | F(NOTE),
        "the application could not read it"},
    [SCR_LOG_HALT] = {"HALT", EVERY | F(NOTE), "the run should end; once for each reason"},
    [SCR_LOG_NODE_LOST] = {"NODE_LOST", EVERY | F(NODE) | F(NOTE),
        "a node failed; `scr_run` and `scr_list_down_nodes --log` log it, and job scripts may"},
    [SCR_LOG_LAUNCH_START] = {"LAUNCH_START", EVERY | F(RANKS) | F(NODES) | F(NOTE),
        "`scr_run` starts the program; the note has the nodes, ranks is 0 where the launcher decides it"},
    [SCR_LOG_LAUNCH_END] = {"LAUNCH_END", EVERY | F(SECS) | F(CODE) | F(NOTE),
        "it has ended, with that exit code; the note says why"},
    [SCR_LOG_SCAVENGE_START] = {"SCAVENGE_START", DATASET | F(TO) | F(NODES),
        "`scr_scavenge` starts to copy from the caches of that number of nodes"},
    [SCR_LOG_SCAVENGE_COMPLETE] = {"SCAVENGE_COMPLETE", DATASET | F(TO) | F(SECS) | F(NOTE),
        "all files are saved, or what is needed to rebuild those that are missing"},
    [SCR_LOG_SCAVENGE_FAILED] = {"SCAVENGE_FAILED", DATASET | F(TO) | F(SECS) | F(NOTE),
        "some files are missing, and maybe cannot be rebuilt"},
    [SCR_LOG_SCRIPT] = {"SCRIPT", DATASET | F(JOBNAME) | F(SECS) | F(NOTE),
        "an event of a job script, under a name of its own, which is at the beginning of the note"},
    [SCR_LOG_ERROR] = {"ERROR", EVERY | F(CODE) | F(NOTE),
        "another error, or a failure that only one process saw; at most 100 in a run, 10 of each process but the first"},
};
/* clang-format on */

int scr_log_find(const char *name, scr_log_kind *kind)
{
    for (int i = 0; i < SCR_LOG_KINDS; i++)
        if (strcmp(scr_log_types[i].name, name) == 0) {
            *kind = (scr_log_kind)i;
            return 0;
        }
    return -ENOENT;
}
