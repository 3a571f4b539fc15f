/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_JOB_H
#define SIMULATION_JOB_H

/* A job on simulated nodes, in a process of Points: its runs, losses of nodes, and the
 * checks after its end. A mistake makes the point fail. */

#include "engine.h"

#include <map>
#include <string>
#include <vector>

namespace sim
{

/* A node of a run and its number of ranks; ranks are in the order of nodes. */
struct Station {
    int node, ranks;
};
using Layout = std::vector<Station>;

int ranks_of(const Layout &layout);

/* The actions of all ranks of a run, in this order. */
struct Script {
    std::vector<std::string> descriptors; /* for SCR_Config */
    std::vector<std::string> environment; /* precedes that of the job */
    bool restarts = false;
    std::vector<std::string> outputs; /* names; those without "o" are checkpoints */
    std::string tag;                  /* tag of their bytes; or "" */
    std::string known_tag;            /* tag of bytes that it may read, besides untagged
                                       * ones */
    bool finalizes = false;
};

/* Results that SCR reported to the ranks. */
struct Told {
    std::string offered;                /* "": nothing */
    std::string tag;                    /* of the bytes that were read */
    std::vector<std::string> completed; /* outputs that any rank completed */
    std::string printed;                /* output of SCR */

    /* Counts the messages with that identifier and these texts. */
    int messages(const char *identifier, const std::vector<std::string> &texts) const;
};

class Job
{
  public:
    /* Nodes that are not in the layout are spare. */
    Job(int count, std::vector<std::string> environment);

    Layout layout;
    int number = -1;           /* number of the run */
    bool is_disturbed = false; /* calls may fail, with the same code on all ranks */

    Told run(const Script &script);
    void lose(int node); /* the node is empty afterwards */
    void lose_all();     /* all nodes and the prefix directory are empty afterwards */

    /* Checks after a run that called SCR_Finalize: complete datasets on the prefix
     * directory have their bytes; these outputs are among them; nothing else is on the
     * prefix directory or the nodes; and no process runs. printed: output of all runs. */
    void check_end(const std::vector<std::string> &outputs);

    /* Returns a hash of all disks and the text; 0 while a process runs, since its state
     * is unknown. */
    uint64_t state(const std::string &text) const;

  private:
    Machine nodes;
    std::vector<std::string> environment;
    std::vector<Process *> ranks;
    std::string printed; /* output of all runs */

    void start(const Script &script, Told &told);
    void wait_for_ranks();
    std::map<std::string, bool> datasets() const; /* in the index: name -> whether it is
                                                   * complete */
    void check_dataset(const std::string &name) const;
    void check_path(const std::string &path,
                    const std::map<std::string, bool> &known) const;
};

} // namespace sim

#endif
