/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulated application: restarts, then writes the datasets of its run, and reports
 * results to the judge. */
#include "program.h"

#include "application.h"

#include <cerrno>
#include <fcntl.h>
#include <scr.h>
#include <smpi/smpi.h>

namespace sim
{

/* Added to the number of a run when it continues with a part of its ranks. */
static constexpr int REST = 500;

namespace
{

/* One rank. */
class Rank
{
  public:
    Rank(Process &process, const Program &program)
        : process(process), program(program), judge(*program.judge), what(program.what),
          part(program.run)
    {
    }

    int main()
    {
        MPI_Init(nullptr, nullptr);
        MPI_Comm_rank(world, &rank);
        MPI_Comm_size(world, &ranks);
        configure();
        if (program.is_held)
            intrude();
        else if (expect("SCR_Init", SCR_Init()) == SCR_SUCCESS && work() &&
                 what->rest.size() && !survive())
            return 0;
        MPI_Finalize();
        return 0;
    }

  private:
    Process &process;
    const Program &program;
    Judge &judge;
    const Run *what;
    int part; /* number of the run or of its rest */
    MPI_Comm world = MPI_COMM_WORLD;
    int rank = 0, ranks = 0, calls = 0;

    void configure() const
    {
        for (const std::string &descriptor : program.story->descriptors)
            SCR_Config(descriptor.c_str());
    }

    int agree(const char *what, int64_t result)
    {
        judge.agree(part, rank, calls++, what, result);
        return static_cast<int>(result);
    }

    /* Reports a failure that must have a reason: a flush may be abandoned or find damaged
     * files, and a process of another job may hold the lock of the index. */
    void fail(const char *what, int code) const
    {
        const double now = process.machine->now();
        if (code == SCR_ERR_FLUSH && (judge.is_abandoned(now) || judge.may_lack_source()))
            return;
        if (code == SCR_ERR_PREFIX && judge.is_locked_out(now)) return;
        judge.failed(what, code);
    }

    int expect(const char *what, int code)
    {
        if (agree(what, code) != SCR_SUCCESS) fail(what, code);
        return code;
    }

    void intrude()
    {
        const bool same = program.other_job == what->job;
        const int code = agree("SCR_Init", SCR_Init());
        if (same && code == SCR_SUCCESS && program.is_held())
            throw Failure("two runs of one job use the same caches");
        if (!same && code != SCR_SUCCESS) judge.failed("SCR_Init of another job", code);
        if (same || code != SCR_SUCCESS) return;
        Dataset &d = output(Step{}, 0);
        if (expect("SCR_Finalize of another job", SCR_Finalize()) == SCR_SUCCESS)
            judge.finalized_other(d);
    }

    /* Returns whether SCR has not been finalized. */
    bool work()
    {
        judge.initialized();
        restart();
        int number = 0;
        for (const Step &step : what->steps) {
            simgrid::s4u::this_actor::sleep_for(step.compute);
            output(step, number++);
        }
        if (what->rest.size() || !what->finalize) return true;
        judge.finalizing();
        if (expect("SCR_Finalize", SCR_Finalize()) == SCR_SUCCESS) judge.finalized();
        return false;
    }

    /* Whether this rank survives: the first or last ranks of their nodes do. */
    bool is_left() const
    {
        const Run &rest = what->rest[0];
        const int node = what->node_of(rank);
        int before = 0, behind = 0, left = 0;
        for (int i = 0; i < ranks; i++) {
            before += i < rank && what->node_of(i) == node;
            behind += i > rank && what->node_of(i) == node;
        }
        for (size_t i = 0; i < rest.machines.size(); i++)
            if (rest.machines[i] == node) left = rest.counts[i];
        return (what->last ? behind : before) < left;
    }

