/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_STORY_H
#define SIMULATION_STORY_H

/* The events of a world, all drawn from its seed before it begins: the machine, the
 * configuration of SCR, and a list of runs with the actions of the application and the
 * strikes. A story can be printed and reduced. */

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
    int files = 1;        /* per rank */
    size_t size = 1000;   /* bytes of a file, plus a few that depend on the rank */
    int shares = 0;       /* parts that each rank writes of one shared file, ... */
    size_t share = 0;     /* ... the bytes of each part, plus a few, ... */
    bool strided = false; /* ... and whether the parts of a rank are apart from each
                           * other */
    bool bad = false;     /* one rank reports its files as invalid */
    double compute = 1;   /* seconds of computing before it */
    int number = 0;       /* counts over all runs */
};

enum class Blow {
    KILL_RANK,    /* SIGKILL of one process */
    LOSE_NODE,    /* a node with its disk */
    CRASH_NODE,   /* a node loses power; it returns in the next run with its disk as
                   * found */
    KILL_RUN,     /* SIGKILL of all ranks at once, as at the end of an allocation */
    CRASH_ALL,    /* all nodes and the file server lose power */
    CRASH_SERVER, /* the file server loses power, and the run ends; nodes keep their
                   * content */
    LOSE_SERVER,  /* the same, but the run continues, and each call on the file server
                   * fails from now on */
    ERROR,        /* a system call fails */
    SHORT,        /* from now on, some transfers move only a part of their bytes */
    INTERRUPT,    /* from now on, some transfers fail with EINTR */
    PAUSE,        /* a process stands still and continues later */
    CLOCK,        /* the clock of a node jumps */
    HANG,         /* calls of a node on one file system take very long */
    DELAY,        /* messages of a process are late */
    SECOND,       /* another run begins on the same nodes */
    FLIP,         /* after the run: bits of a file change */
    COPY,         /* after the run: a record is replaced by another one of its kind */
    STALE,        /* after the run: a file returns to its content before the run */
    SHELVE,       /* after the run: the disks of all nodes are replaced by empty ones */
    RETURN        /* after the run: a node gets back the disk that it had before that */
};

/* The calls of a process that are counted. */
enum class Counted { ALL, DATA, PREFIX };

struct Strike {
    Blow blow;
    int rank; /* of the process; -1: background processes; RETURN: the node */
    Counted counted = Counted::ALL;
    uint64_t at;           /* the number of the call among the counted ones; after a run:
                            * chooses the file */
    int error = 0;         /* ERROR: the errno */
    bool stays = false;    /* ERROR: later changes by this node fail, too; CRASH_ALL:
                            * disks of nodes lose everything; SECOND: the second run is of
                            * another job */
    bool on_prefix = true; /* the file, or the file system of HANG, is on the prefix
                            * directory */
    double seconds = 0;    /* for CLOCK, PAUSE, HANG, DELAY */
    int number = 0;        /* counts over all runs */
};

/* The files of N ranks that each of M ranks wants, if any number of ranks may restart. */
enum class Wants {
    OWN,    /* those of its own number, as usual; only for N = M */
    BLOCK,  /* those of N / M consecutive ranks */
    ROBIN,  /* those of each M-th rank */
    EVERY,  /* every rank wants all files */
    COMMON, /* as BLOCK, and every rank also wants the files of one rank */
    HALF,   /* every second rank wants nothing */
    ONE     /* the last rank wants all files, the others nothing */
};

struct Run {
    std::string job = "17";
    std::vector<int> machines; /* in the order of ranks */
    std::vector<int> counts;   /* ranks on each machine */
    bool any = false; /* SCR_RESTART_RANKS=any: other numbers of ranks are accepted */
    Wants wants = Wants::OWN;
    bool twice = false; /* files are requested in two calls */
    std::vector<Step> steps;
    std::vector<Strike> strikes;
    int refuses = 0; /* number of offered checkpoints that are refused first */
    bool finalize = true;
    std::vector<Run> rest; /* empty; or how the run continues with a part of its ranks
                            * after the others have died after its steps */
    bool within = false;   /* they die during an output */
    bool last = false;     /* the last ranks of nodes survive, not the first ones */
    bool audit = false;    /* all caches are lost, and each offered checkpoint is read and
                            * then refused, which reveals older ones */

    int ranks() const;
    int node_of(int rank) const;
};

/* Redundancy in the cache. */
struct Protection {
    Scheme scheme;
    int set_size = 8; /* minimum members of a set */
};

struct Story {
    uint64_t seed;
    int nodes, ranks_per_node; /* includes spare nodes */
    Crash crash;               /* kind of file systems */
    std::vector<std::pair<std::string, std::string>> parameters; /* of SCR */
    std::vector<std::string> descriptors;                        /* for SCR_Config */
    std::vector<Run> runs;

    /* Parameters that the judge must know. */
    std::vector<Protection> schemes; /* each dataset has one of these */
    bool flushes_each; /* SCR_Complete_output returns after the flush of a checkpoint */
    bool flushes;      /* SCR_Finalize flushes the newest checkpoint */
    int retention;     /* SCR_PREFIX_SIZE; 0: all datasets stay */
    bool bypass;
    int room;        /* SCR_CACHE_SIZE */
    bool background; /* flushes run in the background */
    bool packs;      /* files are packed in containers ... */
    uint64_t align;  /* ... of nodes, with each rank at a multiple of this; 0: of a fixed
                      * size */
    bool jobs;       /* two jobs share the prefix directory, so either dataset may be the
                      * newer one */
    bool checked;    /* files on the prefix directory have checksums */
    bool elastic;    /* the number of ranks changes */
    bool shared;     /* ranks write files together */

    std::string text() const;
};

/* elastic: allows changes of the number of ranks, which happen in some worlds. */
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
