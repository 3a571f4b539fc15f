/* SPDX-License-Identifier: BSD-3-Clause */
/* crash_states: all states in which a loss of power may leave a disk.
 *
 *   crash_states [--story NAME] [--model ext4|xfs|weak] [--limit N] [--jobs N]
 *                [--verbose]
 *
 * An application with two nodes and one rank per node plays a short story. Before each
 * change on a disk, and at the end, the story stops and power is lost. Each possible
 * state of the disk is judged: a run starts on it, reads and refuses each checkpoint that
 * is offered, and writes another one; the next run restarts from that. The disk is that
 * of the prefix directory, and all caches are lost; or it is that of a node, and nothing
 * else is lost.
 *
 * The states of a moment are all results of the choices of Disk::lose_power, if there are
 * at most N; otherwise a part of them. Equal states with equal expectations are judged
 * once.
 *
 * In the stories "scavenge" and "rebuild" the job ends with a checkpoint that is only in
 * the caches, and commands save it. The server of the prefix directory loses power, and
 * each state is judged three times: all commands are repeated, or only the last one, or
 * none. Then the caches are lost. */
#include "crash_states.h"

#include "application.h"
#include "engine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <getopt.h>
#include <scr.h>
#include <set>
#include <smpi/smpi.h>
#include <sys/wait.h>
#include <unistd.h>

namespace s4u = simgrid::s4u;
using namespace sim;

