/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_JUDGE_H
#define SIMULATION_JUDGE_H

/* What must be true, by rules that know nothing of how SCR decides. The application
 * reports what it was promised; the machine, what was lost. */

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

/* A world in which something is wrong. */
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/* By the application, which said so to SCR: that is on record. */
enum class Refused { NO, MAYBE, YES };

struct Dataset {
    std::string name;
    int number; /* in order of creation */
    int ranks;
    bool checkpoint, output, bad;
    int files;
    size_t size;
    int shares; /* parts that each rank has of the file of all, see Step */
    size_t share;
    bool strided;
    bool completing = false; /* a rank has called SCR_Complete_output: it may exist */
    bool complete = false;   /* a rank was told so: it does */
    bool flushed = false;    /* and is on the prefix directory */
    const Run *run;          /* that wrote it */
    std::string job;
    Homes homes;            /* of its files in the cache */
    int behind = 0;         /* datasets that came to this cache after it */
    bool gone = false;      /* it need not be in the cache any more */
    bool may_leave = false; /* a run has ended: it may be on the prefix directory alone */
    bool ruined = false;    /* its files on the prefix directory were changed */
    int tries = 0; /* runs that may have begun to restart from it, and not more */
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

    /* The same for all ranks of a run that begin step k: a name is new. */
    Dataset &start(int run, int step, const Step &what, const std::string &job);
    void completed(Dataset &d, int code);

    /* All ranks agree on the result of their n-th call in a run. */
    void agree(int run, int rank, int call, const char *what, int64_t result);

    /* name: what SCR offers, "" for nothing. */
    void offered(const std::string &name);
    /* good: its files could be read; refused: the application says that they are wrong */
    void restarted(Dataset &d, bool good, bool refused);
    void completed_restart(Dataset &d, int code, bool refused);
    void finalizing();                /* a rank calls SCR_Finalize */
    void finalized();                 /* SCR_Finalize succeeded */
    void finalized_other(Dataset &d); /* in a run of another job, which wrote that one */
    /* A call failed in a run without an error. */
    void failed(const std::string &what, int64_t code) const;
    /* A process of scr_transfer does nothing from then on, for that many seconds. When
     * it has given no sign of life for SCR_NODE_TIMEOUT, flushes of this run, and of
     * those that find it, may be abandoned: may they? */
    void stands_still(double from, double seconds);
    bool is_abandoned(double now) const;
    /* The same of a rank, which may have the lock of the index: may another job that
     * waits for it have given up? */
    void may_hold_lock(double from, double seconds);
    bool is_locked_out(double now) const;
    /* Is a dataset that a flush may be due for lost from the caches? It may be found so
     * when the flush reads it. */
    bool may_lack_source() const;
    /* A run of another number of ranks reads it on the prefix directory when it asks for
     * its files, not when it is offered: may they be found damaged then? */
    bool may_be_unreadable(const Dataset &d) const;
    /* silent: one that stood still when the run before ended still does. */
    void begin_run(const Run &run, bool silent);
    void begin_rest(const Run &rest); /* in which it goes on */
    void initialized();               /* a rank of it is, by SCR_Init */
    bool are_initialized() const;
    /* One that completes no checkpoint may have tried the newest in vain. */
    void end_run();

    /* What a node has of a dataset; "": of all. */
    void lost(int node, const std::string &dataset = "");
    void lost_all();
    void ruined(const std::string &dataset); /* on the prefix directory */
    Dataset *find(const std::string &name);
    /* Files on the prefix directory: names of those of an output, which were saved. */
    std::vector<const Dataset *> outputs() const;

    /* The path of file f of a rank below the prefix directory, and its bytes. */
    static std::string name(const Dataset &d, int rank, int f);
    static std::string bytes(const Dataset &d, int rank, int f);

    /* The file that all ranks write; the parts of one of them, which may be empty; and
     * which bytes are in any. */
    static std::string shared_name(const Dataset &d);
    static std::string shared_bytes(const Dataset &d);
    static std::vector<Extent> shares(const Dataset &d, int rank);
    static std::vector<bool> shared_mask(const Dataset &d);

    bool is_ending = false; /* a rank of it has called SCR_Finalize */
    bool lenient =
        false; /* an error struck in this run: what depends on that node may fail */

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
    int ready = 0;               /* ranks of it in which SCR_Init succeeded */
    std::set<int> fallen;        /* nodes that are lost since it began */
    bool progress = false;       /* this run has completed a checkpoint */
    double abandoned = INFINITY; /* when a flush may first be */
    std::vector<std::pair<double, double>>
        locked;                /* when another job may have given up */
    Dataset *source = nullptr; /* what it restarted from */
    Dataset *unread = nullptr; /* what an error kept from being offered: the fetch may
                                  count as an attempt */
    std::set<const Dataset *> fetched; /* in this run, maybe */
    std::map<std::pair<int, int>, std::pair<std::string, int64_t>>
        results; /* of (run, call) */
};

} // namespace sim

#endif
