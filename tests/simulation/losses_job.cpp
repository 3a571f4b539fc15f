/* SPDX-License-Identifier: BSD-3-Clause */
/* The job of `losses`; see losses.h. */
#include "losses.h"

#include "points.h"

#include <algorithm>

namespace sim
{

bool Schemes::is_mixed() const
{
    return older.text() != newest.text();
}

std::string Schemes::text() const
{
    return is_mixed() ? "mixed" : newest.text();
}

const Scheme &Schemes::of(const std::string &name) const
{
    return name == OLDER ? older : newest;
}

std::vector<std::string> Schemes::descriptors() const
{
    if (!is_mixed()) return {newest.descriptor(0, 1)};
    return {newest.descriptor(0, 1), older.descriptor(1, 2)};
}

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

int Kind::nodes() const
{
    return static_cast<int>(shape.counts.size());
}

std::string Kind::text(const std::string &what) const
{
    return schemes.text() + ", " + what + (flushes ? ", prefix" : ", alone");
}

std::vector<std::vector<int>> Kind::sets() const
{
    return sets_of(shape.counts, shape.least);
}

std::string text_of(const Nodes &nodes)
{
    std::string text = "lost";
    for (int node : nodes)
        text += " n" + std::to_string(node);
    return nodes.empty() ? "nothing lost" : text;
}

static bool has(const Nodes &nodes, int node)
{
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

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

static Layout crowded(const Layout &layout, const Nodes &lost)
{
    Layout left;
    for (const Station &place : layout)
        if (!has(lost, place.node)) left.push_back({place.node, 0});
    if (left.empty()) left.push_back({layout[0].node, 0});
    for (int rank = 0; rank < ranks_of(layout); rank++)
        left[static_cast<size_t>(rank) % left.size()].ranks++;
    return left;
}

/* The spare of node i is node i + the number of nodes. */
static Layout layout_after(Layout layout, const Nodes &lost, Where where)
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

/* ---- the job ---- */

Trial::Trial(const Kind &kind)
    : Job(2 * kind.nodes(),
          {"SCR_CACHE_SIZE=2", "SCR_SET_SIZE=" + std::to_string(kind.shape.least),
           kind.flushes ? "SCR_FLUSH=2" : "SCR_FLUSH=0"}),
      kind(kind)
{
    for (int node = 0; node < kind.nodes(); node++)
        layout.push_back({node, kind.shape.counts[static_cast<size_t>(node)]});
    first = layout;
}

Script Trial::plain() const
{
    Script script;
    script.descriptors = kind.schemes.descriptors();
    return script;
}

void Trial::write(const std::vector<std::string> &names, const std::string &tag)
{
    Script script = plain();
    script.outputs = names;
    script.tag = tag;
    run(script);
}

void Trial::keep()
{
    for (int node = 0; node < kind.nodes(); node++)
        kept.push_back(machine->nodes[static_cast<size_t>(node)]->disk->copy());
}

void Trial::begin(Where where)
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

void Trial::lose_nodes(const Nodes &lost, Where where)
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

Told Trial::restart()
{
    Script script = plain();
    script.restarts = true;
    script.known_tag = TWIN;
    return run(script);
}

Nodes Trial::lose_again(const std::string &name, const std::vector<int> &counts)
{
    const auto sets = sets_of(counts, kind.shape.least);
    Nodes order, lost;
    for (const Station &place : layout)
        order.push_back(place.node);
    std::sort(order.begin(), order.end()); /* spare nodes are last */
    for (int node : order) {
        Nodes more = lost;
        more.push_back(node);
        if (covers(kind.schemes.of(name), sets, ranks_on(layout, more))) lost = more;
    }
    for (int node : lost)
        lose(node);
    return lost;
}

void Trial::finish(const Told &got, bool must_be_told)
{
    Script script = plain();
    script.environment = {"SCR_FLUSH=1"};
    script.restarts = true;
    script.known_tag = TWIN;
    script.outputs = {"next"};
    script.finalizes = true;
    const Told told = run(script);
    if (told.offered != got.offered || told.tag != got.tag)
        Points::fail("run " + std::to_string(number) + " has " + told.offered + " " +
                     told.tag + ", and the one before " + got.offered + " " + got.tag);
    if (must_be_told && told.messages("REBUILD_COMPLETE", {got.offered}) != 1)
        Points::fail("the last rebuild is not reported once");
    check_end({"next"});
    Points::pass();
}

} // namespace sim
