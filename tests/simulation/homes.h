/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_HOMES_H
#define SIMULATION_HOMES_H

/* The nodes that have the files of a cached dataset, for each rank that wrote it. If
 * something is uncertain, the worst case counts. */

#include "schemes.h"
#include "story.h"

#include <set>
#include <vector>

namespace sim
{

class Homes
{
  public:
    /* Initially each rank has its files on its node. */
    explicit Homes(const Run &writer);

    void lose(int node);

    /* Whether a run on these nodes has or can rebuild all files. */
    bool are_whole(const std::vector<Protection> &schemes,
                   const std::vector<int> &nodes) const;

    /* A restart with the same number of ranks begins: files move to the nodes of their
     * ranks. */
    void begin_move(const Run &run);
    /* The restart has moved and rebuilt all files. */
    void end_move(const Run &run);
    /* A restart with another number of ranks, which leaves files where they are, has
     * rebuilt the missing files on any of its nodes. */
    void adopt(const Run &run);
    /* The files now belong to these ranks and may have got new sets. */
    void settle(const Run &run);

  private:
    struct Rank {
        std::set<int> nodes;
        bool all = true; /* each of these nodes has the files; false: only one of them
                          * has */

        std::set<int> among(const std::vector<int> &list) const;
    };
    std::vector<Rank> ranks;
    std::set<std::vector<int>> layouts; /* numbers of ranks per node from which the sets
                                         * may have been made */
};

} // namespace sim

#endif
