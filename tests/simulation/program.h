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

    int main(Process &process) const; /* of each rank */
};

} // namespace sim

#endif
