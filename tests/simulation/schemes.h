/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_SCHEMES_H
#define SIMULATION_SCHEMES_H

/* The guarantees of redundancy schemes, from first principles
 * (docs/formats/redset.md). */

#include <set>
#include <string>
#include <vector>

namespace sim
{

struct Scheme {
    std::string type; /* SINGLE, PARTNER, XOR, RS */
    int failures = 0; /* RS: tolerated losses per set */

    std::string text() const;
    /* Text for SCR_Config: for checkpoint number 0, 1, ..., with that interval. */
    std::string descriptor(int number, int interval) const;
};

/* The ranks of each set. counts: ranks per node; least: minimum members of a set. See
 * docs/decisions/0005-rank-placement-in-sets.md. */
std::vector<std::vector<int>> sets_of(const std::vector<int> &counts, int least);

/* Whether all files can be restored when the files of these ranks are lost. */
bool covers(const Scheme &scheme, const std::vector<std::vector<int>> &sets,
            const std::set<int> &lost);

} // namespace sim

#endif
