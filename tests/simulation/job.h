/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_JOB_H
#define SIMULATION_JOB_H

/* A job on simulated nodes, in a process of Points: its runs, losses of nodes, and what
 * must be true after its end. Where something is wrong, the point fails. */

#include "engine.h"

#include <map>
#include <string>
#include <vector>

namespace sim
{

/* The ranks of a run, in order: so many on each of these nodes. */
struct Station {
    int node, ranks;
};
using Layout = std::vector<Station>;

int ranks_of(const Layout &layout);

/* What all ranks of a run do, in this order. */
struct Script {
    std::vector<std::string> descriptors; /* for SCR_Config */
    std::vector<std::string> environment; /* before that of the job */
    bool restarts = false;
    std::vector<std::string> outputs; /* their names; without "o": checkpoints */
    std::string tag;                  /* of their bytes; "": none */
    std::string known_tag;            /* of bytes that it may read; as well as none */
    bool finalizes = false;
};

/* What they were told. */
struct Told {
    std::string offered;                /* "": nothing */
    std::string tag;                    /* of the bytes that were read */
    std::vector<std::string> completed; /* outputs, by any rank */
    std::string printed;                /* by SCR */

    /* Messages with that identifier that have these texts. */
    int messages(const char *identifier, const std::vector<std::string> &texts) const;
};

class Job
{
  public:
    /* Nodes that are not in the layout are spare ones. */
    Job(int count, std::vector<std::string> environment);

    Layout layout;
    int number = -1;           /* of the run */
    bool is_disturbed = false; /* calls may fail, with the same code on all ranks */

    Told run(const Script &script);
    void lose(int node); /* it is empty */
    void lose_all();     /* and the prefix directory is */

    /* After a run that SCR_Finalize ended: complete datasets on the prefix directory have
     * their bytes, these are among them, and nothing else is there, or on the nodes, and
     * no process runs. printed: by all runs. */
    void check_end(const std::vector<std::string> &outputs);

    /* Of all disks, and the text; 0 while a process runs, whose state is not known. */
    uint64_t state(const std::string &text) const;

  private:
    Machine nodes;
    std::vector<std::string> environment;
    std::vector<Process *> ranks;
    std::string printed; /* by all runs */

    void start(const Script &script, Told &told);
    void wait_for_ranks();
    std::map<std::string, bool> datasets() const; /* of the index: whether complete */
    void check_dataset(const std::string &name) const;
    void check_path(const std::string &path,
                    const std::map<std::string, bool> &known) const;
};

} // namespace sim

#endif
