/* SPDX-License-Identifier: BSD-3-Clause */
/* A story as text; see story.h. */
#include "story.h"

#include <cstring>
#include <sstream>

namespace sim
{

static const char *name_of(Blow blow)
{
    static const char *const names[] = {
        "kill process", "lose node",   "crash node", "kill run",        "crash all",
        "crash server", "lose server", "error",      "short transfers", "interrupts",
        "pause",        "clock",       "hang",       "delay",           "second run",
        "flip",         "copy",        "stale",      "shelve",          "return"};
    return names[static_cast<int>(blow)];
}

static const char *name_of(Crash crash)
{
    static const char *const names[] = {"ext4", "XFS", "weak"};
    return names[static_cast<int>(crash)];
}

static const char *name_of(Counted counted)
{
    static const char *const names[] = {"call", "transfer", "change on prefix"};
    return names[static_cast<int>(counted)];
}

static const char *name_of(Wants wants)
{
    static const char *const names[] = {"its own",          "a block",
                                        "each n-th rank's", "all",
                                        "a block and one",  "each second one a block",
                                        "the last one all"};
    return names[static_cast<int>(wants)];
}

static void print(std::ostream &out, const Strike &s)
{
    out << "    strike " << s.number << ": " << name_of(s.blow);
    if (s.blow == Blow::SHELVE || s.blow == Blow::RETURN) {
        if (s.blow == Blow::RETURN) out << " of node " << s.rank;
        out << "\n";
        return;
    }
    if (s.blow >= Blow::FLIP) {
        out << " a file of " << (s.on_prefix ? "the prefix directory" : "a node")
            << ", number " << s.at << "\n";
        return;
    }
    out << ", rank " << s.rank << ", " << name_of(s.counted) << " " << s.at;
    if (s.blow == Blow::ERROR)
        out << ", " << strerrorname_np(s.error) << (s.stays ? ", stays" : "");
    if (s.blow == Blow::CRASH_ALL && s.stays) out << ", disks of nodes are lost";
    if (s.blow == Blow::SECOND)
        out << ", of " << (s.stays ? "another" : "this") << " job";
    if (s.blow == Blow::HANG) out << (s.on_prefix ? ", on prefix" : ", on its own disk");
    if (s.blow == Blow::CLOCK || s.blow == Blow::PAUSE || s.blow == Blow::HANG ||
        s.blow == Blow::DELAY)
        out << ", " << s.seconds << " s";
    out << "\n";
}

static void print(std::ostream &out, const Step &s)
{
    out << "    step " << s.number << ": "
        << (s.checkpoint ? s.output ? "checkpoint and output" : "checkpoint" : "output")
        << ", " << s.files << " files of " << s.size << " bytes";
    if (s.shares)
        out << ", " << s.shares << (s.strided ? " strided" : "")
            << " parts of a shared file of " << s.share << " bytes";
    out << (s.bad ? ", not valid" : "") << ", after " << s.compute << " s\n";
}

static void print(std::ostream &out, const Run &run, const char *what, bool elastic)
{
    out << "  " << what << " of job " << run.job << " on nodes";
    for (size_t i = 0; i < run.machines.size(); i++)
        out << " " << run.machines[i]
            << (elastic ? "*" + std::to_string(run.counts[i]) : "");
    if (elastic && !run.any) out << ", as many ranks";
    if (run.any) out << ", wants " << name_of(run.wants) << (run.twice ? ", twice" : "");
    if (run.refuses) out << ", refuses " << run.refuses;
    out << (run.finalize ? "" : ", without SCR_Finalize") << "\n";
    for (const Step &s : run.steps)
        print(out, s);
    for (const Strike &s : run.strikes)
        print(out, s);
}

std::string Story::text() const
{
    std::ostringstream out;
    out << "seed " << seed << ": " << nodes << " nodes, " << ranks_per_node
        << " ranks on each, file systems " << name_of(crash) << "\n";
    for (const auto &[name, value] : parameters)
        out << "  " << name << "=" << value << "\n";
    for (const std::string &descriptor : descriptors)
        out << "  " << descriptor << "\n";
    for (const Run &run : runs) {
        print(out, run, run.audit ? "audit" : "run", elastic);
        for (const Run &rest : run.rest)
            print(out, rest,
                  run.within ? "deaths within an output, rest" : "deaths, rest", elastic);
    }
    return out.str();
}

} // namespace sim
