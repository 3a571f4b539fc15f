/* SPDX-License-Identifier: BSD-3-Clause */
/* The SCR_* calls over one default context. Each call checks the state and then calls the
 * operation in ops/. */
#include "ops/context.h"

#include "api/context.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "config/config_file.h"
#include "ops/bring.h"
#include "ops/bring_parts.h"
#include "ops/listing.h"
#include "ops/mpi_check.h"
#include "ops/route.h"
#include "ops/stop.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether MPI is between MPI_Init and MPI_Finalize. */
static bool api_is_mpi_up(void)
{
    int up = 0, down = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    return up && !down;
}

/* Prints an error on one rank, even without a communicator. */
static void api_report(scr_message message, const char *text)
{
    struct scr *scr = scr_default();
    kvtree_error err;
    int rank = scr->report.rank;
    if (api_is_mpi_up() && scr_state_is_outside(scr->lifecycle.state) &&
        scr_mpi_check(&err) == 0)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    scr_say(&(scr_report){.rank = rank}, message, "%s", text);
}

/* Returns SCR_SUCCESS if the call is legal. Otherwise reports the reason on one rank. */
static int api_enter(scr_call call)
{
    struct scr *scr = scr_default();
    kvtree_error err;
    if (scr->lifecycle.disabled) return SCR_ERR_DISABLED;
    int rc = scr_lifecycle_check(scr->lifecycle.state, call, &err);
    /* SCR_Route_file and SCR_Route_file_part are local and need no MPI */
    if (!rc && !scr_state_is_outside(scr->lifecycle.state) &&
        call != SCR_CALL_ROUTE_FILE && call != SCR_CALL_ROUTE_FILE_PART &&
        !api_is_mpi_up())
        rc =
            err_set(&err, -EPERM, "%s: MPI is finalized; SCR_Finalize was missing before",
                    scr_call_name(call));
    if (!rc) return SCR_SUCCESS;
    if (scr->lifecycle.init_failed < 2) api_report(SCR_MSG_CALL_OUT_OF_ORDER, err.text);
    if (scr->lifecycle.init_failed) scr->lifecycle.init_failed = 2;
    return SCR_ERR_STATE;
}

/* Does the same for collective calls, which also check the progress of a background
 * flush. */
static int api_enter_collective(scr_call call)
{
    struct scr *scr = scr_default();
    int rc = api_enter(call);
    if (rc) return rc;
    scr->once.phase++;
    scr_flush_look(scr);
    return SCR_SUCCESS;
}

/* Ends a collective call. Returns rc. */
static int api_leave(int rc)
{
    struct scr *scr = scr_default();
    scr_call_end(scr);
    return rc;
}

/* ---- begin and end ---- */

int SCR_Init(void)
{
    return SCR_Init_comm(MPI_COMM_WORLD);
}

static int api_init_config(void)
{
    struct scr *scr = scr_default();
    if (scr->config.user) return 0;
    return scr_config_init(&scr->config);
}

/* Resets the context. Keeps the rank for messages: MPI may be finalized before the next
 * message. */
static void api_reset(scr_state state)
{
    struct scr *scr = scr_default();
    int rank = scr->report.rank;
    scr_config_done(&scr->config);
    memset(scr, 0, sizeof *scr);
    scr->report.rank = rank;
    scr->lifecycle.state = state;
}

/* Disables SCR if the program uses another MPI than SCR was built with, because no later
 * call may reach that MPI. */
static int api_check_mpi(void)
{
    struct scr *scr = scr_default();
    kvtree_error err;
    if (scr_mpi_check(&err) == 0) return SCR_SUCCESS;
    scr->lifecycle.disabled = 1;
    scr_say(&(scr_report){.rank = scr_mpi_launched_rank()}, SCR_MSG_MPI_DIFFERS,
            "SCR_Init: %s", err.text);
    return SCR_FAILURE;
}

int SCR_Init_comm(MPI_Comm comm)
{
    struct scr *scr = scr_default();
    kvtree_error err = {""};
    if (scr->lifecycle.disabled && (comm == MPI_COMM_NULL || !api_is_mpi_up()))
        return SCR_ERR_DISABLED;
    scr->lifecycle.disabled = 0;
    if (api_check_mpi() != SCR_SUCCESS) return SCR_FAILURE;
    int rc = api_enter(SCR_CALL_INIT);
    if (rc) return rc;
    scr->lifecycle.init_failed = 0;
    if (!api_is_mpi_up()) {
        int ended = 0;
        MPI_Finalized(&ended);
        api_report(SCR_MSG_CALL_OUT_OF_ORDER,
                   ended ? "SCR_Init: MPI is finalized already"
                         : "SCR_Init: MPI is not initialized; MPI_Init is missing");
        return SCR_ERR_STATE;
    }
    if (agree_possible(comm, &err) != 0) {
        err_wrap(&err, 0, "SCR_Init_comm: the communicator");
        api_report(SCR_MSG_CALL_ARGUMENT_INVALID, err.text);
        return SCR_ERR_ARGUMENT;
    }
    rc = scr_start(scr, comm, api_init_config());
    if (rc) {
        scr_release(scr);
        api_reset(SCR_STATE_UNINITIALIZED);
        scr->lifecycle.disabled = rc == SCR_ERR_DISABLED;
        scr->lifecycle.init_failed = !scr->lifecycle.disabled;
        return rc;
    }
    scr->lifecycle.state = SCR_STATE_IDLE;
    scr_finalize_watch(scr);
    scr_halt_exit(scr);
    return api_leave(SCR_SUCCESS);
}

