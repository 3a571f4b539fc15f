/* SPDX-License-Identifier: BSD-3-Clause */
/* What must be true; see judge.h. */
#include "judge.h"

#include "random.h"

namespace sim
{

Dataset &Judge::start(int run, int step, const Step &what, int ranks)
{
    const std::string name = "d" + std::to_string(run) + "." + std::to_string(step);
    if (Dataset *known = find(name)) return *known;
    if (story.leaves_early)
        for (const auto &d : datasets)
            d->losses = LOST;
    auto made = std::make_unique<Dataset>();
    made->name = name;
    made->number = static_cast<int>(datasets.size());
    made->ranks = ranks;
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

/* The newest one that has to be restorable. A checkpoint with which two runs came to
 * nothing is skipped. */
const Dataset *Judge::promised(int ranks) const
{
    bool newest = true;
    for (size_t i = datasets.size(); i-- > 0;) {
        const Dataset &d = *datasets[i];
        if (!d.checkpoint || !d.complete || d.bad) continue;
        const bool cached = newest && !story.bypass && d.losses <= story.tolerates;
        newest = false;
        if (d.ranks == ranks && d.tries < 2 && (cached || (d.flushed && is_kept(i))))
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
    if (least && d->number < least->number && !lenient)
        throw Failure(least->name + " is lost: " + name + " is offered");
}

void Judge::end_run(int ranks)
{
    Dataset *d = const_cast<Dataset *>(promised(ranks));
    if (d && !progress) d->tries++;
}

void Judge::restarted(Dataset &d, bool good)
{
    if (!good)
        d.bad = true; /* the application said so */
    else
        d.losses = 0; /* whole in the cache, or read from the prefix directory */
    if (!good && !lenient) throw Failure(d.name + " is offered, and cannot be read");
}

void Judge::finalized()
{
    if (lenient || !story.flushes) return;
    for (size_t i = datasets.size(); i-- > 0;) {
        Dataset &d = *datasets[i];
        if (!d.checkpoint || !d.complete || d.bad) continue;
        if (d.losses <= story.tolerates) d.flushed = true;
        break;
    }
}

void Judge::begin_run(int ranks)
{
    lenient = false;
    progress = false;
    /* a run of another size cannot use what is in the cache, and need not keep it */
    for (const auto &d : datasets)
        if (d->ranks != ranks) d->losses = LOST;
}

void Judge::lost(int nodes)
{
    for (const auto &d : datasets)
        d->losses += nodes;
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
