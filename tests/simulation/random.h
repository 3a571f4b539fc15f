/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_RANDOM_H
#define SIMULATION_RANDOM_H

/* Random numbers that depend only on the seed, on every machine: splitmix64. */

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sim
{

class Random
{
  public:
    explicit Random(uint64_t seed) : state(seed)
    {
    }

    uint64_t next()
    {
        uint64_t x = state += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
    }

    /* 0 .. count - 1; count > 0 */
    uint64_t below(uint64_t count)
    {
        return next() % count;
    }

    /* first .. last, both included */
    int64_t between(int64_t first, int64_t last)
    {
        return first +
               static_cast<int64_t>(below(static_cast<uint64_t>(last - first) + 1));
    }

    bool chance(double probability)
    {
        return real() < probability;
    }

    /* 0 <= x < 1 */
    double real()
    {
        return static_cast<double>(next() >> 11) * 0x1p-53;
    }

    template <typename T> const T &of(const std::vector<T> &items)
    {
        return items[below(items.size())];
    }

    template <typename T> void shuffle(std::vector<T> &items)
    {
        for (size_t i = items.size(); i > 1; i--)
            std::swap(items[i - 1], items[below(i)]);
    }

    /* An independent stream, so that drawing in one part of a world does not change other
     * parts. */
    Random fork()
    {
        return Random(next());
    }

  private:
    uint64_t state;
};

} // namespace sim

#endif