    /* Some ranks die, and the rest continues. False: this rank has died. */
    bool survive()
    {
        const bool lives = is_left();
        MPI_Comm rest;
        if (what->within) open_output();
        MPI_Comm_split(world, lives ? 0 : MPI_UNDEFINED, rank, &rest);
        MPI_Barrier(world); /* earlier reports to the judge belong to the previous run */
        if (!lives) return false;
        expect("SCR_Abandon", SCR_Abandon());
        MPI_Comm_rank(rest, &rank);
        MPI_Comm_size(rest, &ranks);
        if (rank == 0) judge.begin_rest(what->rest[0]);
        what = &what->rest[0];
        world = rest;
        part += REST;
        calls = 0;
        MPI_Barrier(world);
        configure();
        if (expect("SCR_Init_comm", SCR_Init_comm(world)) == SCR_SUCCESS) work();
        return true;
    }

    /* Begins an output that no rank completes. */
    void open_output()
    {
        Step step;
        step.checkpoint = true;
        Dataset &d =
            judge.start(part, static_cast<int>(what->steps.size()), step, what->job);
        d.bad = true;
        if (expect("SCR_Start_output",
                   SCR_Start_output(d.name.c_str(), SCR_FLAG_CHECKPOINT)) == SCR_SUCCESS)
            write(d, 0);
    }

    void restart()
    {
        /* an application may try until nothing more is offered */
        for (int tries = 0; tries < 30; tries++) {
            char name[SCR_MAX_FILENAME] = "";
            int flag = 0;
            if (expect("SCR_Have_restart", SCR_Have_restart(&flag, name)) !=
                SCR_SUCCESS) {
                judge.offered(""); /* an error was injected */
                return;
            }
            Dataset *d = flag ? judge.find(name) : nullptr;
            agree("its flag", flag ? d ? d->number + 1 : -1 : 0);
            judge.offered(flag ? name : "");
            const bool refused = what->audit || tries < what->refuses;
            if (!flag || restart_from(*d, refused)) return;
        }
    }

    /* Restarts from a checkpoint. The last rank may refuse it. */
    bool restart_from(Dataset &d, bool refused)
    {
        char name[SCR_MAX_FILENAME];
        if (expect("SCR_Start_restart", SCR_Start_restart(name)) != SCR_SUCCESS)
            return false;
        int good = what->any ? read_any(d) : read_own(d), all;
        MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_LAND, world);
        judge.restarted(d, all, refused);
        const int code = SCR_Complete_restart(good && !(refused && rank == ranks - 1));
        if (all && !refused) return expect("SCR_Complete_restart", code) == 0;
        judge.completed_restart(d, agree("SCR_Complete_restart", code), refused);
        return false;
    }

    /* Returns the ranks that wrote the files that this rank wants. */
    std::vector<int> wanted(const Dataset &d) const
    {
        const int64_t half = (ranks + 1) / 2;
        std::vector<int> list;
        auto is_in_block = [&d](int64_t i, int64_t me, int64_t of) {
            return i * of / d.ranks == me;
        };
        for (int i = 0; i < d.ranks; i++) {
            bool mine = is_in_block(i, rank, ranks);
            switch (what->wants) {
            case Wants::OWN:
                mine = i == rank;
                break;
            case Wants::BLOCK:
                break;
            case Wants::ROBIN:
                mine = i % ranks == rank;
                break;
            case Wants::EVERY:
                mine = true;
                break;
            case Wants::COMMON:
                mine = mine || i == d.number % d.ranks;
                break;
            case Wants::HALF:
                mine = rank % 2 == 0 && is_in_block(i, rank / 2, half);
                break;
            case Wants::ONE:
                mine = rank == ranks - 1;
            }
            if (mine) list.push_back(i);
        }
        return list;
    }

    /* Reports a failure of a call that must succeed if the files exist. */
    bool may_go_on(const char *what, int code) const
    {
        if (code != SCR_SUCCESS) judge.failed(what, code);
        return code == SCR_SUCCESS;
    }

