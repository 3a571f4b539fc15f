/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_JUDGE_H
#define SIMULATION_JUDGE_H

/* What must be true, by rules that know nothing of how SCR decides. The application
 * reports what it was promised; the machine, what was lost. */

#include "story.h"

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim
{

/* A world in which something is wrong. */
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Dataset {
    std::string name;
    int number; /* in order of creation */
    int ranks;
    bool checkpoint, output, bad;
    int files;
    size_t size;
    bool completing = false; /* a rank has called SCR_Complete_output: it may exist */
    bool complete = false;   /* a rank was told so: it does */
    bool flushed = false;    /* and is on the prefix directory */
    int losses = 0;          /* nodes lost since it was whole in the cache */
    int tries = 0;           /* runs that restarted from it, and completed nothing */
};

class Judge
{
  public:
    explicit Judge(const Story &story) : story(story)
    {
    }

    /* The same for all ranks of a run that begin step k: a name is new. */
    Dataset &start(int run, int step, const Step &what, int ranks);
    void completed(Dataset &d, int code);

    /* All ranks agree on the result of their n-th call in a run. */
    void agree(int run, int rank, int call, const char *what, int64_t result);

    /* name: what SCR offers, "" for nothing. */
    void offered(const std::string &name, int ranks);
    void restarted(Dataset &d, bool good);
    void finalized(); /* SCR_Finalize succeeded */
    void begin_run(int ranks);
    void end_run(
        int ranks); /* one that completes no checkpoint has tried the newest in vain */

    void lost(int nodes);
    Dataset *find(const std::string &name);

    /* The bytes of file f of a rank. */
    static std::string bytes(const Dataset &d, int rank, int f);

    bool lenient =
        false; /* an error struck in this run: what depends on that node may fail */

  private:
    static constexpr int LOST = 1000;
    const Dataset *promised(int ranks) const;
    bool is_kept(size_t i) const;
    const Story &story;
    std::vector<std::unique_ptr<Dataset>> datasets;
    bool progress = false; /* this run has completed a checkpoint */
    std::map<std::pair<int, int>, std::pair<std::string, int64_t>>
        results; /* of (run, call) */
};

} // namespace sim

#endif
