/* SPDX-License-Identifier: BSD-3-Clause */
/* The guarantees of redundancy schemes; see schemes.h. */
#include "schemes.h"

#include <algorithm>

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

/* Lists the ranks of nodes of the largest size, then those of smaller nodes. */
static std::vector<int> largest_first(const std::vector<int> &counts, int largest)
{
    std::vector<int> full, others;
    int rank = 0;
    for (int count : counts)
        for (int i = 0; i < count; i++)
            (count == largest ? full : others).push_back(rank++);
    full.insert(full.end(), others.begin(), others.end());
    return full;
}

std::vector<std::vector<int>> sets_of(const std::vector<int> &counts, int least)
{
    const int largest = *std::max_element(counts.begin(), counts.end());
    const std::vector<int> ranks = largest_first(counts, largest);
    const size_t rows = ranks.size() / static_cast<size_t>(least * largest);
    std::vector<std::vector<int>> sets(std::max<size_t>(rows, 1) *
                                       static_cast<size_t>(largest));
    for (size_t i = 0; i < ranks.size(); i++)
        sets[i % sets.size()].push_back(ranks[i]);
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
