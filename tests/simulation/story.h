/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_STORY_H
#define SIMULATION_STORY_H

/* What happens in a world, all drawn from its seed before it begins: the machine, the
 * configuration of SCR, and a list of runs with what the application does and what
 * strikes. A story can be printed, and made smaller. */

#include "disk.h"
#include "random.h"
#include "schemes.h"

#include <set>
#include <string>
#include <vector>

namespace sim
{

/* One dataset that the application writes. */
struct Step {
    bool checkpoint = true, output = false;
    int files = 1;      /* of each rank */
    size_t size = 1000; /* bytes of a file, plus a few that depend on the rank */
    int shares = 0;     /* parts of one file of all ranks that each of them writes, ... */
    size_t share = 0;   /* ... bytes of each, plus a few, ... */
    bool strided = false; /* ... and whether those of a rank lie apart from each other */
    bool bad = false;     /* one rank says that its files are not valid */
    double compute = 1;   /* seconds before it */
    int number = 0;       /* over all runs */
};

enum class Blow {
    KILL_RANK,    /* SIGKILL of one process */
    LOSE_NODE,    /* a node with all that is on its disk */
    CRASH_NODE,   /* a node loses power; it is back in the next run, its disk as it was
                     found */
    KILL_RUN,     /* all ranks at once, as at the end of an allocation */
    CRASH_ALL,    /* all nodes and the file server lose power */
    CRASH_SERVER, /* the file server does, and the run ends; nodes keep what they have */
    LOSE_SERVER,  /* the same, but each call on it fails from now on, and the run goes on
                   */
    ERROR,        /* a system call fails */
    SHORT,        /* some of the transfers from here on move a part of their bytes */
    INTERRUPT,    /* some of them fail with EINTR */
    PAUSE,        /* a process stands still, and goes on later */
    CLOCK,        /* the clock of a node jumps */
    HANG,         /* calls of a node on one file system take very long */
    DELAY,        /* messages of a process are late */
    SECOND,       /* another run begins on the same nodes */
    FLIP,         /* after the run: bits of a file change */
    COPY,         /* after the run: a record is replaced by another one of its kind */
    STALE,        /* after the run: a file is what it was before the run */
    SHELVE,       /* after the run: the disks of all nodes are exchanged for empty ones */
    RETURN        /* after the run: a node has the disk again that it had before that */
};

/* The calls of a process that are counted. */
enum class Counted { ALL, DATA, PREFIX };

struct Strike {
    Blow blow;
    int rank; /* of which process; -1: background processes; of RETURN: the node */
    Counted counted = Counted::ALL;
    uint64_t at;           /* its how many-th call of these; after a run: which file */
    int error = 0;         /* of ERROR: errno */
    bool stays = false;    /* of ERROR: later calls on this node that change something
                              fail, too; of CRASH_ALL: disks of nodes hold nothing;
                              of SECOND: it is of another job */
    bool on_prefix = true; /* of a file, or of HANG */
    double seconds = 0;    /* of CLOCK, PAUSE, HANG, DELAY */
    int number = 0;        /* over all runs */
};

/* Which of the files of N ranks each of M ranks wants, if any number may restart. */
enum class Wants {
    OWN,    /* those of its number, as always; for N = M only */
    BLOCK,  /* of N / M ranks in a row */
    ROBIN,  /* of each M-th rank */
    EVERY,  /* all want all */
    COMMON, /* as BLOCK, and all want those of one rank, too */
    HALF,   /* each second one wants nothing */
    ONE     /* the last one wants all, the others nothing */
};

struct Run {
    std::string job = "17";
    std::vector<int> machines; /* in the order of ranks */
    std::vector<int> counts;   /* ranks on each of them */
    bool any = false; /* SCR_RESTART_RANKS=any: other numbers of ranks are welcome */
    Wants wants = Wants::OWN;
    bool twice = false; /* files are asked for in two calls */
    std::vector<Step> steps;
    std::vector<Strike> strikes;
    int refuses = 0; /* the first checkpoints that are offered */
    bool finalize = true;
    std::vector<Run> rest; /* none, or how it goes on with a part of its ranks, when the
                              others have died after its steps */
    bool within = false;   /* they die within an output */
    bool last = false;     /* the last ranks of nodes are left, not the first */
    bool audit = false;    /* all caches are lost, and each checkpoint that is offered is
                              refused once it was read: those behind it show, too */

    int ranks() const;
    int node_of(int rank) const;
};

/* Redundancy in the cache. */
struct Protection {
    Scheme scheme;
    int set_size = 8; /* members of a set, at least */
};

struct Story {
    uint64_t seed;
    int nodes, ranks_per_node; /* spare nodes are among them */
    Crash crash;               /* kind of file systems */
    std::vector<std::pair<std::string, std::string>> parameters; /* of SCR */
    std::vector<std::string> descriptors;                        /* for SCR_Config */
    std::vector<Run> runs;

    /* What the judge has to know of parameters. */
    std::vector<Protection> schemes; /* a dataset has one of them */
    bool flushes_each; /* SCR_Complete_output returns after the flush of a checkpoint */
    bool flushes;      /* SCR_Finalize flushes the newest checkpoint */
    int retention;     /* SCR_PREFIX_SIZE; 0: all stay */
    bool bypass;
    int room;        /* SCR_CACHE_SIZE */
    bool background; /* flushes */
    bool packs;      /* files are in containers, ... */
    uint64_t align;  /* ... of nodes, each rank at a multiple of this; 0: of a size */
    bool jobs;       /* two share the prefix directory: which dataset is newer is open */
    bool checked;    /* files on the prefix directory have checksums */
    bool elastic;    /* the number of ranks changes */
    bool shared;     /* ranks write files together */

    std::string text() const;
};

/* elastic: the number of ranks may change, which it does in some worlds. */
Story draw(uint64_t seed, bool elastic = true);

/* A part of a story. Steps and strikes are numbered over all runs. */
struct Part {
    int nodes = 1000, ranks_per_node = 1000, runs = 1000, steps = 1000;
    std::set<int> without_steps, without_strikes;
    std::set<std::string> without; /* parameters that the judge need not know */

    std::string text() const; /* as options of simulate */
};

void reduce(Story &story, const Part &part);
bool is_dispensable(const std::string &parameter);

} // namespace sim

#endif
