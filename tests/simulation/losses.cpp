/* SPDX-License-Identifier: BSD-3-Clause */
/* losses: every set of nodes is lost, with every scheme, and the ranks go on elsewhere.
 *
 *   losses [--part K/N] [--jobs N] [--only TEXT] [--point TEXT]
 *
 * A job writes three checkpoints and ends. Nodes are lost, and the ranks go on: on empty
 * nodes of the same names or of others, in another order, crowded on those that are left,
 * or on nodes that come back with what they had earlier. The first restart is judged;
 * then as many nodes are lost as the checkpoint can spare, and the last run is.
 *
 * In kinds that are "interrupted", a rank of the first restart is killed before a change
 * of a file, for every change of every rank, and then nodes are lost.
 *
 * What must come of it follows from the scheme alone (schemes.h): the newest checkpoint,
 * if no set lost more than its scheme gives back, else the next best, or none. */
#include "job.h"
#include "points.h"
#include "schemes.h"

#include <algorithm>

using namespace sim;

namespace
{

const std::string NEWEST = "c3", OLDER = "c2";
const std::string TWIN = "twin"; /* bytes of an earlier life of the job */

struct Shape {
    std::vector<int> counts; /* ranks of each node */
    int least;               /* members of a set */
};

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

enum class Where { SAME, SPARE, MOVED, CROWDED, OLDER, TWIN };
const char *const WHERE[] = {"same", "spare", "moved", "crowded", "older", "twin"};

/* Of the older checkpoint and of the newest one. */
struct Schemes {
    Scheme older, newest;

    bool is_mixed() const
    {
        return older.text() != newest.text();
    }

    std::string text() const
    {
        return is_mixed() ? "mixed" : newest.text();
    }

    const Scheme &of(const std::string &name) const
    {
        return name == OLDER ? older : newest;
    }

    std::vector<std::string> descriptors() const
    {
        if (!is_mixed()) return {newest.descriptor(0, 1)};
        return {newest.descriptor(0, 1), older.descriptor(1, 2)};
    }
};

std::vector<Schemes> schemes_for(int nodes)
{
    std::vector<Scheme> plain = {{"SINGLE"}, {"PARTNER"}, {"XOR"}};
    for (int failures = 1; failures < nodes; failures++)
        plain.push_back({"RS", failures});
    std::vector<Schemes> all;
    for (const Scheme &scheme : plain)
        all.push_back({scheme, scheme});
    if (nodes > 2) all.push_back({{"RS", 2}, {"XOR"}});
    return all;
}

/* What points of a kind have in common. */
struct Kind {
    Shape shape;
    Schemes schemes;
    bool flushes; /* the second checkpoint */

    int nodes() const
    {
        return static_cast<int>(shape.counts.size());
    }

    std::string text(const std::string &what) const
    {
        return schemes.text() + ", " + what + (flushes ? ", prefix" : ", alone");
    }

    std::string text() const
    {
        std::string counts;
        for (int count : shape.counts)
            counts += " " + std::to_string(count);
        return text("nodes of" + counts + " ranks, sets of " +
                    std::to_string(shape.least));
    }

    std::vector<std::vector<int>> sets() const
    {
        return sets_of(shape.counts, shape.least);
    }
};

using Nodes = std::vector<int>;

std::string text_of(const Nodes &nodes)
{
    std::string text = "lost";
    for (int node : nodes)
        text += " n" + std::to_string(node);
    return nodes.empty() ? "nothing lost" : text;
}

bool has(const Nodes &nodes, int node)
{
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/* All subsets of that many of nodes 0 .. count - 1, the smaller ones first. */
std::vector<Nodes> subsets(int count, size_t least, size_t most)
{
    std::vector<Nodes> all;
    for (unsigned bits = 0; bits < 1u << count; bits++) {
        Nodes nodes;
        for (int node = 0; node < count; node++)
            if (bits >> node & 1) nodes.push_back(node);
        if (nodes.size() >= least && nodes.size() <= most) all.push_back(nodes);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto &a, const auto &b) { return a.size() < b.size(); });
    return all;
}

/* ---- nodes and ranks ---- */

std::set<int> ranks_on(const Layout &layout, const Nodes &nodes)
{
    std::set<int> found;
    int rank = 0;
    for (const Station &place : layout)
        for (int i = 0; i < place.ranks; i++, rank++)
            if (has(nodes, place.node)) found.insert(rank);
    return found;
}

std::vector<int> counts_of(const Layout &layout)
{
    std::vector<int> counts;
    for (const Station &place : layout)
        counts.push_back(place.ranks);
    return counts;
}

Layout crowded(const Layout &layout, const Nodes &lost)
{
    Layout left;
    for (const Station &place : layout)
        if (!has(lost, place.node)) left.push_back({place.node, 0});
    if (left.empty()) left.push_back({layout[0].node, 0});
    for (int rank = 0; rank < ranks_of(layout); rank++)
        left[static_cast<size_t>(rank) % left.size()].ranks++;
    return left;
}

/* Node i has the spare node i + the number of nodes. */
Layout layout_after(Layout layout, const Nodes &lost, Where where)
{
    const int nodes = static_cast<int>(layout.size());
    if (where == Where::CROWDED) return crowded(layout, lost);
    for (Station &place : layout)
        if (where == Where::SPARE && has(lost, place.node))
            place.node += nodes;
        else if (where == Where::MOVED)
            place.node = (place.node + 1) % nodes;
    return layout;
}

/* ---- the job before the loss ---- */

class Trial : public Job
{
  public:
    explicit Trial(const Kind &kind)
        : Job(2 * kind.nodes(),
              {"SCR_CACHE_SIZE=2", "SCR_SET_SIZE=" + std::to_string(kind.shape.least),
               kind.flushes ? "SCR_FLUSH=2" : "SCR_FLUSH=0"}),
          kind(kind)
    {
        for (int node = 0; node < kind.nodes(); node++)
            layout.push_back({node, kind.shape.counts[static_cast<size_t>(node)]});
        first = layout;
    }

