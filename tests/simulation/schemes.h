/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_SCHEMES_H
#define SIMULATION_SCHEMES_H

/* What redundancy schemes promise, from first principles (docs/formats/redset.md). */

#include <set>
#include <string>
#include <vector>

namespace sim
{

struct Scheme {
    std::string type; /* SINGLE, PARTNER, XOR, RS */
    int failures = 0; /* RS: members of a set that may be lost */

    std::string text() const;
    /* For SCR_Config: of checkpoint number 0, 1, ..., with that interval. */
    std::string descriptor(int number, int interval) const;
};

/* The ranks of each set, if nodes have so many ranks and sets have at least that many
 * members: docs/decisions/0005-rank-placement-in-sets.md. */
std::vector<std::vector<int>> sets_of(const std::vector<int> &counts, int least);

/* Whether all can be given back when the files of these ranks are lost. */
bool covers(const Scheme &scheme, const std::vector<std::vector<int>> &sets,
            const std::set<int> &lost);

} // namespace sim

#endif
