/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate: plays worlds that seeds determine.
 *
 *   simulate --seed N          one world: its story, the product's output, the verdict
 *
 *   simulate --from A --to B   seeds A to B - 1, each in its own process; prints failures
 */
#include "world.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

using namespace sim;

static bool verbose;
static uint64_t current;

[[noreturn]] static void tell(const Verdict &v)
{
    if (verbose) fputs(v.printed.c_str(), stdout);
    if (verbose || !v.good)
        printf("seed %lu: %s%s%s (%lu calls, %d strikes, trace %016lx)\n", current,
               v.good ? "good" : "FAILED", v.good ? "" : ": ", v.text.c_str(), v.calls,
               v.struck, v.trace);
    fflush(nullptr);
    _exit(v.good ? 0 : 1);
}

[[noreturn]] static void one(uint64_t seed)
{
    current = seed;
    const Story story = draw(seed);
    if (verbose) fputs(story.text().c_str(), stdout);
    fflush(nullptr);
    play(story, tell);
}

static int many(uint64_t from, uint64_t to, int jobs)
{
    int running = 0, failed = 0, status;
    std::map<pid_t, uint64_t> seeds;
    uint64_t next = from;
    while (next < to || running) {
        if (next < to && running < jobs) {
            fflush(nullptr);
            pid_t child = fork();
            if (child == 0) {
                alarm(60);
                one(next);
            }
            seeds[child] = next++;
            running++;
            continue;
        }
        pid_t child = wait(&status);
        if (child < 0) break;
        running--;
        if (status != 0) failed++;
        if (WIFSIGNALED(status))
            printf("seed %lu: signal %d\n", seeds[child], WTERMSIG(status));
        seeds.erase(child);
    }
    printf("%lu worlds, %d failed\n", to - from, failed);
    return failed != 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seed", 1, nullptr, 's'},
                                            {"from", 1, nullptr, 'f'},
                                            {"to", 1, nullptr, 't'},
                                            {"jobs", 1, nullptr, 'j'},
                                            {}};
    uint64_t seed = 0, from = 0, to = 0;
    int c, jobs = 2;
    while ((c = getopt_long(argc, argv, "", options, nullptr)) >= 0) {
        if (c == 's')
            seed = strtoull(optarg, nullptr, 10), verbose = true;
        else if (c == 'f')
            from = strtoull(optarg, nullptr, 10);
        else if (c == 't')
            to = strtoull(optarg, nullptr, 10);
        else if (c == 'j')
            jobs = atoi(optarg);
        else
            return 2;
    }
    char name[] = "simulate", log[] = "--log=root.thres:critical",
         compute[] = "--cfg=smpi/simulate-computation:no",
         stack[] = "--cfg=contexts/stack-size:1024";
    char *arguments[] = {name, log, compute, stack, nullptr};
    int count = 4;
    prepare(&count, arguments, 16);
    if (to > from) return many(from, to, jobs);
    one(seed);
}
