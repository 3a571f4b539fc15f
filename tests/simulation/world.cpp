/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays a story; see world.h. */
#include "world.h"

#include "program.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <smpi/smpi.h>
#include <unistd.h>

namespace s4u = simgrid::s4u;

namespace sim
{

/* Virtual seconds after which a run is considered to hang. */
static constexpr double PATIENCE = 36000;

namespace
{

class World
{
  public:
    World(const Story &story, void (*verdict)(const Verdict &))
        : story(story), verdict(verdict),
          machine(story.seed ^ 0x5ca1ab1e, story.nodes, story.crash), judge(story)
    {
        for (const auto &node : machine.nodes)
            machine.make_directories(*node);
        machine.strike = [this](Process &p, const Call &call) { return fate(p, call); };
    }

    void direct()
    {
        for (number = 0; number < static_cast<int>(story.runs.size()); number++)
            play(story.runs[static_cast<size_t>(number)]);
        end("");
    }

    [[noreturn]] void end(const std::string &wrong)
    {
        Verdict v;
        v.good = wrong.empty();
        v.text = wrong;
        for (const auto &p : machine.processes) {
            v.printed += p->printed;
            v.calls += p->calls;
        }
        v.trace = machine.trace;
        v.struck = struck;
        verdict(v);
        abort();
    }

  private:
    const Story &story;
    void (*verdict)(const Verdict &);
    Machine machine;
    Judge judge;
    int number = 0;               /* of the run */
    std::vector<Process *> ranks; /* of it */
    std::vector<bool> fallen;     /* its strikes */
    std::vector<Node *> failing;  /* nodes on which calls go on failing, ... */
    int error = 0;                /* ... with this */
    std::vector<Blow> due;        /* what the director has to do */
    std::vector<int> due_ranks;
    int struck = 0;

    std::vector<std::string> environment() const
    {
        std::vector<std::string> list = {
            "SCR_PREFIX=/prefix", "SCR_CACHE_BASE=/cache", "SCR_CNTL_BASE=/control",
            "SCR_JOB_ID=17",      "SCR_USER_NAME=user",    "SCR_DEBUG=1",
            "PATH=/bin"};
        for (const auto &[name, value] : story.parameters)
            list.push_back(name + "=" + value);
        return list;
    }

    /* ---- strikes ---- */

    static bool can_fail(const Call &call, int error)
    {
        switch (error) {
        case EINTR:
            return call.waits;
        case ENOSPC:
        case EDQUOT:
            return call.changes && strcmp(call.name, "unlink") &&
                   strcmp(call.name, "rename") && strcmp(call.name, "chmod") &&
                   strcmp(call.name, "utimens");
        case EMFILE:
            return !strcmp(call.name, "open") || !strcmp(call.name, "readdir");
        case EACCES:
            return !strcmp(call.name, "open") || !strcmp(call.name, "mkdir") ||
                   !strcmp(call.name, "unlink") || !strcmp(call.name, "rename");
        case ENOMEM:
            return !strcmp(call.name, "open") || !strcmp(call.name, "mkdir");
        default:
            return strcmp(call.name, "lock") && strcmp(call.name, "thread");
        }
    }

    Fate fate(Process &p, const Call &call)
    {
        Fate result;
        const Run &run = story.runs[static_cast<size_t>(number)];
        for (Node *node : failing)
            if (p.node == node && call.changes && can_fail(call, error))
                result.error = -error;
        for (size_t i = 0; i < run.strikes.size(); i++) {
            const Strike &s = run.strikes[i];
            if (fallen[i] || p.job != number || p.rank != s.rank || p.calls < s.at)
                continue;
            if (s.blow == Blow::ERROR && !can_fail(call, s.error)) continue;
            if (s.blow == Blow::SHORT && !call.moves) continue;
            fallen[i] = true;
            struck++;
            fall(p, s, result);
        }
        return result;
    }

    void fall(Process &p, const Strike &s, Fate &result)
    {
        switch (s.blow) {
        case Blow::ERROR:
            judge.lenient = true;
            result.error = -s.error;
            if (s.stays) {
                failing.push_back(p.node);
                error = s.error;
            }
            break;
        case Blow::SHORT:
            result.half = true;
            break;
        case Blow::CLOCK:
            p.node->skew += s.seconds;
            break;
        default:
            /* the director does it, and this process does nothing more */
            due.push_back(s.blow);
            due_ranks.push_back(p.rank);
            s4u::this_actor::sleep_for(PATIENCE);
        }
    }

    void deal()
    {
        for (size_t i = 0; i < due.size(); i++) {
            Process &p = *ranks[static_cast<size_t>(due_ranks[i])];
            Node &node = *p.node;
            if (due[i] == Blow::KILL_RANK) machine.kill(p);
            if (due[i] == Blow::KILL_RUN)
                for (Process *rank : ranks)
                    machine.kill(*rank);
            if (due[i] == Blow::LOSE_NODE || due[i] == Blow::CRASH_NODE) {
                if (!node.up) continue;
                machine.power_off(node);
                judge.lost(1);
                if (due[i] == Blow::LOSE_NODE)
                    node.disk->erase();
                else
                    node.disk->lose_power(machine.random);
            }
        }
        due.clear();
        due_ranks.clear();
    }

    /* ---- a run ---- */

    bool is_over(bool &died) const
    {
        bool over = true;
        for (const Process *p : ranks) {
            over = over && p->ended;
            died = died || (p->ended && p->status != 0);
        }
        return over;
    }

    void play(const Run &run)
    {
        begin(run);
        const double end_of_patience = machine.now() + PATIENCE;
        for (;;) {
            bool died = false;
            deal();
            if (is_over(died)) break;
            if (died) {
                s4u::this_actor::sleep_for(0.1);
                for (Process *p : ranks)
                    machine.kill(*p);
            }
            if (machine.now() > end_of_patience)
                end("run " + std::to_string(number) + " hangs");
            s4u::this_actor::sleep_for(0.05);
        }
        finish();
    }

    void begin(const Run &run)
    {
        const int count = run.nodes * story.ranks_per_node;
        fallen.assign(run.strikes.size(), false);
        judge.begin_run(count);
        program = Program{&judge, &run, number};
        ranks.clear();
        const std::string instance = "run" + std::to_string(number);
        SMPI_app_instance_register(instance.c_str(), nullptr, count);
        for (int rank = 0; rank < count; rank++) {
            Node &node = *machine.nodes[static_cast<size_t>(rank / story.ranks_per_node)];
            ranks.push_back(&machine.spawn(
                node, "application", environment(), number, rank, [this](Process &p) {
                    try {
                        return program.main(p);
                    } catch (const Failure &failure) {
                        end("run " + std::to_string(number) + ": " + failure.what());
                    }
                }));
        }
    }

    Program program{};

    void finish()
    {
        failing.clear();
        machine.bury(number);
        judge.end_run(static_cast<int>(ranks.size()));
        for (const auto &node : machine.nodes) {
            if (!node->up) machine.power_on(*node);
            machine.make_directories(*node);
        }
    }
};

} // namespace

void play(const Story &story, void (*verdict)(const Verdict &))
{
    static const Story mine = story;
    s4u::Actor::create("director", s4u::Host::by_name("head0"), [verdict] {
        static World *world = new World(mine, verdict);
        world->direct();
    });
    s4u::Engine::get_instance()->run();
    Verdict v;
    v.good = false;
    v.text = "the simulation ended by itself";
    verdict(v);
    abort();
}

} // namespace sim
