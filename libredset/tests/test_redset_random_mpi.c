/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of 9 to 16 members with random parameters: numbers of members that may be lost,
 * files, sizes, pieces, and losses, all drawn from a seed. Recoverable losses are
 * restored byte for byte, including redundancy files; larger losses give the verdict
 * everywhere, and nothing changes.
 *
 * usage: mpiexec -n 16 test_redset_random_mpi [SEED [ROUNDS]] */
#include "snapshot_mpi.h"
#include "src/codec/flow.h"

enum { SMALLEST = 9, MEMBERS = 16 };

/* ---- chance, the same on all ranks ---- */

static uint64_t chance;

static unsigned draw(unsigned below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (unsigned)(chance * 0x2545f4914f6cdd1du >> 33) % below;
}

static size_t draw_size(void)
{
    size_t any = draw(2 << 20);
    switch (draw(8)) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return any; /* up to 2 MiB */
    case 3:
        return 4096;
    default:
        return any % 20000;
    }
}

/* Every rank draws the files of all. */
static void draw_files(job *j)
{
    j->count = 0;
    for (int rank = 0; rank < j->ranks; rank++) {
        int count = (int)draw(5);
        for (int i = 0; i < count; i++) {
            char name[24];
            size_t size = draw_size();
            snprintf(name, sizeof name, "%sf%d", draw(2) ? "deep/er/" : "", i);
            if (rank == j->rank) job_add(j, name, size);
        }
    }
    if (j->count) j->files[0].meta = j->meta;
}

/* Some members that can be rebuilt, or not. */
static void draw_losses(const redset_shape *shape, bool hopeless, uint8_t lost[MEMBERS])
{
    do {
        memset(lost, 0, MEMBERS);
        for (unsigned left = 1 + draw((unsigned)shape->members); left > 0;) {
            unsigned m = draw((unsigned)shape->members);
            left -= !lost[m];
            lost[m] = 1;
        }
    } while (redset_shape_can_rebuild(shape, lost) == hopeless);
}

/* ---- rounds ---- */

/* This rank counts as lost from now on, for one of several reasons. */
static void damage(const job *j, const snapshot *s, unsigned kind)
{
    char path[1200];
    scratch_path(path, j->folder, s->name);
    if (kind == 0) scratch_flip(j->folder, s->name, s->size - 1);
    if (kind == 1) scratch_flip(j->folder, s->name, 100);
    if (kind == 2) unlink(path);
    if (kind > 2) job_lose(j);
}

/* Damages the lost members, each in another way. Returns whether this rank is lost. */
static int damage_all(const job *j, const snapshot *s, const uint8_t lost[MEMBERS])
{
    for (int m = 0; m < j->ranks; m++) {
        unsigned kind = draw(6);
        if (lost[m] && m == j->rank) damage(j, s, kind);
    }
    return lost[j->rank];
}

static void test_losses_come_back(job *j, snapshot *s, const redset_shape *shape)
{
    uint8_t lost[MEMBERS];
    int entries = scratch_count(j->folder);
    draw_losses(shape, false, lost);
    int mine = damage_all(j, s, lost);
    recover_again(j, s);
    expect_rebuilt(j, s, mine, entries);
}

static void test_too_many_losses_change_nothing(job *j, snapshot *s,
                                                const redset_shape *shape)
{
    char text[64];
    uint8_t lost[MEMBERS];
    draw_losses(shape, true, lost);
    damage_all(j, s, lost);
    snprintf(text, sizeof text, "set 0 (%s over %d ranks) lost",
             redset_scheme_name(j->scheme), j->ranks);
    expect_hopeless(j, s, text);
}

static void with_scheme(job *j, redset_scheme scheme)
{
    static const size_t pieces[] = {0, 65536, 10007};
    snapshot s;
    j->scheme = scheme;
    j->failures = 1 + (int)draw((unsigned)j->ranks - 1);
    j->piece = pieces[draw(3)];
    draw_files(j);
    job_lose(j);
    job_write(j, 0);
    encode(j, &s, j->ranks, 1);
    const redset_shape shape = redset_place_shape(redset_get_place(s.set));
    CHECK_INT(shape.members, j->ranks);
    CHECK_INT(shape.failures, j->failures);
    test_losses_come_back(j, &s, &shape);
    test_too_many_losses_change_nothing(j, &s, &shape);
    redset_free(s.set);
    free(s.file);
}

/* Makes a set of the first `members` ranks; the other ranks wait without using their
 * processors. */
static void with_members(job *j, int members)
{
    j->ranks = members;
    MPI_Comm_split(MPI_COMM_WORLD, j->rank < members, j->rank, &j->comm);
    if (j->rank < members) {
        with_scheme(j, REDSET_RS);
        with_scheme(j, REDSET_PARTNER);
    }
    MPI_Comm_free(&j->comm);
    MPI_Bcast(&chance, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    job j;
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20240229;
    int rounds = argc > 2 ? atoi(argv[2]) : 1;
    chance = seed ? seed : 1;
    check_begin(&argc, &argv);
    job_begin(&j, MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++)
        for (int n = SMALLEST; n <= MEMBERS && n <= check_ranks; n++)
            with_members(&j, n);
    if (check_failures) fprintf(stderr, "rank %d: the seed is %llu\n", check_rank, seed);
    job_end(&j);
    return check_end();
}
