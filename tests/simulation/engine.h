/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_ENGINE_H
#define SIMULATION_ENGINE_H

/* The machine: nodes, processes and time. Every rank, thread and background process is an
 * actor of SimGrid, all in one real process and one real thread, so that only the seed
 * determines what happens. libc.cpp routes the system calls of the product here. */

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
    std::shared_ptr<Disk> disk, shelf; /* the disk in use, and one that is set aside */
    Mounts mounts;
    simgrid::s4u::Host *host = nullptr;
    double skew = 0; /* seconds that its clock is ahead */
    bool up = true;
};

/* What a system call does to which file; for strikes and traces. */
struct Call {
    const char *name;
    std::string path; /* "": no file */
    bool changes;     /* the call changes something on a disk */
    bool moves;       /* it transfers bytes, so it can be short */
    bool waits;       /* it waits, so it can be interrupted */
};

/* The fate of a call. 0: normal. Negative: it fails with this -errno. */
struct Fate {
    int error = 0;
    bool half = false; /* a short transfer */
};

/* MPI calls of a process. Messages are those that the product itself sends, not those of
 * which collective calls consist. */
struct Traffic {
    uint64_t messages = 0, bytes = 0, collectives = 0;
};

struct Process {
    Machine *machine;
    Node *node;
    int pid;
    int job;  /* number of its run */
    int rank; /* -1: a background process */
    std::string program;
    std::vector<std::string> environment;
    std::vector<char *> environ; /* pointers to environment, and NULL */
    std::unique_ptr<Files> files;
    std::vector<char> context; /* of the SCR_* calls: a struct scr */
    std::vector<simgrid::s4u::ActorPtr> actors;
    std::string printed;                        /* output on stderr */
    uint64_t calls = 0;                         /* system calls so far, ... */
    uint64_t transfers = 0, prefix_changes = 0; /* ... and among these: transfers, changes
                                                 * on the prefix directory, ... */
    uint64_t prefix_calls = 0;                  /* ... and calls with a file there */
    size_t memory = 0, most_memory = 0;         /* memory of the product, if it is
                                                 * counted */
    Traffic traffic;
    double delay = 0;      /* maximum delay of each of its messages in seconds */
    bool detached = false; /* it runs in the background */
    bool ended = false;
    int status = 0; /* as from waitpid */
};

class Machine
{
  public:
    Machine(uint64_t seed, int nodes, Crash crash);

    Random random;
    std::vector<std::unique_ptr<Node>> nodes;
    std::shared_ptr<Disk> parallel;                  /* mounted at /prefix everywhere */
    std::vector<std::unique_ptr<Process>> processes; /* including those that ended */

    /* Decides on each call of each process, and may kill. Empty: all calls succeed. */
    std::function<Fate(Process &, const Call &)> strike;

    double now() const; /* virtual seconds since the start */
    /* Returns the time on the clock of a node: seconds since the epoch. */
    double date(const Node &) const;

    Process &spawn(Node &node, const std::string &program,
                   std::vector<std::string> environment, int job, int rank,
                   std::function<int(Process &)> body);

    void end(Process &process); /* called by its own actor, or by kill */

    /* Ends all actors of the process and closes its files. Called by any actor but its
     * own. */
    void kill(Process &process);
    void bury(int job);         /* after a run: removes the actors of ended processes */
    void power_off(Node &node); /* ends its processes; its disk stays as it was */
    void power_on(Node &node);
    void make_directories(Node &node); /* makes the directories that an administrator
                                        * makes */
    /* Exchanges the disk of a node that is off with the one set aside, which is initially
     * empty. */
    void exchange_disk(Node &node);

    /* Returns the process of the current actor. */
    static Process &self();

    /* Called before each system call: time passes, and the call may fail. */
    Fate enter(const Call &call);

    std::string notes;  /* the strikes, for people */
    uint64_t trace = 0; /* a hash of all calls, to compare two runs of the same seed */

  private:
    int last_pid = 1000;
};

extern Machine *machine;
extern bool counts_memory; /* memory.cpp */

/* Called once per process: starts SimGrid with a platform for that number of nodes.
 * stack: KiB for each rank and thread. */
void prepare(int nodes, int stack);

/* commands.cpp: main of a background program. */
int run_command(const std::vector<std::string> &words);

} // namespace sim

#endif
