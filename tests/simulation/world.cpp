/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays a story; see world.h. */
#include "world.h"

#include "damage.h"
#include "program.h"

#include <algorithm>
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
static constexpr int SECOND = 1000; /* number of a run beside run 0 */

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
        for (const auto &node : machine.nodes)
            check_node(*node);
        check_prefix();
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
        v.printed += machine.notes;
        v.trace = machine.trace;
        v.struck = struck;
        for (const auto &node : machine.nodes)
            list(node->name, *node->disk, v.files);
        list("prefix", *machine.parallel, v.files);
        verdict(v);
        abort();
    }

  private:
    const Story &story;
    void (*verdict)(const Verdict &);
    Machine machine;
    Judge judge;
    int number = 0;                /* number of the run */
    std::vector<Process *> ranks;  /* ranks of the run */
    std::vector<Process *> second; /* ranks of a second run beside it */
    std::vector<bool> fallen;      /* strikes of the run that have happened */
    std::vector<Node *> failing;   /* nodes on which calls continue to fail, ... */
    int error = 0;                 /* ... with this error */
    bool server_lost = false;
    bool had_error = false;              /* in any run */
    std::vector<const Strike *> lasting; /* short transfers, interrupts */
    struct Hang {
        const Node *node;
        bool on_prefix;
        double until;
    };
    std::vector<Hang> hangs;
    std::vector<std::pair<const Process *, double>> still; /* scr_transfer processes
                                                            * that stand still, until
                                                            * that time */
    std::vector<std::pair<const Strike *, Process *>> due; /* for the director to
                                                            * execute */
    std::vector<std::unique_ptr<Disk>> before;             /* disks when the run began */
    int struck = 0;

    /* ---- checks after the last run, which is undisturbed ---- */

    void check_node(const Node &node)
    {
        for (const Disk::Entry &entry : node.disk->list())
            if (story.flushes && S_ISREG(entry.mode))
                end("node " + node.name + " keeps " + entry.path);
    }

    void check_prefix()
    {
        for (const Disk::Entry &entry : machine.parallel->list()) {
            const std::string &path = entry.path;
            const bool temporary =
                path.size() > 4 && path.compare(path.size() - 4, 4, ".tmp") == 0;
            /* stages of a job that does not run again stay; a stage that could not be
             * removed is reported, and stays until the dataset is deleted */
            const bool staged = path.find("/.scr/stage") != std::string::npos;
            const bool listed = path.find(".scr/restart.") != std::string::npos;
            if ((temporary && !(listed && story.jobs)) ||
                (staged && !story.jobs && !had_error))
                end("the prefix directory keeps " + path);
        }
        for (const Dataset *d : judge.outputs())
            check_output(*d);
    }

    /* Reads an output, since restarts do not. */
    void check_output(const Dataset &d)
    {
        if (Judge::shared_mask(d).size() > 0)
            check_file(Judge::shared_name(d), Judge::shared_bytes(d));
        if (story.align && !story.bypass) return check_aligned(d);
        if (story.packs && !story.bypass) return check_containers(d);
        for (int rank = 0; rank < d.ranks; rank++)
            for (int f = 0; f < d.files; f++)
                check_file(Judge::name(d, rank, f), Judge::bytes(d, rank, f));
    }

    void check_file(const std::string &path, const std::string &bytes)
    {
        std::string found;
        if (!machine.parallel->read(path, found))
            end(path + ", which was saved, is missing");
        if (found != bytes) end(path + " has wrong bytes");
    }

    /* The bytes of all files are consecutive. */
    void check_containers(const Dataset &d)
    {
        std::string wanted, found, part;
        for (int rank = 0; rank < d.ranks; rank++)
            for (int f = 0; f < d.files; f++)
                wanted += Judge::bytes(d, rank, f);
        for (int i = 0; machine.parallel->read(
                 d.name + "/.scr/ctr." + std::to_string(i) + ".scr", part);
             i++)
            found += part;
        if (found != wanted) end("containers of " + d.name + " have wrong bytes");
    }

    /* Each rank's bytes begin at a multiple, in the container of the previous rank or in
     * the next one, with zeros between. */
    void check_aligned(const Dataset &d)
    {
        std::string found;
        int container = -1;
        size_t at = 0;
        for (int rank = 0; rank < d.ranks; rank++) {
            std::string wanted;
            for (int f = 0; f < d.files; f++)
                wanted += Judge::bytes(d, rank, f);
            if (wanted.empty()) continue;
            size_t start = (at + story.align - 1) / story.align * story.align;
            while (container < 0 || found.size() < start + wanted.size()) {
                if (found.size() != at) end("a container of " + d.name + " is too long");
                const std::string path =
                    d.name + "/.scr/ctr." + std::to_string(++container) + ".scr";
                if (!machine.parallel->read(path, found)) end(path + " is missing");
                at = start = 0;
            }
            const std::string gap(start - at, '\0');
            if (found.compare(at, start - at, gap) != 0 ||
                found.compare(start, wanted.size(), wanted) != 0)
                end("containers of " + d.name + " have wrong bytes");
            at = start + wanted.size();
        }
        if (found.size() != at) end("a container of " + d.name + " is too long");
    }

    static void list(const std::string &name, const Disk &disk, std::string &text)
    {
        for (const Disk::Entry &entry : disk.list())
            if (S_ISREG(entry.mode))
                text += name + "/" + entry.path + " " + std::to_string(entry.size) + "\n";
    }

    std::vector<std::string> environment(const std::string &job, const Run &run) const
    {
        std::vector<std::string> list = {
            "SCR_PREFIX=/prefix", "SCR_CACHE_BASE=/cache", "SCR_CNTL_BASE=/control",
            "SCR_USER_NAME=user", "SCR_DEBUG=1",           "PATH=/bin",
            "SCR_JOB_ID=" + job};
        for (const auto &[name, value] : story.parameters)
            list.push_back(name + "=" + value);
        if (run.any) list.push_back("SCR_RESTART_RANKS=any");
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

    static uint64_t count(const Process &p, Counted counted)
    {
        return counted == Counted::ALL    ? p.calls
               : counted == Counted::DATA ? p.transfers
                                          : p.prefix_changes;
    }

    static bool is_on_prefix(const Call &call)
    {
        return call.path.rfind("/prefix", 0) == 0;
    }

    /* The only background process is scr_transfer. */
    void stand_still(const Process &p, double seconds)
    {
        if (p.rank >= 0) judge.may_hold_lock(machine.now(), seconds);
        if (p.rank < 0) {
            judge.stands_still(machine.now(), seconds);
            still.push_back({&p, machine.now() + seconds});
        }
        s4u::this_actor::sleep_for(seconds);
    }

    bool is_silent() const
    {
        return std::any_of(still.begin(), still.end(), [this](const auto &s) {
            return !s.first->ended && machine.now() < s.second;
        });
    }

    /* Applies lasting strikes. */
    void endure(Process &p, const Call &call, Fate &result)
    {
        for (Node *node : failing)
            if (p.node == node && call.changes && can_fail(call, error))
                result.error = -error;
        if (server_lost && is_on_prefix(call)) result.error = -EIO;
        for (const Hang &h : hangs)
            if (p.node == h.node && !call.path.empty() &&
                is_on_prefix(call) == h.on_prefix && machine.now() < h.until)
                stand_still(p, h.until - machine.now());
        for (const Strike *s : lasting) {
            if (!call.moves || p.rank != s->rank || !machine.random.chance(0.3)) continue;
            if (s->blow == Blow::SHORT)
                result.half = true;
            else
                result.error = -EINTR;
        }
    }

    Fate fate(Process &p, const Call &call)
    {
        Fate result;
        const Run &run = story.runs[static_cast<size_t>(number)];
        endure(p, call, result);
        for (size_t i = 0; i < run.strikes.size(); i++) {
            const Strike &s = run.strikes[i];
            if (s.blow >= Blow::FLIP || fallen[i] || p.job != number ||
                p.rank != s.rank || count(p, s.counted) < s.at)
                continue;
            if (s.blow == Blow::ERROR && !can_fail(call, s.error)) continue;
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
            judge.lenient = had_error = true;
            result.error = -s.error;
            if (s.stays) {
                failing.push_back(p.node);
                error = s.error;
            }
            break;
        case Blow::SHORT:
        case Blow::INTERRUPT:
            lasting.push_back(&s);
            break;
        case Blow::CLOCK:
            p.node->skew += s.seconds;
            break;
        case Blow::HANG:
            hangs.push_back({p.node, s.on_prefix, machine.now() + s.seconds});
            break;
        case Blow::DELAY:
            p.delay = s.seconds;
            break;
        case Blow::SECOND:
            due.push_back({&s, &p});
            break;
        case Blow::PAUSE:
            stand_still(p, s.seconds);
            break;
        case Blow::LOSE_SERVER:
            judge.lenient = had_error = true;
            server_lost = true;
            break;
        default:
            /* the director executes it; this process does nothing more */
            due.push_back({&s, &p});
            s4u::this_actor::sleep_for(PATIENCE);
        }
    }

    void crash(Node &node, bool lost)
    {
        if (!node.up) return;
        machine.power_off(node);
        if (lost)
            node.disk->erase();
        else
            node.disk->lose_power(machine.random);
    }

    void crash_server()
    {
        for (const auto &p : machine.processes)
            machine.kill(*p);
        machine.parallel->lose_power(machine.random);
    }

    void strike(const Strike &s, Process &p)
    {
        switch (s.blow) {
        case Blow::KILL_RANK:
            machine.kill(p);
            break;
        case Blow::SECOND:
            begin_second(story.runs[static_cast<size_t>(number)], s);
            break;
        case Blow::KILL_RUN:
            for (Process *rank : ranks)
                machine.kill(*rank);
            break;
        case Blow::LOSE_NODE:
        case Blow::CRASH_NODE:
            if (p.node->up) judge.lost(p.node->number);
            crash(*p.node, s.blow == Blow::LOSE_NODE);
            break;
        case Blow::CRASH_ALL:
            crash_server();
            judge.lost_all();
            for (const auto &node : machine.nodes)
                crash(*node, s.stays);
            break;
        default:
            crash_server();
        }
    }

    void deal()
    {
        for (const auto &[what, process] : due)
            strike(*what, *process);
        due.clear();
    }

    /* ---- a run ---- */

    /* Whether the run is over. As a launcher does, ends all ranks if one has died. */
    bool is_over(const std::vector<Process *> &group)
    {
        bool over = true, died = false;
        for (const Process *p : group) {
            over = over && p->ended;
            died = died || (p->ended && p->status != 0);
        }
        if (over || !died) return over;
        s4u::this_actor::sleep_for(0.1);
        for (Process *p : group)
            machine.kill(*p);
        return false;
    }

    void play(const Run &run)
    {
        begin(run);
        const double end_of_patience = machine.now() + PATIENCE;
        for (;;) {
            deal();
            const bool over = is_over(ranks);
            if (is_over(second) && over) break;
            if (machine.now() > end_of_patience)
                end("run " + std::to_string(number) + " hangs");
            s4u::this_actor::sleep_for(0.05);
        }
        finish();
    }

    void begin(const Run &run)
    {
        if (run.audit)
            for (const auto &node : machine.nodes)
                lose(*node);
        keep_disks(run);
        fallen.assign(run.strikes.size(), false);
        judge.begin_run(run, is_silent());
        second.clear();
        ranks = launch(Program{&judge, &story, &run, number, "", nullptr}, run.job);
    }

    /* Begins a second run, only beside a run that has its caches. */
    void begin_second(const Run &run, const Strike &s)
    {
        auto is_held = [this] {
            bool held = !judge.is_ending && judge.are_initialized();
            for (const Process *p : ranks)
                held = held && !p->ended;
            return held;
        };
        const std::string job = s.stays ? "19" : run.job;
        if (second.empty() && is_held())
            second =
                launch(Program{&judge, &story, &run, SECOND + number, job, is_held}, job);
    }

    std::vector<Process *> launch(const Program &program, const std::string &job)
    {
        const Run &run = *program.what;
        std::vector<Process *> group;
        const int count = run.ranks();
        const std::string instance = "run" + std::to_string(program.run);
        SMPI_app_instance_register(instance.c_str(), nullptr, count);
        for (int rank = 0; rank < count; rank++) {
            group.push_back(&machine.spawn(
                *machine.nodes[static_cast<size_t>(run.node_of(rank))], "application",
                environment(job, run), program.run, rank, [this, program](Process &p) {
                    try {
                        return program.main(p);
                    } catch (const Failure &failure) {
                        end("run " + std::to_string(number) + ": " + failure.what());
                    }
                }));
        }
        return group;
    }

    /* Exchanges the disks of all nodes, or of one, with those set aside. */
    void exchange_disks(const Strike &s)
    {
        for (const auto &node : machine.nodes) {
            if (s.blow == Blow::RETURN && s.rank != node->number) continue;
            if (node->up) machine.power_off(*node);
            machine.exchange_disk(*node);
            judge.lost(node->number);
        }
        if (s.blow == Blow::SHELVE) judge.lost_all();
        struck++;
    }

    /* Removes everything of earlier runs. */
    void lose(Node &node)
    {
        machine.power_off(node);
        judge.lost_all();
        node.disk->erase();
        machine.power_on(node);
        machine.make_directories(node);
    }

    void keep_disks(const Run &run)
    {
        before.clear();
        for (const Strike &s : run.strikes) {
            if (s.blow != Blow::STALE || !before.empty()) continue;
            for (const auto &node : machine.nodes)
                before.push_back(node->disk->copy());
            before.push_back(machine.parallel->copy());
        }
    }

    void finish()
    {
        const Run &run = story.runs[static_cast<size_t>(number)];
        failing.clear();
        lasting.clear();
        hangs.clear();
        if (server_lost) crash_server();
        server_lost = false;
        machine.bury(number);
        machine.bury(SECOND + number);
        judge.end_run();
        for (const Strike &s : run.strikes)
            if (s.blow == Blow::SHELVE || s.blow == Blow::RETURN)
                exchange_disks(s);
            else if (s.blow >= Blow::FLIP)
                struck += damage(machine, before, s, judge);
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
