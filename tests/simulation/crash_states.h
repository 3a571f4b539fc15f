/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_CRASH_STATES_H
#define SIMULATION_CRASH_STATES_H

/* Datasets that an application may expect after a loss of power, and the states in which
 * the disk may be then. */

#include "disk.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sim
{

/* An action of a story: the application writes a dataset, or changes the index; or it
 * writes a dataset that stays in the caches, and commands save it from there and add it
 * to the index. */
enum class Action { WRITE, CURRENT, DROP, DELETE, CACHE, SAVE, ADD };

struct Step {
    Action action;
    const char *name;
};

/* Datasets in the order in which they are written, with the promises that ranks got. */
class Ledger
{
  public:
    /* retention: SCR_PREFIX_SIZE; 0: all datasets stay. newest_only: only the newest
     * dataset is promised. */
    void begin_run(int retention, bool newest_only);
    void begin(const Step &step); /* the first rank calls SCR for the step */
    void done(const Step &step);  /* the call succeeded on a rank */

    /* offered: the names that SCR offers if each is refused: the current dataset, then
     * the newest first. Returns the mistake, or "". */
    std::string judge(const std::vector<std::string> &offered) const;
    bool is_cached(const std::string &name) const; /* it was written but not flushed */
    bool is_saved(const std::string &name) const;
    std::string text() const; /* the same for ledgers that allow the same offers */

  private:
    enum class State { MAY, MUST, GONE };
    struct Known {
        std::string name;
        State state;
        bool acknowledged = false, removing = false, cached = false, saved = false;
    };

    int find(const std::string &name) const; /* -1: never written */
    int newest_promised() const;
    std::string judge_first(int first) const;

    std::vector<Known> datasets;
    std::string current;       /* SCR_Current succeeded for it */
    bool may_be_other = false; /* it may be a newer dataset, or SCR_Current is under
                                * way */
    int retention = 0;
    bool newest_only = false;
};

constexpr double PATIENCE = 36000; /* virtual seconds after which a run counts as
                                    * hanging */

/* Commands after the job, as processes on its nodes; each returns the mistake, or "". A
 * killed process is not a mistake. */

/* Runs scr_copy on all nodes that have power: for application files, then for redundancy
 * files if a node is off. */
std::string play_copies(int job, int id);
/* Runs scr_index --add; complete: the next run can restart from the dataset. */
std::string play_add(int job, const std::string &name, bool &complete);

/* Returns a hash of the names, modes and bytes on the disk, and of text. */
uint64_t hash_of(const Disk &disk, const std::string &text);

/* Calls visit with choices for Disk::lose_power: with all of them if there are at most
 * limit, else with a part. Choices from first_block on concern blocks. Returns whether
 * all choices were visited. */
bool enumerate(const std::vector<unsigned> &alternatives, size_t first_block,
               uint64_t limit,
               const std::function<void(const std::vector<unsigned> &)> &visit);

} // namespace sim

#endif
