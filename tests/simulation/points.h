/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_POINTS_H
#define SIMULATION_POINTS_H

/* Many points, each judged in a process of its own. A kind of points shares a beginning:
 * it is played once, and the process is forked where points part. The text of a point is
 * its kind and what is done in it, in brackets; with it the point is played alone.
 *
 * Options of such a program:
 *
 *   --part K/N      only each N-th point, from the K-th on: together, the parts are all
 *   --jobs N        that many points at a time
 *   --only TEXT     only kinds with that in their names
 *   --point TEXT    only that one, and what SCR printed
 *   --until-failure
 *
 * All of it is determined: the same options play the same points. */

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sim
{

class Points
{
  public:
    /* False: they are wrong, and the usage is printed. other: takes the value of the
     * option with this name, of the program alone. */
    static bool read_options(int argc, char **argv, const char *other_name = nullptr,
                             const std::function<void(const char *)> &other = nullptr);

    /* Plays a kind and prints its line. Each part plays in a process of its own, on a
     * machine of that number of nodes, and calls the functions below. */
    static void kind(const std::string &name, int nodes,
                     const std::vector<std::function<void()>> &parts);
    static int end(); /* prints the last line; returns the exit code */

    /* Whether options ask for the point with this number, in which that is done: for one
     * of every, if that is not 0, in place of --part; and with --point for those that it
     * begins with. */
    static bool is_chosen(uint64_t number, const std::string &what, uint64_t every = 0);
    static bool leads(const std::string &what); /* to what --point asks for */

    /* Forks. True in the new process, which plays a point, or the beginning of several.
     * alone: the old one waits until it has ended. */
    static bool is_child(const std::string &what, bool alone = false);
    static void count();      /* this process judges a point */
    static void count_same(); /* it does not: the same state is judged elsewhere */
    static bool is_new(uint64_t hash); /* for the first time among all processes */
    static void wait();                /* for all processes that were forked here */

    [[noreturn]] static void fail(const std::string &why);
    [[noreturn]] static void pass();
};

} // namespace sim

#endif
