/* SPDX-License-Identifier: BSD-3-Clause */
/* scale: what a checkpoint, a flush and a restart cost on many nodes.
 *
 *   scale NODES...     one rank per node, XOR
 *
 * A run writes three checkpoints, of which the second is flushed, and is killed. Three
 * nodes in three sets lose their disks. The next run rebuilds their files and restarts
 * from the newest checkpoint, in the cache. Prints a row for each step: messages and
 * bytes that the product sends, collective calls, system calls, and virtual time. The
 * same on each machine. */
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

/* ---- a row of the table: what all ranks did in one call ---- */

struct Count {
    Traffic traffic;
    uint64_t calls;
};

struct Moment {
    std::vector<Count> ranks;
    double time;
};

Moment now()
{
    Moment m{{}, machine->now()};
    for (const Process *p : ranks)
        m.ranks.push_back({p->traffic, p->calls});
    return m;
}

void print_row(const char *name, const Moment &before, const Moment &after)
{
    uint64_t messages = 0, most_messages = 0, bytes = 0, calls = 0, most_calls = 0;
    for (size_t i = 0; i < ranks.size(); i++) {
        const Traffic &a = before.ranks[i].traffic, &b = after.ranks[i].traffic;
        const uint64_t c = after.ranks[i].calls - before.ranks[i].calls;
        messages += b.messages - a.messages;
        most_messages = std::max(most_messages, b.messages - a.messages);
        bytes += b.bytes - a.bytes;
        calls += c;
        most_calls = std::max(most_calls, c);
    }
    const double n = nodes;
    printf("| %d | %s | %lu | %.1f | %lu | %.0f | %.1f | %lu | %.1f |\n", nodes, name,
           after.ranks[0].traffic.collectives - before.ranks[0].traffic.collectives,
           static_cast<double>(messages) / n, most_messages,
           static_cast<double>(bytes) / n, static_cast<double>(calls) / n, most_calls,
           1e3 * (after.time - before.time));
    fflush(stdout);
}

/* Calls step on all ranks at once; rank 0 prints what it cost. */
template <typename Step> void row(int rank, const char *name, Step step)
{
    static Moment before;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) before = now();
    MPI_Barrier(MPI_COMM_WORLD);
    step();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) print_row(name, before, now());
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
    /* node i < sets is in set i */
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
    puts("| nodes | step | collectives | messages/rank | most | bytes/rank | system "
         "calls/rank | most | virtual ms |\n"
         "| --: | --- | --: | --: | --: | --: | --: | --: | --: |");
    for (int i = 1; i < argc; i++) {
        nodes = atoi(argv[i]);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) one();
        if (waitpid(child, &status, 0) != child || status != 0) return 1;
    }
    return 0;
}
