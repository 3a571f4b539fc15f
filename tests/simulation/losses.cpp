/* SPDX-License-Identifier: BSD-3-Clause */
/* losses: every set of nodes is lost, with every scheme, and the ranks continue
 * elsewhere.
 *
 *   losses [--part K/N] [--jobs N] [--only TEXT] [--point TEXT]
 *
 * A job writes three checkpoints and ends. Nodes are lost, and the ranks continue: on
 * empty nodes of the same names or of other names, in another order, crowded on the
 * remaining nodes, or on nodes that come back with earlier content. The first restart is
 * judged. Then as many nodes are lost as the checkpoint can tolerate, and the last run is
 * judged.
 *
 * In "interrupted" kinds, a rank of the first restart is killed before a change of a
 * file, for every change of every rank, and then nodes are lost.
 *
 * The expected result follows from the scheme alone (schemes.h): the newest checkpoint,
 * if no set lost more than its scheme restores, else the next best one, or none. */
#include "losses.h"
#include "points.h"

using namespace sim;

namespace
{

const std::vector<Shape> SHAPES = {{{1, 1}, 8},
                                   {{1, 1, 1}, 8},
                                   {{1, 1, 1, 1}, 8},
                                   {{1, 1, 1, 1, 1}, 8},
                                   {{1, 1, 1, 1, 1, 1}, 8},
                                   {{1, 1, 1, 1}, 2},
                                   {{1, 1, 1, 1, 1, 1}, 3},
                                   {{2, 2}, 8},
                                   {{2, 2, 2}, 8},
                                   {{2, 2, 2, 2}, 4},
                                   {{2, 1, 1}, 8},
                                   {{3, 1}, 8}};

const char *const WHERE[] = {"same", "spare", "moved", "crowded", "older", "twin"};

std::string text(const Kind &kind)
{
    std::string counts;
    for (int count : kind.shape.counts)
        counts += " " + std::to_string(count);
    return kind.text("nodes of" + counts + " ranks, sets of " +
                     std::to_string(kind.shape.least));
}

/* ---- requirements ---- */

struct Expected {
    std::set<std::string> names; /* names, with tags, that may be offered; "": nothing */
    std::set<int> missing;       /* ranks whose files of the newest checkpoint are lost */
    bool is_covered, is_told;

    Expected(const Trial &job, Where where, const Nodes &lost)
    {
        const Kind &kind = job.kind;
        const auto sets = kind.sets();
        missing = ranks_on(job.first, lost);
        is_covered = covers(kind.schemes.newest, sets, missing);
        const bool older = where == Where::OLDER || kind.flushes ||
                           covers(kind.schemes.older, sets, missing);
        names = {is_covered ? NEWEST : older ? OLDER : ""};
        /* where nothing can be offered, complete data of an earlier life of the job may
         * be, but never mixed with other data or preferred to it */
        if (where == Where::TWIN && !missing.empty() && names.count(""))
            names.insert({NEWEST + TWIN, OLDER + TWIN});
        is_told = static_cast<int>(missing.size()) != ranks_of(job.first);
    }

    void judge(const Told &told) const
    {
        const std::string got = told.offered + told.tag, dataset = "dataset 3 (c3)";
        if (!names.count(got))
            Points::fail("offered: '" + got + "', and not '" + *names.begin() + "'");
        const int rebuilt = told.messages("REBUILD_COMPLETE", {}),
                  impossible = told.messages("REBUILD_IMPOSSIBLE", {});
        if (is_covered && missing.empty() && rebuilt + impossible > 0)
            Points::fail("a rebuild is reported, and nothing was lost");
        if (is_covered && !missing.empty() &&
            told.messages("REBUILD_COMPLETE",
                          {dataset, std::to_string(missing.size()) + " of "}) != 1)
            Points::fail("the rebuild of the newest is not reported once");
        if (!is_covered && is_told && told.messages("REBUILD_IMPOSSIBLE", {dataset}) != 1)
            Points::fail("the loss of the newest is not reported once");
    }
};

/* ---- points of one loss ---- */

struct Loss {
    Where where;
    Nodes lost;
    uint64_t number;

    std::string text() const
    {
        return std::string(" [") + WHERE[static_cast<int>(where)] + ", " + text_of(lost) +
               "]";
    }
};

[[noreturn]] void play_loss(Trial &job, const Loss &loss)
{
    const Expected expected(job, loss.where, loss.lost);
    Points::count();
    job.lose_nodes(loss.lost, loss.where);
    const Told got = job.restart();
    expected.judge(got);
    Nodes again;
    if (!got.offered.empty() && got.tag.empty()) {
        const bool was_there =
            got.offered == NEWEST || loss.where == Where::OLDER ||
            covers(job.kind.schemes.of(got.offered), job.kind.sets(), expected.missing);
        again =
            job.lose_again(got.offered, counts_of(was_there ? job.first : job.layout));
    }
    job.finish(got, !again.empty());
}

/* Plays points with the same beginning: nodes come back with their content of that time,
 * or empty. */
void play_losses(const Kind &kind, const std::vector<Loss> &losses)
{
    static Trial job(kind);
    job.begin(losses[0].where);
    for (const Loss &loss : losses)
        if (Points::is_child(loss.text())) play_loss(job, loss);
}

void add_losses(const Kind &kind, uint64_t &number)
{
    std::vector<Loss> alike[3];
    for (int where = 0; where <= static_cast<int>(Where::TWIN); where++)
        for (const Nodes &lost : subsets(kind.nodes(), 0, SIZE_MAX)) {
            const Loss loss = {static_cast<Where>(where), lost, number};
            if (lost.empty() && loss.where != Where::MOVED &&
                loss.where != Where::CROWDED)
                continue;
            number++;
            alike[std::max(0, where - static_cast<int>(Where::CROWDED))].push_back(loss);
        }
    std::vector<std::function<void()>> parts;
    for (const auto &losses : alike)
        parts.push_back([&kind, &losses] {
            std::vector<Loss> chosen;
            for (const Loss &loss : losses)
                if (Points::is_chosen(loss.number, loss.text())) chosen.push_back(loss);
            if (!chosen.empty()) play_losses(kind, chosen);
        });
    Points::kind(text(kind), 2 * kind.nodes(), parts);
}

/* ---- points of an interrupted restart ---- */

const Shape INTERRUPTED = {{1, 1, 1, 1}, 8};

class Interruption
{
  public:
    /* number: of the first point. */
    Interruption(Trial &job, const Nodes &first, uint64_t number)
        : job(job), kind(job.kind), first(first), number(number),
          second(subsets(kind.nodes(), 1, 2))
    {
        second.push_back({first[0] + kind.nodes()}); /* the spare node */
    }