namespace
{

constexpr int NODES = 2;
constexpr size_t FILE_BYTES = 700;   /* two sectors */
constexpr unsigned FAILURES_MAX = 5; /* failures after which a story ends */
const char *const LAST = "after";    /* the checkpoint that is written after the loss */

struct Story {
    const char *name;
    bool node; /* the disk of node 1 loses power; otherwise the prefix directory */
    int retention;
    std::vector<Step> steps;
    std::vector<std::string> environment;
    /* flushes run in the background; each ends before the next one begins, or the run
     * ends */
    bool background = false;
    /* the last steps are commands; `loses`: before them, the disk of node 1 is lost */
    bool scavenges = false, loses = false;
};

const std::vector<Story> STORIES = {
    {"flush", false, 0, {{Action::WRITE, "one"}, {Action::WRITE, "two"}}, {}},
    {"index",
     false,
     0,
     {{Action::WRITE, "one"},
      {Action::WRITE, "two"},
      {Action::CURRENT, "one"},
      {Action::DROP, "two"}},
     {}},
    {"delete",
     false,
     0,
     {{Action::WRITE, "one"},
      {Action::WRITE, "two"},
      {Action::DELETE, "two"},
      {Action::DELETE, "one"}},
     {}},
    {"retention",
     false,
     1,
     {{Action::WRITE, "one"}, {Action::WRITE, "two"}, {Action::WRITE, "three"}},
     {"SCR_PREFIX_SIZE=1"}},
    {"containers",
     false,
     0,
     {{Action::WRITE, "one"}, {Action::WRITE, "two"}},
     {"SCR_USE_CONTAINERS=1"}},
    {"nodes",
     false,
     0,
     {{Action::WRITE, "one"}, {Action::WRITE, "two"}},
     {"SCR_FLUSH_FORM=containers", "SCR_FLUSH_ALIGN=4KB"}},
    {"bypass",
     false,
     0,
     {{Action::WRITE, "one"}, {Action::WRITE, "two"}},
     {"SCR_CACHE_BYPASS=1"}},
    {"background",
     false,
     0,
     {{Action::WRITE, "one"}, {Action::WRITE, "two"}},
     {"SCR_FLUSH_ASYNC=1"},
     true},
    {"node",
     true,
     0,
     {{Action::WRITE, "one"}, {Action::WRITE, "two"}, {Action::WRITE, "three"}},
     {"SCR_COPY_TYPE=PARTNER", "SCR_FLUSH=0"}},
    {"scavenge",
     false,
     0,
     {{Action::WRITE, "one"},
      {Action::CACHE, "two"},
      {Action::SAVE, "two"},
      {Action::ADD, "two"}},
     {"SCR_FLUSH=0"},
     false,
     true},
    {"rebuild",
     false,
     0,
     {{Action::WRITE, "one"},
      {Action::CACHE, "two"},
      {Action::SAVE, "two"},
      {Action::ADD, "two"}},
     {"SCR_COPY_TYPE=XOR", "SCR_FLUSH=0"},
     false,
     true,
     true},
};
const char *const SCAVENGED = "two", *const SCAVENGED_HIDDEN = "two/.scr/";
constexpr int SCAVENGED_ID = 2;

struct Options {
    const char *story = nullptr, *model = nullptr;
    uint64_t limit = 2000;
    int jobs = 2;
    bool verbose = false, until_failure = false;
} options;

struct Figures {
    uint64_t moments = 0, sampled = 0, states = 0, distinct = 0, failed = 0;
} figures;

const Story *story;
const char *model;
Ledger ledger;
size_t steps_begun = 0, steps_done = 0; /* by any rank */
std::vector<Process *> ranks;
std::set<uint64_t> seen;
int children = 0;

/* in the process that judges a state */
bool judging = false;
int run_number = 0;
std::vector<unsigned> found_choice;
enum class Repeat { NOTHING, ADD, ALL } repeat; /* commands to repeat */
bool is_whole = false;                          /* commands report that the dataset is
                                                 * complete */
std::string where;
std::vector<std::string> offered;
std::map<int, std::pair<std::string, int>> results; /* result of the n-th call of this
                                                     * run */

[[noreturn]] void give_up(const std::string &text)
{
    if (options.verbose)
        for (const auto &p : machine->processes)
            fputs(p->printed.c_str(), stdout);
    std::string choice;
    for (unsigned n : found_choice)
        choice += " " + std::to_string(n);
    static const char *const repeated[] = {"", ", scr_index is repeated",
                                           ", scr_copy and scr_index are repeated"};
    printf("%s, %s: %s: choices%s%s: run %d: %s\n", story->name, model, where.c_str(),
           choice.c_str(), repeated[static_cast<int>(repeat)], run_number, text.c_str());
    fflush(nullptr);
    _exit(1);
}

/* ---- moments and states ---- */

std::shared_ptr<Disk> &disk()
{
    return story->node ? machine->nodes[1]->disk : machine->parallel;
}

void wait_for_child()
{
    int status;
    if (wait(&status) < 0) return;
    children--;
    figures.failed += status != 0;
}

/* True in the process that must judge the state. */
bool is_child(const std::vector<unsigned> &choice, Repeat how)
{
    while (children >= options.jobs)
        wait_for_child();
    fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) give_up("no process");
    children += child > 0;
    if (child != 0) return false;
    judging = true;
    found_choice = choice;
    repeat = how;
    return true;
}

bool is_taken(const std::vector<unsigned> &choice)
{
    figures.states++;
    std::unique_ptr<Disk> copy = disk()->copy();
    copy->lose_power(choice);
    if (!seen.insert(hash_of(*copy, ledger.text())).second) return false;
    figures.distinct++;
    if (is_child(choice, Repeat::NOTHING)) return true;
    if (!ledger.is_cached(SCAVENGED)) return false;
    return is_child(choice, Repeat::ADD) || is_child(choice, Repeat::ALL);
}

struct Taken {
};

/* Judges all states of this moment. Returns true in a process that must judge one of
 * them. */
bool moment(const std::string &what)
{
    if (figures.failed >= (options.until_failure ? 1 : FAILURES_MAX)) return false;
    where = "moment " + std::to_string(figures.moments++) + ", before " + what;
    try {
        figures.sampled += !enumerate(disk()->choices(), disk()->first_block_choice(),
                                      options.limit, [](const auto &choice) {
                                          if (is_taken(choice)) throw Taken();
                                      });
    } catch (const Taken &) {
        return true;
    }
    return false;
}

