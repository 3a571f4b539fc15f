/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that have the files of a cached dataset; see homes.h. */
#include "homes.h"

#include <algorithm>

namespace sim
{

Homes::Homes(const Run &writer) : ranks(static_cast<size_t>(writer.ranks()))
{
    end_move(writer);
    layouts.insert(writer.counts);
}

/* Returns the nodes of the list that have, or may have, the files; empty if the only node
 * that has the files may be outside of the list. */
std::set<int> Homes::Rank::among(const std::vector<int> &list) const
{
    std::set<int> found;
    for (int node : list)
        if (nodes.count(node)) found.insert(node);
    return all || found.size() == nodes.size() ? found : std::set<int>{};
}

void Homes::lose(int node)
{
    for (Rank &rank : ranks)
        if (rank.nodes.erase(node) && !rank.all) rank.nodes.clear();
}

bool Homes::are_whole(const std::vector<Protection> &schemes,
                      const std::vector<int> &nodes) const
{
    std::set<int> lost;
    for (size_t i = 0; i < ranks.size(); i++)
        if (ranks[i].among(nodes).empty()) lost.insert(static_cast<int>(i));
    if (lost.empty()) return true;
    for (const Protection &p : schemes)
        for (const std::vector<int> &counts : layouts)
            if (!covers(p.scheme, sets_of(counts, p.set_size), lost)) return false;
    return true;
}

void Homes::begin_move(const Run &run)
{
    for (size_t i = 0; i < ranks.size(); i++) {
        const int own = run.node_of(static_cast<int>(i));
        std::set<int> here = ranks[i].among(run.machines);
        if (here.empty() || (ranks[i].all && here.count(own))) continue;
        here.insert(own);
        ranks[i] = {here, false};
    }
}

void Homes::end_move(const Run &run)
{
    for (size_t i = 0; i < ranks.size(); i++)
        ranks[i] = {{run.node_of(static_cast<int>(i))}, true};
}

void Homes::adopt(const Run &run)
{
    for (Rank &rank : ranks) {
        const std::set<int> here = rank.among(run.machines);
        if (here.empty())
            rank = {{run.machines.begin(), run.machines.end()}, false};
        else if (here.size() > 1)
            rank = {here, false};
    }
}

void Homes::settle(const Run &run)
{
    end_move(run);
    layouts.insert(run.counts);
}

} // namespace sim
