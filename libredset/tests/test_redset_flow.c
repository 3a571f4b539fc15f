/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: whole sets are encoded, lose members and are rebuilt in memory, by the pure
 * functions alone. */
#include "src/codec/flow.h"

#include "scratch.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>

/* A set in memory: each member's streams, of WIDTH bytes. */
enum { WIDTH = 5 };

typedef struct model {
    redset_shape shape;
    int streams; /* streams per member */
    uint8_t *bytes;
    redset_flow *flow;
} model;

static size_t model_size(const model *m)
{
    return (size_t)m->shape.members * (size_t)m->streams * WIDTH;
}

static uint8_t *at(const model *m, redset_flow_end end)
{
    assert_in_range(end.member, 0, m->shape.members - 1);
    assert_in_range(end.stream, 0, m->streams - 1);
    return m->bytes + (end.member * m->streams + end.stream) * WIDTH;
}

/* Executes the flow. Lost members are no sources, and only they (lost NULL: all members)
 * are targets. */
static void run(const model *m, const uint8_t lost[])
{
    const redset_flow *flow = m->flow;
    assert_in_range(flow->sources, flow->targets ? 1 : 0, m->shape.members);
    assert_in_range(flow->targets, 0, m->shape.failures);
    for (int t = 0; t < flow->targets; t++) {
        uint8_t sum[WIDTH] = {0};
        if (lost) assert_true(lost[flow->target[t].member]);
        for (int s = 0; s < flow->sources; s++) {
            const uint8_t *from = at(m, flow->source[s]);
            if (lost) assert_false(lost[flow->source[s].member]);
            for (int b = 0; b < WIDTH; b++)
                sum[b] ^= redset_gf_multiply(redset_flow_coef(flow, t, s), from[b]);
        }
        memcpy(at(m, flow->target[t]), sum, WIDTH);
    }
}

/* Data of any bytes, and the redundancy that follows. */
static void begin(model *m, redset_scheme scheme, int members, int failures)
{
    *m = (model){.shape = {scheme, members, failures}};
    assert_int_equal(redset_shape_check(&m->shape), 0);
    m->streams = redset_shape_data_streams(&m->shape) + failures;
    m->bytes = malloc(model_size(m));
    m->flow = redset_flow_new(&m->shape);
    assert_non_null(m->bytes);
    assert_non_null(m->flow);
    scratch_bytes(m->bytes, model_size(m), (unsigned)(members + failures));
    for (int i = 0; i < members; i++) {
        redset_flow_plan(m->flow, NULL, i);
        run(m, NULL);
    }
}

static void end(model *m)
{
    redset_flow_free(m->flow);
    free(m->bytes);
}

/* Clears the streams of the lost members, and rebuilds them. */
static void lose_and_rebuild(model *m, const uint8_t lost[])
{
    size_t size = model_size(m), each = size / (size_t)m->shape.members;
    uint8_t *before = malloc(size);
    memcpy(before, m->bytes, size);
    assert_true(redset_shape_can_rebuild(&m->shape, lost));
    for (int i = 0; i < m->shape.members; i++)
        if (lost[i]) memset(at(m, (redset_flow_end){i, 0}), 0xee, each);
    for (int i = 0; i < m->shape.members; i++) {
        redset_flow_plan(m->flow, lost, i);
        run(m, lost);
    }
    assert_memory_equal(m->bytes, before, size);
    free(before);
}

static int spread(unsigned pattern, int members, uint8_t lost[])
{
    int count = 0;
    for (int i = 0; i < members; i++) {
        lost[i] = pattern >> i & 1;
        count += lost[i];
    }
    return count;
}

/* Whether each lost member has a copy left. */
static int copies_are_left(unsigned pattern, int members, int copies)
{
    for (int m = 0; m < members; m++) {
        int left = 0;
        for (int j = 0; j <= copies; j++)
            left += !(pattern >> (m + j) % members & 1);
        if (!left) return 0;
    }
    return 1;
}