Fate before_call(Process &, const Call &call)
{
    const bool prefix = call.path.rfind("/prefix", 0) == 0;
    if (judging || !call.changes || prefix == story->node) return {};
    if (story->node && Machine::self().node->number != 1) return {};
    if (!moment(std::string(call.name) + " " + call.path)) return {};
    for (const auto &p : machine->processes)
        machine->kill(*p);
    s4u::this_actor::sleep_for(2 * PATIENCE);
    return {};
}

/* ---- the application ---- */

/* One rank. */
class Rank
{
  public:
    explicit Rank(int rank) : rank(rank)
    {
    }

    int main()
    {
        MPI_Init(nullptr, nullptr);
        need("SCR_Init", SCR_Init());
        if (run_number == 0) {
            for (const Step &step : story->steps)
                if (step.action < Action::SAVE) play(step);
        } else {
            while (restart())
                ;
            if (run_number == 1) write(LAST, true);
        }
        if (run_number == 0 && story->scavenges) return 0;
        need("SCR_Finalize", SCR_Finalize());
        if (run_number == 0 && story->background) done(story->steps.size() - 1);
        MPI_Finalize();
        return 0;
    }

  private:
    const int rank;
    int calls = 0;
    size_t steps = 0;

    /* Records that the step is done; the first rank that gets there reports it. */
    static void done(size_t step)
    {
        if (step == steps_done) ledger.done(story->steps[steps_done++]);
    }

    int agree(const char *what, int code)
    {
        const std::pair<std::string, int> mine = {what, code};
        auto [place, made] = results.emplace(calls++, mine);
        if (!made && place->second != mine)
            give_up(std::string("ranks differ in ") + what);
        return code;
    }

    void need(const char *what, int code)
    {
        if (agree(what, code) != SCR_SUCCESS)
            give_up(std::string(what) + ": " + SCR_Strerror(code));
    }

    std::string route(const std::string &name)
    {
        char path[SCR_MAX_FILENAME];
        const std::string file = name + "/rank_" + std::to_string(rank);
        need("SCR_Route_file", SCR_Route_file(file.c_str(), path));
        return path;
    }

    void play(const Step &step)
    {
        if (steps == steps_begun) {
            ledger.begin(step);
            steps_begun++;
        }
        switch (step.action) {
        case Action::WRITE:
        case Action::CACHE:
            write(step.name, step.action == Action::WRITE);
            break;
        case Action::CURRENT:
            need("SCR_Current", SCR_Current(step.name));
            break;
        case Action::DROP:
            need("SCR_Drop", SCR_Drop(step.name));
            break;
        case Action::DELETE:
            need("SCR_Delete", SCR_Delete(step.name));
            break;
        default:
            give_up("no step of an application");
        }
        if (!story->background)
            done(steps);
        else if (steps > 0)
            done(steps - 1);
        steps++;
        MPI_Barrier(MPI_COMM_WORLD); /* all ranks end a step before the next one begins */
    }

    void write(const char *name, bool flushes)
    {
        const int output = flushes && story->scavenges ? SCR_FLAG_OUTPUT : 0;
        need("SCR_Start_output", SCR_Start_output(name, SCR_FLAG_CHECKPOINT | output));
        if (!write_file(route(name), content(name, rank, FILE_BYTES)))
            give_up("a file could not be written");
        need("SCR_Complete_output", SCR_Complete_output(1));
    }

