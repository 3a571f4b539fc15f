/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of a story; see story.h. */
#include "story.h"

#include <algorithm>
#include <sstream>

namespace sim
{

bool is_dispensable(const std::string &parameter)
{
    return parameter == "SCR_FLUSH_WIDTH" || parameter == "SCR_FETCH_WIDTH" ||
           parameter == "SCR_USE_CONTAINERS" || parameter == "SCR_FLUSH_FORM" ||
           parameter == "SCR_FLUSH_TYPE" || parameter == "SCR_CRC_ON_DELETE" ||
           parameter == "SCR_RESTART_RANKS";
}

static void reduce_run(Run &run, const Part &part)
{
    std::vector<Step> steps;
    std::vector<Strike> strikes;
    for (size_t i = run.machines.size(); i-- > 0;) {
        run.counts[i] = std::min(run.counts[i], part.ranks_per_node);
        if (run.machines[i] < part.nodes) continue;
        run.machines.erase(run.machines.begin() + static_cast<long>(i));
        run.counts.erase(run.counts.begin() + static_cast<long>(i));
    }
    for (const Step &s : run.steps)
        if (!part.without_steps.count(s.number) &&
            static_cast<int>(steps.size()) < part.steps) {
            steps.push_back(s);
            if (part.without.count("shared")) steps.back().shares = 0;
        }
    for (const Strike &s : run.strikes)
        if (!part.without_strikes.count(s.number)) strikes.push_back(s);
    run.steps = steps;
    run.strikes = strikes;
    for (Run &rest : run.rest)
        reduce_run(rest, part);
    if (run.rest.size() && (part.without.count("deaths") || run.rest[0].machines.empty()))
        run.rest.clear();
}

void reduce(Story &story, const Part &part)
{
    int left = part.runs;
    std::vector<Run> runs;
    if (part.without.count("SCR_RESTART_RANKS")) story = draw(story.seed, false);
    story.nodes = std::min(story.nodes, part.nodes);
    story.ranks_per_node = std::min(story.ranks_per_node, part.ranks_per_node);
    for (Run &run : story.runs) {
        reduce_run(run, part);
        if (run.machines.empty() || (!run.audit && left-- <= 0)) continue;
        runs.push_back(run);
    }
    story.runs = runs;
    story.shared = story.shared && !part.without.count("shared");
    if (part.without.count("SCR_FLUSH_FORM")) story.align = 0;
    story.packs =
        story.align || (story.packs && !part.without.count("SCR_USE_CONTAINERS"));
    auto is_away = [&](const auto &p) { return part.without.count(p.first) != 0; };
    story.parameters.erase(
        std::remove_if(story.parameters.begin(), story.parameters.end(), is_away),
        story.parameters.end());
}

std::string Part::text() const
{
    std::ostringstream out;
    if (nodes < 1000) out << " --nodes " << nodes;
    if (ranks_per_node < 1000) out << " --ranks " << ranks_per_node;
    if (runs < 1000) out << " --runs " << runs;
    if (steps < 1000) out << " --steps " << steps;
    for (int step : without_steps)
        out << " --without-step " << step;
    for (int strike : without_strikes)
        out << " --without-strike " << strike;
    for (const std::string &name : without)
        out << " --without " << name;
    return out.str();
}

} // namespace sim