static void try_all_losses(redset_scheme scheme, int members, int failures)
{
    uint8_t lost[8];
    model m;
    begin(&m, scheme, members, failures);
    for (unsigned pattern = 0; pattern < 1u << members; pattern++) {
        int count = spread(pattern, members, lost);
        int possible = scheme == REDSET_PARTNER
                           ? copies_are_left(pattern, members, failures)
                           : count <= failures;
        assert_int_equal(redset_shape_can_rebuild(&m.shape, lost), possible);
        if (possible) lose_and_rebuild(&m, lost);
    }
    end(&m);
}

static void all_losses_of_small_sets(void **state)
{
    for (int members = 2; members <= 8; members++) {
        try_all_losses(REDSET_XOR, members, 1);
        for (int failures = 1; failures < members; failures++) {
            try_all_losses(REDSET_RS, members, failures);
            try_all_losses(REDSET_PARTNER, members, failures);
        }
    }
}

static void random_losses_of_large_sets(void **state)
{
    static const int sizes[][2] = {{255, 1},   {255, 2},   {255, 40},
                                   {255, 254}, {254, 253}, {129, 128},
                                   {64, 8},    {33, 16},   {17, 9}};
    static uint8_t lost[REDSET_RS_MEMBERS_MAX];
    unsigned random = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int members = sizes[i][0], failures = sizes[i][1];
        model m;
        begin(&m, REDSET_RS, members, failures);
        memset(lost, 0, sizeof lost);
        for (int left = failures; left > 0;) {
            random = random * 1103515245u + 12345u;
            int member = (int)((random >> 8) % (unsigned)members);
            left -= !lost[member];
            lost[member] = 1;
        }
        lose_and_rebuild(&m, lost);
        for (int one = 0; one < members; one++)
            if (!lost[one]) {
                lost[one] = 1;
                assert_false(redset_shape_can_rebuild(&m.shape, lost));
                lost[one] = 0;
            }
        end(&m);
    }
}

/* XOR has parity of member p at position p (docs/formats/redset.md), and is RS with one
 * redundancy. */
static void xor_is_rs_with_one(void **state)
{
    for (int members = 2; members <= 20; members++) {
        const redset_shape parity = {REDSET_XOR, members, 1},
                           rs = {REDSET_RS, members, 1};
        redset_flow *a = redset_flow_new(&parity), *b = redset_flow_new(&rs);
        for (int p = 0; p < members; p++) {
            redset_flow_plan(a, NULL, p);
            redset_flow_plan(b, NULL, p);
            assert_int_equal(a->targets, 1);
            assert_int_equal(a->target[0].member, p);
            assert_int_equal(a->target[0].stream, members - 1);
            assert_int_equal(b->target[0].member, p);
            for (int s = 0; s < members - 1; s++) {
                int m = a->source[s].member;
                assert_int_equal(a->source[s].stream, p < m ? p : p - 1);
                assert_int_equal(redset_flow_coef(a, 0, s), 1);
                assert_int_equal(redset_flow_coef(b, 0, s), 1);
                assert_memory_equal(&a->source[s], &b->source[s], sizeof *a->source);
            }
        }
        redset_flow_free(a);
        redset_flow_free(b);
    }
}

/* Over all positions, a member has each of its streams once, in order. */
static void streams_have_places(void **state)
{
    for (int members = 2; members <= 12; members++)
        for (int failures = 1; failures < members; failures++) {
            const redset_shape shape = {REDSET_RS, members, failures};
            int data = redset_shape_data_streams(&shape);
            for (int m = 0; m < members; m++) {
                int next = 0, redundancies = 0;
                for (int p = 0; p < members; p++) {
                    int stream = redset_shape_stream(&shape, m, p);
                    if (stream < data)
                        assert_int_equal(stream, next++);
                    else
                        redundancies |= 1 << (stream - data);
                }
                assert_int_equal(next, data);
                assert_int_equal(redundancies, (1 << failures) - 1);
            }
        }
}

/* Asserts that no survivor is a source more often, over all flows, than the average,
 * rounded up, plus a tolerance. */