    /* Whether the file is the shared file of all ranks, which is a file of its first
     * writer if nothing is cached. */
    bool is_of_all(const Dataset &d, const std::string &name) const
    {
        return program.story->bypass && name == "/prefix/" + Judge::shared_name(d);
    }

    /* Gets the names of the files of a rank, which must be those that it wrote. */
    bool list(const Dataset &d, int writer, std::vector<std::string> &names)
    {
        std::set<std::pair<std::string, uint64_t>> right, told;
        const size_t before = names.size();
        int files = -1;
        if (!may_go_on("SCR_Dataset_files", SCR_Dataset_files(writer, &files)))
            return false;
        for (int f = 0; f < d.files; f++)
            right.insert({"/prefix/" + Judge::name(d, writer, f),
                          Judge::bytes(d, writer, f).size()});
        for (int f = 0; f < files; f++) {
            char name[SCR_MAX_FILENAME];
            uint64_t size = 0;
            if (!may_go_on("SCR_Dataset_file", SCR_Dataset_file(writer, f, name, &size)))
                return false;
            if (is_of_all(d, name)) continue;
            told.insert({name, size});
            names.push_back(name);
        }
        if (names.size() - before != right.size() || told != right)
            throw Failure(d.name + ": wrong names of files of rank " +
                          std::to_string(writer));
        return true;
    }

    bool fetch(const Dataset &d, const std::vector<std::string> &names, size_t from,
               size_t to)
    {
        std::vector<const char *> list;
        for (size_t i = from; i < to; i++)
            list.push_back(names[i].c_str());
        const int code =
            agree("SCR_Fetch_files",
                  SCR_Fetch_files(static_cast<int>(list.size()), list.data()));
        if (judge.may_be_unreadable(d)) return code == SCR_SUCCESS;
        return may_go_on("SCR_Fetch_files", code);
    }

    /* Reads a dataset written by any number of ranks. */
    bool read_any(const Dataset &d)
    {
        int writers = 0;
        std::vector<std::string> names;
        bool good = may_go_on("SCR_Dataset_ranks", SCR_Dataset_ranks(&writers));
        if (good && writers != d.ranks)
            throw Failure(d.name + " has " + std::to_string(writers) + " ranks");
        const std::vector<int> list_of = wanted(d);
        for (int writer : list_of)
            good = good && list(d, writer, names);
        const size_t first = what->twice ? names.size() / 2 : names.size();
        good = fetch(d, names, 0, first) && good;
        if (what->twice) good = fetch(d, names, first, names.size()) && good;
        std::vector<Extent> extents;
        const size_t size = Judge::shared_mask(d).size();
        for (const size_t writer : list_of)
            extents.push_back({size * writer / d.ranks,
                               size * (writer + 1) / d.ranks - size * writer / d.ranks});
        if (size > 0) good = fetch_parts(d, extents) && good;
        return good && read_all(d, list_of) && read_parts(d, extents);
    }

    bool read_own(const Dataset &d)
    {
        return read_all(d, {rank}) && read_parts(d, Judge::shares(d, rank));
    }

    /* Reads bytes of the shared file, regardless of where the parts of its writers
     * end. */
    bool fetch_parts(const Dataset &d, const std::vector<Extent> &extents)
    {
        const std::string name = Judge::shared_name(d);
        const std::vector<const char *> names(extents.size(), name.c_str());
        std::vector<uint64_t> offsets, lengths;
        for (const Extent &e : extents) {
            offsets.push_back(e.offset);
            lengths.push_back(e.length);
        }
        const int code =
            agree("SCR_Fetch_file_parts",
                  SCR_Fetch_file_parts(static_cast<int>(extents.size()), names.data(),
                                       offsets.data(), lengths.data()));
        if (judge.may_be_unreadable(d)) return code == SCR_SUCCESS;
        return may_go_on("SCR_Fetch_file_parts", code);
    }

