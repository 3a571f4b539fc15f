/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_LOSSES_H
#define SIMULATION_LOSSES_H

/* The job of `losses`: three checkpoints, a loss of nodes, and the runs after it. */

#include "job.h"
#include "schemes.h"

namespace sim
{

const std::string NEWEST = "c3", OLDER = "c2"; /* checkpoints */
const std::string TWIN = "twin";               /* tag of bytes from an earlier life of the
                                                * job */

struct Shape {
    std::vector<int> counts; /* ranks per node */
    int least;               /* minimum members of a set */
};

using Nodes = std::vector<int>;

std::string text_of(const Nodes &nodes);

/* All subsets of least to most of the nodes 0 .. count - 1, smaller subsets first. */
std::vector<Nodes> subsets(int count, size_t least, size_t most);

std::set<int> ranks_on(const Layout &layout, const Nodes &nodes);
std::vector<int> counts_of(const Layout &layout);

/* Where the ranks continue: on empty nodes of the same names or of other names, in
 * another order, crowded on the remaining nodes; or lost nodes come back with their
 * content from before the newest checkpoint, or from an earlier life of the job. */
enum class Where { SAME, SPARE, MOVED, CROWDED, OLDER, TWIN };

/* Schemes of the older checkpoint and of the newest one. */
struct Schemes {
    Scheme older, newest;

    bool is_mixed() const;
    std::string text() const;
    const Scheme &of(const std::string &name) const;
    std::vector<std::string> descriptors() const;
};

std::vector<Schemes> schemes_for(int nodes);

/* Common properties of the points of a kind. */
struct Kind {
    Shape shape;
    Schemes schemes;
    bool flushes; /* the second checkpoint is flushed */

    int nodes() const;
    std::string text(const std::string &what) const;
    std::vector<std::vector<int>> sets() const;
};

class Trial : public Job
{
  public:
    explicit Trial(const Kind &kind);

    void begin(Where where); /* until the loss */
    void lose_nodes(const Nodes &lost, Where where);
    Told restart();

    /* Loses as many nodes as the checkpoint in the cache can tolerate, first the nodes
     * that have had it all the time. counts: ranks per node when it got its sets. */
    Nodes lose_again(const std::string &name, const std::vector<int> &counts);

    /* Performs the last run: the checkpoint of the restart must be there, one more
     * checkpoint is written, and the job ends. */
    [[noreturn]] void finish(const Told &got, bool must_be_told);

    const Kind &kind;
    Layout first; /* of the first run */

  private:
    std::vector<std::shared_ptr<Disk>> kept;

    Script plain() const;
    void write(const std::vector<std::string> &names, const std::string &tag);
    void keep();
};

} // namespace sim

#endif
