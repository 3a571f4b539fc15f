/* SPDX-License-Identifier: BSD-3-Clause */
/* Distribution of cached files: all cases of up to four ranks on three nodes, in which
 * each process may hold a copy of the files of each rank, intact or damaged, are
 * executed. The copies at the end are compared with rules about the whole case. */
#include "plan/distribute.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4, NODES = 3 };

typedef enum held { ABSENT, INTACT, DAMAGED } held;

typedef struct world {
    int ranks;
    int node[MOST];        /* 0 to 2 */
    int64_t room[NODES];   /* free bytes */
    held at[MOST][MOST];   /* [process][rank] */
    scr_distribute_plan p; /* the plan and its facts */
    scr_distribute_rank list[MOST];
    scr_distribute_copy copies[MOST * MOST];
} world;

static long played;

/* Sizes whose sums differ for different sets of ranks. */
static int64_t size_of(int rank)
{
    return (int64_t)1 << rank;
}

/* Gathers the facts. Any process may represent its node; here the last one does. */
static void gather(world *w)
{
    memset(w->list, 0x55, sizeof w->list);
    w->p = (scr_distribute_plan){.ranks = w->ranks, .list = w->list, .copies = w->copies};
    for (int i = 0; i < w->ranks; i++) {
        for (int k = 0; k < w->ranks; k++)
            if (w->node[k] == w->node[i]) w->list[i].node = k;
        w->list[i].room = w->room[w->node[i]];
    }
    for (int cell = 0; cell < w->ranks * w->ranks; cell++) {
        const int rank = cell / w->ranks, k = cell % w->ranks;
        const int h = rank % 2 ? k : w->ranks - 1 - k; /* lists may be unsorted */
        if (w->at[h][rank] != ABSENT)
            w->copies[w->p.count++] =
                (scr_distribute_copy){.holder = h,
                                      .rank = rank,
                                      .bytes = size_of(rank),
                                      .intact = w->at[h][rank] == INTACT};
    }
}

/* ---- rules ---- */

static int lowest_holder(const world *w, int rank)
{
    for (int h = 0; h < w->ranks; h++)
        if (w->at[h][rank] == INTACT) return h;
    return -1;
}

static bool is_moved(const world *w, int rank)
{
    return w->at[rank][rank] != INTACT && lowest_holder(w, rank) >= 0;
}

/* Bytes that a node receives in any plan. */
static int64_t arriving_on(const world *w, int node)
{
    int64_t sum = 0;
    for (int r = 0; r < w->ranks; r++)
        if (w->node[r] == node && is_moved(w, r)) sum += size_of(r);
    return sum;
}

static bool has_little_room(const world *w)
{
    for (int r = 0; r < w->ranks; r++)
        if (arriving_on(w, w->node[r]) > w->room[w->node[r]]) return true;
    return false;
}

/* The minimum number of rounds: the largest number of ranks to which one process
 * sends. */
static int most_sent(const world *w)
{
    int sent[MOST] = {0}, most = 0;
    for (int r = 0; r < w->ranks; r++)
        if (is_moved(w, r) && ++sent[lowest_holder(w, r)] > most)
            most = sent[lowest_holder(w, r)];
    return most;
}

static int most_received(const world *w)
{
    int received[NODES] = {0}, most = 0;
    for (int r = 0; r < w->ranks; r++)
        if (is_moved(w, r) && ++received[w->node[r]] > most) most = received[w->node[r]];
    return most;
}

/* Executes one round from the view of the receivers. */
static void play_round(const world *w, int round, held now[MOST][MOST])
{
    int sends[MOST] = {0}, arrives[NODES] = {0};
    for (int r = 0; r < w->ranks; r++) {
        const int source = w->list[r].source;
        if (w->list[r].round != round) continue;
        assert_int_equal(scr_distribute_receiver(&w->p, source, round), r);
        assert_int_equal(now[source][r], INTACT);
        assert_int_equal(++sends[source], 1);
        if (++arrives[w->node[r]] > 1) assert_false(has_little_room(w));
        now[source][r] = ABSENT;
        now[r][r] = INTACT;
    }
    for (int h = 0; h < w->ranks; h++)
        if (!sends[h]) assert_int_equal(scr_distribute_receiver(&w->p, h, round), -1);
}

