/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of all schemes with every field altered in turn, by walking along the tree:
 * each element is removed, renamed, doubled and emptied, each value replaced by others. A
 * header that is invalid by itself is refused with a text. An alteration that could be
 * valid, such as another name of a file, contradicts the headers of the other members, or
 * the data. */
#include "src/set/plan.h"

#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MEMBERS_MOST = 6, FILES_MOST = 3, DEPTH_MOST = 16, CRC = 0xabcdef };

/* The first of two sets: member m has rank 2m. */
typedef struct set {
    redset_shape shape;
    redset_layout layout;
    int ranks[MEMBERS_MOST];
    uint64_t chunk;
    kvtree *headers[MEMBERS_MOST];
    void *states;
    int member;          /* member whose header is altered */
    redset_header *good; /* its header, unaltered */
    int refused, noticed;
} set;

/* ---- a valid set ---- */

/* The member has none to three files; one of them is empty. */
static kvtree *list_tree(const set *s, int member)
{
    char names[FILES_MOST][32];
    redset_file files[FILES_MOST];
    kvtree *meta = kvtree_new();
    kvtree_util_set_str(meta, "COLOUR", "blue");
    redset_list list = {
        .rank = s->ranks[member], .count = (member + 2) % 4, .files = files};
    for (int i = 0; i < list.count; i++) {
        snprintf(names[i], sizeof names[i], "sub/%d.of.%d", i, list.rank);
        files[i] = (redset_file){.name = names[i], .size = i == 1 ? 0 : 100, .crc = 77};
        if (i != 2) files[i].meta = meta;
    }
    kvtree *tree = redset_list_to_tree(&list);
    kvtree_delete(&meta);
    return tree;
}

static kvtree *header_tree(set *s, int member)
{
    kvtree *lists[MEMBERS_MOST], *about = kvtree_new();
    int members = s->shape.members;
    kvtree_util_set_int(about, "ID", 6);
    for (int d = 0; d <= s->shape.failures; d++)
        lists[d] = list_tree(s, (member + members - d) % members);
    kvtree *tree = redset_header_build(&s->layout, s->chunk, 0x1234567890, about, lists);
    kvtree_util_set_crc32(tree, "CRC", CRC);
    for (int d = 0; d <= s->shape.failures; d++)
        kvtree_delete(&lists[d]);
    kvtree_delete(&about);
    return tree;
}

static kvtree *copy_of(const kvtree *tree)
{
    kvtree *copy = kvtree_new();
    assert_int_equal(kvtree_merge(copy, tree), 0);
    return copy;
}

static void make_set(set *s, redset_scheme scheme, int members, int failures)
{
    redset_error err;
    *s = (set){.shape = {scheme, members, failures}};
    for (int m = 0; m < members; m++)
        s->ranks[m] = 2 * m;
    s->layout = (redset_layout){
        2 * members, {scheme, 2, 0, 0, members, -1, failures}, s->ranks, false};
    s->chunk = redset_shape_chunk(&s->shape, 200);
    s->states = calloc((size_t)members, redset_state_size(&s->shape));
    for (int m = 0; m < members; m++) {
        s->headers[m] = header_tree(s, m);
        assert_int_equal(redset_header_parse(copy_of(s->headers[m]), &s->good, &err), 0);
        redset_state *state = (void *)redset_state_at(&s->shape, s->states, m);
        assert_int_equal(redset_state_set(state, s->good), 0);
        s->good = redset_header_free(s->good);
    }
    uint8_t lost[MEMBERS_MOST];
    assert_int_equal(redset_plan_make(&s->shape, s->states, lost).kind,
                     REDSET_PLAN_NOTHING);
}

static void choose_member(set *s, int member)
{
    redset_error err;
    redset_header_free(s->good);
    s->member = member;
    assert_int_equal(redset_header_parse(copy_of(s->headers[member]), &s->good, &err), 0);
}

static void drop_set(set *s)
{
    for (int m = 0; m < s->shape.members; m++)
        kvtree_delete(&s->headers[m]);
    redset_header_free(s->good);
    free(s->states);
}

/* ---- detection of an altered header ---- */

