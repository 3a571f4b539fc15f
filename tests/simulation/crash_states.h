/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_CRASH_STATES_H
#define SIMULATION_CRASH_STATES_H

/* What an application expects of its datasets after a loss of power, and the states in
 * which the disk may be then. */

#include "disk.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sim
{

/* What a story does with datasets: it writes one, or changes the index; or writes one
 * that stays in the caches, which is saved from there and added to the index. */
enum class Action { WRITE, CURRENT, DROP, DELETE, CACHE, SAVE, ADD };

struct Step {
    Action action;
    const char *name;
};

/* Datasets in the order in which they are written, by what a rank was promised. */
class Ledger
{
  public:
    /* retention: SCR_PREFIX_SIZE; 0: all stay. newest_only: no older one is promised. */
    void begin_run(int retention, bool newest_only);
    void begin(const Step &step); /* the first rank calls SCR for it */
    void done(const Step &step);  /* the call has succeeded on a rank */

    /* offered: names in the order in which SCR offers them when each is refused: the
     * current one, then the newest first. Returns what is wrong, or "". */
    std::string judge(const std::vector<std::string> &offered) const;
    bool is_cached(const std::string &name) const; /* it was written, not flushed */
    bool is_saved(const std::string &name) const;
    std::string text() const; /* equal where equal offers are right */

  private:
    enum class State { MAY, MUST, GONE };
    struct Known {
        std::string name;
        State state;
        bool acknowledged = false, removing = false, cached = false, saved = false;
    };

    int find(const std::string &name) const; /* -1: it was never written */
    int newest_promised() const;
    std::string judge_first(int first) const;

    std::vector<Known> datasets;
    std::string current;       /* SCR_Current has succeeded for it */
    bool may_be_other = false; /* or a newer one, or SCR_Current is under way */
    int retention = 0;
    bool newest_only = false;
};

constexpr double PATIENCE = 36000; /* virtual seconds after which a run hangs */

/* Commands after the job, as processes on its nodes; each returns what is wrong, or "".
 * A process that is killed has done nothing wrong. */

/* scr_copy on all nodes that have power: files of the application, then redundancy files
 * if a node is off. */
std::string play_copies(int job, int id);
/* scr_index --add; complete: the next run can restart from the dataset. */
std::string play_add(int job, const std::string &name, bool &complete);

/* Names, modes and bytes of all that is on the disk. */
uint64_t hash_of(const Disk &disk, const std::string &text);

/* Calls visit with choices for Disk::lose_power: all of them, if they are at most limit,
 * else a part. first_block: the choices from there on are of blocks. Returns whether it
 * were all. */
bool enumerate(const std::vector<unsigned> &alternatives, size_t first_block,
               uint64_t limit,
               const std::function<void(const std::vector<unsigned> &)> &visit);

} // namespace sim

#endif
