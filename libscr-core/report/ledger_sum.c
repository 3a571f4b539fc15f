/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of a ledger; see ledger.h. */
#include "plan/cadence.h"
#include "report/ledger.h"
#include <math.h>
#include <stdlib.h>

static double ledger_seconds(int64_t from, int64_t to)
{
    return (double)(to - from) / 1e6;
}

double scr_ledger_waste(double interval, double cost, double mtbf)
{
    double cycle = interval + cost;
    return cycle > 0 ? fmin(1, cost / cycle + cycle / (2 * mtbf)) : 1;
}

static void ledger_count_runs(const scr_ledger *l, scr_ledger_sum *sum, double *ready)
{
    int64_t kinds[LEDGER_KINDS] = {0};
    for (int i = 0; i < l->run_count; i++) {
        const scr_ledger_run *run = &l->runs[i];
        double seconds = ledger_seconds(run->start, run->end);
        sum->total += seconds;
        for (int k = 0; k < LEDGER_KINDS; k++)
            kinds[k] += run->kinds[k];
        sum->checkpoints += run->checkpoints;
        sum->finished += run->how == LEDGER_FINISHED;
        sum->halted += run->how == LEDGER_HALTED;
        if (run->is_ready) *ready += seconds;
        /* a run that was not ready had no work to lose */
        sum->interrupted += run->is_ready && run->how == LEDGER_INTERRUPTED;
        if (run->how == LEDGER_INTERRUPTED && i + 1 < l->run_count &&
            run[1].start > run->end)
            sum->down += ledger_seconds(run->end, run[1].start);
    }
    for (int k = 0; k < LEDGER_KINDS; k++)
        sum->kinds[k] = ledger_seconds(0, kinds[k]);
    sum->total += sum->down;
}

scr_ledger_sum scr_ledger_add_up(const scr_ledger *l)
{
    double ready = 0;
    scr_ledger_sum sum = {.runs = l->run_count,
                          .efficiency = -1,
                          .cost = -1,
                          .interval = -1,
                          .mtbf = -1,
                          .best = -1,
                          .saved = -1};
    ledger_count_runs(l, &sum, &ready);
    if (sum.total > 0) sum.efficiency = sum.kinds[LEDGER_COMPUTE] / sum.total;
    if (l->costs) sum.cost = l->cost_sum / l->costs;
    if (l->computes) sum.interval = l->compute_sum / l->computes;
    if (sum.interrupted) sum.mtbf = ready / sum.interrupted;
    if (sum.cost > 0 && sum.mtbf > 0) sum.best = scr_cadence_daly(sum.cost, sum.mtbf);
    if (sum.best >= 0 && sum.interval >= 0)
        sum.saved = (sum.total - sum.down) *
                    fmax(0, scr_ledger_waste(sum.interval, sum.cost, sum.mtbf) -
                                scr_ledger_waste(sum.best, sum.cost, sum.mtbf));
    return sum;
}

static int ledger_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void scr_ledger_spread(scr_ledger_moves *m, double *least, double *median, double *most)
{
    int n = m->rate_count;
    qsort(m->rates, (size_t)n, sizeof *m->rates, ledger_compare);
    *least = m->rates[0];
    *most = m->rates[n - 1];
    *median = n % 2 ? m->rates[n / 2] : (m->rates[n / 2 - 1] + m->rates[n / 2]) / 2;
}