    /* Restarts. Run 1 refuses what it is offered, run 2 does not. False: the run is
     * done. */
    bool restart()
    {
        char name[SCR_MAX_FILENAME] = "";
        int flag = 0;
        need("SCR_Have_restart", SCR_Have_restart(&flag, name));
        agree(flag ? name : "nothing", flag);
        if (run_number == 2 && (!flag || strcmp(name, LAST)))
            give_up(std::string("after is lost: offered: ") + (flag ? name : "nothing"));
        if (rank == 0 && flag) offered.push_back(name);
        if (rank == 0 && !flag) {
            const std::string wrong = ledger.judge(offered);
            if (!wrong.empty()) give_up(wrong);
        }
        if (!flag) return false;
        need("SCR_Start_restart", SCR_Start_restart(name));
        if (read(route(name)) != content(name, rank, FILE_BYTES))
            give_up(std::string(name) + " has wrong bytes");
        const int code =
            agree("SCR_Complete_restart", SCR_Complete_restart(run_number == 2));
        if (code != (run_number == 2 ? SCR_SUCCESS : SCR_ERR_INVALID))
            give_up(std::string("SCR_Complete_restart: ") + SCR_Strerror(code));
        return run_number == 1;
    }

    static std::string read(const std::string &path)
    {
        std::string bytes;
        read_file(path, FILE_BYTES + 1, bytes);
        return bytes;
    }
};

/* ---- the machine ---- */

void start_run()
{
    std::vector<std::string> environment = {
        "SCR_PREFIX=/prefix",     "SCR_CACHE_BASE=/cache",
        "SCR_CNTL_BASE=/control", "SCR_JOB_ID=17",
        "SCR_USER_NAME=user",     "PATH=/bin",
        "SCR_CACHE_SIZE=2",       "SCR_DEBUG=1"};
    environment.insert(environment.end(), story->environment.begin(),
                       story->environment.end());
    for (const char *other : {"SCR_COPY_TYPE=SINGLE", "SCR_FLUSH=1"}) {
        const size_t length = strcspn(other, "=") + 1;
        if (std::none_of(environment.begin(), environment.end(), [&](const auto &set) {
                return set.compare(0, length, other, length) == 0;
            }))
            environment.push_back(other);
    }
    SMPI_app_instance_register(("run" + std::to_string(run_number)).c_str(), nullptr,
                               NODES);
    ranks.clear();
    results.clear();
    for (int rank = 0; rank < NODES; rank++) {
        Node &node = *machine->nodes[static_cast<size_t>(rank)];
        machine->make_directories(node);
        ranks.push_back(&machine->spawn(node, "application", environment, run_number,
                                        rank,
                                        [rank](Process &) { return Rank(rank).main(); }));
    }
}

/* Runs the story. False: power was lost. */
void run()
{
    const bool first = run_number == 0;
    const double end_of_patience = machine->now() + PATIENCE;
    start_run();
    while (judging != first && std::any_of(ranks.begin(), ranks.end(),
                                           [](Process *p) { return !p->ended; })) {
        if (machine->now() > end_of_patience) give_up("it hangs");
        s4u::this_actor::sleep_for(0.01);
    }
    machine->bury(run_number);
}

void lose_cache(Node &node)
{
    machine->power_off(node);
    node.disk->erase();
}

void lose_caches()
{
    for (const auto &node : machine->nodes) {
        lose_cache(*node);
        machine->power_on(*node);
    }
}

void check_prefix()
{
    for (const Disk::Entry &entry : machine->parallel->list()) {
        const std::string &path = entry.path;
        const bool temporary =
            path.size() > 4 && path.compare(path.size() - 4, 4, ".tmp") == 0;
        const bool scavenged = path.find(SCAVENGED_HIDDEN) == 0;
        if (is_whole && scavenged && path.find("/scavenge.") != std::string::npos)
            give_up("the prefix directory keeps " + path);
        if ((temporary && (is_whole || !scavenged)) ||
            path.find("/.scr/stage") != std::string::npos)
            give_up("the prefix directory keeps " + path);
    }
}

/* ---- commands after the job ---- */

void scavenge()
{
    std::string wrong;
    bool complete;
    if (story->loses) lose_cache(*machine->nodes[1]);
    for (const Step &step : story->steps) {
        if (step.action < Action::SAVE) continue;
        ledger.begin(step);
        wrong = step.action == Action::SAVE ? play_copies(run_number, SCAVENGED_ID)
                                            : play_add(run_number, step.name, complete);
        if (judging) return;
        if (!wrong.empty() || (step.action == Action::ADD && !complete))
            give_up("commands fail: " + wrong);
        ledger.done(step);
    }
}

