/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of sets, and the flows of each scheme. */
#include "src/codec/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- shapes ---- */

int redset_shape_check(const redset_shape *shape)
{
    int n = shape->members, f = shape->failures;
    bool some_survive = n >= 2 && f >= 1 && f < n, valid = false;
    switch (shape->scheme) {
    case REDSET_SINGLE:
        valid = n == 1 && f == 0;
        break;
    case REDSET_XOR:
        valid = some_survive && f == 1;
        break;
    case REDSET_PARTNER:
        valid = some_survive;
        break;
    case REDSET_RS:
        valid = some_survive && n <= REDSET_RS_MEMBERS_MAX;
    }
    return valid ? 0 : -EINVAL;
}

redset_shape redset_place_shape(const redset_place *place)
{
    return (redset_shape){place->scheme, place->members, place->failures};
}

int redset_shape_member(const redset_shape *shape, int member, int distance)
{
    int n = shape->members, shifted = (member + distance) % n;
    return shifted < 0 ? shifted + n : shifted;
}

bool redset_shape_is_coded(const redset_shape *shape)
{
    return shape->scheme == REDSET_XOR || shape->scheme == REDSET_RS;
}

int redset_shape_data_streams(const redset_shape *shape)
{
    return redset_shape_is_coded(shape) ? shape->members - shape->failures : 1;
}

uint64_t redset_shape_chunk(const redset_shape *shape, uint64_t largest)
{
    uint64_t data = (uint64_t)redset_shape_data_streams(shape);
    if (!redset_shape_is_coded(shape)) return 0;
    return largest / data + (largest % data != 0);
}

int redset_shape_stream(const redset_shape *shape, int member, int position)
{
    int x = redset_shape_member(shape, member, -position), before = 0;
    if (x < shape->failures) return redset_shape_data_streams(shape) + x;
    for (int j = 0; j < shape->failures; j++)
        before += redset_shape_member(shape, member, -j) < position;
    return position - before;
}

int redset_shape_holder(const redset_shape *shape, const uint8_t lost[], int member)
{
    for (int j = 0; j <= shape->failures; j++) {
        int holder = redset_shape_member(shape, member, j);
        if (!lost[holder]) return holder;
    }
    return -1;
}

bool redset_shape_can_rebuild(const redset_shape *shape, const uint8_t lost[])
{
    int count = 0;
    for (int m = 0; m < shape->members; m++) {
        count += lost[m] != 0;
        if (redset_shape_holder(shape, lost, m) < 0) return false;
    }
    return shape->scheme == REDSET_PARTNER || count <= shape->failures;
}

/* ---- construction of a flow ---- */

static void flow_fill_code(redset_flow *flow)
{
    int n = flow->shape.members, f = flow->shape.failures;
    for (int j = 0; j < f; j++)
        for (int x = f; x < n; x++) {
            uint8_t below = redset_gf_inverse((uint8_t)(x ^ j));
            flow->code[j * n + x] = j ? redset_gf_multiply((uint8_t)x, below) : 1;
        }
}

static uint8_t flow_code(const redset_flow *flow, int j, int x)
{
    return flow->code[j * flow->shape.members + x];
}

redset_flow *redset_flow_new(const redset_shape *shape)
{
    size_t n = (size_t)shape->members, f = (size_t)shape->failures + 1;
    redset_flow *flow = calloc(1, sizeof *flow);
    if (!flow) return NULL;
    flow->shape = *shape;
    flow->source = calloc(n + f, sizeof *flow->source);
    flow->unknown = calloc(2 * f, sizeof *flow->unknown);
    flow->coefs = calloc(2 * n + f + 1, f);
    if (!flow->source || !flow->unknown || !flow->coefs) return redset_flow_free(flow);
    flow->target = flow->source + n;
    flow->used = flow->unknown + f;
    flow->code = flow->coefs + f * n;
    flow->solve = flow->code + f * n;
    flow->part = flow->solve + f * f;
    if (redset_shape_is_coded(shape)) flow_fill_code(flow);
    return flow;
}

redset_flow *redset_flow_free(redset_flow *flow)
{
    if (!flow) return NULL;
    free(flow->source);
    free(flow->unknown);
    free(flow->coefs);
    free(flow);
    return NULL;
}

static void flow_set_coef(redset_flow *flow, int target, int source, uint8_t value)
{
    flow->coefs[target * flow->shape.members + source] = value;
}

static void flow_add_target(redset_flow *flow, int member, int stream)
{
    flow_set_coef(flow, flow->targets, 0, 1); /* for copies */
    flow->target[flow->targets++] = (redset_flow_end){member, stream};
}

/* ---- PARTNER ---- */

/* Copies the data of member, or its nearest copy, to the missing copies. */
static void flow_plan_copies(redset_flow *flow, const uint8_t lost[], int member)
{
    const redset_shape *shape = &flow->shape;
    int from = lost ? redset_shape_holder(shape, lost, member) : member;
    int copy = redset_shape_member(shape, from, -member); /* stream of that copy */
    flow->source[flow->sources++] = (redset_flow_end){from, copy};
    if (lost && lost[member]) flow_add_target(flow, member, 0);
    for (int j = 1; j <= shape->failures; j++) {
        int holder = redset_shape_member(shape, member, j);
        if (!lost || lost[holder]) flow_add_target(flow, holder, j);
    }
}

/* ---- XOR and RS: solving for the lost streams at a position ---- */

