/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether it is time for a checkpoint: what is measured, learned and configured, for the
 * decision of scr_decide_checkpoint. Rank 0 decides. Times are taken from a clock that
 * nobody sets; MPI_Wtime of MPICH is the clock of the day. */
#include "ops/stop.h"

#include "plan/interval.h"
#include <errno.h>
#include <stdio.h>
#include <time.h>

double scr_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void scr_advise_begin(struct scr *scr)
{
    char err[SCR_ERR_TEXT] = "";
    struct timespec now;
    scr->started = scr->last_ckpt = scr_clock();
    if (scr->rank != 0 || !scr->set.interval_auto) return;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t micro = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    int rc =
        scr_history_read(scr->prefix_fd, scr_events_run(scr), micro, &scr->history, err);
    if (rc && rc != -ENOENT)
        scr_say(scr, 0, "warning: nothing is learned from the log of earlier runs: %s",
                err);
}

void scr_advise_cost(struct scr *scr)
{
    double now = scr_clock();
    scr->last_ckpt = now;
    scr->ckpt_count++;
    scr->ckpt_cost =
        scr_interval_mean(scr->ckpt_cost, scr->ckpt_count, now - scr->output_called);
}

/* Mean seconds of a checkpoint; 0: nobody knows. */
static double cost_of(const struct scr *scr)
{
    if (scr->ckpt_count > 0) return scr->ckpt_cost;
    return scr->history.ckpts > 0 ? scr->history.ckpt_seconds / scr->history.ckpts : 0;
}

/* Where the mean time between failures is known from. */
static void source_of(const struct scr *scr, char text[80])
{
    if (scr->set.mtbf > 0)
        snprintf(text, 80, "SCR_MTBF");
    else if (scr->history.runs > 0)
        snprintf(text, 80, "%d of %d runs in .scr/log were interrupted",
                 scr->history.interrupted, scr->history.runs);
    else
        snprintf(text, 80, "assumed: no earlier run is in .scr/log");
}

/* Seconds of computing between two checkpoints for SCR_CHECKPOINT_INTERVAL=auto. */
static double optimum(struct scr *scr, double now)
{
    char source[80];
    double cost = cost_of(scr), mtbf = (double)scr->set.mtbf;
    if (cost <= 0) return 0;
    if (scr->set.mtbf <= 0)
        mtbf = scr_history_mtbf(&scr->history, scr->nodes, now - scr->started);
    double interval = scr_interval_daly(cost, mtbf);
    if (scr_interval_differs(interval, scr->interval_told)) {
        scr->interval_told = interval;
        source_of(scr, source);
        scr_say(scr, 1,
                "a checkpoint every %.3g s is best: one takes %.3g s, and a failure is "
                "expected every %.3g s (%s)",
                interval, cost, mtbf, source);
    }
    return interval;
}

int scr_advise(struct scr *scr, int halt)
{
    double now = scr_clock();
    scr_advice advice = {.halt = halt,
                         .calls = scr->need_calls,
                         .interval = scr->set.interval,
                         .since_last = now - scr->last_ckpt,
                         .seconds = (double)scr->set.seconds,
                         .cost = scr->ckpt_cost,
                         .overhead = scr->set.overhead,
                         .automatic = scr->set.interval_auto};
    if (advice.automatic) advice.optimum = optimum(scr, now);
    return scr_decide_checkpoint(&advice);
}