static void check_evenness(redset_flow *flow, const uint8_t lost[], int survivors,
                           int more)
{
    int given[10] = {0}, all = 0, most = 0;
    for (int i = 0; i < flow->shape.members; i++) {
        redset_flow_plan(flow, lost, i);
        for (int s = 0; s < flow->sources; s++, all++)
            if (++given[flow->source[s].member] > most)
                most = given[flow->source[s].member];
    }
    assert_in_range(most, 1, (all + survivors - 1) / survivors + more);
}

static void survivors_work_evenly(void **state)
{
    for (int members = 2; members <= 10; members++)
        for (int failures = 1; failures < members; failures++) {
            const redset_shape shape = {REDSET_RS, members, failures};
            redset_flow *flow = redset_flow_new(&shape);
            uint8_t lost[10];
            for (unsigned pattern = 1; pattern < 1u << members; pattern++) {
                int count = spread(pattern, members, lost);
                if (count <= failures)
                    check_evenness(flow, lost, members - count,
                                   failures > 2 ? failures / 2 : 0);
            }
            redset_flow_free(flow);
        }
}

static void chunk_sizes(void **state)
{
    redset_shape shape = {REDSET_XOR, 4, 1};
    assert_int_equal(redset_shape_chunk(&shape, 0), 0);
    assert_int_equal(redset_shape_chunk(&shape, 1), 1);
    assert_int_equal(redset_shape_chunk(&shape, 3), 1);
    assert_int_equal(redset_shape_chunk(&shape, 4), 2);
    assert_int_equal(redset_shape_chunk(&shape, 524297), 174766); /* SCR's guide */
    shape = (redset_shape){REDSET_RS, 4, 2};
    assert_int_equal(redset_shape_chunk(&shape, 5), 3);
    shape = (redset_shape){REDSET_RS, 2, 1};
    assert_true(redset_shape_chunk(&shape, INT64_MAX) == INT64_MAX);
    shape = (redset_shape){REDSET_SINGLE, 1, 0};
    assert_int_equal(redset_shape_chunk(&shape, 77), 0);
}

static void list_holders(void **state)
{
    const redset_shape shape = {REDSET_RS, 5, 2};
    uint8_t lost[5] = {0, 1, 1, 0, 0};
    assert_int_equal(redset_shape_holder(&shape, lost, 0), 0);
    assert_int_equal(redset_shape_holder(&shape, lost, 1), 3);
    assert_int_equal(redset_shape_holder(&shape, lost, 2), 3);
    lost[3] = 1;
    assert_int_equal(redset_shape_holder(&shape, lost, 1), -1);
    assert_int_equal(redset_shape_holder(&shape, lost, 3), 4);
    lost[0] = lost[4] = 1;
    assert_int_equal(redset_shape_holder(&shape, lost, 4), -1);
}

static void impossible_shapes(void **state)
{
    static const redset_shape bad[] = {
        {REDSET_SINGLE, 2, 0},   {REDSET_SINGLE, 1, 1},  {REDSET_SINGLE, 0, 0},
        {REDSET_XOR, 1, 1},      {REDSET_XOR, 4, 2},     {REDSET_XOR, 4, 0},
        {REDSET_PARTNER, 1, 1},  {REDSET_PARTNER, 4, 4}, {REDSET_PARTNER, 4, 0},
        {REDSET_PARTNER, 4, -1}, {REDSET_RS, 256, 1},    {REDSET_RS, 4, 4},
        {REDSET_RS, 1, 0},       {REDSET_RS, 4, 0},      {REDSET_RS, -3, -4},
        {(redset_scheme)9, 4, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(redset_shape_check(&bad[i]), -EINVAL);
    const redset_shape single = {REDSET_SINGLE, 1, 0};
    assert_int_equal(redset_shape_check(&single), 0);
    const uint8_t there = 0, gone = 1;
    assert_true(redset_shape_can_rebuild(&single, &there));
    assert_false(redset_shape_can_rebuild(&single, &gone));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_losses_of_small_sets),
        cmocka_unit_test(random_losses_of_large_sets),
        cmocka_unit_test(xor_is_rs_with_one),
        cmocka_unit_test(streams_have_places),
        cmocka_unit_test(survivors_work_evenly),
        cmocka_unit_test(chunk_sizes),
        cmocka_unit_test(list_holders),
        cmocka_unit_test(impossible_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
