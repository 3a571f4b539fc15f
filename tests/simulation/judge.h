/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_JUDGE_H
#define SIMULATION_JUDGE_H

/* The requirements, as rules that know nothing about how SCR decides. The application
 * reports the promises that it got; the machine reports losses. */

#include "homes.h"
#include "story.h"

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim
{

/* Thrown for a world in which something is wrong. */
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* Whether the application refused the dataset and SCR recorded that. */
enum class Refused { NO, MAYBE, YES };

struct Dataset {
    std::string name;
    int number; /* in order of creation */
    int ranks;
    bool checkpoint, output, bad;
    int files;
    size_t size;
    int shares; /* parts of each rank in the shared file, see Step */
    size_t share;
    bool strided;
    bool completing = false; /* a rank called SCR_Complete_output: the dataset may
                              * exist */
    bool complete = false;   /* success was reported to a rank: the dataset exists */
    bool flushed = false;    /* it is also on the prefix directory */
    const Run *run;          /* the run that wrote it */
    std::string job;
    Homes homes;            /* places of its files in the cache */
    int behind = 0;         /* datasets that entered this cache after it */
    bool gone = false;      /* it need not be in the cache any more */
    bool may_leave = false; /* a run has ended: it may be only on the prefix directory */
    bool ruined = false;    /* its files on the prefix directory were changed */
    int tries = 0;          /* runs that may have begun to restart from it without getting
                             * further */
    Refused refused = Refused::NO;

    explicit Dataset(const Run &writer)
        : ranks(writer.ranks()), run(&writer), homes(writer)
    {
    }
};

/* Bytes of a file. */
struct Extent {
    size_t offset, length;
};

class Judge
{
  public:
    explicit Judge(const Story &story) : story(story)
    {
    }

    /* Called by all ranks of a run that begin step k. The name is new. */
    Dataset &start(int run, int step, const Step &what, const std::string &job);
    void completed(Dataset &d, int code);

    /* Checks that all ranks get the same result from their n-th call in a run. */
    void agree(int run, int rank, int call, const char *what, int64_t result);

    /* SCR offers name; "": nothing. */
    void offered(const std::string &name);
    /* good: its files could be read; refused: the application reports them as invalid */
    void restarted(Dataset &d, bool good, bool refused);
    void completed_restart(Dataset &d, int code, bool refused);
    void finalizing();                /* a rank calls SCR_Finalize */
    void finalized();                 /* SCR_Finalize succeeded */
    void finalized_other(Dataset &d); /* in a run of another job, which wrote the
                                       * dataset */
    /* A call failed in a run without an injected error. */
    void failed(const std::string &what, int64_t code) const;
    /* stands_still: a process of scr_transfer does nothing for that number of seconds.
     * When it has shown no sign of life for SCR_NODE_TIMEOUT, the flushes of this run and
     * of runs that find it may be abandoned; is_abandoned returns whether that is
     * possible. */
    void stands_still(double from, double seconds);
    bool is_abandoned(double now) const;
    /* The same for a rank that may hold the lock of the index: another job that waits for
     * the lock may give up. */
    void may_hold_lock(double from, double seconds);
    bool is_locked_out(double now) const;
    /* Whether the caches may have lost a dataset that is to be flushed. The flush may
     * notice that when it reads the dataset. */
    bool may_lack_source() const;
    /* Whether the dataset may be found damaged: a run with another number of ranks reads
     * it on the prefix directory when it asks for its files, not when the dataset is
     * offered. */
    bool may_be_unreadable(const Dataset &d) const;
    /* silent: a process that stood still at the end of the previous run still does. */
    void begin_run(const Run &run, bool silent);
    void begin_rest(const Run &rest); /* the run continues with a part of its ranks */
    void initialized();               /* a rank of the run returned from SCR_Init */
    bool are_initialized() const;
    /* A run that completes no checkpoint may have tried the newest one in vain. */
    void end_run();

    /* A node lost its part of a dataset; "": of all datasets. */
    void lost(int node, const std::string &dataset = "");
    void lost_all();
    void ruined(const std::string &dataset); /* files on the prefix directory were
                                              * changed */
    Dataset *find(const std::string &name);
    /* Outputs whose files must be on the prefix directory. */
    std::vector<const Dataset *> outputs() const;

    /* The path of file f of a rank below the prefix directory, and its bytes. */
    static std::string name(const Dataset &d, int rank, int f);
    static std::string bytes(const Dataset &d, int rank, int f);

    /* The shared file of all ranks; the parts of one rank, which may be empty; and which
     * bytes are in any part. */
    static std::string shared_name(const Dataset &d);
    static std::string shared_bytes(const Dataset &d);
    static std::vector<Extent> shares(const Dataset &d, int rank);
    static std::vector<bool> shared_mask(const Dataset &d);

    bool is_ending = false; /* a rank of the run has called SCR_Finalize */
    bool lenient = false; /* an error was injected in this run: operations that depend on
                           * that node may fail */

  private:
    const Dataset *promised() const;
    const Dataset *exhausted() const;
    const Dataset *newest(bool of_any_job = false) const;
    void push(const Dataset *pushing, const Dataset *spared);
    void fetch(const Dataset *offered);
    bool is_kept(size_t i) const;
    bool is_usable(const Dataset &d) const;
    bool is_whole(const Dataset &d) const;
    bool is_cached(const Dataset &d) const;
    void lose_again();
    const Story &story;
    std::vector<std::unique_ptr<Dataset>> datasets;
    const Run *now = nullptr;    /* the run */
    int ready = 0;               /* ranks of the run in which SCR_Init succeeded */
    std::set<int> fallen;        /* nodes lost since the run began */
    bool progress = false;       /* this run has completed a checkpoint */
    double abandoned = INFINITY; /* earliest time at which a flush may be abandoned */
    std::vector<std::pair<double, double>>
        locked;                /* times at which another job may have given up */
    Dataset *source = nullptr; /* dataset from which the run restarted */
    Dataset *unread = nullptr; /* dataset that an error kept from being offered: the fetch
                                * may count as an attempt */
    std::set<const Dataset *> fetched; /* possibly fetched in this run */
    std::map<std::pair<int, int>, std::pair<std::string, int64_t>>
        results; /* (run, call) -> result */
};

} // namespace sim

#endif