static void check_end(const world *w, held now[MOST][MOST])
{
    for (int r = 0; r < w->ranks; r++) {
        const bool known = lowest_holder(w, r) >= 0, stays = w->at[r][r] == INTACT;
        /* files that are intact anywhere are at their rank in the end */
        assert_int_equal(now[r][r] == INTACT, known);
        /* files move only if necessary, and from the lowest holder */
        assert_int_equal(w->list[r].round >= 0, known && !stays);
        assert_int_equal(w->list[r].source, stays ? r : lowest_holder(w, r));
        /* other copies stay */
        for (int h = 0; h < w->ranks; h++)
            if (h != r && h != w->list[r].source)
                assert_int_equal(now[h][r], w->at[h][r]);
    }
}

static void check_world(world *w)
{
    held now[MOST][MOST];
    gather(w);
    scr_plan_distribute(&w->p);
    memcpy(now, w->at, sizeof now);
    assert_int_equal(w->p.is_short_of_room, has_little_room(w));
    int least = most_sent(w);
    assert_in_range(w->p.rounds, least,
                    has_little_room(w) ? least * most_received(w) : least);
    for (int round = 0; round < w->p.rounds; round++)
        play_round(w, round, now);
    for (int r = 0; r < w->ranks; r++)
        assert_in_range(w->list[r].round + 1, 0, w->p.rounds);
    check_end(w, now);
    played++;
}

/* ---- all worlds ---- */

static void every_copy(world *w, int cell, int kinds)
{
    if (cell == w->ranks * w->ranks) {
        check_world(w);
        return;
    }
    for (int kind = 0; kind < kinds; kind++) {
        w->at[cell / w->ranks][cell % w->ranks] = (held)kind;
        every_copy(w, cell + 1, kinds);
    }
}

/* Nodes differ only in their numbers: the first process is on node 0, and so on. */
static void every_placement(world *w, int rank, int used, int kinds)
{
    if (rank == w->ranks) {
        every_copy(w, 0, kinds);
        return;
    }
    for (int node = 0; node <= used && node < NODES; node++) {
        w->node[rank] = node;
        every_placement(w, rank + 1, used + (node == used), kinds);
    }
}

static void every_room(int ranks, int kinds, int64_t step)
{
    world w = {.ranks = ranks};
    for (int64_t room = 0; room < (1 << ranks); room += step) {
        w.room[0] = room;
        w.room[1] = w.room[2] = 1 << ranks;
        every_placement(&w, 0, 0, kinds);
    }
}

static void three_ranks_with_damage(void **state)
{
    for (int ranks = 1; ranks <= 3; ranks++)
        every_room(ranks, 3, 1);
    assert_true(played > 600 * 1000);
}

static void four_ranks(void **state)
{
    played = 0;
    every_room(4, 2, 9);
    assert_true(played > 1800 * 1000);
}

/* A job of a size that no test machine has: all ranks have moved by one node. */
static void a_large_job(void **state)
{
    enum { RANKS = 4096, PER_NODE = 64 };
    static scr_distribute_rank list[RANKS];
    static scr_distribute_copy copies[RANKS];
    scr_distribute_plan p = {
        .ranks = RANKS, .list = list, .count = RANKS, .copies = copies};
    for (int short_of = 0; short_of < 2; short_of++) {
        for (int i = 0; i < RANKS; i++) {
            list[i] = (scr_distribute_rank){.node = i / PER_NODE * PER_NODE,
                                            .room = short_of ? PER_NODE - 1 : PER_NODE};
            copies[i] = (scr_distribute_copy){
                .holder = (i + PER_NODE) % RANKS, .rank = i, .bytes = 1, .intact = true};
        }
        scr_plan_distribute(&p);
        assert_int_equal(p.rounds, short_of ? PER_NODE : 1);
        for (int i = 0; i < RANKS; i++)
            assert_int_equal(scr_distribute_receiver(&p, copies[i].holder, list[i].round),
                             i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(three_ranks_with_damage),
                                       cmocka_unit_test(four_ranks),
                                       cmocka_unit_test(a_large_job)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
