/* SPDX-License-Identifier: BSD-3-Clause */
/* The assignment of sets, for all small jobs and for one of a million processes. */
#include "src/set/set.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The assignments so far, in the order of positions. */
typedef struct tally {
    int procs, set_size, largest, sets;
    int *members;    /* seen in each set */
    int *promised;   /* value of place.members */
    int *last_group; /* group of the last member of each set */
} tally;

static void tally_init(tally *t, int procs, int set_size, int largest)
{
    *t = (tally){.procs = procs, .set_size = set_size, .largest = largest};
    t->sets = largest;
    while ((t->sets + largest) * (long)set_size <= procs)
        t->sets += largest;
    if (set_size == 1) t->sets = procs;
    t->members = calloc((size_t)t->sets, sizeof(int));
    t->promised = calloc((size_t)t->sets, sizeof(int));
    t->last_group = malloc((size_t)t->sets * sizeof(int));
    memset(t->last_group, 0xff, (size_t)t->sets * sizeof(int));
}

static void tally_add(tally *t, int position, int group)
{
    redset_place place;
    int rc = redset_choose(t->procs, t->largest, t->set_size, position, &place);
    assert_int_equal(rc, 0);
    assert_int_equal(place.sets, t->sets);
    assert_in_range(place.set, 0, t->sets - 1);
    assert_int_equal(place.member, t->members[place.set]++);
    assert_int_not_equal(t->last_group[place.set], group);
    t->last_group[place.set] = group;
    t->promised[place.set] = place.members;
}

static void tally_done(tally *t)
{
    int least = t->procs, most = 0;
    for (int i = 0; i < t->sets; i++) {
        assert_int_equal(t->members[i], t->promised[i]);
        assert_int_equal(t->members[i], redset_assign_members(t->procs, t->sets, i));
        if (t->members[i] < least) least = t->members[i];
        if (t->members[i] > most) most = t->members[i];
    }
    assert_true(most - least <= 1);
    if (t->procs / t->set_size >= t->largest) assert_true(least >= t->set_size);
    free(t->members);
    free(t->promised);
    free(t->last_group);
}

/* Groups of these sizes, one after the other. */
static void try_groups(int count, const int sizes[], int set_size)
{
    int procs = 0, largest = 0, position = 0;
    tally t;
    for (int i = 0; i < count; i++) {
        procs += sizes[i];
        if (sizes[i] > largest) largest = sizes[i];
    }
    tally_init(&t, procs, set_size, largest);
    for (int group = 0; group < count; group++)
        for (int i = 0; i < sizes[group]; i++)
            tally_add(&t, position++, group);
    tally_done(&t);
}

static void test_small_jobs(void **state)
{
    int sizes[64];
    for (int groups = 1; groups <= 12; groups++)
        for (int each = 1; each <= 5; each++)
            for (int odd = 1; odd <= 7; odd++) /* one group of another size */
                for (int set_size = 1; set_size <= 9; set_size++) {
                    for (int i = 0; i < groups; i++)
                        sizes[i] = each;
                    sizes[groups / 2] = odd;
                    try_groups(groups, sizes, set_size);
                }
}

static void test_million(void **state)
{
    enum { PROCS = 1000000 };
    int *sizes = malloc(PROCS * sizeof *sizes);
    srand(20240);
    for (int set_size = 2; set_size <= 64; set_size *= 2) {
        int groups = 0;
        for (int left = PROCS; left > 0; left -= sizes[groups++]) {
            sizes[groups] = 1 + rand() % 128;
            if (sizes[groups] > left) sizes[groups] = left;
        }
        try_groups(groups, sizes, set_size);
    }
    free(sizes);
}

/* ---- partner groups: groups whose loss together with a group may be fatal ---- */

static redset_place place_in(int nodes, int each, int set_size, int node, int rank)
{
    redset_place place;
    int rc = redset_choose(nodes * each, each, set_size, node * each + rank, &place);
    assert_int_equal(rc, 0);
    return place;
}

/* Nodes with equal numbers of ranks: for each rank of a node, its set has the same nodes,
 * those with the same row of sets. Returns the number of partners of the node. */
static int try_node(int nodes, int each, int set_size, int node, int step)
{
    const redset_place first = place_in(nodes, each, set_size, node, 0);
    assert_int_equal(first.sets % each, 0);
    assert_int_equal(first.set % each, 0);
    for (int rank = 0; rank < each; rank += step) {
        const redset_place place = place_in(nodes, each, set_size, node, rank);
        assert_int_equal(place.set, first.set + rank);
        assert_int_equal(place.member, first.member);
        assert_int_equal(place.members, first.members);
    }
    return first.members - 1;
}

/* Number of other nodes that share a set with a node, counted from all sets. */
static int count_partners(int nodes, int each, int set_size, int node)
{
    char *own = calloc((size_t)(nodes * each), 1);
    int partners = 0;
    for (int rank = 0; rank < each; rank++)
        own[place_in(nodes, each, set_size, node, rank).set] = 1;
    for (int other = 0; other < nodes; other++) {
        bool meets = false;
        for (int rank = 0; other != node && rank < each; rank++)
            meets |= own[place_in(nodes, each, set_size, other, rank).set] != 0;
        partners += meets;
    }
    free(own);
    return partners;
}