    void begin(Where where)
    {
        if (where == Where::TWIN) {
            write({"c1", OLDER, NEWEST}, TWIN);
            keep();
            lose_all();
            simgrid::s4u::this_actor::sleep_for(10);
        }
        if (where != Where::OLDER) return write({"c1", OLDER, NEWEST}, "");
        write({"c1", OLDER}, "");
        keep();
        write({NEWEST}, "");
    }

    /* Those that were kept come back with what they had then. */
    void lose_nodes(const Nodes &lost, Where where)
    {
        for (int node : lost) {
            lose(node);
            if (where < Where::OLDER) continue;
            Node &back = *machine->nodes[static_cast<size_t>(node)];
            back.shelf = std::move(kept[static_cast<size_t>(node)]);
            machine->exchange_disk(back);
        }
        layout = layout_after(layout, lost, where);
    }

    Told restart()
    {
        Script script = plain();
        script.restarts = true;
        script.known_tag = TWIN;
        return run(script);
    }

    /* As many nodes as the checkpoint that is in the cache now can spare, those first
     * that have had it all the time. counts: when it got its sets. */
    Nodes lose_again(const std::string &name, const std::vector<int> &counts)
    {
        const auto sets = sets_of(counts, kind.shape.least);
        Nodes order, lost;
        for (const Station &place : layout)
            order.push_back(place.node);
        std::sort(order.begin(), order.end()); /* spare ones are last */
        for (int node : order) {
            Nodes more = lost;
            more.push_back(node);
            if (covers(kind.schemes.of(name), sets, ranks_on(layout, more))) lost = more;
        }
        for (int node : lost)
            lose(node);
        return lost;
    }

    /* The last run: what the restart had is there, one more checkpoint is written, and
     * the job ends. */
    void finish(const Told &got, bool must_be_told)
    {
        Script script = plain();
        script.environment = {"SCR_FLUSH=1"};
        script.restarts = true;
        script.known_tag = TWIN;
        script.outputs = {"next"};
        script.finalizes = true;
        finish_with(script, got, must_be_told);
    }

    const Kind &kind;
    Layout first; /* of the first run */

  private:
    std::vector<std::shared_ptr<Disk>> kept;

    Script plain() const
    {
        Script script;
        script.descriptors = kind.schemes.descriptors();
        return script;
    }

    void write(const std::vector<std::string> &names, const std::string &tag)
    {
        Script script = plain();
        script.outputs = names;
        script.tag = tag;
        run(script);
    }

    void keep()
    {
        for (int node = 0; node < kind.nodes(); node++)
            kept.push_back(machine->nodes[static_cast<size_t>(node)]->disk->copy());
    }

    void finish_with(const Script &script, const Told &got, bool must_be_told)
    {
        const Told told = run(script);
        if (told.offered != got.offered || told.tag != got.tag)
            Points::fail("run " + std::to_string(number) + " has " + told.offered + " " +
                         told.tag + ", and the one before " + got.offered + " " +
                         got.tag);
        if (must_be_told && told.messages("REBUILD_COMPLETE", {got.offered}) != 1)
            Points::fail("the last rebuild is not reported once");
        check_end({"next"});
        Points::pass();
    }
};

/* ---- what must be true ---- */

struct Expected {
    std::set<std::string> names; /* what may be offered; "": nothing; and its tag */
    std::set<int> missing;       /* ranks whose files of the newest are lost */
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
        /* what is whole of an earlier life of the job is as good as nothing: never mixed
         * with the rest, or before it */
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
    Points::pass();
}

/* Points that begin alike: nodes come back with what they had at that time, or empty. */
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
    Points::kind(kind.text(), 2 * kind.nodes(), parts);
}

/* ---- points of a restart that is interrupted ---- */

const Shape INTERRUPTED = {{1, 1, 1, 1}, 8};

class Interruption
{
  public:
    /* number: of the first point */
    Interruption(Trial &job, const Nodes &first, uint64_t number)
        : job(job), kind(job.kind), first(first), number(number),
          second(subsets(kind.nodes(), 1, 2))
    {
        second.push_back({first[0] + kind.nodes()}); /* the spare one */
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
    std::map<int, uint64_t> changes; /* of each rank so far */
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

    /* The least that must be offered. */
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
        Points::pass();
    }
};

void add_interrupted(const Kind &kind, uint64_t number)
{
    const auto play = [&kind, number] {
        static Trial job(kind);
        uint64_t start = number;
        job.begin(Where::SAME);
        for (const Nodes &first : subsets(kind.nodes(), 1, 2)) {
            start += 7919; /* a part has other changes after each loss */
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
