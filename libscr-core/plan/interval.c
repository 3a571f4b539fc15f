/* SPDX-License-Identifier: BSD-3-Clause */
/* The optimum time between checkpoints; see plan/interval.h. */
#include "plan/interval.h"

#include <math.h>

double scr_interval_young(double cost, double mtbf)
{
    return cost > 0 && mtbf > 0 ? sqrt(2 * cost * mtbf) : 0;
}

double scr_interval_daly(double cost, double mtbf)
{
    if (!(cost > 0 && mtbf > 0)) return 0;
    if (cost >= 2 * mtbf) return mtbf;
    double x = cost / (2 * mtbf);
    return scr_interval_young(cost, mtbf) * (1 + sqrt(x) / 3 + x / 9) - cost;
}

int scr_interval_differs(double a, double b)
{
    return a > 1.2 * b || b > 1.2 * a;
}

double scr_interval_mean(double mean, int count, double value)
{
    enum { MOST = 20 };
    return mean + (value - mean) / (count < MOST ? count : MOST);
}
