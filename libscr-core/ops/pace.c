/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a checkpoint is due: gathers measured, learned and configured facts for
 * scr_cadence_is_checkpoint_due. Rank 0 decides. Times are from a monotonic clock;
 * MPI_Wtime of MPICH is the time of day. */
#include "ops/stop.h"

#include "plan/cadence.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void scr_advise_begin(struct scr *scr)
{
    kvtree_error err = {""};
    struct timespec now;
    scr->pace.started = scr->pace.last_ckpt = scr_clock();
    if (scr->job.rank != 0 || !scr->set.interval_auto) return;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t micro = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    int rc = scr_history_read(scr->prefix.fd, scr_events_run(&scr->report), micro,
                              &scr->pace.history, &err);
    if (rc && rc != -ENOENT)
        scr_say(&scr->report, SCR_MSG_LOG_HISTORY_UNREADABLE,
                "the log of earlier runs could not be read: %s", err.text);
}

void scr_advise_cost(struct scr *scr)
{
    double now = scr_clock();
    scr->pace.last_ckpt = now;
    scr->pace.ckpt_count++;
    scr->pace.ckpt_cost = scr_cadence_mean(scr->pace.ckpt_cost, scr->pace.ckpt_count,
                                           now - scr->pace.output_called);
}

/* Mean seconds of a checkpoint; 0: unknown. */
static double pace_cost(const scr_pace *pace)
{
    if (pace->ckpt_count > 0) return pace->ckpt_cost;
    return pace->history.ckpts > 0 ? pace->history.ckpt_seconds / pace->history.ckpts : 0;
}

/* The source of the mean time between failures. */
static void pace_describe_source(const struct scr *scr, char text[80])
{
    if (scr->set.mtbf > 0)
        snprintf(text, 80, "SCR_MTBF");
    else if (scr->pace.history.runs > 0)
        snprintf(text, 80, "%d of %d runs in .scr/log were interrupted",
                 scr->pace.history.interrupted, scr->pace.history.runs);
    else
        snprintf(text, 80, "assumed: no earlier run is in .scr/log");
}

/* Best number of seconds between two checkpoints for SCR_CHECKPOINT_INTERVAL=auto. */
static double pace_optimum(struct scr *scr, double now)
{
    char source[80];
    double cost = pace_cost(&scr->pace), mtbf = (double)scr->set.mtbf;
    if (cost <= 0) return 0;
    if (scr->set.mtbf <= 0)
        mtbf =
            scr_history_mtbf(&scr->pace.history, scr->job.nodes, now - scr->pace.started);
    double interval = scr_cadence_daly(cost, mtbf);
    if (scr_cadence_differs(interval, scr->pace.interval_told)) {
        scr->pace.interval_told = interval;
        pace_describe_source(scr, source);
        scr_say(&scr->report, SCR_MSG_CHECKPOINT_INTERVAL_CHOSEN,
                "the best interval between checkpoints is %.3g s: one takes %.3g s, and "
                "a failure is expected every %.3g s (%s)",
                interval, cost, mtbf, source);
    }
    return interval;
}

/* Reports that no checkpoint will ever be due; at the first call, because a program that
 * is killed can report nothing later. */
static void pace_report_no_advice(const struct scr *scr)
{
    const struct scr_settings *set = &scr->set;
    if (scr->pace.need_calls > 1 || set->interval || set->interval_auto || set->seconds ||
        set->overhead > 0)
        return;
    scr_say(&scr->report, SCR_MSG_CHECKPOINT_NEVER_DUE,
            "SCR_Need_checkpoint asks for no checkpoint before the run has to stop; set "
            "SCR_CHECKPOINT_INTERVAL=auto, or a number (1: at each call, as in SCR 3)");
}

/* On rank 0: whether a checkpoint is due. */
static bool pace_is_time(struct scr *scr, bool halt)
{
    double now = scr_clock();
    scr->pace.need_calls++;
    pace_report_no_advice(scr);
    scr_cadence advice = {.halt = halt,
                          .calls = scr->pace.need_calls,
                          .interval = scr->set.interval,
                          .since_last = now - scr->pace.last_ckpt,
                          .seconds = (double)scr->set.seconds,
                          .cost = scr->pace.ckpt_cost,
                          .overhead = scr->set.overhead,
                          .automatic = scr->set.interval_auto};
    if (advice.automatic) advice.optimum = pace_optimum(scr, now);
    return scr_cadence_is_checkpoint_due(&advice) != 0;
}

/* Enters a signal that rank from has seen, on all ranks. */
static void pace_enter_signal(struct scr *scr, int number, int from)
{
    char node[SCR_NODE_SIZE];
    memcpy(node, scr->job.node_name, sizeof node);
    if (from != 0) MPI_Bcast(node, sizeof node, MPI_CHAR, from, scr->job.world);
    scr_halt_run_signal(&scr->halt, number, from, node);
}

int scr_look(struct scr *scr, int *need, int *halt)
{
    enum { SIGNAL, HALT, NEED, VOTES, NUMBERS = 128 };
    const scr_job *job = &scr->job;
    int64_t votes[VOTES] = {0};
    int seen = scr->halt.signal ? 0 : scr_signal_seen();
    /* the maximum is the vote of the lowest rank */
    if (seen) votes[SIGNAL] = (int64_t)(job->ranks - job->rank) * NUMBERS + seen;
    if (job->rank == 0) {
        votes[HALT] = scr_halt_run_check(&scr->halt) || scr->halt.signal;
        votes[NEED] = need && pace_is_time(scr, votes[HALT] != 0);
    }
    if (MPI_Allreduce(MPI_IN_PLACE, votes, VOTES, MPI_INT64_T, MPI_MAX, job->world) !=
        MPI_SUCCESS)
        return SCR_FAILURE;
    int64_t signal = votes[SIGNAL];
    if (signal)
        pace_enter_signal(scr, (int)(signal % NUMBERS),
                          job->ranks - (int)(signal / NUMBERS));
    *halt = votes[HALT] || signal;
    if (need) *need = votes[NEED] || signal;
    return SCR_SUCCESS;
}
