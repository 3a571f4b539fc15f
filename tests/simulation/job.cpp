/* SPDX-License-Identifier: BSD-3-Clause */
/* A job on simulated nodes; see job.h. */
#include "job.h"

#include "application.h"
#include "crash_states.h"
#include "points.h"

#include <algorithm>
#include <cstring>
#include <kvtree/kvtree.h>
#include <scr.h>
#include <set>
#include <smpi/smpi.h>

namespace s4u = simgrid::s4u;

namespace sim
{

int ranks_of(const Layout &layout)
{
    int count = 0;
    for (const Station &place : layout)
        count += place.ranks;
    return count;
}

int Told::messages(const char *identifier, const std::vector<std::string> &texts) const
{
    const std::string last = std::string(" [") + identifier + "]";
    int count = 0;
    for (size_t at = 0, end; at < printed.size(); at = end + 1) {
        end = std::min(printed.find('\n', at), printed.size());
        const std::string line = printed.substr(at, end - at);
        count += line.size() > last.size() &&
                 line.compare(line.size() - last.size(), last.size(), last) == 0 &&
                 std::all_of(texts.begin(), texts.end(), [&](const auto &text) {
                     return line.find(text) != std::string::npos;
                 });
    }
    return count;
}

namespace
{

std::string file_of(const std::string &name, int rank)
{
    return name + "/rank_" + std::to_string(rank);
}

/* The bytes of a file; files of ranks have different sizes. */
std::string bytes_of(const std::string &name, int rank, const std::string &tag)
{
    return content(tag.empty() ? name : tag + "/" + name, rank,
                   1000 + 13 * static_cast<size_t>(rank));
}

/* The actions of one rank of a run. */
class Rank
{
  public:
    struct Shared {
        const bool *is_disturbed;
        Script script;
        Told *told;
        std::map<int, std::pair<std::string, int>> results; /* result of the n-th call */
    };

    Rank(int rank, Shared &run) : rank(rank), run(run), script(run.script)
    {
    }

    int main()
    {
        MPI_Init(nullptr, nullptr);
        for (const std::string &descriptor : script.descriptors)
            SCR_Config(descriptor.c_str());
        if (is_good("SCR_Init", SCR_Init())) work();
        MPI_Finalize();
        return 0;
    }

  private:
    const int rank;
    Shared &run;
    const Script &script;
    int calls = 0;

    int agree(const std::string &what, int result)
    {
        const std::pair<std::string, int> mine = {what, result};
        auto [place, made] = run.results.emplace(calls++, mine);
        if (!made && place->second != mine)
            Points::fail("ranks differ: " + place->second.first + ": " +
                         std::to_string(place->second.second) + ", " + what + ": " +
                         std::to_string(result));
        return result;
    }

    bool is_good(const std::string &what, int code)
    {
        agree(what, code);
        if (code != SCR_SUCCESS && !*run.is_disturbed)
            Points::fail(what + ": " + SCR_Strerror(code));
        return code == SCR_SUCCESS;
    }

    void work()
    {
        if (script.restarts) restart();
        for (const std::string &name : script.outputs)
            output(name);
        if (script.finalizes) is_good("SCR_Finalize", SCR_Finalize());
    }

    void restart()
    {
        char name[SCR_MAX_FILENAME] = "";
        int flag = 0;
        if (!is_good("SCR_Have_restart", SCR_Have_restart(&flag, name))) return;
        agree(std::string("offered: ") + (flag ? name : "nothing"), flag);
        if (!flag || !is_good("SCR_Start_restart", SCR_Start_restart(name))) return;
        const std::string tag = read(name);
        agree("bytes of " + tag, 0);
        if (!is_good("SCR_Complete_restart", SCR_Complete_restart(1))) return;
        run.told->offered = name;
        run.told->tag = tag;
    }

