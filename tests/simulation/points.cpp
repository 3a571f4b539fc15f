/* SPDX-License-Identifier: BSD-3-Clause */
/* Many points, each judged in a process of its own; see points.h. */
#include "points.h"

#include "engine.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sim
{

namespace
{

constexpr unsigned PATIENCE = 300; /* seconds */
constexpr size_t SLOTS = 1 << 20;
constexpr uint64_t FAILURES_MAX = 20;

struct Options {
    uint64_t part = 1, parts = 1;
    int jobs = 2;
    uint64_t most_failures = FAILURES_MAX; /* of a kind, which then ends */
    const char *only = "", *point = nullptr;
} options;

/* Counters of all processes of a kind, and the states that they have seen. */
struct Figures {
    std::atomic<uint64_t> points, judged, failed;
    std::atomic<uint64_t> seen[SLOTS];
};

Figures *figures;
uint64_t points_of_all, judged_of_all, failed_of_all;
std::string name; /* of the kind, or of the point that this process plays */
std::map<pid_t, std::string> children;
bool is_timed = false; /* this process ends after PATIENCE without an event */

void wait_for_child()
{
    int status;
    const pid_t pid = wait(&status);
    const auto child = children.find(pid);
    if (child == children.end()) return;
    if (WIFSIGNALED(status))
        printf("FAILED %s: signal %d\n", child->second.c_str(), WTERMSIG(status));
    figures->failed += status != 0;
    children.erase(child);
    if (is_timed) alarm(PATIENCE);
}

[[noreturn]] void play_part(int nodes, const std::function<void()> &part)
{
    is_timed = true;
    alarm(PATIENCE);
    children.clear();
    prepare(nodes, 1024);
    simgrid::s4u::Actor::create("director", simgrid::s4u::Host::by_name("head0"),
                                [&part] {
                                    part();
                                    Points::wait();
                                    fflush(nullptr);
                                    _exit(0);
                                });
    simgrid::s4u::Engine::get_instance()->run();
    Points::fail("the simulation ended by itself");
}

[[noreturn]] void end_process(int status)
{
    if (options.point)
        for (const auto &p : machine->processes)
            fputs(p->printed.c_str(), stdout);
    fflush(nullptr);
    _exit(status);
}

bool read_part(const char *text)
{
    return sscanf(text, "%lu/%lu", &options.part, &options.parts) == 2 &&
           options.part >= 1 && options.part <= options.parts;
}

} // namespace

bool Points::read_options(int argc, char **argv, const char *other_name,
                          const std::function<void(const char *)> &other)
{
    const struct option known[] = {{"part", 1, nullptr, 'p'},
                                   {"jobs", 1, nullptr, 'j'},
                                   {"only", 1, nullptr, 'o'},
                                   {"point", 1, nullptr, 't'},
                                   {"until-failure", 0, nullptr, 'u'},
                                   {other_name, 1, nullptr, 'x'},
                                   {}};
    bool good = true;
    int c;
    while (good && (c = getopt_long(argc, argv, "", known, nullptr)) >= 0) {
        if (c == 'p')
            good = read_part(optarg);
        else if (c == 'j')
            options.jobs = std::max(1, atoi(optarg));
        else if (c == 'o')
            options.only = optarg;
        else if (c == 't')
            options.point = optarg;
        else if (c == 'u')
            options.most_failures = 1;
        else if (c == 'x')
            other(optarg);
        else
            good = false;
    }
    if (good && optind == argc) return true;
    fprintf(stderr,
            "usage: %s [--part K/N] [--jobs N] [--only TEXT] [--point TEXT] "
            "[--until-failure]",
            argv[0]);
    fprintf(stderr, other_name ? " [--%s N]\n" : "\n", other_name);
    return false;
}

void Points::kind(const std::string &kind, int nodes,
                  const std::vector<std::function<void()>> &parts)
{
    name = kind;
    if (kind.find(options.only) == std::string::npos || !leads("")) return;
    if (failed_of_all && options.most_failures == 1) return;
    const auto start = std::chrono::steady_clock::now();
    figures =
        static_cast<Figures *>(mmap(nullptr, sizeof *figures, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (figures == MAP_FAILED) abort();
    for (const auto &part : parts) {
        fflush(nullptr);
        const pid_t child = fork();
        if (child == 0) play_part(nodes, part);
        children[child] = kind;
        wait_for_child();
    }
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    if (figures->points || figures->failed)
        printf("%s: %lu points, %lu judged, %lu failed%s (%.0f s)\n", kind.c_str(),
               figures->points.load(), figures->judged.load(), figures->failed.load(),
               figures->failed >= options.most_failures ? "; it was given up" : "",
               seconds.count());
    points_of_all += figures->points;
    judged_of_all += figures->judged;
    failed_of_all += figures->failed;
    munmap(figures, sizeof *figures);
    fflush(stdout);
}

int Points::end()
{
    printf("%lu points, %lu judged, %lu failed\n", points_of_all, judged_of_all,
           failed_of_all);
    return failed_of_all || !judged_of_all;
}

bool Points::is_chosen(uint64_t number, const std::string &what, uint64_t every)
{
    if (figures->failed >= options.most_failures) return false;
    if (options.point) return leads(what);
    return every ? number % every == 0 : number % options.parts == options.part - 1;
}

bool Points::leads(const std::string &what)
{
    const std::string text = name + what;
    return !options.point || strncmp(text.c_str(), options.point, text.size()) == 0;
}

bool Points::is_child(const std::string &what, bool alone)
{
    while (static_cast<int>(children.size()) >= options.jobs)
        wait_for_child();
    fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) fail("no process");
    if (child == 0) {
        name += what;
        children.clear();
        is_timed = true;
        alarm(PATIENCE);
        return true;
    }
    children[child] = name + what;
    if (alone) wait();
    return false;
}

void Points::count()
{
    figures->points++;
    figures->judged++;
}

void Points::count_same()
{
    figures->points++;
}

bool Points::is_new(uint64_t hash)
{
    hash += hash == 0;
    for (size_t i = 0; i < SLOTS; i++) {
        uint64_t found = 0;
        auto &slot = figures->seen[(hash + i) % SLOTS];
        if (slot.compare_exchange_strong(found, hash)) return true;
        if (found == hash) return false;
    }
    return true;
}

void Points::wait()
{
    while (!children.empty())
        wait_for_child();
}

void Points::fail(const std::string &why)
{
    printf("FAILED %s: %s\n", name.c_str(), why.c_str());
    end_process(1);
}

void Points::pass()
{
    end_process(0);
}

} // namespace sim
