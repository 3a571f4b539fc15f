/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_WORLD_H
#define SIMULATION_WORLD_H

/* Plays a story: starts runs on the machine as a launcher does, performs strikes, and
 * asks the judge. */

#include "engine.h"
#include "judge.h"
#include "story.h"

#include <string>

namespace sim
{

struct Verdict {
    bool good = true;
    std::string text;    /* the mistake */
    std::string printed; /* output of the product */
    std::string files;   /* files that remain on all disks */
    uint64_t trace = 0;
    uint64_t calls = 0; /* system calls */
    int struck = 0;     /* strikes that happened */
};

/* Called once per process, after prepare. Does not return: verdict gets the result, and
 * must end the process. */
[[noreturn]] void play(const Story &story, void (*verdict)(const Verdict &));

} // namespace sim

#endif
