/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_STORY_H
#define SIMULATION_STORY_H

/* What happens in a world, all drawn from its seed before it begins: the machine, the
 * configuration of SCR, and a list of runs with what the application does and what
 * strikes. A story can be printed, and made smaller. */

#include "disk.h"
#include "random.h"

#include <string>
#include <vector>

namespace sim
{

/* One dataset that the application writes. */
struct Step {
    bool checkpoint = true, output = false;
    int files = 1;      /* of each rank */
    size_t size = 1000; /* bytes of a file, plus a few that depend on the rank */
    bool bad = false;   /* one rank says that its files are not valid */
    double compute = 1; /* seconds before it */
};

enum class Blow {
    KILL_RANK,  /* SIGKILL of one rank */
    LOSE_NODE,  /* a node with all that is on its disk */
    CRASH_NODE, /* a node loses power; it is back in the next run, its disk as it was
                   found */
    KILL_RUN,   /* all ranks at once, as at the end of an allocation */
    ERROR,      /* a system call fails */
    SHORT,      /* a transfer moves half of its bytes */
    CLOCK       /* the clock of a node jumps */
};

struct Strike {
    Blow blow;
    int rank;      /* of which process the calls are counted */
    uint64_t at;   /* its how many-th system call in this run */
    int error = 0; /* of ERROR: errno */
    bool stays =
        false; /* of ERROR: all later calls on this node that change something, too */
    double seconds = 0; /* of CLOCK */
};

struct Run {
    int nodes; /* of those that are up */
    std::vector<Step> steps;
    std::vector<Strike> strikes;
    bool finalize = true;
};

struct Story {
    uint64_t seed;
    int nodes, ranks_per_node;
    Crash crash; /* kind of file systems */
    std::vector<std::pair<std::string, std::string>> parameters; /* of SCR */
    std::vector<Run> runs;

    /* What the judge has to know of parameters. */
    int tolerates;     /* nodes that may be lost at once */
    bool flushes_each; /* SCR_Complete_output returns after the flush of a checkpoint */
    bool flushes;      /* SCR_Finalize flushes the newest checkpoint */
    int retention;     /* SCR_PREFIX_SIZE; 0: all stay */
    bool bypass;
    bool leaves_early; /* the cache has room for one dataset, which leaves it for the next
                        */

    std::string text() const;
};

Story draw(uint64_t seed);

} // namespace sim

#endif
