/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_PROGRAM_H
#define SIMULATION_PROGRAM_H

#include "engine.h"
#include "judge.h"
#include "story.h"

namespace sim
{

/* The application of one run. */
struct Program {
    Judge *judge;
    const Story *story;
    const Run *what;
    int run;
    /* Of a second run beside that one: its job, and whether the first one has the caches.
     * It writes a checkpoint, or is refused if the job is the same. */
    std::string other_job;
    std::function<bool()> is_held;

    int main(Process &process) const; /* of each rank */
};

} // namespace sim

#endif
