/* SPDX-License-Identifier: BSD-3-Clause */
/* kills: a process is killed at every change of a file, and again in the next run.
 *
 *   kills [--part K/N] [--jobs N] [--only TEXT] [--point TEXT] [--again N]
 *
 * A job of four nodes with one rank each writes checkpoints and an output. Datasets leave
 * the cache and are flushed by the ranks, by threads of the ranks, or by scr_transfer.
 * Before every change on a disk, and in the middle of every write, the process that makes
 * the change is killed, and the launcher ends the ranks. The next run restarts, writes
 * one more checkpoint, and ends. Each N-th of its changes (397; 0: none) is also a point,
 * at which it is killed likewise; the selected changes differ after each first kill.
 *
 * The newest checkpoint that was reported complete to any rank, or a newer one, is
 * offered with the bytes that were written; complete outputs reach the prefix directory;
 * and nothing else is left. */
#include "job.h"
#include "points.h"

#include <cstdlib>

using namespace sim;

namespace
{

constexpr int NODES = 4;
uint64_t again = 397; /* one of that number of changes of the next run is a point */

struct Method {
    const char *name;
    std::vector<std::string> environment;
};

const std::vector<Method> METHODS = {
    {"sync", {}},
    {"pthread", {"SCR_FLUSH_ASYNC=1"}},
    {"daemon", {"SCR_FLUSH_ASYNC=1", "SCR_FLUSH_TYPE=DAEMON"}}};

std::vector<std::string> environment_of(const Method &method)
{
    std::vector<std::string> all = {"SCR_FLUSH=2", "SCR_CACHE_SIZE=2", "SCR_SET_SIZE=4"};
    all.insert(all.end(), method.environment.begin(), method.environment.end());
    return all;
}

/* The second checkpoint is flushed, the third evicts the first one, the output evicts the
 * second one; the end of the run flushes the last one. */
Script story()
{
    Script script;
    script.outputs = {"c1", "c2", "c3", "o1", "c4", "c5"};
    script.finalizes = true;
    return script;
}

Script next()
{
    Script script;
    script.restarts = true;
    script.outputs = {"next"};
    script.finalizes = true;
    return script;
}

class Trial
{
  public:
    explicit Trial(const Method &method) : job(NODES, environment_of(method))
    {
        for (int node = 0; node < NODES; node++)
            job.layout.push_back({node, 1});
        machine->strike = [this](Process &p, const Call &call) { return fate(p, call); };
    }

    void play()
    {
        run(story());
        if (!struck) return;
        first = number;
        begin_again();
        const Told told = run(next());
        Points::wait();
        if (!struck) judge(told);
        struck = true; /* no further kills */
        judge(run(next()));
    }

  private:
    Job job;
    std::vector<std::string> done;           /* outputs */
    std::map<std::string, uint64_t> changes; /* number of changes by each process of the
                                              * run so far */
    uint64_t number = 0;                     /* number of the point */
    uint64_t first = 0;                      /* number of the point of the first kill, if
                                              * there was one */
    bool struck = false;                     /* a process was killed in this run */
    const Process *dying = nullptr;          /* will be killed before its next call */

    /* Does not return if the same state was judged before. */
    Told run(const Script &script)
    {
        const Told told = job.run(script);
        done.insert(done.end(), told.completed.begin(), told.completed.end());
        if (!job.is_disturbed) return told;
        job.is_disturbed = false;
        std::string texts = "done";
        for (const std::string &name : done)
            texts += " " + name;
        const uint64_t state = job.state(texts);
        if (state && !Points::is_new(state)) {
            Points::count_same();
            Points::pass();
        }
        Points::count();
        return told;
    }

    void begin_again()
    {
        changes.clear();
        number = 0;
        struck = false;
        dying = nullptr;
    }

    /* ---- kills ---- */

    Fate fate(Process &p, const Call &call)
    {
        Fate result;
        if (!struck && p.job == job.number && call.changes) result.half = strike(p, call);
        if (&p != dying || result.half) return result;
        machine->kill(p);
        simgrid::s4u::this_actor::sleep_for(1e9);
        return result;
    }

    /* Makes points of the call: the process is killed before it, or within it. Returns
     * whether the process performs half of the call first. */
    bool strike(Process &p, const Call &call)
    {
        const std::string name = p.rank < 0 ? p.program + " of " + p.node->name
                                            : "rank " + std::to_string(p.rank);
        const std::string which = std::to_string(++changes[name]) + "]";
        if (is_point(" [" + name + " before change " + which))
            dying = &p;
        else if (call.moves && is_point(" [" + name + " within change " + which)) {
            dying = &p;
            return true;
        }
        return false;
    }

    bool is_point(const std::string &what)
    {
        number++;
        const bool is_second = first > 0;
        const bool chosen =
            is_second ? again && Points::is_chosen(first * 37 + number, what, again)
                      : Points::is_chosen(number, what);
        if (chosen && Points::is_child(what, is_second)) struck = job.is_disturbed = true;
        return struck;
    }

    /* ---- requirements ---- */

    [[noreturn]] void judge(const Told &told)
    {
        std::string newest;
        std::vector<std::string> outputs = {"next"};
        const size_t before = done.size() - told.completed.size();
        for (size_t i = 0; i < before; i++)
            if (done[i][0] == 'o')
                outputs.push_back(done[i]);
            else
                newest = done[i];
        if (told.offered < newest)
            Points::fail(newest + " is lost: offered: '" + told.offered + "'");
        job.check_end(outputs);
        Points::pass();
    }
};

} // namespace

int main(int argc, char **argv)
{
    const auto read_again = [](const char *value) {
        again = strtoull(value, nullptr, 10);
    };
    if (!Points::read_options(argc, argv, "again", read_again)) return 2;
    for (const Method &method : METHODS)
        Points::kind(method.name, NODES, {[&method] {
                         static Trial trial(method);
                         trial.play();
                     }});
    return Points::end();
}
