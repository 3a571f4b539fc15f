/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows of the schemes; see flow.h. */
#include "src/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int redset_shape_check(const redset_shape *shape)
{
    int n = shape->members, f = shape->failures;
    switch (shape->scheme) {
    case REDSET_SINGLE:
        return n == 1 && f == 0 ? 0 : -EINVAL;
    case REDSET_XOR:
        return n >= 2 && f == 1 ? 0 : -EINVAL;
    case REDSET_PARTNER:
        return n >= 2 && f >= 1 && f < n ? 0 : -EINVAL;
    case REDSET_RS:
        return n >= 2 && n <= REDSET_RS_MEMBERS_MAX && f >= 1 && f < n ? 0 : -EINVAL;
    }
    return -EINVAL;
}

redset_shape redset_shape_of(const redset_place *place)
{
    return (redset_shape){place->scheme, place->members, place->failures};
}

bool redset_is_coded(const redset_shape *shape)
{
    return shape->scheme == REDSET_XOR || shape->scheme == REDSET_RS;
}

int redset_data_streams(const redset_shape *shape)
{
    return redset_is_coded(shape) ? shape->members - shape->failures : 1;
}

uint64_t redset_chunk_size(const redset_shape *shape, uint64_t largest)
{
    uint64_t data = (uint64_t)redset_data_streams(shape);
    if (!redset_is_coded(shape)) return 0;
    return largest / data + (largest % data != 0);
}

static int around(const redset_shape *shape, int member)
{
    int n = shape->members;
    return (member % n + n) % n;
}

int redset_stream_at(const redset_shape *shape, int member, int position)
{
    int x = around(shape, member - position), before = 0;
    if (x < shape->failures) return redset_data_streams(shape) + x;
    for (int j = 0; j < shape->failures; j++)
        before += around(shape, member - j) < position;
    return position - before;
}

/* ---- building a flow ---- */

/* c(j, x) for all j and x. */
static void fill_code(redset_flow *flow)
{
    int n = flow->shape.members, f = flow->shape.failures;
    for (int j = 0; j < f; j++)
        for (int x = f; x < n; x++) {
            uint8_t below = redset_gf_inverse((uint8_t)(x ^ j));
            flow->code[j * n + x] = j ? redset_gf_multiply((uint8_t)x, below) : 1;
        }
}

static uint8_t code(const redset_flow *flow, int j, int x)
{
    return flow->code[j * flow->shape.members + x];
}

redset_flow *redset_flow_new(const redset_shape *shape)
{
    size_t n = (size_t)shape->members, f = (size_t)shape->failures + 1;
    redset_flow *flow = calloc(1, sizeof *flow);
    if (!flow) return NULL;
    flow->shape = *shape;
    flow->source = calloc(n, sizeof *flow->source);
    flow->target = calloc(f, sizeof *flow->target);
    flow->coefs = calloc(f, n);
    flow->code = calloc(f, n);
    flow->unknown = calloc(f, sizeof *flow->unknown);
    flow->used = calloc(f, sizeof *flow->used);
    flow->solve = calloc(2 * f, f);
    flow->part = calloc(f, 1);
    if (!flow->source || !flow->target || !flow->coefs || !flow->code || !flow->unknown ||
        !flow->used || !flow->solve || !flow->part)
        return redset_flow_free(flow);
    if (shape->scheme != REDSET_PARTNER) fill_code(flow);
    return flow;
}

redset_flow *redset_flow_free(redset_flow *flow)
{
    if (!flow) return NULL;
    free(flow->source);
    free(flow->target);
    free(flow->coefs);
    free(flow->code);
    free(flow->unknown);
    free(flow->used);
    free(flow->solve);
    free(flow->part);
    free(flow);
    return NULL;
}

static void set_coef(redset_flow *flow, int target, int source, uint8_t value)
{
    flow->coefs[target * flow->shape.members + source] = value;
}

static void add_source(redset_flow *flow, int member, int stream)
{
    flow->source[flow->sources++] = (redset_end){member, stream};
}

static void add_target(redset_flow *flow, int member, int stream)
{
    flow->target[flow->targets++] = (redset_end){member, stream};
}

/* Source or target: what column x has at a position. */
static void add_column(redset_flow *flow, int position, int x, int is_target)
{
    int member = around(&flow->shape, position + x);
    int stream = redset_stream_at(&flow->shape, member, position);
    if (is_target)
        add_target(flow, member, stream);
    else
        add_source(flow, member, stream);
}

/* The copies of member's data, where wanted: data itself has number -1. */
static void add_copies(redset_flow *flow, int member, const uint8_t lost[])
{
    const redset_shape *shape = &flow->shape;
    if (lost && lost[member]) add_target(flow, member, 0);
    for (int j = 0; j < shape->failures; j++) {
        int holder = around(shape, member + 1 + j);
        if (!lost || lost[holder]) add_target(flow, holder, 1 + j);
    }
    for (int t = 0; t < flow->targets; t++)
        set_coef(flow, t, 0, 1);
}