/* Closes an output or restart that the application left open. */
static int api_close_open(void)
{
    struct scr *scr = scr_default();
    if (scr->lifecycle.state == SCR_STATE_OUTPUT) {
        scr_fail(&scr->report, SCR_MSG_CALL_OUT_OF_ORDER, SCR_ERR_STATE,
                 "SCR_Finalize: an output is open; SCR_Complete_output is missing");
        scr_output_complete(scr, 0);
        return SCR_ERR_STATE;
    }
    if (scr->lifecycle.state != SCR_STATE_RESTART) return SCR_SUCCESS;
    scr_restart_abandon(scr);
    return scr_fail(&scr->report, SCR_MSG_CALL_OUT_OF_ORDER, SCR_ERR_STATE,
                    "SCR_Finalize: a restart is open; SCR_Complete_restart is missing");
}

int SCR_Finalize(void)
{
    struct scr *scr = scr_default();
    int rc = api_enter(SCR_CALL_FINALIZE);
    if (rc) return rc;
    int open = api_close_open();
    rc = scr_finish(scr);
    scr_release(scr);
    api_reset(SCR_STATE_FINALIZED);
    return open ? open : rc;
}

int SCR_Abandon(void)
{
    struct scr *scr = scr_default();
    int rc = api_enter(SCR_CALL_ABANDON);
    if (rc) return rc;
    scr_say(&scr->report, SCR_MSG_RUN_ABANDONED,
            "SCR_Abandon: the run is abandoned; what is complete in the cache stays");
    scr_flush_forget(scr);
    scr_release(scr);
    api_reset(SCR_STATE_ABANDONED);
    return SCR_SUCCESS;
}

/* ---- configuration ---- */

const char *SCR_Config(const char *config)
{
    struct scr *scr = scr_default();
    kvtree_error err = {"SCR_Config: no memory"};
    if (!config || api_init_config() != 0) return NULL;
    if (scr_config_is_question(config)) return scr_query(scr, config);
    if (api_enter(SCR_CALL_CONFIG_SET) != SCR_SUCCESS) return NULL;
    int rc = scr_config_set(&scr->config, config, &err);
    if (rc) api_report(rc > 0 ? SCR_MSG_CONFIG_FORMER : SCR_MSG_CONFIG_MISTAKE, err.text);
    return NULL;
}

const char *SCR_Configf(const char *format, ...)
{
    char *config = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&config, format, args);
    va_end(args);
    if (n < 0) return NULL;
    const char *value = SCR_Config(config);
    free(config);
    return value;
}

/* ---- output ---- */

int SCR_Need_checkpoint(int *flag)
{
    struct scr *scr = scr_default();
    if (flag) *flag = 0;
    int rc = api_enter_collective(SCR_CALL_NEED_CHECKPOINT);
    if (rc) return rc;
    int need = 0, halt = 0;
    rc = scr_look(scr, &need, &halt);
    if (flag) *flag = need;
    return api_leave(rc);
}

static int api_start_output(scr_call call, const char *name, int flags)
{
    struct scr *scr = scr_default();
    double now = scr_clock();
    int rc = api_enter_collective(call);
    if (rc) return rc;
    scr->pace.output_called = now;
    return api_leave(scr_output_start(scr, name, flags));
}

int SCR_Start_output(const char *name, int flags)
{
    return api_start_output(SCR_CALL_START_OUTPUT, name, flags);
}

int SCR_Start_checkpoint(void)
{
    return api_start_output(SCR_CALL_START_CHECKPOINT, NULL, SCR_FLAG_CHECKPOINT);
}

/* Copies name, so that every caller of SCR_Route_file gets a usable name, also after an
 * error. */
static int api_copy_name(const char *name, char *file)
{
    if (strlen(name) >= SCR_MAX_FILENAME) return SCR_ERR_ARGUMENT;
    strcpy(file, name);
    return SCR_SUCCESS;
}

