/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws a story from a seed; see story.h. */
#include "story.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

namespace sim
{

int Run::ranks() const
{
    return std::accumulate(counts.begin(), counts.end(), 0);
}

int Run::node_of(int rank) const
{
    size_t i = 0;
    for (; rank >= counts[i]; i++)
        rank -= counts[i];
    return machines[i];
}

static Protection draw_scheme(Random &r, int nodes)
{
    const uint64_t scheme = r.below(4);
    if (nodes < 2 || scheme == 0) return {{"SINGLE"}};
    if (scheme == 1) return {{"PARTNER"}};
    if (scheme == 2) return {{"XOR"}, static_cast<int>(r.between(2, 8))};
    return {{"RS", static_cast<int>(r.between(1, nodes > 3 ? 2 : 1))}};
}

/* Returns the fields as names and values. */
static std::vector<std::pair<std::string, std::string>> fields_of(const Protection &p)
{
    std::vector<std::pair<std::string, std::string>> list = {{"TYPE", p.scheme.type}};
    if (p.scheme.type == "XOR" || p.scheme.type == "RS")
        list.push_back({"SET_SIZE", std::to_string(p.set_size)});
    if (p.scheme.failures)
        list.push_back({"SET_FAILURES", std::to_string(p.scheme.failures)});
    return list;
}

/* Draws schemes: as parameters, or as two descriptors with a store each. */
static void draw_schemes(Story &s, Random &r)
{
    const int nodes = static_cast<int>(s.runs[0].machines.size());
    const Protection one = draw_scheme(r, nodes), other = draw_scheme(r, nodes);
    s.schemes = {one};
    if (!r.chance(0.25)) {
        for (const auto &[name, value] : fields_of(one))
            s.parameters.push_back(
                {name == "TYPE" ? "SCR_COPY_TYPE" : "SCR_" + name, value});
        return;
    }
    s.parameters.push_back({"SCR_COPY_TYPE", "FILE"});
    s.schemes.push_back(other);
    auto describe = [&](std::string text, const Protection &p) {
        for (const auto &[name, value] : fields_of(p))
            text += " " + name + "=" + value;
        s.descriptors.push_back(text);
    };
    s.descriptors.push_back("STORE=/cache");
    s.descriptors.push_back("STORE=/cache2");
    describe("CKPT=0 INTERVAL=1 STORE=/cache", one);
    describe("CKPT=1 INTERVAL=" + std::to_string(r.between(2, 3)) + " STORE=/cache2",
             other);
}

static void draw_parameters(Story &s, Random &r)
{
    auto set = [&](const char *name, int64_t value) {
        s.parameters.push_back({name, std::to_string(value)});
    };
    draw_schemes(s, r);
    const int flush = r.of(std::vector<int>{0, 1, 1, 1, 2, 3});
    const bool background = r.chance(0.4);
    set("SCR_FLUSH", flush);
    set("SCR_FLUSH_ASYNC", background);
    s.background = background;
    if (r.chance(0.3))
        s.parameters.push_back({"SCR_FLUSH_TYPE", r.chance(0.5) ? "PTHREAD" : "DAEMON"});
    s.room = static_cast<int>(r.between(1, 3));
    set("SCR_CACHE_SIZE", s.room);
    if (r.chance(0.3)) s.retention = static_cast<int>(r.between(1, 3));
    if (s.retention) set("SCR_PREFIX_SIZE", s.retention);
    s.packs = r.chance(0.3);
    if (s.packs) set("SCR_USE_CONTAINERS", 1);
    const bool checksum = r.chance(0.8);
    if (!checksum) set("SCR_CRC_ON_FLUSH", 0);
    if (r.chance(0.2)) set("SCR_CRC_ON_DELETE", 1);
    s.bypass = r.chance(0.1);
    if (s.bypass) set("SCR_CACHE_BYPASS", 1);
    s.checked = checksum && !s.bypass;
    s.flushes = flush > 0;
    s.flushes_each = s.bypass || (flush == 1 && !background);
}

static Step draw_step(Random &r)
{
    Step step;
    step.output = r.chance(0.2);
    step.checkpoint = !step.output || r.chance(0.4);
    step.files = static_cast<int>(r.between(0, 3));
    step.size = r.chance(0.2) ? r.between(0, 3) : r.between(1, 30000);
    step.bad = r.chance(0.05);
    step.compute = r.chance(0.5) ? 0.01 : r.real() * 10;
    return step;
}

/* ---- strikes ---- */

static Blow draw_blow(Random &r)
{
    static const struct {
        Blow blow;
        int weight;
    } table[] = {{Blow::KILL_RANK, 12},  {Blow::LOSE_NODE, 12}, {Blow::CRASH_NODE, 8},
                 {Blow::KILL_RUN, 8},    {Blow::CRASH_ALL, 12}, {Blow::CRASH_SERVER, 6},
                 {Blow::LOSE_SERVER, 4}, {Blow::ERROR, 24},     {Blow::SHORT, 6},
                 {Blow::INTERRUPT, 4},   {Blow::PAUSE, 4},      {Blow::CLOCK, 4},
                 {Blow::FLIP, 12},       {Blow::COPY, 6},       {Blow::STALE, 6}};
    int sum = 0, at;
    for (const auto &row : table)
        sum += row.weight;
    at = static_cast<int>(r.below(static_cast<uint64_t>(sum)));
    for (const auto &row : table)
        if ((at -= row.weight) < 0) return row.blow;
    return Blow::ERROR;
}

static Counted draw_counted(Random &r, Blow blow)
{
    if (blow == Blow::SHORT || blow == Blow::INTERRUPT) return Counted::DATA;
    if (blow == Blow::CRASH_ALL || blow == Blow::CRASH_SERVER ||
        blow == Blow::LOSE_SERVER)
        return r.chance(0.7) ? Counted::PREFIX : Counted::ALL;
    return r.chance(0.2) ? Counted::PREFIX : r.chance(0.2) ? Counted::DATA : Counted::ALL;
}

static Strike draw_strike(Random &r, int ranks)
{
    static const int errors[] = {EIO, ENOSPC, EMFILE, EACCES, EDQUOT, ENOMEM};
    Strike strike{};
    strike.blow = draw_blow(r);
    strike.counted = draw_counted(r, strike.blow);
    /* rank 0 makes most changes on the prefix directory */
    strike.rank = static_cast<int>(r.below(static_cast<uint64_t>(ranks)));
    if (strike.counted == Counted::PREFIX && r.chance(0.5)) strike.rank = 0;
    const bool all = strike.counted == Counted::ALL;
    strike.at = static_cast<uint64_t>(1) << r.between(all ? 3 : 0, all ? 11 : 7);
    strike.at = strike.at + r.below(strike.at);
    strike.error = errors[r.below(sizeof errors / sizeof *errors)];
    strike.stays =
        strike.blow == Blow::CRASH_ALL
            ? r.chance(0.5)
            : (strike.error == ENOSPC || strike.error == EDQUOT || strike.error == EIO) &&
                  r.chance(0.3);
    const bool process = strike.blow == Blow::KILL_RANK || strike.blow == Blow::PAUSE ||
                         strike.blow == Blow::ERROR;
    if (process && r.chance(0.1)) strike.rank = -1;
    strike.on_prefix = r.chance(0.5);
    strike.seconds = strike.blow == Blow::PAUSE ? r.real() * 300 : 1e5 * (r.real() - 0.5);
    return strike;
}

/* ---- nodes ---- */

/* Replaces some nodes, or moves ranks to other nodes of the run. */
static void draw_machines(const Story &s, Random &r, std::vector<int> &machines)
{
    std::vector<int> spares;
    for (int i = 0; i < s.nodes; i++)
        if (std::find(machines.begin(), machines.end(), i) == machines.end())
            spares.push_back(i);
    for (int &machine : machines)
        if (!spares.empty() && r.chance(0.3))
            std::swap(machine, spares[r.below(spares.size())]);
    if (r.chance(0.2)) r.shuffle(machines);
}

static void draw_runs(Story &s, Random &r)
{
    const int runs = static_cast<int>(r.between(2, 4));
    const std::vector<int> first = s.runs[0].machines;
    s.jobs = r.chance(0.1);
    std::vector<int> machines = first;
    s.runs.clear();
    for (int i = 0; i < runs; i++) {
        Run run;
        if (i > 0 && r.chance(0.3)) draw_machines(s, r, machines);
        run.machines = machines;
        if (s.jobs && r.chance(0.5)) run.job = "18";
        if (i > 0 && machines.size() > 1 && r.chance(0.07)) run.machines.pop_back();
        run.counts.assign(run.machines.size(), s.ranks_per_node);
        const int steps = static_cast<int>(r.between(1, 4));
        for (int k = 0; k < steps; k++)
            run.steps.push_back(draw_step(r));
        const int strikes = static_cast<int>(r.between(0, 2));
        for (int k = 0; k < strikes; k++)
            run.strikes.push_back(draw_strike(r, run.ranks()));
        run.finalize = r.chance(0.8);
        s.runs.push_back(run);
    }
    int step = 0, strike = 0;
    for (Run &run : s.runs) {
        for (Step &what : run.steps)
            what.number = step++;
        for (Strike &what : run.strikes)
            what.number = strike++;
    }
    Run audit;
    audit.machines = first;
    audit.counts.assign(first.size(), s.ranks_per_node);
    audit.audit = true;
    audit.steps.resize(1); /* one checkpoint, since older ones need not stay in a cache */
    audit.steps[0].number = step;
    s.runs.push_back(audit);
}

/* ---- aspects with streams of their own, so that other parts of a world do not depend on
 * them ---- */

enum class Aspect {
    REFUSALS = 1,
    TWINS,
    HANGS,
    DELAYS,
    SECONDS,
    RANKS,
    LOSSES,
    DEATHS,
    FLIPS,
    WIDTH,
    FORM,
    SHARED
};

static Random stream_of(const Story &s, Aspect aspect)
{
    return Random(s.seed ^ static_cast<uint64_t>(aspect) << 56).fork();
}

/* The application refuses checkpoints, which reveals older ones. */
static void draw_refusals(Story &s)
{
    Random r = stream_of(s, Aspect::REFUSALS);
    for (Run &run : s.runs)
        if (!run.audit && r.chance(0.25)) run.refuses = static_cast<int>(r.between(1, 2));
}

/* Files are packed in containers of nodes. */
static void draw_form(Story &s)
{
    Random r = stream_of(s, Aspect::FORM);
    if (!s.packs || !r.chance(0.5)) return;
    s.align = r.of(std::vector<uint64_t>{1, 512, 4096, 65536});
    s.parameters.push_back({"SCR_FLUSH_FORM", "containers"});
    s.parameters.push_back({"SCR_FLUSH_ALIGN", std::to_string(s.align)});
    s.parameters.push_back({"SCR_CONTAINER_NODES", std::to_string(r.between(1, 3))});
}

static bool has_two_jobs(const Story &s)
{
    return std::any_of(s.runs.begin(), s.runs.end(),
                       [&s](const Run &run) { return run.job != s.runs[0].job; });
}

static int count_strikes(const Story &s)
{
    size_t count = 0;
    for (const Run &run : s.runs)
        count += run.strikes.size();
    return static_cast<int>(count);
}

static void add_strike(Story &s, size_t run, Strike strike)
{
    strike.number = count_strikes(s);
    s.runs[run].strikes.push_back(strike);
}

static void flush_nothing(Story &s)
{
    s.flushes = false;
    s.flushes_each = s.bypass;
    for (auto &[name, value] : s.parameters)
        if (name == "SCR_FLUSH") value = "0";
}

/* All nodes get empty disks, on which ids of datasets begin anew. Later one node gets its
 * old disk back. No clock jumps, and two jobs have no containers: known weaknesses in
 * docs/reliability.md. */
static void draw_twins(Story &s)
{
    Random r = stream_of(s, Aspect::TWINS);
    const size_t runs = s.runs.size() - 1;
    if (runs < 3 || !r.chance(0.2) || (s.packs && has_two_jobs(s))) return;
    Strike shelve{}, back{};
    const size_t first = r.below(runs - 2),
                 second = first + 1 + r.below(runs - 2 - first);
    shelve.blow = Blow::SHELVE;
    back.blow = Blow::RETURN;
    back.rank = r.of(s.runs[second].machines);
    add_strike(s, first, shelve);
    add_strike(s, second, back);
    for (Run &run : s.runs)
        for (Strike &strike : run.strikes)
            if (strike.blow == Blow::CLOCK) strike.seconds = 0;
    if (r.chance(0.5)) flush_nothing(s); /* no index knows the ids */
}

/* Adds a strike on a process of any run, with that probability. */
static void draw_one_more(Story &s, Aspect aspect, double probability, Blow blow)
{
    Random r = stream_of(s, aspect);
    if (!r.chance(probability)) return;
    Strike strike{};
    const size_t run = r.below(s.runs.size() - 1);
    strike.blow = blow;
    strike.rank = static_cast<int>(r.below(static_cast<uint64_t>(s.runs[run].ranks())));
    strike.at = static_cast<uint64_t>(1) << r.between(3, 10);
    strike.at += r.below(strike.at);
    strike.on_prefix = r.chance(0.7) && blow != Blow::FLIP;
    strike.seconds = r.real() * (blow == Blow::DELAY ? 0.01 : 3000);
    /* Two jobs have the same ids: retention counts in its own order, and of two datasets
     * with one id, a container of the second cannot be fetched beside one of the
     * first. */
    strike.stays = blow == Blow::SECOND && !s.retention && !s.packs && r.chance(0.5);
    s.jobs = s.jobs || strike.stays;
    add_strike(s, run, strike);
}

/* ---- other numbers of ranks ---- */

/* Some nodes leave, others come. */
static void change_machines(const Story &s, Random &r, std::vector<int> &machines)
{
    const int64_t leave = r.of(std::vector<int64_t>{0, 1, 1, 2}),
                  come = r.of(std::vector<int64_t>{0, 0, 1, 2});
    for (int64_t i = 0; i < leave && machines.size() > 1; i++)
        machines.erase(machines.begin() + static_cast<long>(r.below(machines.size())));
    for (int64_t i = 0; i < come; i++) {
        const int node = static_cast<int>(r.below(static_cast<uint64_t>(s.nodes)));
        if (std::find(machines.begin(), machines.end(), node) == machines.end())
            machines.insert(
                machines.begin() + static_cast<long>(r.below(machines.size() + 1)), node);
    }
    if (r.chance(0.3)) r.shuffle(machines);
}

/* Draws equal or different numbers of ranks per node. */
static void draw_counts(Random &r, Run &run)
{
    const int64_t most = run.machines.size() > 3 ? 2 : 3;
    const bool even = r.chance(0.6);
    const int count = static_cast<int>(r.between(1, most));
    run.counts.clear();
    for (size_t i = 0; i < run.machines.size(); i++)
        run.counts.push_back(even ? count : static_cast<int>(r.between(1, most)));
}

static void draw_reading(Random &r, Run &run)
{
    run.any = run.audit || r.chance(0.75);
    run.wants = static_cast<Wants>(r.between(1, 6));
    run.twice = r.chance(0.2);
    if (!run.any) run.wants = Wants::OWN;
}

/* Draws the shape of an earlier run, or more or fewer nodes than the previous run. */
static void draw_shape(Story &s, Random &r, size_t i, std::vector<int> &machines)
{
    Run &run = s.runs[i];
    if (i > 1 && r.chance(0.25)) {
        const Run &former = s.runs[r.below(i - 1)];
        run.machines = machines = former.machines;
        run.counts = former.counts;
        return;
    }
    if (i > 0 && r.chance(0.8)) change_machines(s, r, machines);
    run.machines = machines;
    draw_counts(r, run);
}

/* Each run has its own nodes and ranks. Nodes come back with their old content, so no
 * clock jumps: a known weakness. More often than elsewhere, runs end early and nothing is
 * flushed, so that the cache matters. */
static void draw_ranks(Story &s)
{
    Random r = stream_of(s, Aspect::RANKS);
    if (s.runs[0].machines.size() < 2 || !r.chance(0.33)) return;
    s.elastic = true;
    s.nodes = std::max(2, std::min(7, s.nodes + static_cast<int>(r.between(0, 2))));
    std::vector<int> machines = s.runs[0].machines;
    for (size_t i = 0; i < s.runs.size(); i++) {
        Run &run = s.runs[i];
        draw_shape(s, r, i, machines);
        draw_reading(r, run);
        if (!run.audit && r.chance(0.6)) run.finalize = false;
        for (Strike &strike : run.strikes) {
            if (strike.blow == Blow::CLOCK) strike.seconds = 0;
            if (strike.rank > 0 && strike.blow != Blow::RETURN)
                strike.rank %= run.ranks();
        }
    }
    if (r.chance(0.4)) flush_nothing(s);
}

/* Chooses the ranks that survive. */
static void leave_survivors(Random &r, Run &rest)
{
    const size_t stays = r.below(rest.machines.size());
    for (size_t i = rest.machines.size(); i-- > 0;) {
        if (r.chance(0.6)) continue;
        rest.counts[i] -= static_cast<int>(r.between(1, rest.counts[i]));
        if (i == stays) rest.counts[i] = std::max(1, rest.counts[i]);
        if (rest.counts[i] > 0) continue;
        rest.machines.erase(rest.machines.begin() + static_cast<long>(i));
        rest.counts.erase(rest.counts.begin() + static_cast<long>(i));
    }
}

/* Some runs continue without some of their ranks. A second run beside one of them would
 * take its caches meanwhile. */
static void draw_deaths(Story &s)
{
    Random r = stream_of(s, Aspect::DEATHS);
    int step = s.runs.back().steps.back().number;
    for (Run &run : s.runs) {
        const bool alone = std::none_of(
            run.strikes.begin(), run.strikes.end(),
            [](const Strike &strike) { return strike.blow == Blow::SECOND; });
        if (run.audit || !alone || !r.chance(0.3)) continue;
        Run rest;
        rest.job = run.job;
        rest.machines = run.machines;
        rest.counts = run.counts;
        leave_survivors(r, rest);
        rest.any = true;
        rest.wants = static_cast<Wants>(r.between(1, 6));
        rest.finalize = r.chance(0.5);
        for (int64_t i = r.between(0, 2); i > 0; i--) {
            rest.steps.push_back(draw_step(r));
            rest.steps.back().number = ++step;
        }
        run.any = true;
        if (run.wants == Wants::OWN) run.wants = Wants::BLOCK;
        run.within = r.chance(0.5);
        run.last = r.chance(0.5);
        run.rest = {rest};
    }
}

/* Few ranks copy at a time; the others wait. */
static void draw_width(Story &s)
{
    Random r = stream_of(s, Aspect::WIDTH);
    if (!r.chance(0.2)) return;
    const std::string width = std::to_string(r.between(1, 4));
    s.parameters.push_back({"SCR_FLUSH_WIDTH", width});
    s.parameters.push_back({"SCR_FETCH_WIDTH", width});
}

/* Some datasets have a shared file of all ranks. */
static void draw_shared(Story &s)
{
    Random r = stream_of(s, Aspect::SHARED);
    if (!r.chance(0.3)) return;
    s.shared = true;
    auto draw_step = [&r](Step &step) {
        if (!r.chance(0.8)) return;
        step.shares = static_cast<int>(r.between(1, 3));
        step.share = r.chance(0.2) ? r.between(0, 3) : r.between(1, 20000);
        step.strided = r.chance(0.5);
    };
    for (Run &run : s.runs) {
        std::for_each(run.steps.begin(), run.steps.end(), draw_step);
        for (Run &rest : run.rest)
            std::for_each(rest.steps.begin(), rest.steps.end(), draw_step);
    }
}

/* Moves damage away from a prefix directory without checksums, where SCR cannot detect
 * it. */
static void place_damage(Story &s)
{
    for (Run &run : s.runs)
        for (Strike &strike : run.strikes)
            strike.on_prefix = strike.on_prefix && s.checked;
}

Story draw(uint64_t seed, bool elastic)
{
    Random r(seed);
    Story s{};
    s.seed = seed;
    const int nodes = static_cast<int>(r.between(1, 5));
    s.nodes = nodes + (r.chance(0.3) ? static_cast<int>(r.between(1, 2)) : 0);
    s.ranks_per_node = static_cast<int>(r.between(1, nodes > 3 ? 2 : 3));
    s.crash = r.of(std::vector<Crash>{Crash::EXT4, Crash::XFS, Crash::WEAK, Crash::WEAK});
    s.runs.resize(1);
    for (int i = 0; i < nodes; i++)
        s.runs[0].machines.push_back(i);
    draw_parameters(s, r);
    draw_width(s);
    draw_runs(s, r);
    place_damage(s);
    draw_form(s);
    draw_refusals(s);
    draw_twins(s);
    draw_one_more(s, Aspect::HANGS, 0.1, Blow::HANG);
    draw_one_more(s, Aspect::DELAYS, 0.05, Blow::DELAY);
    draw_one_more(s, Aspect::SECONDS, 0.15, Blow::SECOND);
    if (elastic) draw_ranks(s);
    if (s.elastic) {
        draw_one_more(s, Aspect::LOSSES, 0.5, Blow::LOSE_NODE);
        draw_one_more(s, Aspect::FLIPS, 0.3, Blow::FLIP);
        draw_deaths(s);
    }
    draw_shared(s);
    return s;
}

} // namespace sim