/* The stream of column x at the position. */
static redset_flow_end flow_column(const redset_flow *flow, int x)
{
    int member = redset_shape_member(&flow->shape, flow->position, x);
    return (redset_flow_end){member,
                             redset_shape_stream(&flow->shape, member, flow->position)};
}

/* An encode is a rebuild of all redundancy. */
static bool flow_is_lost(const redset_flow *flow, int x)
{
    if (!flow->lost) return x < flow->shape.failures;
    return flow->lost[redset_shape_member(&flow->shape, flow->position, x)] != 0;
}

static void flow_find_unknowns(redset_flow *flow)
{
    int f = flow->shape.failures, n = flow->shape.members;
    flow->unknowns = 0;
    for (int x = f; x < n; x++)
        if (flow_is_lost(flow, x)) flow->unknown[flow->unknowns++] = x;
    for (int j = 0, used = 0; used < flow->unknowns; j++)
        if (!flow_is_lost(flow, j)) flow->used[used++] = j;
}

/* The product of x + other over all n others, without x itself. */
static uint8_t flow_differences(int x, const int others[], int n)
{
    uint8_t product = 1;
    for (int i = 0; i < n; i++)
        if (others[i] != x)
            product = redset_gf_multiply(product, (uint8_t)(x ^ others[i]));
    return product;
}

/* Inverts the submatrix of the code from the unknown columns x to the used redundancy
 * columns j, by the closed form for Cauchy matrices (S. Schechter, "On the inversion of
 * certain matrices", 1959): with rows x and columns j, the inverse of 1 / (j + x) is
 *
 *     p(j) q(x) / (j + x),    p(j) = prod (j + x') / prod (j + j')  over all x', j' != j
 *                             q(x) = prod (x + j') / prod (x + x')  over all j', x' != x
 *
 * and the columns of the code are scaled by x. */
static void flow_solve(redset_flow *flow)
{
    int n = flow->unknowns;
    uint8_t *q = flow->part;
    for (int b = 0; b < n; b++)
        q[b] = redset_gf_multiply(
            flow_differences(flow->unknown[b], flow->used, n),
            redset_gf_inverse(flow_differences(flow->unknown[b], flow->unknown, n)));
    for (int a = 0; a < n; a++) {
        int j = flow->used[a];
        uint8_t p =
            redset_gf_multiply(flow_differences(j, flow->unknown, n),
                               redset_gf_inverse(flow_differences(j, flow->used, n)));
        for (int b = 0; b < n; b++) {
            int x = flow->unknown[b];
            uint8_t below = redset_gf_multiply((uint8_t)x, (uint8_t)(j ^ x));
            flow->solve[b * n + a] =
                redset_gf_multiply(redset_gf_multiply(p, q[b]), redset_gf_inverse(below));
        }
    }
}

/* Sets flow->part to the factors of source column x in the unknown columns. A data column
 * enters these through all used redundancy columns. */
static void flow_find_part(redset_flow *flow, int x)
{
    int n = flow->unknowns;
    bool is_data = x >= flow->shape.failures;
    for (int b = 0; b < n; b++) {
        const uint8_t *solved = flow->solve + b * n;
        flow->part[b] = 0;
        for (int a = 0; a < n; a++)
            if (is_data)
                flow->part[b] ^=
                    redset_gf_multiply(solved[a], flow_code(flow, flow->used[a], x));
            else if (flow->used[a] == x)
                flow->part[b] = solved[a];
    }
}

/* The factor of source column x in the lost redundancy column y: its own factor, plus its
 * share through the unknown columns. */
static uint8_t flow_redundancy_factor(const redset_flow *flow, int y, int x)
{
    uint8_t sum = x < flow->shape.failures ? 0 : flow_code(flow, y, x);
    for (int b = 0; b < flow->unknowns; b++)
        sum ^= redset_gf_multiply(flow_code(flow, y, flow->unknown[b]), flow->part[b]);
    return sum;
}

/* Targets are the lost redundancy columns, then the lost data columns, both in order. */
static void flow_add_source(redset_flow *flow, int x)
{
    int t = 0;
    flow_find_part(flow, x);
    for (int y = 0; y < flow->shape.failures; y++)
        if (flow_is_lost(flow, y))
            flow_set_coef(flow, t++, flow->sources, flow_redundancy_factor(flow, y, x));
    for (int b = 0; b < flow->unknowns; b++)
        flow_set_coef(flow, t++, flow->sources, flow->part[b]);
    flow->source[flow->sources++] = flow_column(flow, x);
}

static void flow_plan_position(redset_flow *flow)
{
    int f = flow->shape.failures, n = flow->shape.members;
    for (int x = 0; x < n; x++)
        if (flow_is_lost(flow, x)) flow->target[flow->targets++] = flow_column(flow, x);
    if (flow->targets == 0) return;
    flow_find_unknowns(flow);
    flow_solve(flow);
    for (int a = 0; a < flow->unknowns; a++)
        flow_add_source(flow, flow->used[a]);
    for (int x = f; x < n; x++)
        if (!flow_is_lost(flow, x)) flow_add_source(flow, x);
}

void redset_flow_plan(redset_flow *flow, const uint8_t lost[], int i)
{
    flow->sources = flow->targets = 0;
    flow->lost = lost;
    flow->position = i;
    if (flow->shape.scheme == REDSET_PARTNER)
        flow_plan_copies(flow, lost, i);
    else if (flow->shape.scheme != REDSET_SINGLE)
        flow_plan_position(flow);
}