/* Refuses a name. Also works when SCR_Init was not called or failed. */
static int api_refuse_name(const char *name, scr_call call, const char *why)
{
    struct scr *scr = scr_default();
    const scr_report report = {.once = scr->report.once};
    scr_route_refused(scr, name ? name : "", why);
    return scr_fail_local(&report, SCR_MSG_ROUTE_REFUSED, SCR_ERR_ARGUMENT, "%s: %s",
                          scr_call_name(call), why);
}

int SCR_Route_file(const char *name, char *file)
{
    struct scr *scr = scr_default();
    if (!name || !file || !name[0] || api_copy_name(name, file) != SCR_SUCCESS) {
        if (file) file[0] = 0;
        return api_refuse_name(name, SCR_CALL_ROUTE_FILE,
                               "the name or the place for the path is missing, or the "
                               "name is too long");
    }
    int rc = api_enter(SCR_CALL_ROUTE_FILE);
    if (rc) return rc;
    if (scr->lifecycle.state == SCR_STATE_OUTPUT)
        return scr_route_output(scr, name, SCR_CALL_ROUTE_FILE, NULL, file);
    if (scr->lifecycle.state == SCR_STATE_RESTART)
        return scr_route_restart(scr, name, file);
    if (scr->lifecycle.state == SCR_STATE_IDLE) return scr_route_idle(scr, name, file);
    return SCR_SUCCESS;
}

int SCR_Route_file_part(const char *name, uint64_t offset, uint64_t length, char *file,
                        uint64_t *at)
{
    struct scr *scr = scr_default();
    const scr_part part = {offset, length};
    const bool fits = offset <= INT64_MAX && length <= INT64_MAX - offset;
    bool usable = name && file && name[0] && at;
    if (file) file[0] = 0;
    if (at) *at = offset;
    if (name && file && api_copy_name(name, file) != SCR_SUCCESS) usable = false;
    if (!usable)
        return api_refuse_name(
            name, SCR_CALL_ROUTE_FILE_PART,
            "the name or a place for a result is missing, or the name is too long");
    if (!fits) {
        kvtree_error why;
        err_set(&why, 0, "\"%.200s\" would end after 2^63 - 1 bytes", name);
        return api_refuse_name(name, SCR_CALL_ROUTE_FILE_PART, why.text);
    }
    int rc = api_enter(SCR_CALL_ROUTE_FILE_PART);
    const scr_state state = scr->lifecycle.state;
    if (rc || (state != SCR_STATE_OUTPUT && state != SCR_STATE_RESTART)) return rc;
    if (length == 0) {
        strcpy(file, "/dev/null");
        *at = 0;
        return SCR_SUCCESS;
    }
    return state == SCR_STATE_OUTPUT ? scr_route_output_part(scr, name, &part, file, at)
                                     : scr_route_restart_part(scr, name, &part, file, at);
}

static int api_complete_output(scr_call call, int valid)
{
    struct scr *scr = scr_default();
    int rc = api_enter_collective(call);
    if (rc) return rc;
    rc = scr_output_complete(scr, valid);
    int complete = rc == SCR_SUCCESS || rc == SCR_ERR_FLUSH;
    if (complete && scr->lifecycle.open.ckpt) scr_halt_exit(scr);
    return api_leave(rc);
}

int SCR_Complete_output(int valid)
{
    return api_complete_output(SCR_CALL_COMPLETE_OUTPUT, valid);
}

int SCR_Complete_checkpoint(int valid)
{
    return api_complete_output(SCR_CALL_COMPLETE_CHECKPOINT, valid);
}

/* ---- restart ---- */

int SCR_Have_restart(int *flag, char *name)
{
    struct scr *scr = scr_default();
    int have = 0;
    if (flag) *flag = 0;
    if (name) name[0] = 0;
    int rc = api_enter_collective(SCR_CALL_HAVE_RESTART);
    if (!rc) scr->lifecycle.have_called = 1;
    rc = rc ? rc : scr_restart_have(scr, &have, name);
    if (flag) *flag = have;
    return api_leave(rc);
}

int SCR_Start_restart(char *name)
{
    struct scr *scr = scr_default();
    int rc = api_enter_collective(SCR_CALL_START_RESTART);
    return rc ? rc : api_leave(scr_restart_start(scr, name));
}

int SCR_Complete_restart(int valid)
{
    struct scr *scr = scr_default();
    int rc = api_enter_collective(SCR_CALL_COMPLETE_RESTART);
    return rc ? rc : api_leave(scr_restart_complete(scr, valid));
}

int SCR_Fetch_files(int count, const char *const names[])
{
    struct scr *scr = scr_default();
    int rc = api_enter_collective(SCR_CALL_FETCH_FILES);
    return rc ? rc : api_leave(scr_bring(scr, count, names));
}

