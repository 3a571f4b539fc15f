/* SPDX-License-Identifier: BSD-3-Clause */
/* The requirements; see judge.h. */
#include "judge.h"

#include "random.h"

#include <algorithm>
#include <scr.h>

namespace sim
{

Dataset &Judge::start(int run, int step, const Step &what, const std::string &job)
{
    const std::string name = "d" + std::to_string(run) + "." + std::to_string(step);
    if (Dataset *known = find(name)) return *known;
    if (job == now->job) push(nullptr, what.checkpoint || lenient ? nullptr : newest());
    auto made = std::make_unique<Dataset>(*now);
    made->name = name;
    made->number = static_cast<int>(datasets.size());
    made->job = job;
    made->checkpoint = what.checkpoint;
    made->output = what.output;
    made->bad = false;
    made->files = what.files;
    made->size = what.size;
    made->shares = what.shares;
    made->share = what.share;
    made->strided = what.strided;
    datasets.push_back(std::move(made));
    return *datasets.back();
}

Dataset *Judge::find(const std::string &name)
{
    for (const auto &d : datasets)
        if (d->name == name) return d.get();
    return nullptr;
}

/* Whether this run may restart from the dataset, according to its number of ranks. */
bool Judge::is_usable(const Dataset &d) const
{
    return now->any || d.ranks == now->ranks();
}

/* Returns the newest checkpoint of this job that this run can use; it is the last one to
 * leave the cache. A checkpoint that another job has fetched may still be in the cache of
 * this job. */
const Dataset *Judge::newest(bool of_any_job) const
{
    for (size_t i = datasets.size(); i-- > 0;) {
        const Dataset &d = *datasets[i];
        if (d.checkpoint && d.complete && !d.bad && d.refused == Refused::NO &&
            (of_any_job || d.job == now->job) && is_usable(d))
            return &d;
    }
    return nullptr;
}

/* The dataset may leave the cache. A spared dataset leaves only when it is on the prefix
 * directory, even if its files there were changed since its flush: they are not read
 * again. */
static void leave(Dataset &d, bool is_spared)
{
    d.gone = d.gone || d.ruined || !is_spared;
    d.may_leave = true;
}

/* One more dataset enters the cache, for which an older dataset may leave; if that is
 * being flushed, another one leaves instead. Remains that this run cannot rebuild may
 * leave, too. A dataset with too many or too few ranks for this run stays, and leaves
 * when a run that can use it adds another one. */
void Judge::push(const Dataset *pushing, const Dataset *spared)
{
    const Dataset *last = newest(story.jobs);
    for (const auto &d : datasets) {
        if (d->job != now->job || d.get() == pushing) continue;
        d->behind++;
        if (!is_usable(*d)) continue;
        d->gone = d->gone || !is_whole(*d);
        const bool waits = story.background && d.get() != last;
        if (d->behind < story.room - waits) continue;
        if (d.get() == last && story.room > 1) continue; /* another dataset leaves */
        leave(*d, d.get() == spared);
    }
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
    /* with SCR_ERR_FLUSH, of this flush or an earlier one, the dataset is complete in the
     * cache */
    if ((code != SCR_SUCCESS && code != SCR_ERR_FLUSH) || d.bad) return;
    d.complete = true;
    if (!d.checkpoint) return;
    if (d.job == now->job) progress = true;
    if (story.flushes_each && code == SCR_SUCCESS) d.flushed = true;
}

/* Whether SCR_PREFIX_SIZE keeps the dataset; older ones may be deleted. */
bool Judge::is_kept(size_t i) const
{
    int newer = 0;
    for (size_t k = i + 1; k < datasets.size(); k++)
        newer +=
            datasets[k]->checkpoint && (datasets[k]->flushed || datasets[k]->completing);
    return !story.retention || newer < story.retention;
}

/* Whether the nodes of this run have all files, except for those that the scheme
 * restores. */
bool Judge::is_whole(const Dataset &d) const
{
    return d.homes.are_whole(story.schemes, now->machines);
}

bool Judge::is_cached(const Dataset &d) const
{
    return d.job == now->job && !d.gone && is_usable(d) && is_whole(d);
}

/* Returns a checkpoint that is retried rather than offering none, although two runs with
 * it completed no checkpoint. */
const Dataset *Judge::exhausted() const
{
    for (size_t i = datasets.size(); i-- > 0;) {
        const Dataset &d = *datasets[i];
        if (d.checkpoint && d.complete && !d.bad && d.refused == Refused::NO &&
            is_usable(d) && d.flushed && !d.ruined && is_kept(i))
            return &d;
    }
    return nullptr;
}

/* Returns the newest checkpoint that must be restorable. Skips a checkpoint with which
 * two runs completed no checkpoint. */
const Dataset *Judge::promised() const
{
    for (size_t i = datasets.size(); i-- > 0;) {
        const Dataset &d = *datasets[i];
        if (!d.checkpoint || !d.complete || d.bad || d.refused != Refused::NO) continue;
        const bool cached = !story.bypass && is_cached(d) && (!d.may_leave || is_kept(i));
        if (is_usable(d) && d.tries < 2 &&
            (cached || (d.flushed && !d.ruined && is_kept(i))))
            return &d;
    }
    return nullptr;
}

/* Accounts for fetches. An offered dataset that is not in the cache was fetched. For a
 * newer one a fetch may have failed; during the fetch, the newest dataset in the cache
 * stays. */
void Judge::fetch(const Dataset *offered)
{
    const Dataset *cached = nullptr;
    for (const auto &d : datasets)
        if (d->checkpoint && d->complete && is_cached(*d)) cached = d.get();
    for (const auto &d : datasets) {
        const bool stored = story.flushes || story.bypass || d->output || d->may_leave ||
                            d->job != now->job;
        if (d->checkpoint && d->completing && stored && !is_cached(*d) &&
            (!offered || d->number >= offered->number) && fetched.insert(d.get()).second)
            push(d.get(), d.get() == offered ? nullptr : cached);
    }
}

void Judge::offered(const std::string &name)
{
    const Dataset *d = find(name);
    fetch(d);
    const Dataset *least = promised();
    if (name.empty()) {
        if (!least) least = exhausted();
        if (least && !lenient)
            throw Failure(least->name + " is lost: nothing is offered");
        if (least) unread = find(least->name);
        return;
    }
    if (!d) throw Failure("a dataset of another name is offered: " + name);
    if (!d->checkpoint || d->bad || d->refused == Refused::YES || !is_usable(*d) ||
        !d->completing)
        throw Failure(name +
                      " is offered, which is no checkpoint that can be restarted from");
    if (least && d->number < least->number && !lenient && !story.jobs)
        throw Failure(least->name + " is lost: " + name + " is offered");
}

/* After a failed call, the record of the restart may be that it only began. */
void Judge::end_run()
{
    Dataset *tried = source ? source : unread;
    if (!tried && !progress) tried = const_cast<Dataset *>(promised());
    if (tried && !now->audit) tried->tries = progress && !lenient ? 0 : tried->tries + 1;
}

void Judge::restarted(Dataset &d, bool good, bool refused)
{
    if (!good && !lenient && !now->audit && !may_be_unreadable(d))
        throw Failure(d.name + " is offered, and cannot be read");
    if (!good || refused) {
        if (d.refused == Refused::NO) d.refused = Refused::MAYBE;
        return;
    }
    source = &d;
    const bool other = d.ranks != now->ranks();
    /* some ranks died before they had all of it, and others have rebuilt it somewhere */
    if (other && !d.complete) d.gone = true;
    d.complete = true; /* even if no rank was told so before */
    /* a dataset with another number of ranks is read in place */
    if (other && (d.may_leave || !is_cached(d))) return;
    /* it is complete in the cache; or, if the cache failed, it was read from the prefix
     * directory */
    d.gone = false;
    d.may_leave = lenient;
    d.behind = 0;
    d.job = now->job;
    if (!other) d.homes.settle(*now);
    lose_again();
}

void Judge::completed_restart(Dataset &d, int code, bool refused)
{
    if (refused && code == 0) throw Failure("a restart that was refused succeeds");
    if (d.refused != Refused::NO && !lenient) d.refused = Refused::YES;
}

void Judge::failed(const std::string &what, int64_t code) const
{
    if (!lenient)
        throw Failure(what + " fails without a reason: " + std::to_string(code));
}

/* The default of SCR_NODE_TIMEOUT, which no world sets. */
static constexpr double SILENCE = 60;

void Judge::stands_still(double from, double seconds)
{
    if (seconds >= SILENCE) abandoned = std::min(abandoned, from + SILENCE);
}

bool Judge::is_abandoned(double when) const
{
    return when >= abandoned;
}

/* Time that a process waits for the lock of a record (base/record_change.c). */
static constexpr double PATIENCE = 30;

void Judge::may_hold_lock(double from, double seconds)
{
    if (seconds >= PATIENCE) locked.emplace_back(from + PATIENCE, from + seconds);
}

bool Judge::is_locked_out(double when) const
{
    return std::any_of(locked.begin(), locked.end(), [when](const auto &span) {
        return when >= span.first && when <= span.second;
    });
}

bool Judge::may_lack_source() const
{
    return std::any_of(datasets.begin(), datasets.end(), [this](const auto &d) {
        return d->job == now->job && d->completing && !d->flushed && !is_whole(*d);
    });
}

bool Judge::may_be_unreadable(const Dataset &d) const
{
    return d.ruined && d.ranks != now->ranks();
}

/* SCR_Finalize empties the cache when the newest checkpoint is on the prefix
 * directory. */
void Judge::finalizing()
{
    const Dataset *last = newest();
    is_ending = true;
    for (const auto &d : datasets)
        if (d->job == now->job)
            leave(*d, d.get() == last ? is_whole(*d) : !is_usable(*d));
}

void Judge::finalized()
{
    if (lenient) return;
    for (const auto &d : datasets)
        if (d->output && d->complete && d->run == now) d->flushed = true;
    for (size_t i = datasets.size(); i-- > 0 && story.flushes;) {
        Dataset &d = *datasets[i];
        if (&d != newest()) continue;
        if (is_cached(d)) d.flushed = true;
        break;
    }
}

void Judge::finalized_other(Dataset &d)
{
    d.flushed = d.flushed || (d.complete && story.flushes && !lenient);
}

void Judge::begin_run(const Run &run, bool silent)
{
    now = &run;
    lenient = is_ending = false;
    if (!silent) abandoned = INFINITY;
    locked.clear();
    fallen.clear();
    ready = 0;
    progress = false;
    source = unread = nullptr;
    fetched.clear();
    for (const auto &d : datasets) {
        if (d->job == run.job && d->ranks == run.ranks()) d->homes.begin_move(run);
        /* nodes that were in no run since then may have the dataset but not the record of
         * the refusal */
        if (d->refused == Refused::YES && d->gone && (!d->flushed || story.retention))
            d->refused = Refused::MAYBE;
    }
}

void Judge::begin_rest(const Run &rest)
{
    const bool had_error = lenient;
    end_run();
    begin_run(rest, true);
    lenient = had_error;
}

bool Judge::are_initialized() const
{
    return ready == now->ranks();
}

/* When all ranks are initialized, everything that can be rebuilt is rebuilt. */
void Judge::initialized()
{
    ready++;
    if (!are_initialized() || lenient) return;
    for (const auto &d : datasets) {
        if (!is_cached(*d)) continue;
        if (d->ranks == now->ranks())
            d->homes.end_move(*now);
        else
            d->homes.adopt(*now);
    }
    lose_again();
}

/* Removes files on nodes that were lost since the run began. */
void Judge::lose_again()
{
    for (const auto &d : datasets)
        for (int node : fallen)
            d->homes.lose(node);
}

void Judge::lost(int node, const std::string &dataset)
{
    if (dataset.empty()) fallen.insert(node);
    for (const auto &d : datasets)
        if (dataset.empty() || d->name == dataset) d->homes.lose(node);
}

/* Datasets that left the caches may reappear when disks return: removals are not synced,
 * and nothing else has the record of their refusal. */
void Judge::lost_all()
{
    for (const auto &d : datasets) {
        if (d->gone && !d->flushed && d->refused == Refused::YES)
            d->refused = Refused::MAYBE;
        d->gone = true;
    }
}

void Judge::ruined(const std::string &dataset)
{
    Dataset *d = find(dataset);
    if (!d) { /* a record, which may be that of refusals */
        for (const auto &other : datasets)
            if (other->refused == Refused::YES) other->refused = Refused::MAYBE;
        return;
    }
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

static std::string noise(uint64_t seed, size_t size)
{
    Random r(seed);
    std::string text(size, 0);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t x = r.next();
        for (size_t k = i; k < size && k < i + 8; k++, x >>= 8)
            text[k] = static_cast<char>(x);
    }
    return text;
}

std::string Judge::bytes(const Dataset &d, int rank, int f)
{
    return noise(static_cast<uint64_t>(d.number) << 32 ^
                     static_cast<uint64_t>(rank) << 8 ^ static_cast<uint64_t>(f),
                 d.size + static_cast<size_t>(rank % 3));
}

/* ---- files that ranks write together ---- */

std::string Judge::shared_name(const Dataset &d)
{
    return d.name + "/more/all";
}

/* Parts of a rank: side by side, or as the layers of a grid; the last rank first. Some
 * parts are empty, and some are followed by a gap. */
std::vector<Extent> Judge::shares(const Dataset &d, int rank)
{
    std::vector<Extent> list;
    size_t offset = 0;
    for (int i = 0; i < d.ranks * d.shares; i++) {
        const int owner = d.ranks - 1 - (d.strided ? i % d.ranks : i / d.shares);
        const size_t length = i % 7 == 3 ? 0 : d.share + static_cast<size_t>(i % 3);
        if (owner == rank) list.push_back({offset, length});
        offset += length + (i % 4 == 1 ? 5 : 0);
    }
    return list;
}

std::vector<bool> Judge::shared_mask(const Dataset &d)
{
    std::vector<bool> mask;
    for (int rank = 0; rank < d.ranks; rank++)
        for (const Extent &e : shares(d, rank)) {
            const size_t end = e.offset + e.length;
            if (e.length) mask.resize(std::max(mask.size(), end));
            for (size_t i = e.offset; i < end; i++)
                mask[i] = true;
        }
    return mask;
}

std::string Judge::shared_bytes(const Dataset &d)
{
    const std::vector<bool> mask = shared_mask(d);
    std::string text = noise(~static_cast<uint64_t>(d.number), mask.size());
    for (size_t i = 0; i < mask.size(); i++)
        if (!mask[i]) text[i] = 0;
    return text;
}

} // namespace sim
