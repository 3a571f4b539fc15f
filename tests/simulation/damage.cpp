/* SPDX-License-Identifier: BSD-3-Clause */
/* Damage to files while nothing runs; see damage.h. */
#include "damage.h"

#include <cctype>
#include <sys/stat.h>

namespace sim
{

namespace
{

/* A file of the product. */
struct Place {
    Disk *disk;
    int node; /* -1: the parallel disk */
    std::string path;
};

/* Returns the name of a file without numbers, which all records of a kind share. */
std::string kind_of(const std::string &path)
{
    std::string kind;
    for (char c : path.substr(path.rfind('/') + 1))
        if (!isdigit(static_cast<unsigned char>(c)))
            kind += c;
        else if (kind.empty() || kind.back() != '#')
            kind += '#';
    return kind;
}

class Damage
{
  public:
    Damage(Machine &machine, const std::vector<std::unique_ptr<Disk>> &before,
           const Strike &strike, Judge &judge)
        : machine(machine), before(before), strike(strike), judge(judge)
    {
        if (strike.on_prefix)
            list(*machine.parallel, -1);
        else
            for (const auto &node : machine.nodes)
                list(*node->disk, node->number);
    }

    bool strike_file()
    {
        if (places.empty()) return false;
        const size_t first = strike.at % places.size();
        for (size_t i = 0; i < places.size(); i++) {
            const Place &place = places[(first + i) % places.size()];
            if (strike.blow == Blow::FLIP) return flip(place);
            if (is_index(place)) continue;
            if (strike.blow == Blow::COPY ? copy(place) : age(place)) return true;
        }
        return false;
    }

  private:
    Machine &machine;
    const std::vector<std::unique_ptr<Disk>> &before;
    const Strike &strike;
    Judge &judge;
    std::vector<Place> places;

    void list(Disk &disk, int node)
    {
        for (const Disk::Entry &entry : disk.list())
            if (S_ISREG(entry.mode)) places.push_back({&disk, node, entry.path});
    }

    /* Replacing the index by an earlier one is a known weakness. */
    static bool is_index(const Place &place)
    {
        return place.node < 0 && place.path == ".scr/index.scr";
    }

    /* Returns the name of a dataset in the cache, which is that of the directory with its
     * files. */
    std::string name_in_cache(const std::string &path) const
    {
        const size_t start = path.find("scr.dataset.");
        if (start == std::string::npos) return "";
        const std::string folder = path.substr(0, path.find('/', start) + 1);
        for (const Place &other : places) {
            if (other.path.rfind(folder, 0) != 0) continue;
            const std::string rest = other.path.substr(folder.size());
            if (rest.find('/') != std::string::npos)
                return rest.substr(0, rest.find('/'));
        }
        return "";
    }

    void report(const Place &place) const
    {
        machine.notes += "damage: " + std::string(place.node < 0 ? "prefix" : "n") +
                         (place.node < 0 ? "" : std::to_string(place.node)) + "/" +
                         place.path + "\n";
        if (place.node < 0)
            judge.ruined(place.path.substr(0, place.path.find('/')));
        else if (place.path.rfind("cache", 0) == 0)
            judge.lost(place.node, name_in_cache(place.path));
    }

    bool write(const Place &place, const std::string &bytes) const
    {
        report(place);
        return place.disk->write(place.path, bytes);
    }

    bool flip(const Place &place) const
    {
        Random &r = machine.random;
        std::string bytes;
        place.disk->read(place.path, bytes);
        const uint64_t how = bytes.empty() ? 0 : r.below(10);
        if (how == 0) bytes += 'x';
        if (how == 1) bytes.resize(bytes.size() / 2);
        if (how == 2) bytes.clear();
        if (how == 3) {
            report(place);
            return place.disk->remove(place.path);
        }
        for (uint64_t i = 0; how > 3 && i <= how % 3; i++)
            bytes[r.below(bytes.size())] ^= static_cast<char>(1 << r.below(8));
        return write(place, bytes);
    }

    /* Replaces a record by another one of its kind; exchanges both if the number is
     * odd. */
    bool copy(const Place &place) const
    {
        std::string mine, bytes;
        std::vector<const Place *> others;
        place.disk->read(place.path, mine);
        for (const Place &other : places) {
            if (kind_of(other.path) != kind_of(place.path)) continue;
            other.disk->read(other.path, bytes);
            if (bytes != mine) others.push_back(&other);
        }
        if (others.empty()) return false;
        const Place &other = *machine.random.of(others);
        other.disk->read(other.path, bytes);
        if (strike.at % 2) write(other, mine);
        return write(place, bytes);
    }

    bool age(const Place &place) const
    {
        std::string now, then;
        const size_t disk =
            place.node < 0 ? before.size() - 1 : static_cast<size_t>(place.node);
        place.disk->read(place.path, now);
        if (!before[disk]->read(place.path, then) || then == now) return false;
        return write(place, then);
    }
};

} // namespace

bool damage(Machine &machine, const std::vector<std::unique_ptr<Disk>> &before,
            const Strike &strike, Judge &judge)
{
    return Damage(machine, before, strike, judge).strike_file();
}

} // namespace sim
