/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that save a dataset after the job; see crash_states.h. */
#include "crash_states.h"

#include "engine.h"
#include "scavenge.h"

namespace sim
{

namespace
{

const char *const CONTROL = "/control/user/scr.17";

using Command = std::function<int(char *text)>;

/* Runs the command on these nodes in parallel until all have ended. */
std::string play(const std::vector<Node *> &nodes, const char *name, int job,
                 const Command &command)
{
    const auto wrong = std::make_shared<std::string>();
    std::vector<Process *> started;
    for (Node *node : nodes)
        started.push_back(&machine->spawn(
            *node, name, {"PATH=/bin"}, job, -1, [wrong, name, command](Process &) {
                char text[SCAVENGE_TEXT] = "";
                const int rc = command(text);
                if (rc) *wrong = std::string(name) + ": " + text;
                return rc != 0;
            }));
    const double end_of_patience = machine->now() + PATIENCE;
    for (Process *p : started)
        while (!p->ended) {
            if (machine->now() > end_of_patience) return std::string(name) + " hangs";
            simgrid::s4u::this_actor::sleep_for(0.01);
        }
    return *wrong;
}

} // namespace

std::string play_copies(int job, int id)
{
    std::vector<Node *> nodes;
    for (const auto &node : machine->nodes)
        if (node->up) nodes.push_back(node.get());
    const std::string wrong = play(nodes, "scr_copy", job, [id](char *text) {
        return scavenge_play_copy(CONTROL, id, false, text);
    });
    if (!wrong.empty() || nodes.size() == machine->nodes.size()) return wrong;
    return play(nodes, "scr_copy", job,
                [id](char *text) { return scavenge_play_copy(CONTROL, id, true, text); });
}

std::string play_add(int job, const std::string &name, bool &complete)
{
    const auto done = std::make_shared<bool>(false);
    const std::string wrong =
        play({machine->nodes[0].get()}, "scr_index", job, [done, name](char *text) {
            return scavenge_play_add(name.c_str(), done.get(), text);
        });
    complete = *done;
    return wrong;
}

} // namespace sim
