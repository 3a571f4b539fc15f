/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_TRIALS_H
#define SIMULATION_TRIALS_H

/* Many worlds, each in a process of its own. */

#include "story.h"

#include <functional>
#include <string>

namespace sim
{

/* What a world came to. */
struct Outcome {
    uint64_t seed;
    bool good;
    std::string text; /* one line where it failed */
};

class Trials
{
  public:
    /* play: in a child; prints a line where the world fails, and does not return. */
    Trials(int jobs, std::function<void(uint64_t, const Part &)> play)
        : jobs(jobs), play(std::move(play))
    {
    }

    /* Seeds from to to - 1, in any order; report may return false to start no more. */
    void run(uint64_t from, uint64_t to,
             const std::function<bool(const Outcome &)> &report) const;

    /* Seeds up to to - 1 of which the file does not say yet how they went. Returns the
     * number of failures in the file. */
    int campaign(const char *file, uint64_t to) const;

    /* Less and less of a world, as long as it fails for the same reason. */
    Part shrink(const Story &story, Part part) const;

    /* A part of one world. */
    Outcome one(uint64_t seed, const Part &part) const;

  private:
    bool is_same(uint64_t seed, const Part &part, const std::string &reason) const;

    const int jobs;
    const std::function<void(uint64_t, const Part &)> play;
};

} // namespace sim

#endif
