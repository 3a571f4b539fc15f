/* SPDX-License-Identifier: BSD-3-Clause */
/* Datasets that an application may expect; see crash_states.h. */
#include "crash_states.h"

#include <algorithm>

namespace sim
{

void Ledger::begin_run(int keep, bool newest)
{
    retention = keep;
    newest_only = newest;
}

int Ledger::find(const std::string &name) const
{
    for (size_t i = 0; i < datasets.size(); i++)
        if (datasets[i].name == name) return static_cast<int>(i);
    return -1;
}

void Ledger::begin(const Step &step)
{
    const int known = find(step.name);
    if (step.action == Action::CACHE && known < 0)
        datasets.push_back({step.name, State::MAY});
    if (step.action >= Action::CACHE) return;
    if (step.action == Action::WRITE) {
        if (known < 0) datasets.push_back({step.name, State::MAY});
        const int count = static_cast<int>(datasets.size());
        for (int i = 0; retention && i < count - retention; i++)
            if (datasets[static_cast<size_t>(i)].state == State::MUST)
                datasets[static_cast<size_t>(i)].state = State::MAY;
        may_be_other = !current.empty();
    } else if (step.action == Action::CURRENT) {
        may_be_other = current.empty();
        current = step.name;
    } else {
        Known &d = datasets[static_cast<size_t>(known)];
        d.removing = true;
        if (d.state == State::MUST) d.state = State::MAY;
    }
}

void Ledger::done(const Step &step)
{
    Known &d = datasets[static_cast<size_t>(find(step.name))];
    d.cached = d.cached || step.action == Action::CACHE;
    d.saved = d.saved || step.action == Action::SAVE;
    if (step.action == Action::CACHE || step.action == Action::SAVE) return;
    if (step.action == Action::WRITE || step.action == Action::ADD) {
        if (!d.acknowledged) d.state = State::MUST;
        d.acknowledged = true;
        current.clear();
    } else if (step.action == Action::DROP || step.action == Action::DELETE) {
        d.state = State::GONE;
    }
    may_be_other = false;
}

bool Ledger::is_cached(const std::string &name) const
{
    const int i = find(name);
    return i >= 0 && datasets[static_cast<size_t>(i)].cached;
}

bool Ledger::is_saved(const std::string &name) const
{
    const int i = find(name);
    return i >= 0 && datasets[static_cast<size_t>(i)].saved;
}

/* Returns the newest promised dataset; -1: none. A dataset that retention may delete
 * counts, since it is deleted only after a newer one exists. */
int Ledger::newest_promised() const
{
    for (size_t i = datasets.size(); i-- > 0;)
        if (datasets[i].acknowledged && !datasets[i].removing) return static_cast<int>(i);
    return -1;
}

std::string Ledger::judge_first(int first) const
{
    const int newest = newest_promised();
    const std::string offered =
        first < 0 ? "nothing" : datasets[static_cast<size_t>(first)].name;
    if (!current.empty()) {
        if (offered == current || (may_be_other && first >= newest)) return "";
        return current + " is the current one: " + offered + " is offered";
    }
    if (first >= newest) return "";
    return datasets[static_cast<size_t>(newest)].name + " is lost: " + offered +
           " is offered first";
}

std::string Ledger::judge(const std::vector<std::string> &offered) const
{
    const int first = offered.empty() ? -1 : find(offered[0]);
    int last = static_cast<int>(datasets.size());
    for (size_t k = 0; k < offered.size(); k++) {
        const std::string &name = offered[k];
        const int i = find(name);
        if (i < 0) return name + " is offered, which was never written";
        if (datasets[static_cast<size_t>(i)].state == State::GONE)
            return name + " is offered, which was removed";
        if (k == 0 && name == current) continue;
        if (i >= last || (i == first && k > 0))
            return name + " is offered behind an older one, or twice";
        last = i;
    }
    const std::string wrong = judge_first(first);
    if (!wrong.empty() || newest_only) return wrong;
    for (const Known &d : datasets)
        if (d.state == State::MUST &&
            std::find(offered.begin(), offered.end(), d.name) == offered.end())
            return d.name + " is lost";
    return "";
}

std::string Ledger::text() const
{
    std::string text = current + (may_be_other ? "?" : "");
    for (const Known &d : datasets)
        text += " " + d.name + std::to_string(static_cast<int>(d.state)) +
                (d.acknowledged ? "a" : "") + (d.removing ? "r" : "") +
                (d.cached ? "c" : "") + (d.saved ? "s" : "");
    return text;
}

} // namespace sim
