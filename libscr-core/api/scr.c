/* SPDX-License-Identifier: BSD-3-Clause */
/* The SCR_* calls: a face over one default context. Each checks the state, then hands
 * over. */
#include "ops/context.h"

#include "common/agree_mpi.h"
#include "common/errtext.h"
#include "config/config_file.h"
#include "ops/route.h"
#include "ops/stop.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The default context: the only variable of the library. */
static struct scr default_scr;

static struct scr *context(void)
{
    return &default_scr;
}

/* 1 between MPI_Init and MPI_Finalize. */
static int mpi_is_up(void)
{
    int up = 0, down = 0;
    MPI_Initialized(&up);
    MPI_Finalized(&down);
    return up && !down;
}

/* Prints an error on one rank, also while there is no communicator. */
static void complain(const struct scr *scr, const char *text)
{
    int rank = scr->report.rank;
    if (mpi_is_up() && scr->lifecycle.state == SCR_STATE_UNINITIALISED)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char line[SCR_ERR_TEXT + 16];
    snprintf(line, sizeof line, "error: %s", text);
    if (rank == 0) scr_print_line(line);
}

/* SCR_SUCCESS when the call may be made; otherwise says why not (on one rank). */
static int enter(struct scr *scr, scr_call call)
{
    char err[SCR_ERR_TEXT];
    if (scr->lifecycle.disabled) return SCR_ERR_DISABLED;
    int rc = scr_state_check(scr->lifecycle.state, call, err);
    /* SCR_Route_file is local: it needs no MPI */
    if (!rc && scr->lifecycle.state != SCR_STATE_UNINITIALISED &&
        call != SCR_CALL_ROUTE_FILE && !mpi_is_up())
        rc = err_set(err, -EPERM, "%s: MPI is finalised; SCR_Finalize was missing before",
                     scr_call_name(call));
    if (!rc) return SCR_SUCCESS;
    if (scr->lifecycle.init_failed < 2) complain(scr, err);
    if (scr->lifecycle.init_failed) scr->lifecycle.init_failed = 2;
    return SCR_ERR_STATE;
}

/* The same for calls that all ranks make together: a good time to see how the flush in
 * the background fares. */
static int enter_together(struct scr *scr, scr_call call)
{
    int rc = enter(scr, call);
    if (rc == SCR_SUCCESS) scr_flush_look(scr);
    return rc;
}

/* ---- begin and end ---- */

int SCR_Init(void)
{
    return SCR_Init_comm(MPI_COMM_WORLD);
}

static int ready_config(struct scr *scr)
{
    if (scr->config.user) return 0;
    return scr_config_init(&scr->config);
}

/* Back to the state before SCR_Init. The rank stays for messages: MPI, which knows it,
 * may end before the next one. */
static void forget(struct scr *scr)
{
    int rank = scr->report.rank;
    scr_config_done(&scr->config);
    memset(scr, 0, sizeof *scr);
    scr->report.rank = rank;
}

int SCR_Init_comm(MPI_Comm comm)
{
    struct scr *scr = context();
    char err[SCR_ERR_TEXT] = "";
    if (scr->lifecycle.disabled && (comm == MPI_COMM_NULL || !mpi_is_up()))
        return SCR_ERR_DISABLED;
    scr->lifecycle.disabled = 0;
    int rc = enter(scr, SCR_CALL_INIT);
    if (rc) return rc;
    scr->lifecycle.init_failed = 0;
    if (!mpi_is_up()) {
        int ended = 0;
        MPI_Finalized(&ended);
        complain(scr, ended ? "SCR_Init: MPI is finalised already"
                            : "SCR_Init: MPI is not initialised; MPI_Init is missing");
        return SCR_ERR_STATE;
    }
    if (agree_possible(comm, err) != 0) {
        err_wrap(err, 0, "SCR_Init_comm: the communicator");
        complain(scr, err);
        return SCR_ERR_ARGUMENT;
    }
    rc = scr_start(scr, comm, ready_config(scr));
    if (rc) {
        scr_release(scr);
        forget(scr);
        scr->lifecycle.disabled = rc == SCR_ERR_DISABLED;
        scr->lifecycle.init_failed = !scr->lifecycle.disabled;
        return rc;
    }
    scr->lifecycle.state = SCR_STATE_IDLE;
    scr_finalize_watch(scr);
    scr_halt_exit(scr);
    return SCR_SUCCESS;
}

/* Closes what the application left open. */
static int close_open(struct scr *scr)
{
    if (scr->lifecycle.state == SCR_STATE_OUTPUT) {
        scr_fail(&scr->report, SCR_ERR_STATE,
                 "SCR_Finalize: an output is open; SCR_Complete_output is missing");
        scr_output_complete(scr, 0);
        return SCR_ERR_STATE;
    }
    if (scr->lifecycle.state != SCR_STATE_RESTART) return SCR_SUCCESS;
    scr_restart_abandon(scr);
    return scr_fail(&scr->report, SCR_ERR_STATE,
                    "SCR_Finalize: a restart is open; SCR_Complete_restart is missing");
}

int SCR_Finalize(void)
{
    struct scr *scr = context();
    int rc = enter(scr, SCR_CALL_FINALIZE);
    if (rc) return rc;
    int open = close_open(scr);
    rc = scr_finish(scr);
    scr_release(scr);
    forget(scr);
    return open ? open : rc;
}

/* ---- configuration ---- */

