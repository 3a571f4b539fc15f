/* SPDX-License-Identifier: BSD-3-Clause */
/* Every scheme over all ranks, with every combination of lost members: recoverable losses
 * are rebuilt, byte for byte; other losses give the verdict everywhere, and nothing
 * changes. */
#include "snapshot_mpi.h"
#include "src/codec/flow.h"

static int count_ones(unsigned pattern)
{
    int count = 0;
    for (; pattern; pattern &= pattern - 1)
        count++;
    return count;
}

/* Loses the ranks of the pattern, and rebuilds them. */
static void lose_and_rebuild(job *j, snapshot *s, unsigned pattern, int entries)
{
    int lost = pattern >> j->rank & 1;
    if (lost) job_lose(j);
    if (count_ones(pattern) < j->ranks) recover_again(j, s);
    expect_rebuilt(j, s, lost, entries);
}

/* Removes redundancy files, and restores them. */
static void lose_too_much(job *j, snapshot *s, unsigned pattern)
{
    char path[1200], text[64];
    int lost = pattern >> j->rank & 1;
    scratch_path(path, j->folder, s->name);
    if (lost) unlink(path);
    snprintf(text, sizeof text, "set 0 (%s over %d ranks) lost",
             redset_scheme_name(j->scheme), j->ranks);
    expect_hopeless(j, s, text);
    if (lost) scratch_put(path, s->file, s->size);
}

static void try_losses(job *j, redset_scheme scheme, int failures, unsigned step)
{
    snapshot s;
    uint8_t lost[32];
    const redset_shape shape = {scheme, j->ranks, failures};
    j->scheme = scheme;
    j->failures = failures;
    encode(j, &s, j->ranks, 1);
    CHECK_INT(redset_get_place(s.set)->failures, failures);
    int entries = scratch_count(j->folder);
    for (unsigned pattern = 1; pattern < 1u << j->ranks; pattern += step) {
        for (int m = 0; m < j->ranks; m++)
            lost[m] = pattern >> m & 1;
        if (redset_shape_can_rebuild(&shape, lost))
            lose_and_rebuild(j, &s, pattern, entries);
        else
            lose_too_much(j, &s, pattern);
    }
    forget(j, &s);
}

/* Nodes of two ranks, two sets: one node is lost, then another before the first rebuild.
 */
static void try_several_sets(job *j, redset_scheme scheme)
{
    snapshot s;
    if (j->ranks < 8) return;
    j->scheme = scheme;
    j->failures = 2;
    encode(j, &s, 4, 2);
    int entries = scratch_count(j->folder);
    for (int node = 0; node < j->ranks / 2; node++) {
        int lost = j->rank / 2 == node || j->rank / 2 == (node + 1) % (j->ranks / 2);
        if (lost) job_lose(j);
        recover_again(j, &s);
        expect_rebuilt(j, &s, lost, entries);
    }
    forget(j, &s);
}

/* A set that is too small for the configured number of failures provides what it can. */
static void try_more_than_members(job *j)
{
    snapshot s;
    j->scheme = REDSET_RS;
    j->failures = 100;
    encode(j, &s, j->ranks, 1);
    CHECK_INT(redset_get_place(s.set)->failures, j->ranks - 1);
    j->failures = j->ranks - 1;
    lose_and_rebuild(j, &s, (1u << j->ranks) - 2, scratch_count(j->folder));
    forget(j, &s);
}

int main(int argc, char **argv)
{
    job j;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    /* with eight ranks not each of the 255 losses */
    unsigned step = j.ranks < 6 ? 1 : 11;
    for (int failures = 1; failures < j.ranks && failures < 5; failures++) {
        try_losses(&j, REDSET_RS, failures, step);
        try_losses(&j, REDSET_PARTNER, failures, step);
    }
    try_several_sets(&j, REDSET_RS);
    try_several_sets(&j, REDSET_PARTNER);
    try_more_than_members(&j);
    j.no_checksums = 1;
    try_losses(&j, REDSET_XOR, 1, step);
    try_losses(&j, REDSET_PARTNER, 1, step);
    if (j.ranks > 2) try_losses(&j, REDSET_RS, 2, step);
    try_several_sets(&j, REDSET_RS);
    job_end(&j);
    return check_end();
}