    /* Reads a checkpoint and returns the tag of its bytes. */
    std::string read(const std::string &name)
    {
        char path[SCR_MAX_FILENAME];
        std::string found;
        if (SCR_Route_file(file_of(name, rank).c_str(), path) != SCR_SUCCESS ||
            !read_file(path, 1 << 20, found))
            Points::fail(name + ": the file of rank " + std::to_string(rank) +
                         " cannot be read");
        for (const std::string &tag : {std::string(), script.known_tag})
            if (found == bytes_of(name, rank, tag)) return tag;
        Points::fail(name + ": the file of rank " + std::to_string(rank) +
                     " has other bytes");
    }

    void output(const std::string &name)
    {
        char path[SCR_MAX_FILENAME];
        const int flag = name[0] == 'o' ? SCR_FLAG_OUTPUT : SCR_FLAG_CHECKPOINT;
        if (!is_good("SCR_Start_output", SCR_Start_output(name.c_str(), flag))) return;
        const bool written =
            SCR_Route_file(file_of(name, rank).c_str(), path) == SCR_SUCCESS &&
            write_file(path, bytes_of(name, rank, script.tag));
        if (!written && !*run.is_disturbed) Points::fail(name + " cannot be written");
        if (!is_good("SCR_Complete_output of " + name, SCR_Complete_output(written)))
            return;
        std::vector<std::string> &names = run.told->completed;
        if (std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(name);
    }
};

} // namespace

/* ---- runs ---- */

Job::Job(int count, std::vector<std::string> environment)
    : nodes(1, count, Crash::XFS), environment(std::move(environment))
{
}

void Job::start(const Script &script, Told &told)
{
    const auto shared = std::make_shared<Rank::Shared>();
    shared->is_disturbed = &is_disturbed;
    shared->script = script;
    shared->told = &told;
    std::vector<std::string> all = script.environment; /* the first value of a name
                                                        * counts */
    all.insert(all.end(), environment.begin(), environment.end());
    for (const char *other :
         {"SCR_PREFIX=/prefix", "SCR_CACHE_BASE=/cache", "SCR_CNTL_BASE=/control",
          "SCR_JOB_ID=17", "SCR_USER_NAME=user", "PATH=/bin", "SCR_DEBUG=1"})
        all.push_back(other);
    ++number;
    SMPI_app_instance_register(("run" + std::to_string(number)).c_str(), nullptr,
                               ranks_of(layout));
    ranks.clear();
    for (const Station &place : layout) {
        Node &node = *machine->nodes[static_cast<size_t>(place.node)];
        machine->make_directories(node);
        for (int i = 0; i < place.ranks; i++) {
            const int rank = static_cast<int>(ranks.size());
            ranks.push_back(&machine->spawn(
                node, "application", all, number, rank,
                [rank, shared](Process &) { return Rank(rank, *shared).main(); }));
        }
    }
}

/* Waits for the ranks. As a launcher does, ends all ranks soon after one has died. */
void Job::wait_for_ranks()
{
    const double end_of_patience = machine->now() + PATIENCE;
    for (;;) {
        bool over = true, died = false;
        for (const Process *p : ranks) {
            over = over && p->ended;
            died = died || (p->ended && p->status != 0);
        }
        if (over) return;
        if (machine->now() > end_of_patience)
            Points::fail("run " + std::to_string(number) + " hangs");
        s4u::this_actor::sleep_for(died ? 0.1 : 0.01);
        for (Process *p : ranks)
            if (died) machine->kill(*p);
    }
}

Told Job::run(const Script &script)
{
    Told told;
    start(script, told);
    wait_for_ranks();
    machine->bury(number);
    for (const auto &p : machine->processes)
        if (p->job == number) told.printed += p->printed;
    printed += told.printed;
    return told;
}

void Job::lose(int number)
{
    Node &node = *machine->nodes[static_cast<size_t>(number)];
    machine->power_off(node);
    node.disk->erase();
    machine->power_on(node);
}

void Job::lose_all()
{
    for (const auto &node : machine->nodes)
        lose(node->number);
    machine->parallel->erase();
}

uint64_t Job::state(const std::string &text) const
{
    for (const auto &p : machine->processes)
        if (!p->ended) return 0;
    uint64_t hash = hash_of(*machine->parallel, text);
    for (const auto &node : machine->nodes)
        hash = hash_of(*node->disk, std::to_string(hash));
    return hash;
}

/* ---- checks after the end ---- */

/* DSET / <id> / DIR / <name> / COMPLETE / 1; if a name occurs twice, the last one
 * counts. */
std::map<std::string, bool> Job::datasets() const
{
    constexpr size_t HEADER = 20;
    std::string bytes;
    std::map<std::string, bool> found;
    if (!machine->parallel->read(".scr/index.scr", bytes)) return found;
    kvtree *index = kvtree_new();
    if (bytes.size() < HEADER ||
        kvtree_unpack_n(bytes.data() + HEADER, bytes.size() - HEADER, index) < 0)
        Points::fail("the index is damaged");
    std::map<int, std::pair<std::string, bool>> ids;
    kvtree *sets = kvtree_get(index, "DSET");
    for (kvtree_elem *id = kvtree_elem_first(sets); id; id = kvtree_elem_next(id)) {
        kvtree *names = kvtree_get(kvtree_elem_hash(id), "DIR");
        for (kvtree_elem *e = kvtree_elem_first(names); e; e = kvtree_elem_next(e))
            ids[kvtree_elem_key_int(id)] = {
                kvtree_elem_key(e),
                kvtree_get_kv(kvtree_elem_hash(e), "COMPLETE", "1") != nullptr};
    }
    kvtree_delete(&index);
    for (const auto &[id, dataset] : ids)
        found[dataset.first] = dataset.second;
    return found;
}

void Job::check_dataset(const std::string &name) const
{
    for (int rank = 0; rank < ranks_of(layout); rank++) {
        std::string found;
        const std::string path = file_of(name, rank);
        if (!machine->parallel->read(path, found))
            Points::fail(path + " is missing, and " + name + " is complete");
        if (found != bytes_of(name, rank, ""))
            Points::fail(path + " has other bytes on the prefix directory");
    }
}

void Job::check_path(const std::string &path,
                     const std::map<std::string, bool> &known) const
{
    static const std::set<std::string> ours = {".scr",          ".scr/flush.scr",
                                               ".scr/halt.scr", ".scr/index.scr",
                                               ".scr/lock",     ".scr/nodes.scr"};
    const std::string first = path.substr(0, path.find('/'));
    const bool temporary =
        path.size() > 4 && path.compare(path.size() - 4, 4, ".tmp") == 0;
    if (temporary || !(known.count(first) || ours.count(path)))
        Points::fail(path + " has no owner");
    Told all;
    all.printed = printed;
    if (path.find("/.scr/stage") != std::string::npos &&
        !all.messages("FLUSH_STAGE_KEPT", {"(" + first + ")"}))
        Points::fail(path + " has no owner");
}

void Job::check_end(const std::vector<std::string> &outputs)
{
    for (int i = 0; i < 100; i++) {
        s4u::this_actor::sleep_for(0.05);
        if (std::all_of(machine->processes.begin(), machine->processes.end(),
                        [](const auto &p) { return p->ended; }))
            break;
    }
    for (const auto &p : machine->processes)
        if (!p->ended) Points::fail(p->program + " is left");
    const std::map<std::string, bool> known = datasets();
    for (const auto &[name, complete] : known)
        if (complete) check_dataset(name);
    for (const std::string &name : outputs)
        if (!known.count(name) || !known.at(name))
            Points::fail(name + " is not on the prefix directory");
    for (const Disk::Entry &entry : machine->parallel->list())
        check_path(entry.path, known);
    for (const Station &place : layout)
        for (const Disk::Entry &entry :
             machine->nodes[static_cast<size_t>(place.node)]->disk->list())
            if (entry.path.find('/') != std::string::npos)
                Points::fail("node " + std::to_string(place.node) + " keeps " +
                             entry.path);
}

} // namespace sim
