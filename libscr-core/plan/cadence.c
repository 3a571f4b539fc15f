/* SPDX-License-Identifier: BSD-3-Clause */
/* When to checkpoint; see plan/cadence.h. */
#include "plan/cadence.h"

#include <math.h>

bool scr_cadence_is_checkpoint_due(const scr_cadence *f)
{
    if (f->halt) return true;
    if (f->interval > 0 && f->calls > 0 && f->calls % f->interval == 0) return true;
    if (f->seconds > 0 && f->since_last >= f->seconds) return true;
    if (f->automatic && f->since_last >= f->optimum) return true;
    return f->overhead > 0 &&
           (f->cost <= 0 || f->cost * 100 <= f->overhead * (f->since_last + f->cost));
}

bool scr_cadence_is_flush_due(int n, int every)
{
    return every > 0 && n % every == 0;
}

double scr_cadence_young(double cost, double mtbf)
{
    return cost > 0 && mtbf > 0 ? sqrt(2 * cost * mtbf) : 0;
}

double scr_cadence_daly(double cost, double mtbf)
{
    if (!(cost > 0 && mtbf > 0)) return 0;
    if (cost >= 2 * mtbf) return mtbf;
    double x = cost / (2 * mtbf);
    return scr_cadence_young(cost, mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost;
}

bool scr_cadence_differs(double a, double b)
{
    return a > 1.2 * b || b > 1.2 * a;
}

double scr_cadence_mean(double mean, int count, double value)
{
    enum { MOST = 20 };
    return mean + (value - mean) / (count < MOST ? count : MOST);
}
