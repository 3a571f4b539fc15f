/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate: plays worlds that are determined by seeds.
 *
 *   simulate --seed N [PART]    one world: its story, the product's output, the verdict
 *   simulate --seed N --shrink  a part of a world that fails for the same reason
 *   simulate --from A --to B    seeds A to B - 1, each in its own process; failures
 *   simulate --seeds FILE       the numbers at the beginning of lines, which may be
 *                               followed by --without PARAMETER
 *   simulate --campaign FILE --to N
 *                               seeds up to N - 1 that are not in FILE yet, which gets
 *                               the failures
 *
 * PART: --nodes N, --ranks N (per node), --runs N, --steps N (per run), --without-step K,
 * --without-strike K, --without PARAMETER. Others: --jobs N, --until-failure, --files
 * (lists the files that remain on all disks). */
#include "trials.h"
#include "world.h"

#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <unistd.h>

using namespace sim;

static bool verbose, listing;
static uint64_t current;

namespace
{
struct Options {
    uint64_t seed = 0, from = 0, to = 0;
    int jobs = 2;
    bool shrink = false, until_failure = false;
    const char *campaign = nullptr, *seeds = nullptr;
    Part part;
};
} // namespace

[[noreturn]] static void print_verdict(const Verdict &v)
{
    if (verbose) fputs(v.printed.c_str(), stdout);
    if (listing) fputs(v.files.c_str(), stdout);
    if (verbose || !v.good)
        printf("seed %lu: %s%s%s (%lu calls, %d strikes, trace %016lx)\n", current,
               v.good ? "good" : "FAILED", v.good ? "" : ": ", v.text.c_str(), v.calls,
               v.struck, v.trace);
    fflush(nullptr);
    _exit(v.good ? 0 : 1);
}

static Story story_of(uint64_t seed, const Part &part)
{
    Story story = draw(seed);
    reduce(story, part);
    return story;
}

[[noreturn]] static void one(uint64_t seed, const Part &part)
{
    current = seed;
    const Story story = story_of(seed, part);
    if (verbose) fputs(story.text().c_str(), stdout);
    fflush(nullptr);
    play(story, print_verdict);
}

/* Reports and counts failures. */
static bool report(const Outcome &o, int &failed, bool until_failure)
{
    if (!o.good) puts(o.text.c_str());
    fflush(stdout);
    failed += !o.good;
    return o.good || !until_failure;
}

static int many(const Trials &trials, const Options &o)
{
    int failed = 0;
    trials.run(o.from, o.to, [&](const Outcome &outcome) {
        return report(outcome, failed, o.until_failure);
    });
    printf("%lu worlds, %d failed\n", o.to - o.from, failed);
    return failed != 0;
}

static int listed(const Trials &trials, const char *file)
{
    char line[1000], name[64];
    unsigned long seed;
    int failed = 0, count = 0;
    FILE *list = fopen(file, "r");
    if (!list) return perror(file), 2;
    while (fgets(line, sizeof line, list)) {
        Part part;
        int at = 0, more = 0;
        if (sscanf(line, "%lu%n", &seed, &at) != 1) continue;
        for (; sscanf(line + at, " --without %63s%n", name, &more) == 1; at += more)
            part.without.insert(name);
        count++;
        report(trials.one(seed, part), failed, false);
    }
    fclose(list);
    printf("%d worlds, %d failed\n", count, failed);
    return failed != 0;
}

static int shrink(const Trials &trials, const Options &o)
{
    const Part part = trials.shrink(draw(o.seed), o.part);
    printf("%s", story_of(o.seed, part).text().c_str());
    printf("simulate --seed %lu%s\n", o.seed, part.text().c_str());
    return 0;
}

static bool read_option(int c, Options &o)
{
    const uint64_t number = optarg ? strtoull(optarg, nullptr, 10) : 0;
    const int small = static_cast<int>(number);
    switch (c) {
    case 's':
        o.seed = number;
        verbose = true;
        break;
    case 'f':
        o.from = number;
        break;
    case 't':
        o.to = number;
        break;
    case 'j':
        o.jobs = small;
        break;
    case 'l':
        listing = true;
        break;
    case 'u':
        o.until_failure = true;
        break;
    case 'z':
        o.shrink = true;
        break;
    case 'c':
        o.campaign = optarg;
        break;
    case 'e':
        o.seeds = optarg;
        break;
    case 'n':
        o.part.nodes = small;
        break;
    case 'r':
        o.part.ranks_per_node = small;
        break;
    case 'R':
        o.part.runs = small;
        break;
    case 'S':
        o.part.steps = small;
        break;
    case 'p':
        o.part.without_steps.insert(small);
        break;
    case 'k':
        o.part.without_strikes.insert(small);
        break;
    case 'w':
        o.part.without.insert(optarg);
        break;
    default:
        return false;
    }
    return true;
}

static bool read_options(int argc, char **argv, Options &o)
{
    static const struct option options[] = {{"seed", 1, nullptr, 's'},
                                            {"from", 1, nullptr, 'f'},
                                            {"to", 1, nullptr, 't'},
                                            {"jobs", 1, nullptr, 'j'},
                                            {"files", 0, nullptr, 'l'},
                                            {"until-failure", 0, nullptr, 'u'},
                                            {"shrink", 0, nullptr, 'z'},
                                            {"campaign", 1, nullptr, 'c'},
                                            {"seeds", 1, nullptr, 'e'},
                                            {"nodes", 1, nullptr, 'n'},
                                            {"ranks", 1, nullptr, 'r'},
                                            {"runs", 1, nullptr, 'R'},
                                            {"steps", 1, nullptr, 'S'},
                                            {"without-step", 1, nullptr, 'p'},
                                            {"without-strike", 1, nullptr, 'k'},
                                            {"without", 1, nullptr, 'w'},
                                            {}};
    int c;
    while ((c = getopt_long(argc, argv, "", options, nullptr)) >= 0)
        if (!read_option(c, o)) return false;
    return true;
}

int main(int argc, char **argv)
{
    Options o;
    if (!read_options(argc, argv, o)) return 2;
    prepare(16, 1024);
    if (o.campaign || o.shrink) verbose = false;
    const Trials trials(o.jobs, one);
    if (o.campaign) return trials.campaign(o.campaign, o.to) != 0;
    if (o.seeds) return listed(trials, o.seeds);
    if (o.shrink) return shrink(trials, o);
    if (o.to > o.from) return many(trials, o);
    one(o.seed, o.part);
}
