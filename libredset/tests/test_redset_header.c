/* SPDX-License-Identifier: BSD-3-Clause */
/* Redundancy files: written, read back, and refused if they are invalid, or if any part
 * of them is cut off or flipped; verification of the contents that a header describes. */
#include "src/files/streams.h"
#include "src/set/plan.h"
#include "src/set/set.h"

#include "fault.h"
#include "scratch.h"
#include <fcntl.h>
#include <kvtree/kvtree_util.h>
#include <setjmp.h>
#include <stdarg.h>
#include <zlib.h>

#include <cmocka.h>

/* Member 2 of the first of two sets over eight ranks. Its files have 524 bytes, and the
 * largest of the set 525. */
enum { CHUNK = 175, RANK = 4 };
static const char file_name[] = "3_of_4_in_0.xor";
static int members[] = {0, 2, 4, 6};
static const redset_layout layout = {8, {REDSET_XOR, 2, 0, 0, 4, 2, 1}, members, false};

typedef struct fixture {
    char folder[64];
    int dir;
    kvtree *header;
    unsigned char parity[CHUNK];
} fixture;

static kvtree *list_tree(int rank, int count, const redset_file *files)
{
    redset_list list = {.rank = rank, .count = count, .files = (redset_file *)files};
    return redset_list_to_tree(&list);
}

static kvtree *make_header(const fixture *f)
{
    kvtree *meta = kvtree_new(), *about = kvtree_new();
    kvtree_util_set_str(meta, "COLOUR", "blue");
    kvtree_util_set_int(about, "ID", 6);
    redset_file own[] = {{.name = "one.ckpt", .meta = meta, .size = 500},
                         {.name = "sub/two.ckpt", .size = 24},
                         {.name = "empty", .size = 0}};
    redset_file theirs[] = {{.name = "rank_2.ckpt", .size = 525, .crc = 77}};
    unsigned char bytes[500];
    for (unsigned i = 0; i < 2; i++) {
        scratch_bytes(bytes, own[i].size, i);
        own[i].crc = (uint32_t)crc32_z(0, bytes, own[i].size);
    }
    kvtree *lists[] = {list_tree(RANK, 3, own), list_tree(2, 1, theirs)};
    kvtree *header = redset_header_build(&layout, CHUNK, 77, about, lists);
    kvtree_util_set_crc32(header, "CRC", crc32_z(0, f->parity, CHUNK));
    kvtree_delete(&meta);
    kvtree_delete(&about);
    kvtree_delete(&lists[0]);
    kvtree_delete(&lists[1]);
    return header;
}

/* Writes header and parity under name, with the file checksum that header deserves. */
static void put(const fixture *f, const char *name, kvtree *header)
{
    int fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(kvtree_fd_write(fd, KVTREE_ANY_SIZE, header, NULL) > 0);
    assert_int_equal(write(fd, f->parity, CHUNK), CHUNK);
    close(fd);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder);
    f->dir = open(f->folder, O_RDONLY | O_DIRECTORY);
    scratch_bytes(f->parity, CHUNK, 42);
    scratch_write(f->folder, "one.ckpt", 500, 0);
    scratch_write(f->folder, "sub/two.ckpt", 24, 1);
    scratch_write(f->folder, "empty", 0, 2);
    f->header = make_header(f);
    put(f, file_name, f->header);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    kvtree_delete(&f->header);
    close(f->dir);
    scratch_remove(f->folder);
    free(f);
    return 0;
}

static void test_reads_back(void **state)
{
    fixture *f = *state;
    redset_error err;
    redset_manifest *m = NULL;
    int id;
    assert_int_equal(redset_read_header(AT_FDCWD, f->folder, file_name, &m, &err), 0);
    assert_int_equal(m->rank, RANK);
    assert_int_equal(m->ranks, 8);
    assert_memory_equal(&m->place, &layout.place, sizeof m->place);
    assert_string_equal(m->file, file_name);
    assert_int_equal(m->file_crc, crc32_z(0, f->parity, CHUNK));
    struct stat st;
    assert_int_equal(fstatat(f->dir, file_name, &st, 0), 0);
    assert_int_equal(m->file_size, st.st_size);
    assert_int_equal(kvtree_util_get_int(m->about, "ID", &id), 0);
    assert_int_equal(id, 6);
    assert_int_equal(m->count, 3);
    assert_string_equal(m->files[1].name, "sub/two.ckpt");
    assert_int_equal(m->files[0].size, 500);
    assert_int_equal(m->files[2].size, 0);
    /* meta data is as given: without redset's own keys */
    assert_int_equal(kvtree_size(m->files[0].meta), 1);
    assert_string_equal(kvtree_get_val(m->files[0].meta, "COLOUR"), "blue");
    assert_int_equal(kvtree_size(m->files[1].meta), 0);
    assert_null(redset_manifest_free(m));
    assert_null(redset_manifest_free(NULL));
}

