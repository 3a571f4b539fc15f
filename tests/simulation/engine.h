/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_ENGINE_H
#define SIMULATION_ENGINE_H

/* The machine: nodes, processes and time. Every rank, thread and background process is an
 * actor of SimGrid, all in one real process and one real thread, so that what happens
 * depends on the seed alone. libc.cpp leads the system calls of the product here. */

#include "disk.h"
#include "random.h"

#include <functional>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

struct scr;

namespace sim
{

class Machine;

struct Node {
    int number;
    std::string name;
    std::shared_ptr<Disk> disk, shelf; /* the one in use, and one that is set aside */
    Mounts mounts;
    simgrid::s4u::Host *host = nullptr;
    double skew = 0; /* seconds that its clock is ahead */
    bool up = true;
};

/* What a system call does to which file: for strikes and traces. */
struct Call {
    const char *name;
    std::string path; /* "": no file */
    bool changes;     /* something on a disk */
    bool moves;       /* bytes: it can be short */
    bool waits;       /* it can be interrupted */
};

/* How a call goes: 0: as usual. Negative: it fails, as -errno. */
struct Fate {
    int error = 0;
    bool half = false; /* a short transfer */
};

/* Calls of MPI by a process. Messages are those that the product itself sends, not those
 * that a collective call consists of. */
struct Traffic {
    uint64_t messages = 0, bytes = 0, collectives = 0;
};

struct Process {
    Machine *machine;
    Node *node;
    int pid;
    int job;  /* number of the run that it belongs to */
    int rank; /* -1: a background process */
    std::string program;
    std::vector<std::string> environment;
    std::vector<char *> environ; /* pointers to these, and NULL */
    std::unique_ptr<Files> files;
    std::vector<char> context; /* of the SCR_* calls: a struct scr */
    std::vector<simgrid::s4u::ActorPtr> actors;
    std::string printed;                        /* on stderr */
    uint64_t calls = 0;                         /* system calls so far, ... */
    uint64_t transfers = 0, prefix_changes = 0; /* ... these among them */
    uint64_t prefix_calls = 0;                  /* ... with a file there */
    size_t memory = 0, most_memory = 0;         /* of the product, where it is counted */
    Traffic traffic;
    double delay = 0;      /* at most that many seconds of each of its messages */
    bool detached = false; /* it has gone into the background */
    bool ended = false;
    int status = 0; /* as of waitpid */
};

class Machine
{
  public:
    Machine(uint64_t seed, int nodes, Crash crash);

    Random random;
    std::vector<std::unique_ptr<Node>> nodes;
    std::shared_ptr<Disk> parallel;                  /* mounted at /prefix everywhere */
    std::vector<std::unique_ptr<Process>> processes; /* all that ever were */

    /* Decides on each call of each process; may kill. Empty: all go well. */
    std::function<Fate(Process &, const Call &)> strike;

    double now() const; /* virtual seconds since the start */
    double date(
        const Node &) const; /* what the clock of a node shows: seconds since the epoch */

    Process &spawn(Node &node, const std::string &program,
                   std::vector<std::string> environment, int job, int rank,
                   std::function<int(Process &)> body);

    void end(Process &process); /* by its own actor, or for kill */

    /* All actors of it end, and its files are closed. By any actor but its own. */
    void kill(Process &process);
    void bury(int job); /* after a run: actors of processes that ended are removed */
    void power_off(Node &node); /* its processes end; its disk is as it was */
    void power_on(Node &node);
    void make_directories(Node &node); /* those that an administrator makes */
    /* The disk of a node that is off, and the one that is set aside, which is empty at
     * first, change places. */
    void exchange_disk(Node &node);

    /* The process of the actor that runs. */
    static Process &self();

    /* Before each system call: time passes, and the call may fail. */
    Fate enter(const Call &call);

    std::string notes; /* what struck, for people */
    uint64_t trace =
        0; /* a hash over all calls, for comparison of two runs of one seed */

  private:
    int last_pid = 1000;
};

extern Machine *machine;
extern bool counts_memory; /* memory.cpp */

/* Once in a process: SimGrid begins, with a platform that has room for that number of
 * nodes. stack: KiB for each rank and thread. */
void prepare(int nodes, int stack);

/* commands.cpp: main of a background program. */
int run_command(const std::vector<std::string> &words);

} // namespace sim

#endif
