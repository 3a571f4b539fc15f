/* SPDX-License-Identifier: BSD-3-Clause */
/* The possible states of a disk after a loss of power; see crash_states.h. */
#include "crash_states.h"

#include "random.h"

namespace sim
{

namespace
{

uint64_t mix(uint64_t hash, const std::string &bytes)
{
    for (const char c : bytes)
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return (hash ^ bytes.size()) * 1099511628211u;
}

using Choice = std::vector<unsigned>;

class Enumeration
{
  public:
    Enumeration(const Choice &alternatives, size_t first_block, uint64_t limit,
                const std::function<void(const Choice &)> &visit)
        : alternatives(alternatives), first_block(first_block), room(limit), visit(visit)
    {
    }

    bool is_small() const
    {
        uint64_t count = 1;
        for (unsigned n : alternatives)
            if ((count *= n) > room) return false;
        return true;
    }

    void all()
    {
        Choice choice(alternatives.size(), 0);
        size_t i;
        do {
            visit(choice);
            for (i = 0; i < choice.size() && ++choice[i] == alternatives[i]; i++)
                choice[i] = 0;
        } while (i < choice.size());
    }

    /* Visits a part of the choices: everything is lost, or everything is kept, except for
     * one choice, then for two; then random choices. The first choice, of an ordered
     * journal, gets each of its alternatives with all of these. */
    void part()
    {
        for (unsigned first = 0; first < alternatives[0]; first++)
            for (bool keep : {false, true})
                one_off(first, keep);
        for (bool keep : {false, true})
            pairs(keep);
        Random random(alternatives.size());
        while (room > 0) {
            Choice choice;
            for (unsigned n : alternatives)
                choice.push_back(static_cast<unsigned>(random.below(n)));
            take(choice);
        }
    }

  private:
    const Choice &alternatives;
    const size_t first_block;
    uint64_t room;
    const std::function<void(const Choice &)> &visit;

    void take(const Choice &choice)
    {
        if (room == 0) return;
        room--;
        visit(choice);
    }

    Choice base(bool keep) const
    {
        Choice choice(alternatives.size(), 0);
        for (size_t i = 0; keep && i < choice.size(); i++)
            choice[i] = i < first_block ? alternatives[i] - 1 : 1;
        return choice;
    }

    void one_off(unsigned first, bool keep)
    {
        Choice choice = base(keep);
        choice[0] = first;
        take(choice);
        for (size_t i = 1; i < choice.size(); i++)
            vary(choice, i, [&] { take(choice); });
    }

    void pairs(bool keep)
    {
        Choice choice = base(keep);
        for (size_t i = 0; i < choice.size() && room > 0; i++)
            vary(choice, i, [&] {
                for (size_t k = i + 1; k < choice.size() && room > 0; k++)
                    vary(choice, k, [&] { take(choice); });
            });
    }

    /* Calls step with every other alternative of choice i. */
    template <typename Step> void vary(Choice &choice, size_t i, Step step)
    {
        const unsigned before = choice[i];
        for (unsigned n = 0; n < alternatives[i]; n++) {
            if (n == before) continue;
            choice[i] = n;
            step();
        }
        choice[i] = before;
    }
};

} // namespace

uint64_t hash_of(const Disk &disk, const std::string &text)
{
    uint64_t hash = mix(14695981039346656037u, text);
    for (const Disk::Entry &entry : disk.list()) {
        std::string bytes;
        disk.read(entry.path, bytes);
        hash = mix(mix(mix(hash, entry.path), entry.link), bytes);
        hash = (hash ^ entry.mode) * 1099511628211u;
    }
    return hash;
}

bool enumerate(const Choice &alternatives, size_t first_block, uint64_t limit,
               const std::function<void(const Choice &)> &visit)
{
    Enumeration states(alternatives, first_block, limit, visit);
    const bool small = states.is_small();
    if (small)
        states.all();
    else
        states.part();
    return small;
}

} // namespace sim
