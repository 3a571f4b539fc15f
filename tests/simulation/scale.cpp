/* SPDX-License-Identifier: BSD-3-Clause */
/* scale: the cost of a checkpoint, a flush and a restart on many nodes.
 *
 *   scale NODES...     one rank per node, XOR
 *
 * A run writes three checkpoints, of which the second is flushed, and is killed. Three
 * nodes in three sets lose their disks. The next run rebuilds their files and restarts
 * from the newest checkpoint in the cache. Prints a row for each step, with columns
 * separated by tabs: collective calls of rank 0; messages and bytes that the product
 * sends, and system calls, of all ranks and of the busiest one; the maximum of the
 * product's memory in bytes, of the rank with the largest; virtual time. The results are
 * the same on each machine. scale.py makes tables of them. */
#include "application.h"
#include "engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <scr.h>
#include <smpi/smpi.h>
#include <sys/wait.h>
#include <unistd.h>

namespace s4u = simgrid::s4u;
using namespace sim;

namespace
{

constexpr size_t FILE_BYTES = 4096;
constexpr int SET_SIZE = 8; /* the default of SCR_SET_SIZE */
int nodes;
std::vector<Process *> ranks;

[[noreturn]] void give_up(const std::string &text)
{
    for (const auto &p : machine->processes)
        fputs(p->printed.c_str(), stderr);
    fprintf(stderr, "scale: %s\n", text.c_str());
    _exit(1);
}

void need(int code, const char *what)
{
    if (code != SCR_SUCCESS) give_up(std::string(what) + ": " + SCR_Strerror(code));
}

/* ---- a row of the table: the cost of a call on all ranks ---- */

struct Count {
    uint64_t messages, bytes, calls, prefix_calls;
};

struct Moment {
    std::vector<Count> ranks;
    uint64_t collectives;
    double time;
};

Moment now()
{
    Moment m{{}, ranks[0]->traffic.collectives, machine->now()};
    for (Process *p : ranks) {
        m.ranks.push_back(
            {p->traffic.messages, p->traffic.bytes, p->calls, p->prefix_calls});
        p->most_memory = p->memory;
    }
    return m;
}

/* The sum over all ranks, and the maximum. */
struct Sum {
    uint64_t all = 0, most = 0;

    Sum(const Moment &from, const Moment &to, uint64_t Count::*what)
    {
        for (size_t i = 0; i < ranks.size(); i++) {
            const uint64_t more = to.ranks[i].*what - from.ranks[i].*what;
            all += more;
            most = std::max(most, more);
        }
    }
};

void print_row(const char *name, const Moment &from)
{
    size_t memory = 0;
    for (const Process *p : ranks)
        memory = std::max(memory, p->most_memory);
    const Moment to = now();
    const Sum messages(from, to, &Count::messages), bytes(from, to, &Count::bytes),
        calls(from, to, &Count::calls), prefix(from, to, &Count::prefix_calls);
    printf("%d\t%s\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%.1f\n", nodes, name,
           to.collectives - from.collectives, messages.all, messages.most, bytes.all,
           calls.all, calls.most, prefix.all, memory, 1e3 * (to.time - from.time));
    fflush(stdout);
}

/* Calls step on all ranks at once; rank 0 prints the cost. */
template <typename Step> void row(int rank, const char *name, Step step)
{
    static Moment before;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) before = now();
    MPI_Barrier(MPI_COMM_WORLD);
    step();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) print_row(name, before);
}

/* ---- the application ---- */

std::string file_of(const std::string &name, int rank)
{
    return name + "/rank_" + std::to_string(rank);
}

void checkpoint(const std::string &name, int rank)
{
    char path[SCR_MAX_FILENAME];
    need(SCR_Start_output(name.c_str(), SCR_FLAG_CHECKPOINT), "SCR_Start_output");
    need(SCR_Route_file(file_of(name, rank).c_str(), path), "SCR_Route_file");
    if (!write_file(path, content(name, rank, FILE_BYTES)))
        give_up("a file could not be written");
    need(SCR_Complete_output(1), "SCR_Complete_output");
}

