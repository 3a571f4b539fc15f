/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws a story from a seed; see story.h. */
#include "story.h"

#include <cerrno>
#include <cstring>
#include <sstream>

namespace sim
{

static void draw_scheme(Story &s, Random &r)
{
    const int scheme = static_cast<int>(r.below(4));
    auto set = [&](const char *name, const std::string &value) {
        s.parameters.push_back({name, value});
    };
    s.tolerates = 0;
    if (s.nodes < 2 || scheme == 0) {
        set("SCR_COPY_TYPE", "SINGLE");
    } else if (scheme == 1) {
        set("SCR_COPY_TYPE", "PARTNER");
        s.tolerates = 1;
    } else if (scheme == 2) {
        set("SCR_COPY_TYPE", "XOR");
        set("SCR_SET_SIZE", std::to_string(r.between(2, 8)));
        s.tolerates = 1;
    } else {
        const int failures = static_cast<int>(r.between(1, s.nodes > 3 ? 2 : 1));
        set("SCR_COPY_TYPE", "RS");
        set("SCR_SET_FAILURES", std::to_string(failures));
        set("SCR_SET_SIZE", "8");
        s.tolerates = failures < s.nodes ? failures : s.nodes - 1;
    }
}

static void draw_parameters(Story &s, Random &r)
{
    auto set = [&](const char *name, int64_t value) {
        s.parameters.push_back({name, std::to_string(value)});
    };
    draw_scheme(s, r);
    const int flush = static_cast<int>(r.below(4));
    const bool background = r.chance(0.5);
    set("SCR_FLUSH", flush);
    set("SCR_FLUSH_ASYNC", background);
    if (r.chance(0.3))
        s.parameters.push_back({"SCR_FLUSH_TYPE", r.chance(0.5) ? "PTHREAD" : "DAEMON"});
    const int64_t cached = r.between(1, 3);
    set("SCR_CACHE_SIZE", cached);
    s.leaves_early = cached == 1;
    if (r.chance(0.3)) s.retention = static_cast<int>(r.between(1, 3));
    if (s.retention) set("SCR_PREFIX_SIZE", s.retention);
    if (r.chance(0.3)) set("SCR_USE_CONTAINERS", 1);
    if (r.chance(0.3)) set("SCR_CRC_ON_COPY", 1);
    if (r.chance(0.2)) set("SCR_CRC_ON_FLUSH", 0);
    if (r.chance(0.2)) set("SCR_CRC_ON_DELETE", 1);
    s.bypass = r.chance(0.1);
    if (s.bypass) set("SCR_CACHE_BYPASS", 1);
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

static Strike draw_strike(const Story &s, Random &r, int nodes)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, EMFILE, EACCES, EDQUOT, ENOMEM};
    Strike strike{};
    const double kind = r.real();
    strike.blow = kind < 0.2    ? Blow::KILL_RANK
                  : kind < 0.4  ? Blow::LOSE_NODE
                  : kind < 0.5  ? Blow::CRASH_NODE
                  : kind < 0.6  ? Blow::KILL_RUN
                  : kind < 0.9  ? Blow::ERROR
                  : kind < 0.95 ? Blow::SHORT
                                : Blow::CLOCK;
    strike.rank =
        static_cast<int>(r.below(static_cast<uint64_t>(nodes * s.ranks_per_node)));
    strike.at = static_cast<uint64_t>(1) << r.between(3, 11);
    strike.at = strike.at + r.below(strike.at);
    strike.error = errors[r.below(sizeof errors / sizeof *errors)];
    strike.stays =
        (strike.error == ENOSPC || strike.error == EDQUOT || strike.error == EIO) &&
        r.chance(0.3);
    strike.seconds = 1e5 * (r.real() - 0.5);
    return strike;
}

Story draw(uint64_t seed)
{
    Random r(seed);
    Story s{};
    s.seed = seed;
    s.nodes = static_cast<int>(r.between(1, 5));
    s.ranks_per_node = static_cast<int>(r.between(1, s.nodes > 3 ? 2 : 3));
    s.crash = r.of(std::vector<Crash>{Crash::EXT4, Crash::XFS, Crash::WEAK});
    draw_parameters(s, r);
    const int runs = static_cast<int>(r.between(2, 4));
    for (int i = 0; i < runs; i++) {
        Run run{};
        run.nodes = s.nodes;
        if (i > 0 && s.nodes > 1 && r.chance(0.1)) run.nodes = s.nodes - 1;
        const int steps = static_cast<int>(r.between(1, 4));
        for (int k = 0; k < steps; k++)
            run.steps.push_back(draw_step(r));
        const int strikes = i + 1 == runs ? 0 : static_cast<int>(r.between(0, 2));
        for (int k = 0; k < strikes; k++)
            run.strikes.push_back(draw_strike(s, r, run.nodes));
        run.finalize = r.chance(0.8);
        s.runs.push_back(run);
    }
    return s;
}

/* ---- as text ---- */

static const char *name_of(Blow blow)
{
    static const char *const names[] = {"kill rank", "lose node", "crash node",
                                        "kill run",  "error",     "short transfer",
                                        "clock"};
    return names[static_cast<int>(blow)];
}

static const char *name_of(Crash crash)
{
    static const char *const names[] = {"ext4", "XFS", "weak"};
    return names[static_cast<int>(crash)];
}

static void print(std::ostream &out, const Strike &s)
{
    out << "    strike: " << name_of(s.blow) << ", rank " << s.rank << ", call " << s.at;
    if (s.blow == Blow::ERROR)
        out << ", " << strerrorname_np(s.error) << (s.stays ? ", stays" : "");
    if (s.blow == Blow::CLOCK) out << ", " << s.seconds << " s";
    out << "\n";
}

static void print(std::ostream &out, const Step &s)
{
    out << "    "
        << (s.checkpoint ? s.output ? "checkpoint and output" : "checkpoint" : "output")
        << ": " << s.files << " files of " << s.size << " bytes"
        << (s.bad ? ", not valid" : "") << ", after " << s.compute << " s\n";
}

std::string Story::text() const
{
    std::ostringstream out;
    out << "seed " << seed << ": " << nodes << " nodes, " << ranks_per_node
        << " ranks on each, file systems " << name_of(crash) << "\n";
    for (const auto &[name, value] : parameters)
        out << "  " << name << "=" << value << "\n";
    for (const Run &run : runs) {
        out << "  run on " << run.nodes << " nodes"
            << (run.finalize ? "" : ", without SCR_Finalize") << "\n";
        for (const Step &step : run.steps)
            print(out, step);
        for (const Strike &strike : run.strikes)
            print(out, strike);
    }
    return out.str();
}

} // namespace sim