const char *SCR_Config(const char *config)
{
    struct scr *scr = context();
    char err[SCR_ERR_TEXT] = "SCR_Config: no memory";
    if (!config || ready_config(scr) != 0) return NULL;
    if (scr_config_is_question(config)) return scr_query(scr, config);
    if (enter(scr, SCR_CALL_CONFIG_SET) != SCR_SUCCESS) return NULL;
    if (scr_config_set(&scr->config, config, err) != 0) complain(scr, err);
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
    struct scr *scr = context();
    if (flag) *flag = 0;
    int rc = enter_together(scr, SCR_CALL_NEED_CHECKPOINT);
    if (rc) return rc;
    int need = 0, halt = 0;
    scr->pace.need_calls++;
    rc = scr_look(scr, &need, &halt);
    if (need) scr->pace.need_given = 1;
    if (flag) *flag = need;
    return rc;
}

int SCR_Start_output(const char *name, int flags)
{
    struct scr *scr = context();
    double now = scr_clock();
    int rc = enter_together(scr, SCR_CALL_START_OUTPUT);
    if (rc) return rc;
    scr->pace.output_called = now;
    return scr_output_start(scr, name, flags);
}

/* What every caller of SCR_Route_file gets, whatever happens: a name that can be used. */
static int copy_name(const char *name, char *file)
{
    if (strlen(name) >= SCR_MAX_FILENAME) return SCR_ERR_ARGUMENT;
    strcpy(file, name);
    return SCR_SUCCESS;
}

int SCR_Route_file(const char *name, char *file)
{
    struct scr *scr = context();
    if (!name || !file || !name[0] || copy_name(name, file) != SCR_SUCCESS) {
        if (file) file[0] = 0;
        scr_route_refused(scr, name ? name : "");
        scr_print_line("error: SCR_Route_file: a name is missing or too long");
        return SCR_ERR_ARGUMENT;
    }
    int rc = enter(scr, SCR_CALL_ROUTE_FILE);
    if (rc) return rc;
    if (scr->lifecycle.state == SCR_STATE_OUTPUT)
        return scr_route_output(scr, name, file);
    if (scr->lifecycle.state == SCR_STATE_RESTART)
        return scr_route_restart(scr, name, file);
    if (scr->lifecycle.state == SCR_STATE_IDLE) return scr_route_idle(scr, name, file);
    return SCR_SUCCESS;
}

int SCR_Complete_output(int valid)
{
    struct scr *scr = context();
    int rc = enter_together(scr, SCR_CALL_COMPLETE_OUTPUT);
    if (rc) return rc;
    rc = scr_output_complete(scr, valid);
    int complete = rc == SCR_SUCCESS || rc == SCR_ERR_FLUSH;
    if (complete && scr->lifecycle.open.ckpt) scr_halt_exit(scr);
    return rc;
}

int SCR_Start_checkpoint(void)
{
    return SCR_Start_output(NULL, SCR_FLAG_CHECKPOINT);
}

int SCR_Complete_checkpoint(int valid)
{
    return SCR_Complete_output(valid);
}

/* ---- restart ---- */

int SCR_Have_restart(int *flag, char *name)
{
    struct scr *scr = context();
    int have = 0;
    if (flag) *flag = 0;
    if (name) name[0] = 0;
    int rc = enter_together(scr, SCR_CALL_HAVE_RESTART);
    if (!rc) scr->lifecycle.have_called = 1;
    rc = rc ? rc : scr_restart_have(scr, &have, name);
    if (flag) *flag = have;
    return rc;
}

int SCR_Start_restart(char *name)
{
    struct scr *scr = context();
    int rc = enter_together(scr, SCR_CALL_START_RESTART);
    return rc ? rc : scr_restart_start(scr, name);
}

int SCR_Complete_restart(int valid)
{
    struct scr *scr = context();
    int rc = enter_together(scr, SCR_CALL_COMPLETE_RESTART);
    return rc ? rc : scr_restart_complete(scr, valid);
}

/* ---- control ---- */

int SCR_Should_exit(int *flag)
{
    struct scr *scr = context();
    int halt = 0;
    if (flag) *flag = 0;
    int rc = enter_together(scr, SCR_CALL_SHOULD_EXIT);
    rc = rc ? rc : scr_look(scr, NULL, &halt);
    if (flag) *flag = halt;
    return rc;
}

/* There must be a name, and the same on every rank. */
static int check_name(struct scr *scr, const char *name, char *err)
{
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

static int by_name(scr_call call, const char *name)
{
    struct scr *scr = context();
    char err[SCR_ERR_TEXT] = "";
    int rc = enter_together(scr, call);
    if (rc) return rc;
    if (check_name(scr, name, err))
        return scr_fail(&scr->report, SCR_ERR_ARGUMENT, "%s: %s", scr_call_name(call),
                        err);
    if (call == SCR_CALL_CURRENT) return scr_manage_current(scr, name);
    return scr_manage_delete(scr, name, call == SCR_CALL_DELETE);
}

int SCR_Current(const char *name)
{
    return by_name(SCR_CALL_CURRENT, name);
}

int SCR_Delete(const char *name)
{
    return by_name(SCR_CALL_DELETE, name);
}

int SCR_Drop(const char *name)
{
    return by_name(SCR_CALL_DROP, name);
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
        [SCR_ERR_STATE] = "the call does not belong here",
        [SCR_ERR_ARGUMENT] = "a parameter of the call is not usable",
        [SCR_ERR_CONFIG] = "the configuration has mistakes",
        [SCR_ERR_CACHE] = "a control or cache folder cannot be used",
        [SCR_ERR_INVALID] =
            "a rank says that its files are not valid, or a file is missing",
        [SCR_ERR_REDUNDANCY] = "the files could not be protected",
        [SCR_ERR_FLUSH] = "the files could not be copied to the prefix folder",
        [SCR_ERR_NO_DATASET] = "there is no such dataset",
        [SCR_ERR_PREFIX] = "the prefix folder cannot be used",
    };
    if (code < 0 || code >= (int)(sizeof texts / sizeof *texts)) return "unknown code";
    return texts[code];
}