static void test_not_there(void **state)
{
    fixture *f = *state;
    redset_error err = {""};
    redset_manifest *m = NULL;
    assert_int_equal(redset_read_header(AT_FDCWD, f->folder, "none.xor", &m, &err),
                     -ENOENT);
    assert_int_equal(redset_read_header(AT_FDCWD, "/nonexistent", file_name, &m, &err),
                     -ENOENT);
    assert_int_equal(redset_read_header(AT_FDCWD, f->folder, "../x", &m, &err), -EINVAL);
    assert_int_equal(redset_read_header(AT_FDCWD, f->folder, "sub", &m, &err), -EINVAL);
    assert_null(m);
}

/* Writes the altered header and expects that reading refuses it with a text. */
static void expect_refused(const fixture *f, kvtree *altered, const char *what)
{
    redset_error err = {""};
    redset_manifest *m = NULL;
    put(f, file_name, altered);
    int rc = redset_read_header(AT_FDCWD, f->folder, file_name, &m, &err);
    if (rc != -EBADMSG) print_error("%s: %d\n", what, rc);
    assert_int_equal(rc, -EBADMSG);
    assert_non_null(strstr(err.text, file_name));
    assert_null(m);
}

/* Returns a copy of the whole header; the output is the tree in it that has the path in
 * the original. */
static kvtree *copy_at(const fixture *f, int depth, const char *const path[],
                       kvtree **inner)
{
    kvtree *copy = kvtree_new();
    assert_int_equal(kvtree_merge(copy, f->header), 0);
    *inner = copy;
    for (int i = 0; i < depth; i++)
        *inner = kvtree_get(*inner, path[i]);
    return copy;
}

/* Well-formed headers with wrong contents. */
static void test_lies(void **state)
{
    static const struct {
        const char *path[5], *value;
    } lies[] = {
        {{"TYPE"}, "SINGLE"},
        {{"RANKS"}, "9"},
        {{"RANKS"}, "10"},
        {{"GROUP", "RANKS"}, "2147483647"},
        {{"GROUP", "RANKS"}, "3"},
        {{"GROUP", "ID"}, "2"},
        {{"GROUP", "GROUPS"}, "3"},
        {{"GROUP", "GROUPS"}, "1"},
        {{"GROUP", "INDEX"}, "2"},
        {{"GROUP", "RANK", "3"}, "4"}, /* twice */
        {{"GROUP", "RANK", "1"}, "8"}, /* past RANKS */
        {{"GROUP", "RANK", "0"}, "1"}, /* not ID */
        {{"CHUNK"}, "174"},            /* too small for the files */
        {{"CHUNK"}, "176"},            /* longer than the file */
        {{"CHUNK"}, "9223372036854775808"},
        {{"CHUNK"}, "99999999999999999999"},
        {{"CRC"}, "0x1ffffffff"},
        {{"ENCODE"}, "77"},
        {{"ENCODE"}, "000000000000004G"},
        {{"ENCODE"}, "0000000000000004d"},
        {{"CURRENT", "RANK"}, "5"}, /* not in GROUP */
        {{"CURRENT", "RANK"}, "6"}, /* in GROUP, but the name says another */
        {{"CURRENT", "FILES"}, "2147483647"},
        {{"CURRENT", "FILES"}, "2"},
        {{"CURRENT", "FILE", "0", "SIZE"}, "502"},
        {{"CURRENT", "FILE", "0", "SIZE"}, "9223372036854775807"},
        {{"CURRENT", "FILE", "0", "SIZE"}, "18446744073709551615"},
        {{"CURRENT", "FILE", "1", "FILE"}, "sub/../../two.ckpt"},
        {{"CURRENT", "FILE", "1", "FILE"}, "3_of_4_in_0.xor"},
        {{"CURRENT", "FILE", "1", "FILE"}, "sub//two.ckpt"},
        {{"CURRENT", "FILE", "1", "FILE"}, "two\n.ckpt"},
        {{"CURRENT", "FILE", "2", "FILE"}, "one.ckpt"}, /* twice */
        {{"PARTNER", "RANK"}, "6"}, /* the right neighbor, not the left */
        {{"PARTNER", "FILE", "0", "SIZE"}, "526"},
        {{"PARTNER", "FILE", "0", "FILE"}, "/etc/passwd"},
        {{"FAILURES"}, "1"}, /* not with XOR */
        {{"COLOUR"}, "blue"},
        {{"GROUP", "COLOUR"}, "blue"},
        {{"CURRENT", "COLOUR"}, "blue"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        int depth = 0;
        while (depth < 5 && lies[i].path[depth])
            depth++;
        kvtree *inner, *copy = copy_at(f, depth - 1, lies[i].path, &inner);
        kvtree_util_set_str(inner, lies[i].path[depth - 1], lies[i].value);
        expect_refused(f, copy, lies[i].value);
        kvtree_delete(&copy);
    }
}

static void test_other_name(void **state)
{
    fixture *f = *state;
    redset_error err = {""};
    redset_manifest *m = NULL;
    put(f, "2_of_4_in_0.xor", f->header);
    int rc = redset_read_header(AT_FDCWD, f->folder, "2_of_4_in_0.xor", &m, &err);
    assert_int_equal(rc, -EBADMSG);
    assert_non_null(strstr(err.text, file_name));
}

static void test_damaged_bytes(void **state)
{
    fixture *f = *state;
    char path[1200];
    redset_error err;
    size_t size;
    redset_manifest *m = NULL;
    unsigned char *bytes = scratch_read(f->folder, file_name, &size);
    scratch_path(path, f->folder, file_name);
    for (size_t i = 0; i < size - CHUNK; i++) {
        bytes[i] ^= 0x10;
        scratch_put(path, bytes, size);
        assert_int_not_equal(redset_read_header(AT_FDCWD, f->folder, file_name, &m, &err),
                             0);
        bytes[i] ^= 0x10;
    }
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(truncate(path, 0), 0);
        scratch_put(path, bytes, i);
        assert_int_not_equal(redset_read_header(AT_FDCWD, f->folder, file_name, &m, &err),
                             0);
    }
    free(bytes);
}

