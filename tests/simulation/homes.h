/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_HOMES_H
#define SIMULATION_HOMES_H

/* On which nodes the files of a cached dataset are, for each rank that wrote it. What is
 * not known for certain counts as the worst of what is possible. */

#include "schemes.h"
#include "story.h"

#include <set>
#include <vector>

namespace sim
{

class Homes
{
  public:
    /* Each rank has its files on its node. */
    explicit Homes(const Run &writer);

    void lose(int node);

    /* Whether a run on these nodes has, or can rebuild, all files. */
    bool are_whole(const std::vector<Protection> &schemes,
                   const std::vector<int> &nodes) const;

    /* A restart of as many ranks begins, on whose nodes the files come to their ranks. */
    void begin_move(const Run &run);
    /* It has moved and rebuilt all of them. */
    void end_move(const Run &run);
    /* One of more or fewer ranks, which leaves files where they are, has rebuilt the rest
     * on any of its nodes. */
    void adopt(const Run &run);
    /* The files are those of these ranks now; they may have got new sets. */
    void settle(const Run &run);

  private:
    struct Rank {
        std::set<int> nodes;
        bool all = true; /* the files are on each of them; else on one of them */

        std::set<int> among(const std::vector<int> &list) const;
    };
    std::vector<Rank> ranks;
    std::set<std::vector<int>> layouts; /* ranks of each node, from which sets were made:
                                           those of one of them */
};

} // namespace sim

#endif
