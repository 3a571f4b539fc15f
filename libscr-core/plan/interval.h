/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_INTERVAL_H
#define SCR_INTERVAL_H

/* How long to compute between two checkpoints: long enough that checkpoints cost little,
 * short enough that a failure loses little. Pure functions; all times are in seconds. */

/* The first-order optimum sqrt(2 C M) for checkpoints that cost C and failures that come
 * every M on average. J. W. Young, A first order approximation to the optimum checkpoint
 * interval, Communications of the ACM 17 (1974). */
double scr_interval_young(double cost, double mtbf);

/* The higher-order estimate, which is the one in use: for C < 2 M
 *
 *     sqrt(2 C M) (1 + 1/3 sqrt(C / 2M) + 1/9 (C / 2M)) - C
 *
 * and M otherwise. J. T. Daly, A higher order estimate of the optimum checkpoint interval
 * for restart dumps, Future Generation Computer Systems 22 (2006), equation 37. 0 unless
 * both are above 0. */
double scr_interval_daly(double cost, double mtbf);

/* 1 when the two differ by so much (a fifth) that people want to know. */
int scr_interval_differs(double a, double b);

/* The mean of count values when value is the count-th and mean that of those before; of
 * more than 20 the last ones weigh most, so that it follows a program that grows. */
double scr_interval_mean(double mean, int count, double value);

#endif