void restart(const std::string &wanted, int rank)
{
    char name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    int flag = 0;
    row(rank, "SCR_Have_restart",
        [&] { need(SCR_Have_restart(&flag, name), "SCR_Have_restart"); });
    if (!flag || wanted != name)
        give_up("SCR offers " + std::string(flag ? name : "nothing"));
    need(SCR_Start_restart(name), "SCR_Start_restart");
    need(SCR_Route_file(file_of(name, rank).c_str(), path), "SCR_Route_file");
    std::string bytes;
    if (!read_file(path, FILE_BYTES + 1, bytes) ||
        bytes != content(name, rank, FILE_BYTES))
        give_up("wrong bytes");
    need(SCR_Complete_restart(1), "SCR_Complete_restart");
}

int application(const Process &p)
{
    const int rank = p.rank;
    MPI_Init(nullptr, nullptr);
    const bool first = p.job == 0;
    row(rank, first ? "SCR_Init" : "SCR_Init, rebuild",
        [] { need(SCR_Init(), "SCR_Init"); });
    if (first) {
        row(rank, "checkpoint", [&] { checkpoint("one", rank); });
        row(rank, "checkpoint, flushed", [&] { checkpoint("two", rank); });
        row(rank, "checkpoint, one leaves", [&] { checkpoint("three", rank); });
    } else {
        restart("three", rank);
        row(rank, "SCR_Finalize, flush", [] { need(SCR_Finalize(), "SCR_Finalize"); });
    }
    MPI_Finalize();
    return 0;
}

/* ---- the machine ---- */

void run(int number)
{
    const std::vector<std::string> environment = {
        "SCR_PREFIX=/prefix", "SCR_CACHE_BASE=/cache", "SCR_CNTL_BASE=/control",
        "SCR_JOB_ID=17",      "SCR_USER_NAME=user",    "PATH=/bin",
        "SCR_COPY_TYPE=XOR",  "SCR_CACHE_SIZE=2",      "SCR_FLUSH=2"};
    SMPI_app_instance_register(("run" + std::to_string(number)).c_str(), nullptr, nodes);
    ranks.clear();
    for (int rank = 0; rank < nodes; rank++) {
        Node &node = *machine->nodes[static_cast<size_t>(rank)];
        machine->make_directories(node);
        ranks.push_back(
            &machine->spawn(node, "application", environment, number, rank, application));
    }
    while (std::any_of(ranks.begin(), ranks.end(), [](Process *p) { return !p->ended; }))
        s4u::this_actor::sleep_for(0.01);
    machine->bury(number);
}

void direct()
{
    static Machine all(1, nodes, Crash::XFS);
    run(0);
    /* for i < sets, node i is in set i */
    const int sets = nodes / SET_SIZE, lost = std::min(3, sets);
    for (int i = 0; i < lost; i++)
        machine->nodes[static_cast<size_t>(sets / lost * i)]->disk->erase();
    run(1);
    fflush(stdout);
    _exit(0);
}

} // namespace

[[noreturn]] static void one()
{
    prepare(nodes, 256);
    s4u::Actor::create("director", s4u::Host::by_name("head0"), direct);
    s4u::Engine::get_instance()->run();
    _exit(1);
}

int main(int argc, char **argv)
{
    int status;
    puts("nodes\tstep\tcollectives\tmessages\tmost\tbytes\tsystem calls\tmost\ton the "
         "prefix directory\tmemory\tvirtual ms");
    counts_memory = true;
    for (int i = 1; i < argc; i++) {
        nodes = atoi(argv[i]);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) one();
        if (waitpid(child, &status, 0) != child || status != 0) return 1;
    }
    return 0;
}
