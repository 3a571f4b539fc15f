/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_WORLD_H
#define SIMULATION_WORLD_H

/* Plays a story: starts runs on the machine as a launcher does, lets strikes fall, and
 * asks the judge. */

#include "engine.h"
#include "judge.h"
#include "story.h"

#include <string>

namespace sim
{

struct Verdict {
    bool good = true;
    std::string text;    /* what is wrong */
    std::string printed; /* by the product */
    std::string files;   /* that are left on all disks */
    uint64_t trace = 0;
    uint64_t calls = 0; /* system calls */
    int struck = 0;     /* strikes that fell */
};

/* Once in a process, after prepare. Does not return: verdict gets the result, and is to
 * end the process. */
[[noreturn]] void play(const Story &story, void (*verdict)(const Verdict &));

} // namespace sim

#endif
