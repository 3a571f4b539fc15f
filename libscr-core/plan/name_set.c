/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether two ranks may have given the same file name; see plan/name_set.h. */
#include "plan/name_set.h"

enum { HALF = SCR_NAME_PLACES / 2, NO_NUMBER = -1 };

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/); the last step mixes all
 * bits into the result. */
static unsigned name_hash(const char *name)
{
    uint64_t h = 14695981039346656037u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return (unsigned)((h ^ h >> 29) * 0x9e3779b97f4a7c15u >> 40);
}

static void name_set_bit(uint64_t words[], unsigned count, unsigned hash)
{
    const unsigned bit = hash % (64 * count);
    words[bit / 64] |= (uint64_t)1 << bit % 64;
}

/* Reads the number at *name, and advances *name. Returns ranks for a number that is not a
 * rank. */
static int name_read_number(const char **name, int ranks)
{
    int64_t number = 0;
    for (; **name >= '0' && **name <= '9'; ++*name)
        if (number < ranks) number = number * 10 + (**name - '0');
    return number < ranks ? (int)number : ranks;
}

/* The first numbers of a name, followed by its last ones, the last one first. */
static void name_read_places(const char *name, int ranks, int at[SCR_NAME_PLACES])
{
    int found = 0;
    for (int p = 0; p < SCR_NAME_PLACES; p++)
        at[p] = NO_NUMBER;
    while (*name) {
        if (*name < '0' || *name > '9') {
            name++;
            continue;
        }
        for (int p = SCR_NAME_PLACES - 1; p > HALF; p--)
            at[p] = at[p - 1];
        at[HALF] = name_read_number(&name, ranks);
        if (found < HALF) at[found++] = at[HALF];
    }
}

void scr_name_set_add(scr_name_set *set, const char *name, int rank, int ranks)
{
    int at[SCR_NAME_PLACES];
    const unsigned hash = name_hash(name);
    name_set_bit(set->names, SCR_NAME_WORDS, hash);
    name_read_places(name, ranks, at);
    for (int p = 0; p < SCR_NAME_PLACES; p++) {
        if (at[p] == rank) continue;
        if (at[p] == NO_NUMBER || at[p] == ranks)
            name_set_bit(set->rest[p], SCR_NAME_REST_WORDS, hash);
        else
            set->bad |= (uint64_t)1 << p;
    }
}

/* Adds bits; returns whether some were set before. */
static bool name_unite_bits(uint64_t words[], const uint64_t other[], int count)
{
    uint64_t common = 0;
    for (int i = 0; i < count; i++) {
        common |= words[i] & other[i];
        words[i] |= other[i];
    }
    return common != 0;
}

void scr_name_set_unite(scr_name_set *set, const scr_name_set *other)
{
    set->bad |= other->bad;
    set->meet |= other->meet;
    set->meet |= name_unite_bits(set->names, other->names, SCR_NAME_WORDS);
    for (int p = 0; p < SCR_NAME_PLACES; p++)
        if (name_unite_bits(set->rest[p], other->rest[p], SCR_NAME_REST_WORDS))
            set->bad |= (uint64_t)1 << p;
}

bool scr_name_set_is_distinct(const scr_name_set *set)
{
    return !set->meet || set->bad != ((uint64_t)1 << SCR_NAME_PLACES) - 1;
}