static void test_single(void **state)
{
    int self[] = {3};
    redset_layout alone = {8, {REDSET_SINGLE, 8, 3, 3, 1, 0, 0}, self, false};
    redset_file files[] = {{.name = "x", .size = 1000000}};
    kvtree *current = list_tree(3, 1, files), *lists[] = {current, current};
    redset_error err;
    redset_header *h;
    kvtree *tree = redset_header_build(&alone, 0, 0, NULL, lists);
    assert_int_equal(redset_header_parse(tree, &h, &err), 0);
    assert_int_equal(h->layout.place.member, 0);
    assert_int_equal(h->list[0].size, 1000000);
    redset_header_free(h);
    tree = redset_header_build(&alone, 1, 0, NULL, lists);
    assert_int_equal(redset_header_parse(tree, &h, &err), -EBADMSG);
    alone.place.failures = 1; /* writes a list too many */
    tree = redset_header_build(&alone, 0, 0, NULL, lists);
    assert_int_equal(redset_header_parse(tree, &h, &err), -EBADMSG);
    kvtree_delete(&current);
}

/* Five members of which two may be lost; this header was never in a file. */
static kvtree *rs_header(redset_scheme scheme, uint64_t chunk)
{
    int all[] = {0, 1, 2, 3, 4};
    const redset_layout five = {5, {scheme, 1, 0, 0, 5, 1, 2}, all, false};
    redset_file file = {.name = "x", .size = 300};
    kvtree *lists[] = {list_tree(1, 1, &file), list_tree(0, 0, NULL),
                       list_tree(4, 1, &file)};
    kvtree *tree = redset_header_build(&five, chunk, UINT64_MAX, NULL, lists);
    for (int i = 0; i < 3; i++)
        kvtree_delete(&lists[i]);
    return tree;
}

static void test_several_lists(void **state)
{
    redset_error err;
    redset_header *h;
    uint64_t length[5];
    assert_int_equal(redset_header_parse(rs_header(REDSET_RS, 100), &h, &err), 0);
    assert_int_equal(h->data, 200);
    assert_int_equal(h->list[0].rank, 1);
    assert_int_equal(h->list[1].rank, 0);
    assert_int_equal(h->list[2].rank, 4);
    redset_header_lengths(h, length);
    for (int i = 0; i < 5; i++)
        assert_int_equal(length[i], 100);
    redset_header_free(h);

    assert_int_equal(redset_header_parse(rs_header(REDSET_PARTNER, 0), &h, &err), 0);
    assert_int_equal(h->data, 300); /* nothing of rank 0, all of rank 4 */
    redset_header_lengths(h, length);
    assert_int_equal(length[1], 300);
    assert_int_equal(length[0], 0);
    assert_int_equal(length[4], 300);
    redset_header_free(h);
}