/* Whether the headers of all members, with this one altered, are of different encodes; or
 * whether the altered header has another layout, which is detected when sets are located.
 */
static bool is_mixed(const set *s, const redset_header *altered)
{
    uint8_t lost[MEMBERS_MOST];
    size_t size = redset_state_size(&s->shape);
    if (!redset_layout_is_equal(&altered->layout, &s->good->layout)) return true;
    redset_state *state = (void *)redset_state_at(&s->shape, s->states, s->member);
    void *before = malloc(size);
    memcpy(before, state, size);
    assert_int_equal(redset_state_set(state, altered), 0);
    redset_plan plan = redset_plan_make(&s->shape, s->states, lost);
    memcpy(state, before, size);
    free(before);
    return plan.kind == REDSET_PLAN_MIXED;
}

/* Whether the altered header lists other files than those beside it. */
static bool has_other_files(const set *s, const redset_header *altered)
{
    const redset_list *a = &altered->list[0], *b = &s->good->list[0];
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = strcmp(a->files[i].name, b->files[i].name) == 0 &&
               a->files[i].size == b->files[i].size && a->files[i].crc == b->files[i].crc;
    return !same;
}

/* One alteration of a header. */
typedef struct alteration {
    const char *const *path; /* the element, by its keys */
    int depth;
    const char *what;
    bool wrong; /* invalid in any header: it must be refused */
} alteration;

/* Whether the element belongs to the caller: the description and the meta data of a file
 * may contain anything. */
static bool is_callers_own(const alteration *a)
{
    if (strcmp(a->path[0], "DSET") == 0) return a->depth > 1 || !a->wrong;
    int key = strcmp(a->path[0], "PARTNERS") == 0 ? 4 : 3;
    return strcmp(a->path[0], "GROUP") != 0 && a->depth > key &&
           strcmp(a->path[key], "FILE") != 0 && strcmp(a->path[key], "SIZE") != 0 &&
           strcmp(a->path[key], "CRC") != 0;
}

/* Whether the alteration is detected. A set of one member has no other headers to
 * compare. */
static bool is_noticed(const set *s, const alteration *a, const redset_header *altered)
{
    bool alone = s->shape.members == 1;
    if (is_callers_own(a)) return alone || is_mixed(s, altered);
    if (a->wrong) return false;
    if (altered->crc != CRC) return true;
    return is_mixed(s, altered) || (alone && has_other_files(s, altered));
}

/* Takes ownership of altered. */
static void expect_noticed(set *s, kvtree *altered, const alteration *a)
{
    redset_error err = {""};
    redset_header *h = NULL;
    int rc = redset_header_parse(altered, &h, &err);
    bool good = rc ? rc == -EBADMSG && err.text[0] : is_noticed(s, a, h);
    *(rc ? &s->refused : &s->noticed) += 1;
    redset_header_free(h);
    if (good) return;
    char path[256] = "";
    for (int i = 0; i < a->depth; i++)
        snprintf(path + strlen(path), sizeof path - strlen(path), " %s", a->path[i]);
    fail_msg("%s of %d:%s: %s: %d %s", redset_scheme_name(s->shape.scheme),
             s->shape.members, path, a->what, rc, err.text);
}

/* ---- alterations ---- */

enum change { REMOVED, RENAMED, DOUBLED, EMPTIED, CHANGES };

/* Changes the element of tree with that key. */
static void change(kvtree *tree, const char *key, const char *other, enum change how)
{
    kvtree *value = kvtree_get(tree, key);
    if (how == REMOVED) kvtree_unset(tree, key);
    if (how == RENAMED) kvtree_set(tree, other, kvtree_extract(tree, key));
    if (how == DOUBLED) kvtree_set(tree, other, copy_of(value));
    if (how == EMPTIED) kvtree_unset_all(value);
}

/* Returns a copy of the header; *inner: the tree in it that has the element at the end of
 * path. */
static kvtree *copy_at(const set *s, const char *const path[], int depth, kvtree **inner)
{
    kvtree *copy = copy_of(s->headers[s->member]);
    *inner = copy;
    for (int i = 0; i + 1 < depth; i++)
        *inner = kvtree_get(*inner, path[i]);
    return copy;
}

