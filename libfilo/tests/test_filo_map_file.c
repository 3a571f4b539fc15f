/* SPDX-License-Identifier: BSD-3-Clause */
/* The map of many ranks, written and read by one process: the result of reading, refused
 * input on both sides, and errors that pass through. test_filo_map_file_mpi.c checks that
 * it is the same map as that of filo_flush. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "forge_map.h"
#include <errno.h>
#include <stdint.h>

static char folder[64];
static filo_error err;

static int make_folder(void **state)
{
    strcpy(folder, "/dev/shm/scr-test-XXXXXX");
    if (mkdtemp(folder)) return 0;
    strcpy(folder, "/tmp/scr-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- files of ranks ---- */

enum { MOST = 4 };

/* The files that rank r gives, with their texts until the next rank. Ranks 0, 4, ... have
 * no files; the last file of every other rank is packed into two containers. */
typedef struct giver {
    int ranks, rank_of_end, end;
    filo_file files[MOST];
    filo_segment segments[2];
    char names[MOST][64], containers[2][64];
} giver;

static int fill(giver *g, int r)
{
    int count = r % MOST;
    for (int f = 0; f < count; f++) {
        snprintf(g->names[f], sizeof g->names[f], f ? "%d/file %d" : "rank_%d.ckpt", r,
                 f);
        g->files[f] = (filo_file){.name = g->names[f],
                                  .size = (uint64_t)r * 1000000007u,
                                  .crc = (uint32_t)r * 2654435761u,
                                  .has_crc = f != 1};
    }
    if (count == 0) return 0;
    filo_file *last = &g->files[count - 1];
    last->packed = 1;
    last->mode = 0640;
    last->segments = 2;
    last->segment = g->segments;
    for (int s = 0; s < 2; s++) {
        snprintf(g->containers[s], sizeof g->containers[s], ".scr/ctr.%d.scr", r + s);
        g->segments[s] = (filo_segment){.container = g->containers[s],
                                        .offset = s ? 0 : (uint64_t)r,
                                        .length = s ? last->size - 5 : 5};
    }
    return count;
}

static int give(void *arg, int rank, int *count, const filo_file **files,
                filo_error *cause)
{
    giver *g = arg;
    assert_int_equal(rank, g->ranks++);
    *count = fill(g, rank);
    *files = g->files;
    if (!g->end || rank != g->rank_of_end) return 0;
    snprintf(cause->text, sizeof cause->text, "the end");
    return g->end;
}

static void compare(const filo_file *a, const filo_file *b)
{
    assert_string_equal(a->name, b->name);
    assert_null(a->local);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->has_crc, b->has_crc);
    if (a->has_crc) assert_int_equal(a->crc, b->crc);
    assert_int_equal(a->packed, b->packed);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->segments, b->segments);
    for (int s = 0; s < a->segments; s++) {
        assert_string_equal(a->segment[s].container, b->segment[s].container);
        assert_int_equal(a->segment[s].offset, b->segment[s].offset);
        assert_int_equal(a->segment[s].length, b->segment[s].length);
    }
}

static int take(void *arg, int rank, int count, const filo_file files[],
                filo_error *cause)
{
    giver *g = arg;
    assert_int_equal(count, fill(g, rank));
    for (int f = 0; f < count; f++)
        compare(&files[f], &g->files[f]);
    g->ranks++;
    if (!g->end || rank != g->rank_of_end) return 0;
    snprintf(cause->text, sizeof cause->text, "the end");
    return g->end;
}

/* ---- round trips ---- */

static void round_trip(const filo_place *at, int ranks)
{
    giver g = {.ranks = 0};
    int told = 0;
    assert_int_equal(filo_map_write(at, ranks, give, &g, &err), 0);
    assert_int_equal(g.ranks, ranks);
    g.ranks = 0;
    assert_int_equal(filo_map_read(at, &told, take, &g, &err), 0);
    assert_int_equal(told, ranks);
    assert_int_equal(g.ranks, ranks);
    assert_int_equal(filo_map_read(at, NULL, NULL, NULL, &err), 0);
    for (int r = 0; r<ranks; r += ranks> 10 ? 97 : 1) {
        g.ranks = told = 0;
        assert_int_equal(filo_map_read_rank(at, r, &told, take, &g, &err), 0);
        assert_int_equal(told, ranks);
        assert_int_equal(g.ranks, 1);
    }
    g.ranks = 0;
    assert_int_equal(filo_map_read_rank(at, ranks, NULL, take, &g, &err), -ENOENT);
    g.end = -EINTR;
    g.rank_of_end = ranks - 1;
    assert_int_equal(filo_map_read_rank(at, ranks - 1, NULL, take, &g, &err), -EINTR);
}

