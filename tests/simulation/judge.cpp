/* SPDX-License-Identifier: BSD-3-Clause */
/* What must be true; see judge.h. */
#include "judge.h"

#include "random.h"

#include <algorithm>

namespace sim
{

Dataset &Judge::start(int run, int step, const Step &what, int ranks)
{
    const std::string name = "d" + std::to_string(run) + "." + std::to_string(step);
    if (Dataset *known = find(name)) return *known;
    if (story.leaves_early)
        for (const auto &d : datasets)
            if (d->job == now->job) d->gone = true;
    auto made = std::make_unique<Dataset>();
    made->name = name;
    made->number = static_cast<int>(datasets.size());
    made->ranks = ranks;
    made->run = now;
    made->job = now->job;
    made->homes = now->machines;
    made->checkpoint = what.checkpoint;
    made->output = what.output;
    made->bad = false;
    made->files = what.files;
    made->size = what.size;
    datasets.push_back(std::move(made));
    return *datasets.back();
}

Dataset *Judge::find(const std::string &name)
{
    for (const auto &d : datasets)
        if (d->name == name) return d.get();
    return nullptr;
}

void Judge::agree(int run, int rank, int call, const char *what, int64_t result)
{
    const std::pair<std::string, int64_t> mine = {what, result};
    auto [place, made] = results.emplace(std::make_pair(run, call), mine);
    if (made || place->second == mine) return;
    throw Failure("rank " + std::to_string(rank) + " has " + what + " = " +
                  std::to_string(result) + ", another rank " + place->second.first +
                  " = " + std::to_string(place->second.second));
}

void Judge::completed(Dataset &d, int code)
{
    if (code != 0 || d.bad) return;
    d.complete = true;
    if (!d.checkpoint) return;
    progress = true;
    for (const auto &other : datasets)
        other->tries = 0;
    if (story.flushes_each) d.flushed = true;
}

/* SCR_PREFIX_SIZE: older ones may be deleted. */
bool Judge::is_kept(size_t i) const
{
    int newer = 0;
    for (size_t k = i + 1; k < datasets.size(); k++)
        newer +=
            datasets[k]->checkpoint && (datasets[k]->flushed || datasets[k]->completing);
    return !story.retention || newer < story.retention;
}

/* Whether what the scheme makes up for is lost at most. */
bool Judge::is_cached(const Dataset &d) const
{
    const int losses = static_cast<int>(d.lost.size()) * (d.moving ? 2 : 1);
    return d.job == now->job && !d.gone && losses <= story.tolerates;
}

/* The newest one that has to be restorable. A checkpoint with which two runs came to
 * nothing is skipped. */
const Dataset *Judge::promised(int ranks) const
{
    bool newest = true;
    for (size_t i = datasets.size(); i-- > 0;) {
        const Dataset &d = *datasets[i];
        if (!d.checkpoint || !d.complete || d.bad) continue;
        const bool cached = newest && !story.bypass && is_cached(d);
        newest = newest && d.job != now->job;
        if (d.ranks == ranks && d.tries < 2 &&
            (cached || (d.flushed && !d.ruined && is_kept(i))))
            return &d;
    }
    return nullptr;
}

void Judge::offered(const std::string &name, int ranks)
{
    const Dataset *least = promised(ranks), *d = find(name);
    if (name.empty()) {
        if (least && !lenient)
            throw Failure(least->name + " is lost: nothing is offered");
        return;
    }
    if (!d) throw Failure("a dataset of another name is offered: " + name);
    if (!d->checkpoint || d->bad || d->ranks != ranks || !d->completing)
        throw Failure(name +
                      " is offered, which is no checkpoint that can be restarted from");
    if (least && d->number < least->number && !lenient && !story.jobs)
        throw Failure(least->name + " is lost: " + name + " is offered");
}

void Judge::end_run(int ranks)
{
    Dataset *d = now->audit ? nullptr : const_cast<Dataset *>(promised(ranks));
    if (d && !progress) d->tries++;
}

void Judge::restarted(Dataset &d, bool good)
{
    if (!good && !lenient && !now->audit)
        throw Failure(d.name + " is offered, and cannot be read");
    if (!good || now->audit) {
        d.bad = true; /* the application said so */
        return;
    }
    /* whole in the cache, or read from the prefix directory */
    d.lost.clear();
    d.complete = true; /* also where no rank was told so before */
    d.gone = d.moving = d.may_leave = false;
    d.homes = now->machines;
    d.job = now->job;
}

void Judge::failed(const std::string &what, int64_t code) const
{
    if (!lenient)
        throw Failure(what + " fails without a reason: " + std::to_string(code));
}

void Judge::finalized()
{
    for (const auto &d : datasets)
        d->may_leave = d->may_leave || d->job == now->job;
    if (lenient) return;
    for (const auto &d : datasets)
        if (d->output && d->complete && d->run == now) d->flushed = true;
    for (size_t i = datasets.size(); i-- > 0 && story.flushes;) {
        Dataset &d = *datasets[i];
        if (!d.checkpoint || !d.complete || d.bad || d.job != now->job) continue;
        if (is_cached(d)) d.flushed = true;
        break;
    }
}

static bool has_moved(const std::vector<int> &before, const std::vector<int> &now)
{
    for (size_t i = 0; i < now.size(); i++)
        for (size_t k = 0; k < before.size(); k++)
            if (i != k && now[i] == before[k]) return true;
    return false;
}

void Judge::begin_run(const Run &run, int ranks)
{
    now = &run;
    lenient = false;
    progress = false;
    for (const auto &d : datasets) {
        /* a run of another size cannot use what is in the cache, and need not keep it */
        if (d->ranks != ranks) d->gone = true;
        if (d->job != run.job) continue;
        d->moving = d->moving || has_moved(d->homes, run.machines);
        for (int node : d->homes)
            if (std::find(run.machines.begin(), run.machines.end(), node) ==
                run.machines.end())
                d->lost.insert(node);
    }
}

void Judge::lost(int node, const std::string &dataset)
{
    for (const auto &d : datasets)
        if (dataset.empty() || d->name == dataset) d->lost.insert(node);
}

void Judge::lost_all()
{
    for (const auto &d : datasets)
        d->gone = true;
}

void Judge::ruined(const std::string &dataset)
{
    Dataset *d = find(dataset);
    if (!d) return;
    d->ruined = true;
    d->gone = d->gone || d->may_leave;
}

std::vector<const Dataset *> Judge::outputs() const
{
    std::vector<const Dataset *> list;
    for (const auto &d : datasets)
        if (d->output && !d->checkpoint && d->flushed && !d->ruined)
            list.push_back(d.get());
    return list;
}

std::string Judge::name(const Dataset &d, int rank, int f)
{
    static const char *const folders[] = {"/", "/more/", "/more/of_" /* and the rank */};
    std::string folder = folders[f % 3];
    if (f % 3 == 2) folder += std::to_string(rank) + "/";
    return d.name + folder + "rank_" + std::to_string(rank) + "." + std::to_string(f);
}

std::string Judge::bytes(const Dataset &d, int rank, int f)
{
    const size_t size = d.size + static_cast<size_t>(rank % 3);
    Random r(static_cast<uint64_t>(d.number) << 32 ^ static_cast<uint64_t>(rank) << 8 ^
             static_cast<uint64_t>(f));
    std::string text(size, 0);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t x = r.next();
        for (size_t k = i; k < size && k < i + 8; k++, x >>= 8)
            text[k] = static_cast<char>(x);
    }
    return text;
}

} // namespace sim