/* Puts value below the keys of path, and expects that the header is refused with a text.
 */
static void expect_lists_refused(redset_scheme scheme, const char *const path[],
                                 const char *value, const char *text)
{
    redset_error err = {""};
    redset_header *h = NULL;
    kvtree *tree = rs_header(scheme, scheme == REDSET_RS ? 100 : 0), *at = tree;
    for (; path[0] && path[1]; path++)
        at = kvtree_get(at, path[0]) ? kvtree_get(at, path[0])
                                     : kvtree_set(at, path[0], NULL);
    kvtree_unset(at, path[0]);
    if (value) kvtree_set_kv(at, path[0], value);
    assert_int_equal(redset_header_parse(tree, &h, &err), -EBADMSG);
    if (!strstr(err.text, text)) assert_string_equal(err.text, text);
}

#define PATH(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_several_lists_refused(void **state)
{
    for (int s = REDSET_PARTNER; s <= REDSET_RS; s += REDSET_RS - REDSET_PARTNER) {
        redset_scheme scheme = (redset_scheme)s;
        expect_lists_refused(scheme, PATH("FAILURES"), NULL, "FAILURES");
        expect_lists_refused(scheme, PATH("FAILURES"), "0", "FAILURES is 0");
        expect_lists_refused(scheme, PATH("FAILURES"), "5", "of which 5 may be lost");
        expect_lists_refused(scheme, PATH("FAILURES"), "6", "FAILURES is 6");
        expect_lists_refused(scheme, PATH("FAILURES"), "1", "PARTNERS has 1 lists");
        expect_lists_refused(scheme, PATH("FAILURES"), "3", "PARTNERS has 1 lists");
        expect_lists_refused(scheme, PATH("PARTNER"), NULL, "PARTNER");
        expect_lists_refused(scheme, PATH("PARTNERS"), NULL, "PARTNERS has 0 lists");
        expect_lists_refused(scheme, PATH("PARTNERS", "2"), NULL, "PARTNERS has 0 lists");
        expect_lists_refused(scheme, PATH("PARTNERS", "3"), "x", "PARTNERS has 2 lists");
        expect_lists_refused(scheme, PATH("PARTNERS", "2", "RANK"), "3",
                             "of rank 3, not 4");
        expect_lists_refused(scheme, PATH("PARTNERS", "2", "FILES"), "9", "PARTNERS 2");
        expect_lists_refused(scheme, PATH("TYPE"), "SINGLE", "TYPE SINGLE");
        expect_lists_refused(scheme, PATH("TYPE"), "XOR", "PARTNERS has 1 lists");
    }
    expect_lists_refused(REDSET_RS, PATH("CHUNK"), "99", "more bytes than 3 chunks");
    expect_lists_refused(REDSET_PARTNER, PATH("CHUNK"), "1", "CHUNK");
    expect_lists_refused(REDSET_PARTNER, PATH("PARTNERS", "2", "FILE", "0", "SIZE"),
                         "9223372036854775808", "SIZE");
}

static void test_layouts_differ(void **state)
{
    redset_layout other = layout;
    assert_true(redset_layout_is_equal(&layout, &other));
    other.unchecked = true;
    assert_false(redset_layout_is_equal(&layout, &other));
}

static void test_states(void **state)
{
    fixture *f = *state;
    redset_error err;
    const char *path[1];
    redset_header *h;
    redset_state *a = malloc(64), *b = malloc(64);
    assert_int_equal(redset_header_read(f->dir, file_name, &h, &err), 0);
    assert_int_equal(redset_state_set(a, h), 0);
    redset_header_free(h);
    kvtree *inner, *copy = copy_at(f, 0, path, &inner);
    kvtree_util_set_int(kvtree_get(copy, "DSET"), "ID", 7);
    assert_int_equal(redset_header_parse(copy, &h, &err), 0);
    assert_int_equal(redset_state_set(b, h), 0);
    redset_header_free(h);
    assert_int_not_equal(a->layout, b->layout);
    assert_int_equal(a->list[0], b->list[0]);
    assert_int_equal(a->list[1], b->list[1]);
    assert_int_not_equal(a->list[0], a->list[1]);
    free(a);
    free(b);
}

static int verify(fixture *f, redset_error *err)
{
    redset_header *h;
    int rc = redset_header_read(f->dir, file_name, &h, err);
    if (rc) return rc;
    redset_streams streams;
    rc = redset_streams_open(f->dir, file_name, h, &streams, err);
    if (!rc) rc = redset_streams_verify(&streams, file_name, h, REDSET_PIECE, err);
    redset_streams_done(&streams);
    redset_header_free(h);
    return rc;
}