static int there(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void test_round_trips(void **state)
{
    static const int ranks[] = {1, 2, 7, 1000};
    static const size_t limits[] = {0, 1, 3000};
    char below[128];
    for (int i = 0; i < 12; i++)
        round_trip(&(filo_place){.folder = folder, .limit = limits[i / 4]}, ranks[i % 4]);
    assert_true(there(".scr/rank2file.scr") && there(".scr/rank2file.0.999.scr"));
    /* directories are created */
    snprintf(below, sizeof below, "%s/a/b", folder);
    round_trip(&(filo_place){.folder = below, .map = "c/d/the map"}, 5);
    assert_true(there("a/b/c/d/the map") && there("a/b/c/d/the map.0.0"));
}

/* Reads the map in an open directory, although another directory may have its name now.
 */
static void test_open_folder(void **state)
{
    const filo_place at = {.folder = folder, .map = "x/.scr/rank2file.scr"};
    char x[128], z[128];
    giver g = {.ranks = 0};
    snprintf(x, sizeof x, "%s/x", folder);
    snprintf(z, sizeof z, "%s/z", folder);
    assert_int_equal(filo_map_write(&at, 3, give, &g, &err), 0);
    int told = 0, dir = open(x, O_RDONLY | O_DIRECTORY);
    assert_int_equal(rename(x, z), 0);
    filo_place from = {.folder = folder, .map = at.map, .dir = &dir, .skip = 2};
    assert_int_equal(filo_map_read(&at, &told, NULL, NULL, &err), -ENOENT);
    g.ranks = 0;
    assert_int_equal(filo_map_read(&from, &told, take, &g, &err), 0);
    assert_int_equal(told, 3);
    /* lower files in another directory than the root are refused */
    from.map = "z/.scr/rank2file.scr";
    assert_int_equal(filo_map_read(&from, &told, NULL, NULL, &err), FILO_DAMAGED);
    assert_non_null(strstr(err.text, "x/.scr/rank2file.0.0.scr is not beside z/"));
    assert_int_equal(close(dir), 0);
}

/* ---- errors ---- */

static void test_errors_of_callers(void **state)
{
    static const int codes[] = {-EIO, -EBADMSG, FILO_DAMAGED, 42};
    const filo_place at = {.folder = folder, .limit = 1};
    for (int i = 0; i < 4; i++) {
        giver g = {.end = codes[i], .rank_of_end = 2};
        assert_int_equal(filo_map_write(&at, 5, give, &g, &err), codes[i]);
        assert_string_equal(err.text, "the end");
        round_trip(&at, 5);
        g.ranks = 0;
        assert_int_equal(filo_map_read(&at, NULL, take, &g, &err), codes[i]);
        assert_string_equal(err.text, "the end");
        assert_int_equal(g.ranks, 3);
    }
}

/* A list that is given unchanged. */
typedef struct lot {
    int count;
    filo_file files[2];
} lot;

static int give_lot(void *arg, int rank, int *count, const filo_file **files,
                    filo_error *cause)
{
    lot *l = arg;
    *count = rank == 1 ? l->count : 0;
    *files = l->count == -2 ? NULL : l->files;
    if (l->count == -2) *count = 2;
    return 0;
}

static void expect_refused(lot l, int code, const char *text)
{
    const filo_place at = {.folder = folder};
    err.text[0] = 0;
    assert_int_equal(filo_map_write(&at, 3, give_lot, &l, &err), code);
    if (!strstr(err.text, text)) assert_string_equal(err.text, text);
}

/* The earlier map stays, because nothing was written. */
static void test_refused_files(void **state)
{
    static char good[] = "x", twice[] = "x", out[] = "../x", whole[] = "/x", none[] = "",
                root[] = ".scr/rank2file.scr", lower[] = ".scr/rank2file.7.scr",
                bell[] = "a\ab";
    filo_segment part = {.container = good, .offset = 0, .length = 4},
                 outside = {.container = out, .length = 5},
                 in_map = {.container = lower, .length = 5},
                 far = {.container = good, .offset = INT64_MAX - 4, .length = 5};
    filo_file packed = {.name = twice, .size = 5, .packed = 1, .segments = 1};
    round_trip(&(filo_place){.folder = folder}, 5);
    expect_refused((lot){1, {{.name = out}}}, -EINVAL, "rank 1: file name \"../x\"");
    expect_refused((lot){1, {{.name = whole}}}, -EINVAL, "rank 1: file name \"/x\"");
    expect_refused((lot){1, {{.name = none}}}, -EINVAL, "rank 1: empty file name");
    expect_refused((lot){1, {{.name = NULL}}}, -EINVAL, "rank 1: empty file name");
    expect_refused((lot){1, {{.name = bell}}}, -EINVAL, "control character");
    expect_refused((lot){1, {{.name = root}}}, -EINVAL, "rank2file.scr\" belongs to the");
    expect_refused((lot){1, {{.name = lower}}}, -EINVAL, "belongs to the map");
    expect_refused((lot){2, {{.name = good}, {.name = twice}}}, -EEXIST,
                   "rank 1: a file name is listed twice");
    expect_refused((lot){-1, {{.name = good}}}, -EINVAL, "rank 1: no list of -1 files");
    expect_refused((lot){.count = -2}, -EINVAL, "rank 0: no list of 2 files");
    packed.segment = &part;
    expect_refused((lot){1, {packed}}, -EINVAL, "do not add up to its SIZE");
    packed.segment = &outside;
    expect_refused((lot){1, {packed}}, -EINVAL, "rank 1: file name \"../x\"");
    packed.segment = &in_map;
    expect_refused((lot){1, {packed}}, -EINVAL, "belongs to the map");
    packed.segment = &far;
    expect_refused((lot){1, {packed}}, -EINVAL, "has no valid SEG 0");
    part.length = 5;
    packed.segment = &part;
    giver g = {.ranks = 0};
    assert_int_equal(filo_map_read(&(filo_place){.folder = folder}, NULL, take, &g, &err),
                     0);
    expect_refused((lot){1, {packed}}, 0, "");
}

static void test_refused_places(void **state)
{
    giver g = {.ranks = 0};
    char gone[128];
    snprintf(gone, sizeof gone, "%s/gone", folder);
    const filo_place at = {.folder = folder}, nowhere = {.folder = ""},
                     outside = {.folder = folder, .map = "../map"},
                     missing = {.folder = gone};
    assert_int_equal(filo_map_write(NULL, 1, give, &g, &err), -EINVAL);
    assert_int_equal(filo_map_read(NULL, NULL, take, &g, &err), -EINVAL);
    assert_int_equal(filo_map_write(&nowhere, 1, give, &g, &err), -EINVAL);
    assert_int_equal(filo_map_read(&nowhere, NULL, take, &g, &err), -EINVAL);
    assert_int_equal(filo_map_write(&outside, 1, give, &g, &err), -EINVAL);
    assert_string_equal(err.text, "name of the map: file name \"../map\" has a component "
                                  "\"..\"");
    assert_int_equal(filo_map_read(&outside, NULL, take, &g, &err), -EINVAL);
    assert_int_equal(filo_map_write(&at, 0, give, &g, &err), -EINVAL);
    assert_int_equal(filo_map_write(&at, 1, NULL, &g, &err), -EINVAL);
    assert_int_equal(filo_map_read(&missing, NULL, take, &g, &err), -ENOENT);
    assert_non_null(strstr(err.text, gone));
    assert_int_equal(filo_map_read(&at, NULL, take, &g, &err), -ENOENT);
    assert_non_null(strstr(err.text, ".scr"));
    assert_int_equal(g.ranks, 0);
    assert_false(there(".scr"));
}

/* ---- maps of others ---- */

static int count_file(void *arg, int rank, int count, const filo_file files[],
                      filo_error *cause)
{
    assert_int_equal(count, 1);
    assert_int_equal(files[0].size, rank);
    assert_int_equal(files[0].crc, 0x1234);
    ++*(int *)arg;
    return 0;
}

static void expect_damaged(const char *prefix, const char *text)
{
    int ranks = 77;
    const filo_place at = {.folder = prefix};
    err.text[0] = 0;
    assert_int_equal(filo_map_read(&at, &ranks, NULL, NULL, &err), FILO_DAMAGED);
    assert_int_equal(ranks, 77);
    assert_non_null(strstr(err.text, prefix));
    if (!strstr(err.text, text))
        assert_string_equal(err.text, text); /* reports both texts */
}

static void test_forged(void **state)
{
    char prefix[128], text[256];
    int ranks = 0, taken = 0;
    snprintf(prefix, sizeof prefix, "%s/good", folder);
    forge_map(prefix, NULL);
    assert_int_equal(
        filo_map_read(&(filo_place){.folder = prefix}, &ranks, count_file, &taken, &err),
        0);
    assert_int_equal(ranks, 8);
    assert_int_equal(taken, 8);
    for (int i = 0; i < FORGE_MAP_CASES; i++) {
        snprintf(prefix, sizeof prefix, "%s/case%d", folder, i);
        forge_map(prefix, forge_map_case(i, text));
        expect_damaged(prefix, text);
    }
    for (int i = 0; i < FORGE_FILES * FORGE_HARMS; i++) {
        const char *file = forge_map_names[i / FORGE_HARMS];
        snprintf(prefix, sizeof prefix, "%s/harm%d", folder, i);
        forge_map(prefix, NULL);
        forge_map_harm(prefix, file, i % FORGE_HARMS);
        expect_damaged(prefix, file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trips, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_open_folder, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_errors_of_callers, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_refused_files, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_refused_places, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_forged, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