    [[noreturn]] void play()
    {
        job.lose_nodes(first, Where::SPARE);
        machine->strike = [this](Process &p, const Call &call) {
            if (is_struck(p, call)) {
                machine->kill(p);
                simgrid::s4u::this_actor::sleep_for(1e9);
            }
            return Fate{};
        };
        const Told told = job.restart();
        job.is_disturbed = false;
        if (struck) go_on(told);
        Points::wait();
        Points::pass();
    }

  private:
    Trial &job;
    const Kind &kind;
    const Nodes &first;
    uint64_t number;
    std::vector<Nodes> second;
    std::map<int, uint64_t> changes; /* number of changes by each rank so far */
    bool struck = false;

    static std::string text(const Nodes &lost)
    {
        return " [" + text_of(lost) + "]";
    }

    bool is_struck(const Process &p, const Call &call)
    {
        if (struck || !call.changes || p.rank < 0) return false;
        const std::string what = " [rank " + std::to_string(p.rank) + " before change " +
                                 std::to_string(++changes[p.rank]) + "]";
        bool chosen = false;
        for (size_t i = 0; i < second.size(); i++)
            chosen = Points::is_chosen(number + i, what + text(second[i])) || chosen;
        struck = chosen && Points::is_child(what);
        if (!struck) number += second.size();
        job.is_disturbed = struck;
        return struck;
    }

    /* Returns the worst result that may be offered. */
    std::string promised(const Nodes &lost, bool was_whole) const
    {
        const std::set<int> now = ranks_on(job.layout, lost);
        std::set<int> both = ranks_on(job.first, first);
        both.insert(now.begin(), now.end());
        const auto sets = kind.sets();
        if (covers(kind.schemes.newest, sets, both) ||
            (was_whole && covers(kind.schemes.newest, sets, now)))
            return NEWEST;
        return kind.flushes || covers(kind.schemes.older, sets, both) ? OLDER : "";
    }

    void go_on(const Told &told)
    {
        const bool was_whole =
            told.messages("OUTPUT_COMPLETE", {"(" + NEWEST + ")"}) +
                told.messages("REBUILD_COMPLETE", {"(" + NEWEST + ")"}) >
            0;
        std::vector<Nodes> chosen;
        std::string texts = std::to_string(was_whole) + text(first);
        for (size_t i = 0; i < second.size(); i++)
            if (Points::is_chosen(number + i, text(second[i]))) {
                chosen.push_back(second[i]);
                texts += text(second[i]);
            }
        const uint64_t state = job.state(texts);
        const bool seen = state && !Points::is_new(state);
        for (const Nodes &lost : chosen)
            if (seen)
                Points::count_same();
            else if (Points::is_child(text(lost), true))
                lose_and_judge(lost, promised(lost, was_whole));
    }

    [[noreturn]] void lose_and_judge(const Nodes &lost, const std::string &promise)
    {
        for (int node : lost)
            job.lose(node);
        const uint64_t state = job.state("lost, " + promise + text(first));
        if (state && !Points::is_new(state)) {
            Points::count_same();
            Points::pass();
        }
        Points::count();
        const Told got = job.restart();
        if (got.offered < promise)
            Points::fail("offered: '" + got.offered + "', and not '" + promise + "'");
        job.finish(got, false);
    }
};

void add_interrupted(const Kind &kind, uint64_t number)
{
    const auto play = [&kind, number] {
        static Trial job(kind);
        uint64_t start = number;
        job.begin(Where::SAME);
        for (const Nodes &first : subsets(kind.nodes(), 1, 2)) {
            start += 7919; /* each part uses other changes after each loss */
            const std::string what = " [" + text_of(first) + "]";
            if (Points::leads(what) && Points::is_child(what, true))
                Interruption(job, first, start).play();
        }
    };
    Points::kind(kind.text("interrupted"), 2 * kind.nodes(), {play});
}

} // namespace

int main(int argc, char **argv)
{
    if (!Points::read_options(argc, argv)) return 2;
    uint64_t number = 0;
    for (const Shape &shape : SHAPES)
        for (const Schemes &schemes : schemes_for(static_cast<int>(shape.counts.size())))
            for (bool flushes : {false, true})
                add_losses({shape, schemes, flushes}, number);
    for (const Schemes &schemes : schemes_for(4))
        for (bool flushes : {false, true})
            add_interrupted({INTERRUPTED, schemes, flushes}, number += 104729);
    return Points::end();
}
