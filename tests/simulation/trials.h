/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_TRIALS_H
#define SIMULATION_TRIALS_H

/* Many worlds, each in its own process. */

#include "story.h"

#include <functional>
#include <string>

namespace sim
{

/* The result of a world. */
struct Outcome {
    uint64_t seed;
    bool good;
    std::string text; /* one line if it failed */
};

class Trials
{
  public:
    /* play: called in a child process; prints a line if the world fails, and does not
     * return. */
    Trials(int jobs, std::function<void(uint64_t, const Part &)> play)
        : jobs(jobs), play(std::move(play))
    {
    }

    /* Plays the seeds from to to - 1, in any order; report returns false to start no
     * more. */
    void run(uint64_t from, uint64_t to,
             const std::function<bool(const Outcome &)> &report) const;

    /* Plays the seeds up to to - 1 whose results are not in the file yet. Returns the
     * number of failures in the file. */
    int campaign(const char *file, uint64_t to) const;

    /* Reduces a world while it fails for the same reason. */
    Part shrink(const Story &story, Part part) const;

    /* Plays a part of one world. */
    Outcome one(uint64_t seed, const Part &part) const;

  private:
    bool is_same(uint64_t seed, const Part &part, const std::string &reason) const;

    const int jobs;
    const std::function<void(uint64_t, const Part &)> play;
};

} // namespace sim

#endif
