/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the product, counted for each process if a program asks for it. Allocations
 * by other libraries are not counted, even if the product frees them. */
#include "engine.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

namespace
{

struct Piece {
    sim::Process *owner;
    size_t size;
};

/* never destroyed: the product frees memory until the end */
std::unordered_map<void *, Piece> &pieces = *new std::unordered_map<void *, Piece>;

void *count(void *p, size_t size)
{
    if (!sim::counts_memory || !p) return p;
    sim::Process &owner = sim::Machine::self();
    pieces[p] = {&owner, size};
    owner.memory += size;
    owner.most_memory = std::max(owner.most_memory, owner.memory);
    return p;
}

char *count_text(char *text)
{
    count(text, text ? strlen(text) + 1 : 0);
    return text;
}

void forget(void *p)
{
    const auto known = pieces.find(p);
    if (known == pieces.end()) return;
    known->second.owner->memory -= known->second.size;
    pieces.erase(known);
}

} // namespace

bool sim::counts_memory = false;

extern "C" {

void *simulated_malloc(size_t size)
{
    return count(malloc(size), size);
}

void *simulated_calloc(size_t number, size_t size)
{
    return count(calloc(number, size), number * size);
}

void *simulated_aligned_alloc(size_t alignment, size_t size)
{
    return count(aligned_alloc(alignment, size), size);
}

void *simulated_realloc(void *old, size_t size)
{
    void *p = realloc(old, size);
    if (p || size == 0) forget(old);
    return count(p, size);
}

void *simulated_reallocarray(void *old, size_t number, size_t size)
{
    void *p = reallocarray(old, number, size);
    if (p || number * size == 0) forget(old);
    return count(p, number * size);
}

void simulated_free(void *p)
{
    forget(p);
    free(p);
}

char *simulated_strdup(const char *text)
{
    return count_text(strdup(text));
}

char *simulated_strndup(const char *text, size_t size)
{
    return count_text(strndup(text, size));
}

int simulated_vasprintf(char **text, const char *format, va_list values)
{
    int rc = vasprintf(text, format, values);
    if (rc >= 0) count_text(*text);
    return rc;
}

int simulated_asprintf(char **text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int rc = simulated_vasprintf(text, format, values);
    va_end(values);
    return rc;
}
}