    bool read_parts(const Dataset &d, const std::vector<Extent> &extents)
    {
        const std::string all = Judge::shared_bytes(d);
        const std::vector<bool> mask = Judge::shared_mask(d);
        for (const Extent &e : extents) {
            char path[SCR_MAX_FILENAME];
            uint64_t at = 0;
            std::string found;
            if (!route_part(d, e, path, &at)) return false;
            if (e.length == 0) continue;
            if (!read_file(path, e.length, found, at)) return false;
            /* no checksum covers bytes that no rank wrote */
            for (size_t i = 0; i < found.size() && d.ruined; i++)
                if (!mask[e.offset + i]) found[i] = 0;
            if (found != all.substr(e.offset, e.length))
                throw Failure(d.name + ": bytes from " + std::to_string(e.offset) +
                              " on of the file of all ranks are wrong");
        }
        return true;
    }

    /* Parts of length 0 are neither written nor read. */
    static bool route_part(const Dataset &d, const Extent &e, char *path, uint64_t *at)
    {
        if (SCR_Route_file_part(Judge::shared_name(d).c_str(), e.offset, e.length, path,
                                at) != SCR_SUCCESS)
            return false;
        if (e.length == 0 && std::string(path) != "/dev/null")
            throw Failure(d.name + ": no bytes are at " + path);
        return true;
    }

    bool write_parts(const Dataset &d)
    {
        const std::string all = Judge::shared_bytes(d);
        for (const Extent &e : Judge::shares(d, rank)) {
            char path[SCR_MAX_FILENAME];
            uint64_t at = 0;
            if (!route_part(d, e, path, &at)) return false;
            if (e.length && !write_part(path, at, all.substr(e.offset, e.length)))
                return false;
        }
        return true;
    }

    bool read_all(const Dataset &d, const std::vector<int> &writers)
    {
        for (int writer : writers)
            for (int f = 0; f < d.files; f++)
                if (!read(d, writer, f)) return false;
        return true;
    }

    /* Reads a file. Bytes that can be read must be right; a failure to read them is
     * possible. */
    bool read(const Dataset &d, int writer, int f)
    {
        char path[SCR_MAX_FILENAME];
        const std::string right = Judge::bytes(d, writer, f);
        std::string found;
        if (SCR_Route_file(Judge::name(d, writer, f).c_str(), path) != SCR_SUCCESS)
            return false;
        if (!read_file(path, right.size() + 1, found)) return false;
        if (found != right)
            throw Failure(d.name + ": file " + std::to_string(f) + " of rank " +
                          std::to_string(writer) + " has wrong bytes");
        return true;
    }

    bool write(const Dataset &d, int f)
    {
        char path[SCR_MAX_FILENAME];
        const std::string bytes = Judge::bytes(d, rank, f);
        if (SCR_Route_file(Judge::name(d, rank, f).c_str(), path) != SCR_SUCCESS)
            return false;
        return write_file(path, bytes);
    }

    Dataset &output(const Step &step, int number)
    {
        const std::string &job = program.is_held ? program.other_job : what->job;
        Dataset &d = judge.start(part, number, step, job);
        const int flags = (step.checkpoint ? SCR_FLAG_CHECKPOINT : 0) |
                          (step.output ? SCR_FLAG_OUTPUT : 0);
        if (expect("SCR_Start_output", SCR_Start_output(d.name.c_str(), flags)) !=
            SCR_SUCCESS)
            return d;
        bool good = !(step.bad && rank == 0);
        for (int f = 0; f < d.files; f++)
            good = write(d, f) && good;
        good = write_parts(d) && good;
        if (!good) d.bad = true;
        d.completing = true;
        const int code = agree("SCR_Complete_output", SCR_Complete_output(good));
        if (code != SCR_SUCCESS && !d.bad &&
            (d.files > 0 || Judge::shared_mask(d).size() > 0))
            fail("SCR_Complete_output", code);
        judge.completed(d, code);
        return d;
    }
};

} // namespace

int Program::main(Process &process) const
{
    return Rank(process, *this).main();
}

} // namespace sim
