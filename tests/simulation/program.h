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
    /* For a second run beside the first one: its job, and whether the first run has the
     * caches. The second run writes a checkpoint, or is refused if the job is the
     * same. */
    std::string other_job;
    std::function<bool()> is_held;

    int main(Process &process) const; /* of each rank */
};

} // namespace sim

#endif