void redset_flow_encode(redset_flow *flow, int i)
{
    const redset_shape *shape = &flow->shape;
    flow->sources = flow->targets = 0;
    if (shape->scheme == REDSET_PARTNER) {
        add_source(flow, i, 0);
        add_copies(flow, i, NULL);
        return;
    }
    for (int j = 0; j < shape->failures; j++)
        add_column(flow, i, j, 1);
    for (int x = shape->failures; x < shape->members; x++) {
        for (int j = 0; j < shape->failures; j++)
            set_coef(flow, j, flow->sources, code(flow, j, x));
        add_column(flow, i, x, 0);
    }
}

/* ---- solving for what is lost at a position ---- */

typedef struct position {
    const uint8_t *lost; /* members */
    int number;
    int unknowns; /* lost data columns; as many redundancies are used to find them */
} position;

static bool is_lost(const redset_flow *flow, const position *p, int x)
{
    return p->lost[around(&flow->shape, p->number + x)] != 0;
}

static void find_unknowns(redset_flow *flow, position *p)
{
    int f = flow->shape.failures, n = flow->shape.members;
    for (int x = f; x < n; x++)
        if (is_lost(flow, p, x)) flow->unknown[p->unknowns++] = x;
    for (int j = 0, used = 0; used < p->unknowns; j++)
        if (!is_lost(flow, p, j)) flow->used[used++] = j;
}

/* Inverts the part of the code that leads from the unknown columns to the redundancies
 * used; it is regular. */
static void solve(redset_flow *flow, int n)
{
    uint8_t *rows = flow->solve;
    memset(rows, 0, (size_t)(2 * n) * (size_t)n);
    for (int a = 0; a < n; a++) {
        for (int b = 0; b < n; b++)
            rows[a * 2 * n + b] = code(flow, flow->used[a], flow->unknown[b]);
        rows[a * 2 * n + n + a] = 1;
    }
    redset_gf_invert(rows, n);
}

/* flow->part becomes the factors of source column x in the unknown columns: itself, if it
 * is a redundancy that is used, or through all of these. */
static void take_part(redset_flow *flow, int unknowns, int x)
{
    int is_data = x >= flow->shape.failures;
    for (int b = 0; b < unknowns; b++) {
        const uint8_t *solved = flow->solve + (size_t)(2 * b + 1) * (size_t)unknowns;
        flow->part[b] = 0;
        for (int a = 0; a < unknowns; a++)
            if (is_data)
                flow->part[b] ^=
                    redset_gf_multiply(solved[a], code(flow, flow->used[a], x));
            else if (flow->used[a] == x)
                flow->part[b] = solved[a];
    }
}

/* The factor of source column x in the lost redundancy y: directly, and by the unknown
 * columns. */
static uint8_t in_redundancy(const redset_flow *flow, int unknowns, int y, int x)
{
    uint8_t sum = x < flow->shape.failures ? 0 : code(flow, y, x);
    for (int b = 0; b < unknowns; b++)
        sum ^= redset_gf_multiply(code(flow, y, flow->unknown[b]), flow->part[b]);
    return sum;
}

/* Targets are lost redundancies, then lost data, both in the order of their columns. */
static void add_solved_source(redset_flow *flow, const position *p, int x)
{
    int t = 0;
    take_part(flow, p->unknowns, x);
    for (int y = 0; y < flow->shape.failures; y++)
        if (is_lost(flow, p, y))
            set_coef(flow, t++, flow->sources, in_redundancy(flow, p->unknowns, y, x));
    for (int b = 0; b < p->unknowns; b++)
        set_coef(flow, t++, flow->sources, flow->part[b]);
    add_column(flow, p->number, x, 0);
}

static void rebuild_position(redset_flow *flow, position *p)
{
    int f = flow->shape.failures, n = flow->shape.members;
    find_unknowns(flow, p);
    solve(flow, p->unknowns);
    for (int y = 0; y < n; y++)
        if (is_lost(flow, p, y)) add_column(flow, p->number, y, 1);
    if (flow->targets == 0) return;
    for (int a = 0; a < p->unknowns; a++)
        add_solved_source(flow, p, flow->used[a]);
    for (int x = f; x < n; x++)
        if (!is_lost(flow, p, x)) add_solved_source(flow, p, x);
}

void redset_flow_rebuild(redset_flow *flow, const uint8_t lost[], int i)
{
    flow->sources = flow->targets = 0;
    if (flow->shape.scheme == REDSET_PARTNER) {
        int holder = redset_list_holder(&flow->shape, lost, i);
        int own = holder == i;
        add_source(flow, holder, own ? 0 : around(&flow->shape, holder - i));
        add_copies(flow, i, lost);
        return;
    }
    position p = {.lost = lost, .number = i};
    if (flow->shape.scheme != REDSET_SINGLE) rebuild_position(flow, &p);
}

/* ---- losses ---- */

int redset_list_holder(const redset_shape *shape, const uint8_t lost[], int member)
{
    for (int j = 0; j <= shape->failures; j++) {
        int holder = around(shape, member + j);
        if (!lost[holder]) return holder;
    }
    return -1;
}

bool redset_can_rebuild(const redset_shape *shape, const uint8_t lost[])
{
    int count = 0;
    for (int m = 0; m < shape->members; m++) {
        count += lost[m] != 0;
        if (redset_list_holder(shape, lost, m) < 0) return false;
    }
    return shape->scheme == REDSET_PARTNER || count <= shape->failures;
}