/* Repeats the commands: a dataset that was saved, or can be saved again, can be added. */
void repeat_commands()
{
    std::string wrong;
    if (repeat == Repeat::ALL) wrong = play_copies(run_number, SCAVENGED_ID);
    if (!wrong.empty()) give_up(wrong);
    wrong = play_add(run_number, SCAVENGED, is_whole);
    if (is_whole || repeat == Repeat::ALL || ledger.is_saved(SCAVENGED))
        ledger.done({Action::ADD, SCAVENGED});
    machine->bury(run_number);
}

[[noreturn]] void judge_state()
{
    disk()->lose_power(found_choice);
    if (repeat != Repeat::NOTHING) repeat_commands();
    for (run_number = 1; run_number <= 2; run_number++) {
        if (!story->node) lose_caches();
        run();
    }
    check_prefix();
    fflush(nullptr);
    _exit(0);
}

void direct()
{
    static Machine all(1, NODES,
                       !strcmp(model, "ext4")  ? Crash::EXT4
                       : !strcmp(model, "xfs") ? Crash::XFS
                                               : Crash::WEAK);
    ledger.begin_run(story->retention, story->node);
    all.strike = before_call;
    run();
    if (story->scavenges && !judging) scavenge();
    if (judging || moment("the end")) judge_state();
    while (children > 0)
        wait_for_child();
    printf("%s, %s: %lu moments (%lu of them sampled), %lu states, %lu distinct, %lu "
           "failed%s\n",
           story->name, model, figures.moments, figures.sampled, figures.states,
           figures.distinct, figures.failed,
           figures.failed >= FAILURES_MAX || (figures.failed && options.until_failure)
               ? "; the story was given up"
               : "");
    fflush(stdout);
    _exit(figures.failed != 0);
}

[[noreturn]] void one()
{
    prepare(NODES, 1024);
    s4u::Actor::create("director", s4u::Host::by_name("head0"), direct);
    s4u::Engine::get_instance()->run();
    _exit(1);
}

bool read_options(int argc, char **argv)
{
    static const struct option known[] = {{"story", 1, nullptr, 's'},
                                          {"model", 1, nullptr, 'm'},
                                          {"limit", 1, nullptr, 'l'},
                                          {"jobs", 1, nullptr, 'j'},
                                          {"verbose", 0, nullptr, 'v'},
                                          {"until-failure", 0, nullptr, 'u'},
                                          {}};
    int c;
    while ((c = getopt_long(argc, argv, "", known, nullptr)) >= 0) {
        if (c == 's')
            options.story = optarg;
        else if (c == 'm')
            options.model = optarg;
        else if (c == 'l')
            options.limit = std::max(1ull, strtoull(optarg, nullptr, 10));
        else if (c == 'j')
            options.jobs = std::max(1, atoi(optarg));
        else if (c == 'v')
            options.verbose = true;
        else if (c == 'u')
            options.until_failure = true;
        else
            return false;
    }
    return optind == argc;
}

} // namespace

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) return 2;
    int played = 0, bad = 0, status;
    for (const Story &s : STORIES)
        for (const char *m : {"ext4", "xfs", "weak"}) {
            if (options.story && strcmp(options.story, s.name)) continue;
            if (options.model && strcmp(options.model, m)) continue;
            story = &s;
            model = m;
            fflush(nullptr);
            const pid_t child = fork();
            if (child == 0) one();
            if (waitpid(child, &status, 0) != child) return 1;
            played++;
            bad += status != 0;
            if (bad && options.until_failure) return 1;
        }
    printf("crash states: %d stories and models, limit %lu: %d failed\n", played,
           options.limit, bad);
    return bad != 0 || played == 0;
}