static void test_verify(void **state)
{
    fixture *f = *state;
    char path[1200];
    redset_error err = {""};
    size_t size;
    assert_int_equal(verify(f, &err), 0);
    scratch_flip(f->folder, "one.ckpt", 499);
    assert_int_equal(verify(f, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "one.ckpt"));
    scratch_write(f->folder, "one.ckpt", 500, 0);
    scratch_write(f->folder, "empty", 1, 2);
    assert_int_equal(verify(f, &err), -ESTALE);
    scratch_write(f->folder, "empty", 0, 2);
    free(scratch_read(f->folder, file_name, &size));
    scratch_flip(f->folder, file_name, size - 1);
    assert_int_equal(verify(f, &err), -EBADMSG);
    assert_non_null(strstr(err.text, file_name));
    kvtree_util_set_crc32(f->header, "CRC", 77);
    put(f, file_name, f->header); /* complete again, but with another checksum */
    assert_int_equal(verify(f, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "not 0000004d"));
    kvtree_util_set_crc32(f->header, "CRC", crc32_z(0, f->parity, CHUNK));
    put(f, file_name, f->header);
    assert_int_equal(verify(f, &err), 0);
    scratch_path(path, f->folder, "sub/two.ckpt");
    unlink(path);
    assert_int_equal(verify(f, &err), -ENOENT);
    scratch_write(f->folder, "sub/two.ckpt", 24, 1);
    assert_int_equal(verify(f, &err), 0);
}

static void test_losses_and_other_failures(void **state)
{
    assert_int_equal(redset_loss_of(-ENOENT), REDSET_LOST);
    assert_int_equal(redset_loss_of(-EIO), REDSET_UNREAD);
    assert_int_equal(redset_loss_of(-EBADMSG), REDSET_LOST);
    assert_int_equal(redset_loss_of(-EACCES), REDSET_UNREAD);
    assert_int_equal(redset_loss_of(0), 0);
    assert_int_equal(redset_loss_of(-ENOMEM), 0);
    assert_int_equal(redset_loss_of(-EMFILE), 0);
}

/* Writes the fixture's redundancy file again. */
static int write_again(fixture *f, redset_error *err)
{
    redset_redundancy_file file = {0};
    kvtree_util_set_crc32(f->header, "CRC", 0);
    int rc = redset_redundancy_file_begin(f->dir, file_name, -1, f->header, &file, err);
    for (size_t i = 0; i < CHUNK && !rc; i += 25)
        rc = redset_redundancy_file_write(&file, i, f->parity + i, 25, err);
    uint32_t crc = (uint32_t)crc32_z(0, f->parity, CHUNK);
    if (!rc) rc = redset_redundancy_file_complete(&file, f->header, crc, err);
    if (!rc) rc = redset_redundancy_file_commit(&file, err);
    redset_redundancy_file_abort(&file);
    return rc;
}

static void test_written_again(void **state)
{
    fixture *f = *state;
    redset_error err;
    size_t before, after;
    unsigned char *old = scratch_read(f->folder, file_name, &before);
    assert_int_equal(write_again(f, &err), 0);
    unsigned char *new = scratch_read(f->folder, file_name, &after);
    assert_int_equal(before, after);
    assert_memory_equal(old, new, before);
    assert_int_equal(verify(f, &err), 0);
    free(old);
    free(new);
}

/* Each call fails in turn: the file is the old one or the new one (which are equal here),
 * and nothing else stays. */
static void test_store_faults(void **state)
{
    fixture *f = *state;
    redset_error err;
    int entries = scratch_count(f->folder), fired = 1, total = 0;
    for (int call = FAULT_OPEN; call < FAULT_CALLS; call++)
        for (int n = 1; fired || n == 1; n++) {
            fault_arm((enum fault_call)call, n, EDQUOT);
            int rc = write_again(f, &err);
            fired = fault_disarm();
            assert_int_equal(rc, fired ? -EDQUOT : 0);
            assert_int_equal(scratch_count(f->folder), entries);
            assert_int_equal(verify(f, &err), 0);
            total += fired;
        }
    assert_true(total >= 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reads_back),     TEST(test_not_there),
        TEST(test_lies),           TEST(test_other_name),
        TEST(test_damaged_bytes),  TEST(test_single),
        TEST(test_several_lists),  TEST(test_several_lists_refused),
        TEST(test_layouts_differ), TEST(test_states),
        TEST(test_verify),         TEST(test_losses_and_other_failures),
        TEST(test_written_again),  TEST(test_store_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