int SCR_Fetch_file_parts(int count, const char *const names[], const uint64_t offsets[],
                         const uint64_t lengths[])
{
    int rc = api_enter_collective(SCR_CALL_FETCH_FILE_PARTS);
    if (rc) return rc;
    return api_leave(scr_bring_parts(scr_default(), count, names, offsets, lengths));
}

int SCR_Dataset_ranks(int *ranks)
{
    struct scr *scr = scr_default();
    if (ranks) *ranks = 0;
    int rc = api_enter(SCR_CALL_DATASET_RANKS);
    if (!rc && ranks) *ranks = scr->lifecycle.open.ranks;
    return rc;
}

int SCR_Dataset_files(int rank, int *files)
{
    int count = 0, rc = api_enter(SCR_CALL_DATASET_FILES);
    rc = rc ? rc : scr_listing_count(scr_default(), rank, &count);
    if (files) *files = count;
    return rc;
}

int SCR_Dataset_file(int rank, int number, char *name, uint64_t *size)
{
    char path[SCR_MAX_FILENAME] = "";
    uint64_t bytes = 0;
    int rc = api_enter(SCR_CALL_DATASET_FILE);
    rc = rc ? rc : scr_listing_file(scr_default(), rank, number, path, &bytes);
    if (name) strcpy(name, rc ? "" : path);
    if (size) *size = bytes;
    return rc;
}

/* ---- control ---- */

int SCR_Should_exit(int *flag)
{
    struct scr *scr = scr_default();
    int halt = 0;
    if (flag) *flag = 0;
    int rc = api_enter_collective(SCR_CALL_SHOULD_EXIT);
    rc = rc ? rc : scr_look(scr, NULL, &halt);
    if (flag) *flag = halt;
    return api_leave(rc);
}

/* Checks that a name is given and is the same on every rank. Collective, agreed. */
static int api_check_name(const char *name, kvtree_error *err)
{
    struct scr *scr = scr_default();
    char first[SCR_NAME_SIZE] = "";
    int rc = 0;
    if (name && name[0])
        snprintf(first, sizeof first, "%s", name);
    else
        rc = err_set(err, -EINVAL, "no name given");
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, scr->job.world);
    if (!rc && strncmp(first, name, sizeof first - 1) != 0)
        rc = err_set(err, -EINVAL, "rank 0 gave name \"%.200s\", here it is \"%.200s\"",
                     first, name);
    return agree(scr->job.world, rc, err);
}

static int api_by_name(scr_call call, const char *name)
{
    struct scr *scr = scr_default();
    kvtree_error err = {""};
    int rc = api_enter_collective(call);
    if (rc) return rc;
    if (api_check_name(name, &err))
        return api_leave(scr_fail(&scr->report, SCR_MSG_CALL_ARGUMENT_INVALID,
                                  SCR_ERR_ARGUMENT, "%s: %s", scr_call_name(call),
                                  err.text));
    if (call == SCR_CALL_CURRENT) {
        rc = scr_manage_current(scr, name);
        if (!rc) scr->lifecycle.current_called = 1;
        return api_leave(rc);
    }
    return api_leave(scr_manage_delete(scr, name, call == SCR_CALL_DELETE));
}

int SCR_Current(const char *name)
{
    return api_by_name(SCR_CALL_CURRENT, name);
}

int SCR_Delete(const char *name)
{
    return api_by_name(SCR_CALL_DELETE, name);
}

int SCR_Drop(const char *name)
{
    return api_by_name(SCR_CALL_DROP, name);
}

/* ---- texts ---- */

char *SCR_Get_version(void)
{
    static char version[] = SCR_VERSION;
    return version;
}

const char *SCR_Strerror(int code)
{
    static const char *const texts[] = {
        [SCR_SUCCESS] = "success",
        [SCR_FAILURE] = "failure",
        [SCR_ERR_DISABLED] = "SCR is disabled (SCR_ENABLE=0)",
        [SCR_ERR_STATE] = "the call is not allowed in this state",
        [SCR_ERR_ARGUMENT] = "an argument is invalid",
        [SCR_ERR_CONFIG] = "the configuration is invalid",
        [SCR_ERR_CACHE] = "a control or cache directory cannot be used",
        [SCR_ERR_INVALID] = "a rank reported invalid files, or a file is missing",
        [SCR_ERR_REDUNDANCY] = "the files could not be protected",
        [SCR_ERR_FLUSH] = "the files could not be copied to the prefix directory",
        [SCR_ERR_NO_DATASET] = "there is no such dataset",
        [SCR_ERR_PREFIX] = "the prefix directory cannot be used",
    };
    if (code < 0 || code >= (int)(sizeof texts / sizeof *texts)) return "unknown code";
    return texts[code];
}
