/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_POINTS_H
#define SIMULATION_POINTS_H

/* Many points, each judged in its own process. The points of a kind share their
 * beginning: it is played once, and the process forks where the points diverge. The text
 * of a point consists of its kind and, in brackets, the actions in it; with this text the
 * point can be played alone.
 *
 * Options of such a program:
 *
 *   --part K/N      only each N-th point, from the K-th on; all parts together are
 * complete
 *   --jobs N        number of points in parallel
 *   --only TEXT     only kinds whose names contain TEXT
 *   --point TEXT    only that point, with the output of SCR
 *   --until-failure
 *
 * Everything is deterministic: the same options play the same points. */

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sim
{

class Points
{
  public:
    /* False: the options are wrong, and the usage was printed. other: takes the value of
     * the option other_name, which only this program has. */
    static bool read_options(int argc, char **argv, const char *other_name = nullptr,
                             const std::function<void(const char *)> &other = nullptr);

    /* Plays a kind and prints its line. Each part plays in its own process, on a machine
     * of that number of nodes, and calls the functions below. */
    static void kind(const std::string &name, int nodes,
                     const std::vector<std::function<void()>> &parts);
    static int end(); /* prints the last line; returns the exit code */

    /* Whether the options ask for the point with this number and these actions. every: if
     * not 0, one of that number of points instead of --part. With --point: whether what
     * leads to that point. */
    static bool is_chosen(uint64_t number, const std::string &what, uint64_t every = 0);
    static bool leads(const std::string &what); /* whether what leads to the point of
                                                 * --point */

    /* Forks. True in the new process, which plays a point or the beginning of several
     * points. alone: the old process waits for its end. */
    static bool is_child(const std::string &what, bool alone = false);
    static void count();      /* this process judges a point */
    static void count_same(); /* it does not, since another process judges the same
                               * state */
    static bool is_new(uint64_t hash); /* for the first time in any process */
    static void wait();                /* for all processes that were forked here */

    [[noreturn]] static void fail(const std::string &why);
    [[noreturn]] static void pass();
};

} // namespace sim

#endif
