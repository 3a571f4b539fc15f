/* SPDX-License-Identifier: BSD-3-Clause */
/* What redundancy schemes promise; see schemes.h. */
#include "schemes.h"

#include <algorithm>
#include <numeric>

namespace sim
{

std::string Scheme::text() const
{
    return failures ? type + " " + std::to_string(failures) : type;
}

std::string Scheme::descriptor(int number, int interval) const
{
    return "CKPT=" + std::to_string(number) + " INTERVAL=" + std::to_string(interval) +
           " TYPE=" + type +
           (failures ? " SET_FAILURES=" + std::to_string(failures) : "");
}

std::vector<std::vector<int>> sets_of(const std::vector<int> &counts, int least)
{
    const int ranks = std::accumulate(counts.begin(), counts.end(), 0);
    const int count =
        std::max(ranks / least, *std::max_element(counts.begin(), counts.end()));
    std::vector<std::vector<int>> sets(static_cast<size_t>(count));
    for (int rank = 0; rank < ranks; rank++)
        sets[static_cast<size_t>(rank % count)].push_back(rank);
    return sets;
}

/* PARTNER: each member has a copy of its left neighbor's files. */
static bool has_lost_neighbors(const std::vector<int> &members, const std::set<int> &lost)
{
    for (size_t i = 0; i < members.size(); i++)
        if (lost.count(members[i]) && lost.count(members[(i + 1) % members.size()]))
            return true;
    return false;
}

bool covers(const Scheme &scheme, const std::vector<std::vector<int>> &sets,
            const std::set<int> &lost)
{
    const int most = scheme.type == "SINGLE" ? 0
                     : scheme.type == "XOR"  ? 1
                                             : scheme.failures;
    for (const std::vector<int> &members : sets) {
        const auto gone = std::count_if(members.begin(), members.end(),
                                        [&](int rank) { return lost.count(rank) > 0; });
        if (scheme.type == "PARTNER"
                ? has_lost_neighbors(members, lost)
                : gone > std::min<long>(most, static_cast<long>(members.size()) - 1))
            return false;
    }
    return true;
}

} // namespace sim