static void test_partners_are_those_of_one_set(void **state)
{
    for (int set_size = 2; set_size <= 9; set_size++)
        for (int nodes = 2; nodes <= 40; nodes++)
            for (int each = 1; each <= 6; each++)
                for (int node = 0; node < nodes; node += nodes / 3 + 1)
                    assert_int_equal(count_partners(nodes, each, set_size, node),
                                     try_node(nodes, each, set_size, node, 1));
    assert_int_equal(count_partners(1000, 96, 8, 500), 7);
    assert_int_equal(count_partners(1001, 96, 8, 501), 7);
    assert_int_equal(count_partners(1001, 96, 8, 500), 8); /* the row of nine */
}

/* 2 to 10,000 nodes of 1 to 128 ranks, sets of 8: 7 or 8 partners from 56 nodes on, where
 * 8 occurs in the sets with one more member; with fewer than 16 nodes, all nodes are
 * partners. */
static void test_partners_of_all_machines(void **state)
{
    for (int nodes = 2; nodes <= 10000; nodes++) {
        const int rows = nodes < 16 ? 1 : nodes / 8;
        const int most = (nodes + rows - 1) / rows - 1;
        for (int each = 1; each <= 128; each++)
            for (int i = 0; i < 3; i++) {
                const int node = i * (nodes - 1) / 2;
                const int partners = try_node(nodes, each, 8, node, each / 2 + 1);
                assert_in_range(partners, most - 1, most);
            }
    }
}

static void test_known(void **state)
{
    redset_place place;
    /* four nodes with two processes each, sets of four: even and odd positions */
    assert_int_equal(redset_choose(8, 2, 4, 5, &place), 0);
    assert_int_equal(place.sets, 2);
    assert_int_equal(place.set, 1);
    assert_int_equal(place.member, 2);
    assert_int_equal(place.members, 4);
    /* all processes in one group: one set each */
    assert_int_equal(redset_choose(8, 8, 4, 5, &place), 0);
    assert_int_equal(place.sets, 8);
    assert_int_equal(place.set, 5);
    assert_int_equal(place.members, 1);
    /* fewer processes than a set should have: one set of all */
    assert_int_equal(redset_choose(3, 1, 8, 2, &place), 0);
    assert_int_equal(place.sets, 1);
    assert_int_equal(place.members, 3);
}

static void test_refused(void **state)
{
    redset_place place = {.set = 77};
    assert_int_equal(redset_choose(0, 1, 1, 0, &place), -EINVAL);
    assert_int_equal(redset_choose(4, 0, 1, 0, &place), -EINVAL);
    assert_int_equal(redset_choose(4, 5, 1, 0, &place), -EINVAL);
    assert_int_equal(redset_choose(4, 1, 0, 0, &place), -EINVAL);
    assert_int_equal(redset_choose(4, 1, 1, -1, &place), -EINVAL);
    assert_int_equal(redset_choose(4, 1, 1, 4, &place), -EINVAL);
    assert_int_equal(place.set, 77);
}

/* The place of a set of `members` members after its scheme is assigned; scheme 0:
 * refused. */
static redset_place assign(redset_scheme scheme, int failures, int members,
                           redset_error *err)
{
    redset_place place = {.members = members};
    int rc = redset_assign_scheme(scheme, failures, &place, err);
    if (place.scheme == 0) assert_int_equal(rc, -EINVAL);
    if (place.scheme != 0) assert_int_equal(rc, 0);
    return place;
}

static void test_rs_of_more_than_255_is_refused(void **state)
{
    redset_error err = {""};
    for (int failures = 0; failures <= 300; failures += 50) {
        assert_int_equal(assign(REDSET_RS, failures, 255, &err).scheme, REDSET_RS);
        assert_string_equal(err.text, "");
        assert_int_equal(assign(REDSET_RS, failures, 256, NULL).scheme, 0);
    }
    assert_int_equal(assign(REDSET_RS, 2, 256, &err).scheme, 0);
    assert_string_equal(err.text,
                        "a set of 256 members is too large for RS: at most 255");
    assert_int_equal(assign(REDSET_RS, 2, 1000000, &err).scheme, 0);
    assert_non_null(strstr(err.text, "1000000 members"));
    assert_non_null(strstr(err.text, "at most 255"));
    /* the other schemes have no limit */
    assert_int_equal(assign(REDSET_XOR, 0, 1000000, NULL).scheme, REDSET_XOR);
    assert_int_equal(assign(REDSET_PARTNER, 2, 1000000, NULL).scheme, REDSET_PARTNER);
}

static void test_small_sets_do_what_they_can(void **state)
{
    for (int scheme = REDSET_SINGLE; scheme <= REDSET_RS; scheme++) {
        redset_place place = assign((redset_scheme)scheme, 3, 1, NULL);
        assert_int_equal(place.scheme, REDSET_SINGLE);
        assert_int_equal(place.failures, 0);
    }
    assert_int_equal(assign(REDSET_XOR, 3, 8, NULL).failures, 1);
    assert_int_equal(assign(REDSET_RS, 0, 8, NULL).failures, 1);
    assert_int_equal(assign(REDSET_RS, 3, 8, NULL).failures, 3);
    assert_int_equal(assign(REDSET_RS, 8, 8, NULL).failures, 7);
    assert_int_equal(assign(REDSET_RS, 255, 255, NULL).failures, 254);
    assert_int_equal(assign(REDSET_PARTNER, 3, 3, NULL).failures, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_jobs),
        cmocka_unit_test(test_million),
        cmocka_unit_test(test_partners_are_those_of_one_set),
        cmocka_unit_test(test_partners_of_all_machines),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_rs_of_more_than_255_is_refused),
        cmocka_unit_test(test_small_sets_do_what_they_can)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
