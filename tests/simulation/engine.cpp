/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine: nodes, processes and time; see engine.h. */
#include "engine.h"

#include "context.h"
#include "libc.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <smpi/smpi.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace s4u = simgrid::s4u;

/* Exported by SimGrid without a declaration in its headers: applies the configured
 * selector. */
namespace simgrid::smpi::colls
{
void set_collectives();
}

/* Replaces the function of the C library for SimGrid and this program. SMPI asks for the
 * CPU time of the thread at each call, which costs a system call and is useless here. */
extern "C" int clock_gettime(clockid_t clock, struct timespec *time) noexcept
{
    if (clock != CLOCK_THREAD_CPUTIME_ID)
        return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
    *time = {};
    return 0;
}

extern "C" struct scr *simulated_context(size_t size)
{
    sim::Process &p = sim::Machine::self();
    if (p.context.empty()) p.context.resize(size);
    return reinterpret_cast<struct scr *>(p.context.data());
}

namespace sim
{

void prepare(int nodes, int stack)
{
    char name[] = "simulation", log[] = "--log=root.thres:critical",
         compute[] = "--cfg=smpi/simulate-computation:no";
    std::string size = "--cfg=contexts/stack-size:" + std::to_string(stack);
    char *arguments[] = {name, log, compute, size.data(), nullptr};
    int count = 4;
    char file[] = "/dev/shm/scr-platform-XXXXXX.xml";
    int fd = mkstemps(file, 4);
    dprintf(fd,
            "<?xml version='1.0'?><!DOCTYPE platform SYSTEM "
            "\"https://simgrid.org/simgrid.dtd\">"
            "<platform version=\"4.1\"><zone id=\"world\" routing=\"Full\">"
            "<cluster id=\"cluster\" prefix=\"n\" suffix=\"\" radical=\"0-%d\" "
            "speed=\"1Gf\" bw=\"1GBps\" lat=\"2us\"/>"
            "<cluster id=\"others\" prefix=\"head\" suffix=\"\" radical=\"0-0\" "
            "speed=\"1Gf\" bw=\"1GBps\" lat=\"2us\"/>"
            "</zone></platform>\n",
            nodes - 1);
    close(fd);
    static s4u::Engine engine(&count, arguments);
    SMPI_init();
    /* the default algorithms are linear: rank 0 sends to each rank, or each rank to each
     * rank */
    for (const char *choice :
         {"smpi/barrier:ompi_bruck", "smpi/bcast:binomial_tree", "smpi/allreduce:rdb",
          "smpi/allgather:bruck", "smpi/allgatherv:ompi_bruck",
          "smpi/gather:ompi_binomial", "smpi/iprobe:1e-6", "smpi/test:1e-6"})
        s4u::Engine::set_config(choice);
    simgrid::smpi::colls::set_collectives();
    engine.load_platform(file);
    unlink(file);
}

Machine *machine;

/* Seconds since the epoch at the start of every world. */
static constexpr double EPOCH = 1.6e9;

static constexpr uint64_t NODE_BYTES = 64u << 20, PARALLEL_BYTES = 1u << 30;

Machine::Machine(uint64_t seed, int count, Crash crash) : random(seed)
{
    machine = this;
    parallel = std::make_shared<Disk>(
        1, PARALLEL_BYTES, [this] { return EPOCH + now(); }, crash);
    for (int i = 0; i < count; i++) {
        auto node = std::make_unique<Node>();
        Node *n = node.get();
        n->number = i;
        n->name = "n" + std::to_string(i);
        n->host = s4u::Host::by_name(n->name);
        for (auto [disk, number] : {std::pair(&n->disk, 2 + i), {&n->shelf, 100 + i}})
            *disk = std::make_shared<Disk>(
                number, NODE_BYTES, [this, n] { return date(*n); }, crash);
        n->mounts = {{"/", n->disk}, {"/prefix", parallel}};
        nodes.push_back(std::move(node));
    }
}

double Machine::now() const
{
    return s4u::Engine::get_clock();
}

double Machine::date(const Node &node) const
{
    return EPOCH + now() + node.skew;
}

Process &Machine::self()
{
    return *s4u::Actor::self()->get_data<Process>();
}

Process &Machine::spawn(Node &node, const std::string &program,
                        std::vector<std::string> environment, int job, int rank,
                        std::function<int(Process &)> body)
{
    auto made = std::make_unique<Process>();
    Process *p = made.get();
    p->machine = this;
    p->node = &node;
    p->pid = ++last_pid;
    p->job = job;
    p->rank = rank;
    p->program = program;
    p->environment = std::move(environment);
    for (std::string &entry : p->environment)
        p->environ.push_back(entry.data());
    p->environ.push_back(nullptr);
    p->files = std::make_unique<Files>(&node.mounts, 1000, 1000, random.fork());
    p->files->cwd = "/prefix";
    processes.push_back(std::move(made));
    s4u::ActorPtr actor =
        s4u::Actor::init(program + "." + std::to_string(p->pid), node.host);
    actor->set_data(p);
    if (rank >= 0) {
        actor->set_property("instance_id", "run" + std::to_string(job));
        actor->set_property("rank", std::to_string(rank));
    }
    p->actors.push_back(actor);
    actor->start([p, body] {
        p->status = body(*p) << 8;
        p->machine->end(*p);
    });
    return *p;
}

/* Ends a process and its threads. SMPI aborts if a message goes to an actor that is gone,
 * so the actor remains but never runs again. */
void Machine::end(Process &process)
{
    process.ended = true;
    for (const s4u::ActorPtr &actor : process.actors)
        if (actor != s4u::Actor::self()) actor->suspend();
    process.files.reset();
}

void Machine::kill(Process &process)
{
    if (process.ended) return;
    process.status = 9;
    end(process);
}

void Machine::bury(int job)
{
    for (const auto &p : processes) {
        if (p->job != job || !p->ended) continue;
        for (const s4u::ActorPtr &actor : p->actors)
            actor->kill();
        p->actors.clear();
    }
}

void Machine::power_off(Node &node)
{
    node.up = false;
    for (const auto &p : processes)
        if (p->node == &node) kill(*p);
}

void Machine::power_on(Node &node)
{
    node.up = true;
}

void Machine::exchange_disk(Node &node)
{
    std::swap(node.disk, node.shelf);
    node.mounts["/"] = node.disk;
}

void Machine::make_directories(Node &node)
{
    Files root(&node.mounts, 0, 0, Random(0));
    for (const char *path : {"/prefix", "/cache", "/cache2", "/control"}) {
        root.mkdirat(AT_FDCWD, path, 0777);
        root.fchmodat(AT_FDCWD, path, 01777);
    }
    node.disk->sync();
}

/* Returns the duration of a call in seconds. Durations differ, so that processes meet in
 * any order. */
static double duration(Random &random, const Call &call)
{
    return 1e-9 * static_cast<double>(call.changes ? random.between(2000, 50000)
                                                   : random.between(200, 2000));
}

Fate Machine::enter(const Call &call)
{
    Process &p = self();
    p.calls++;
    p.transfers += call.moves;
    const bool on_prefix = call.path.rfind("/prefix", 0) == 0;
    p.prefix_calls += on_prefix;
    p.prefix_changes += on_prefix && call.changes;
    for (const char *c = call.name; *c; c++)
        trace = (trace ^ static_cast<unsigned char>(*c)) * 1099511628211u;
    trace = (trace ^ p.calls ^ static_cast<uint64_t>(p.pid) << 32) * 1099511628211u;
    if (call.changes || p.calls % 4 == 0)
        s4u::this_actor::sleep_for(duration(random, call));
    const Fate fate = strike ? strike(p, call) : Fate{};
    simulated_environ = p.environ.data();
    return fate;
}

} // namespace sim