/* Applies every change to an element. A value is not renamed: alter_value replaces it. */
static void alter_element(set *s, const char *path[], int depth, bool is_value)
{
    static const char *const names[] = {"removed", "renamed", "doubled", "emptied"};
    char other[64];
    const char *key = path[depth - 1];
    snprintf(other, sizeof other, "%s~", key);
    for (int how = 0; how < CHANGES; how++) {
        kvtree *at, *copy = copy_at(s, path, depth, &at);
        bool empty = kvtree_size(kvtree_get(at, key)) == 0;
        if (how == EMPTIED ? empty : how == RENAMED && is_value) {
            kvtree_delete(&copy);
            continue;
        }
        change(at, key, other, (enum change)how);
        /* a doubled element counts as a new one */
        path[depth - 1] = how == DOUBLED ? other : key;
        expect_noticed(s, copy, &(alteration){path, depth, names[how], how != EMPTIED});
    }
    path[depth - 1] = key;
}

static void replace_value(set *s, const char *const path[], int depth, const char *value,
                          bool wrong)
{
    if (strcmp(value, path[depth - 1]) == 0) return;
    kvtree *at, *copy = copy_at(s, path, depth, &at);
    kvtree_unset_all(at);
    kvtree_set(at, value, NULL);
    expect_noticed(s, copy, &(alteration){path, depth, value, wrong});
}

/* path ends in a value that stands alone: a number, or a name. */
static void alter_value(set *s, const char *const path[], int depth)
{
    /* neither numbers nor names */
    static const char *const wrong[] = {"", "../x", "/1", "1\n"};
    static const char *const others[] = {"-1",         "0",
                                         "1",          "1.5",
                                         " ",          "0x",
                                         "2147483647", "2147483648",
                                         "4294967296", "9223372036854775807",
                                         "x",          "9223372036854775808",
                                         "+",          "18446744073709551616"};
    char near[32];
    long long number = strtoll(path[depth - 1], NULL, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        replace_value(s, path, depth, wrong[i], true);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        replace_value(s, path, depth, others[i], false);
    for (int more = -1; more <= 1; more += 2) {
        snprintf(near, sizeof near, "%lld", number + more);
        replace_value(s, path, depth, near, false);
    }
}

static void alter_all(set *s, const kvtree *tree, const char *path[], int depth)
{
    assert_true(depth < DEPTH_MOST);
    for (kvtree_elem *e = kvtree_elem_first(tree); e; e = kvtree_elem_next(e)) {
        bool value = kvtree_size(tree) == 1 && kvtree_size(kvtree_elem_hash(e)) == 0;
        path[depth] = kvtree_elem_key(e);
        alter_element(s, path, depth + 1, value);
        if (value) alter_value(s, path, depth + 1);
        alter_all(s, kvtree_elem_hash(e), path, depth + 1);
    }
}

static void alter_headers(redset_scheme scheme, int members, int failures)
{
    set s;
    const char *path[DEPTH_MOST];
    make_set(&s, scheme, members, failures);
    for (int m = 0; m < members; m++) {
        choose_member(&s, m);
        alter_all(&s, s.headers[m], path, 0);
    }
    print_message("%s, %d of %d: %d refused, %d noticed\n", redset_scheme_name(scheme),
                  failures, members, s.refused, s.noticed);
    assert_true(s.refused > 100 * members && s.noticed > 10 * members);
    drop_set(&s);
}

static void test_single(void **state)
{
    alter_headers(REDSET_SINGLE, 1, 0);
}

static void test_partner(void **state)
{
    alter_headers(REDSET_PARTNER, 4, 1);
    alter_headers(REDSET_PARTNER, 5, 2);
}

static void test_xor(void **state)
{
    alter_headers(REDSET_XOR, 2, 1);
    alter_headers(REDSET_XOR, 4, 1);
}

static void test_rs(void **state)
{
    alter_headers(REDSET_RS, 3, 1);
    alter_headers(REDSET_RS, 5, 2);
    alter_headers(REDSET_RS, 6, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),
        cmocka_unit_test(test_partner),
        cmocka_unit_test(test_xor),
        cmocka_unit_test(test_rs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
