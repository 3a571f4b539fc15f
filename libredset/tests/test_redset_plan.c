/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel and plan: whole sets are encoded and rebuilt in memory, following the answers of
 * the pure functions alone. */
#include "src/gf.h"
#include "src/redset_private.h"

#include "scratch.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_kernel(void **state)
{
    unsigned char a[700], b[700], expected[700], all[700];
    for (size_t size = 0; size < 300; size++)
        for (size_t shift = 0; shift < 9; shift++) {
            scratch_bytes(a, sizeof a, 1);
            scratch_bytes(b, sizeof b, 2);
            memcpy(all, a, sizeof a);
            for (size_t i = 0; i < size; i++)
                all[shift + i] = a[shift + i] ^ b[i];
            memcpy(expected, all, sizeof all);
            redset_xor(a + shift, b, size);
            assert_memory_equal(a, expected, sizeof a); /* and nothing around it */
        }
}

static void test_chunk_size(void **state)
{
    assert_int_equal(redset_xor_chunk_size(4, 0), 0);
    assert_int_equal(redset_xor_chunk_size(4, 1), 1);
    assert_int_equal(redset_xor_chunk_size(4, 3), 1);
    assert_int_equal(redset_xor_chunk_size(4, 4), 2);
    assert_int_equal(redset_xor_chunk_size(2, 7), 7);
    assert_int_equal(redset_xor_chunk_size(4, 524297), 174766); /* SCR's guide */
    assert_true(redset_xor_chunk_size(2, INT64_MAX) == INT64_MAX);
}

static void test_chunks_have_places(void **state)
{
    for (int members = 2; members <= 12; members++)
        for (int member = 0; member < members; member++) {
            int next = 0;
            for (int position = 0; position < members; position++) {
                int chunk = redset_xor_chunk_at(member, position);
                assert_int_equal(chunk, position == member ? -1 : next++);
            }
            assert_int_equal(next, members - 1);
        }
}

enum { CHUNK = 96, MOST = 8 };

typedef struct model {
    int members;
    unsigned char data[MOST][MOST - 1][CHUNK], parity[MOST][CHUNK];
} model;

/* All members take their steps at once; what one sends, its right neighbour adds to its
 * own data in the next step. */
static void encode(model *m)
{
    static unsigned char sum[MOST][CHUNK], passed[MOST][CHUNK];
    for (int step = 0; step < m->members - 1; step++) {
        for (int i = 0; i < m->members; i++) {
            int position = redset_xor_position(i, m->members, step);
            int chunk = redset_xor_chunk_at(i, position);
            assert_in_range(chunk, 0, m->members - 2);
            memcpy(sum[i], m->data[i][chunk], CHUNK);
            if (step > 0)
                redset_xor(sum[i], passed[(i + m->members - 1) % m->members], CHUNK);
        }
        memcpy(passed, sum, sizeof sum);
    }
    for (int i = 0; i < m->members; i++)
        memcpy(m->parity[i], passed[(i + m->members - 1) % m->members], CHUNK);
}

static unsigned char *content(model *m, int member, int position)
{
    int chunk = redset_xor_chunk_at(member, position);
    return chunk < 0 ? m->parity[member] : m->data[member][chunk];
}

static void test_sets_in_memory(void **state)
{
    static model m;
    for (m.members = 2; m.members <= MOST; m.members++) {
        scratch_bytes(m.data[0][0], sizeof m.data, (unsigned)m.members);
        encode(&m);
        for (int lost = 0; lost < m.members; lost++)
            for (int position = 0; position < m.members; position++) {
                unsigned char sum[CHUNK] = {0};
                for (int i = 0; i < m.members; i++)
                    if (i != lost) redset_xor(sum, content(&m, i, position), CHUNK);
                assert_memory_equal(sum, content(&m, lost, position), CHUNK);
            }
    }
}

/* States as they are after an encode. */
static void healthy(int members, redset_state states[])
{
    for (int i = 0; i < members; i++)
        states[i] = (redset_state){0, 99, (uint32_t)(100 + i),
                                   (uint32_t)(100 + (i + members - 1) % members)};
}

static void test_losses(void **state)
{
    redset_state states[MOST];
    for (int members = 2; members <= MOST; members++)
        for (unsigned lost = 0; lost < 1u << members; lost++) {
            int count = 0, first = -1;
            healthy(members, states);
            for (int i = members - 1; i >= 0; i--)
                if (lost >> i & 1) {
                    states[i] = (redset_state){.lost = 1};
                    first = i;
                    count++;
                }
            redset_plan plan = redset_plan_make(REDSET_XOR, members, states);
            assert_int_equal(plan.kind, count == 0   ? REDSET_PLAN_NOTHING
                                        : count == 1 ? REDSET_PLAN_REBUILD
                                                     : REDSET_PLAN_HOPELESS);
            assert_int_equal(plan.lost, count);
            assert_int_equal(plan.member, first);
        }
}

static void test_single(void **state)
{
    redset_state one = {0, 5, 6, 7};
    assert_int_equal(redset_plan_make(REDSET_SINGLE, 1, &one).kind, REDSET_PLAN_NOTHING);
    one = (redset_state){.lost = 1};
    assert_int_equal(redset_plan_make(REDSET_SINGLE, 1, &one).kind, REDSET_PLAN_HOPELESS);
}

static void test_mixed_encodes(void **state)
{
    redset_state states[MOST];
    for (int members = 2; members <= MOST; members++)
        for (int odd = 0; odd < members; odd++)
            for (int lost = -1; lost < members; lost++) {
                if (lost == odd || (lost >= 0 && members == 2)) continue;
                healthy(members, states);
                states[odd].layout = 1;
                if (lost >= 0) states[lost] = (redset_state){.lost = 1};
                assert_int_equal(redset_plan_make(REDSET_XOR, members, states).kind,
                                 REDSET_PLAN_MIXED);
                healthy(members, states);
                states[odd].current = 1; /* its right neighbour kept another list */
                if (lost >= 0) states[lost] = (redset_state){.lost = 1};
                if (lost == (odd + 1) % members) continue; /* nobody left to tell */
                assert_int_equal(redset_plan_make(REDSET_XOR, members, states).kind,
                                 REDSET_PLAN_MIXED);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel),
        cmocka_unit_test(test_chunk_size),
        cmocka_unit_test(test_chunks_have_places),
        cmocka_unit_test(test_sets_in_memory),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_mixed_encodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
