/* SPDX-License-Identifier: BSD-3-Clause */
/* File streams: reading in chunks, checksums, changed sizes, many files; and the writing
 * side with its temporary names. */
#include "src/files/file_output.h"

#include "fault.h"
#include "scratch.h"
#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <zlib.h>

#include <cmocka.h>

enum { MOST_FILES = 12 };

/* Files of given sizes below a new directory, and all their bytes in a row. */
typedef struct sample {
    char folder[64];
    int dir;
    redset_list list;
    redset_file files[MOST_FILES];
    char names[MOST_FILES][32];
    unsigned char *bytes;
} sample;

static void sample_make(sample *s, int count, const size_t sizes[])
{
    memset(s, 0, sizeof *s);
    scratch_make(s->folder);
    s->dir = open(s->folder, O_RDONLY | O_DIRECTORY);
    s->list = (redset_list){.rank = 3, .count = count, .files = s->files};
    s->bytes = calloc(1, 1 << 20);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        snprintf(s->names[i], sizeof s->names[i], i % 3 ? "file%d" : "a/b%d/file", i);
        scratch_bytes(s->bytes + at, sizes[i], (unsigned)i);
        scratch_write(s->folder, s->names[i], sizes[i], (unsigned)i);
        s->files[i] = (redset_file){.name = s->names[i], .size = sizes[i]};
        s->files[i].crc = (uint32_t)crc32_z(0, s->bytes + at, sizes[i]);
        at += sizes[i];
    }
    assert_int_equal(redset_list_sum(&s->list, NULL), 0);
}

static void sample_remove(sample *s)
{
    close(s->dir);
    free(s->bytes);
    scratch_remove(s->folder);
}

/* Reads (or with to, also writes there) chunk after chunk in turns, piece by piece. */
static void pump(sample *s, redset_file_stream *from, redset_file_stream *to, int chunks,
                 size_t chunk, size_t piece)
{
    redset_error err;
    unsigned char *buf = malloc(piece);
    for (size_t done = 0; done < chunk; done += piece)
        for (int c = chunks - 1; c >= 0; c--) {
            size_t n = chunk - done < piece ? chunk - done : piece;
            assert_int_equal(redset_file_stream_read(from, c, buf, n, &err), 0);
            assert_memory_equal(buf, s->bytes + (size_t)c * chunk + done, n);
            if (to) assert_int_equal(redset_file_stream_write(to, c, buf, n, &err), 0);
        }
    free(buf);
}

static size_t ceil_div(uint64_t size, int chunks)
{
    return (size_t)((size + (uint64_t)chunks - 1) / (uint64_t)chunks);
}

static const size_t mixed[] = {0, 1, 100, 4096, 0, 9999, 7, 33, 1000, 0};
enum { MIXED = sizeof mixed / sizeof mixed[0] };

static void test_reads_everything(void **state)
{
    static const size_t pieces[] = {3, 64, 4096, 100000};
    redset_error err;
    redset_file_stream *l;
    sample s;
    sample_make(&s, MIXED, mixed);
    for (int chunks = 1; chunks <= 7; chunks++)
        for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++)
            for (size_t extra = 0; extra <= 2500; extra += 2500) { /* padding */
                size_t chunk = ceil_div(s.list.size, chunks) + extra;
                int rc = redset_file_stream_open(s.dir, &s.list, chunks, chunk, &l, &err);
                assert_int_equal(rc, 0);
                pump(&s, l, NULL, chunks, chunk, pieces[p]);
                assert_int_equal(redset_file_stream_check_sizes(l, &err), 0);
                assert_int_equal(redset_file_stream_compare(l, &err), 0);
                redset_file_stream_free(l);
            }
    sample_remove(&s);
}

static void test_nothing_to_read(void **state)
{
    redset_error err;
    unsigned char buf[10] = "XXXXXXXXX", zeros[10] = {0};
    redset_file_stream *l;
    sample s;
    sample_make(&s, 0, NULL);
    assert_int_equal(redset_file_stream_open(s.dir, &s.list, 3, 0, &l, &err), 0);
    assert_int_equal(redset_file_stream_check_sizes(l, &err), 0);
    redset_file_stream_free(l);
    assert_int_equal(redset_file_stream_open(s.dir, &s.list, 3, 10, &l, &err), 0);
    assert_int_equal(redset_file_stream_read(l, 2, buf, 10, &err), 0);
    assert_memory_equal(buf, zeros, 10);
    redset_file_stream_free(l);
    sample_remove(&s);
}

static void test_too_small(void **state)
{
    redset_error err;
    redset_file_stream *l = NULL;
    sample s;
    sample_make(&s, 1, (size_t[]){100});
    assert_int_equal(redset_file_stream_open(s.dir, &s.list, 3, 33, &l, &err), -EINVAL);
    assert_null(l);
    sample_remove(&s);
}

/* Reads all of s in one chunk and finishes. */
static int read_all(sample *s, redset_error *err)
{
    static unsigned char buf[1 << 16];
    redset_file_stream *l;
    int rc = redset_file_stream_open(s->dir, &s->list, 1, s->list.size, &l, err);
    if (rc) return rc;
    rc = redset_file_stream_read(l, 0, buf, s->list.size, err);
    if (!rc) rc = redset_file_stream_check_sizes(l, err);
    redset_file_stream_free(l);
    return rc;
}

static void test_changed_sizes(void **state)
{
    redset_error err = {""};
    sample s;
    sample_make(&s, 3, (size_t[]){100, 200, 300});
    scratch_write(s.folder, "file1", 199, 1);
    assert_int_equal(read_all(&s, &err), -ESTALE);
    assert_non_null(strstr(err.text, "file1"));
    redset_file_stream *l;
    unsigned char buf[600];
    assert_int_equal(redset_file_stream_open(s.dir, &s.list, 1, 600, &l, &err), 0);
    assert_int_equal(redset_file_stream_read(l, 0, buf, 600, &err),
                     -ESTALE); /* at once */
    redset_file_stream_free(l);
    scratch_write(s.folder, "file1", 201, 1);
    assert_int_equal(read_all(&s, &err), -ESTALE);
    scratch_write(s.folder, "file1", 200, 1);
    assert_int_equal(read_all(&s, &err), 0);
    char path[1200];
    scratch_path(path, s.folder, "file2");
    unlink(path);
    assert_int_equal(read_all(&s, &err), -ENOENT);
    assert_non_null(strstr(err.text, "file2"));
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_not_equal(read_all(&s, &err), 0);
    sample_remove(&s);
}

static void test_read_error(void **state)
{
    redset_error err = {""};
    sample s;
    sample_make(&s, 3, (size_t[]){100, 200, 300});
    fault_arm(FAULT_READ, 2, EIO);
    assert_int_equal(read_all(&s, &err), -EIO);
    assert_true(fault_disarm());
    assert_non_null(strstr(err.text, "file1"));
    sample_remove(&s);
}

static void test_many_files(void **state)
{
    enum { COUNT = 10000, CHUNKS = 7 };
    struct rlimit before, few;
    char folder[64], (*names)[24] = malloc(COUNT * sizeof *names);
    redset_error err;
    redset_file *files = calloc(COUNT, sizeof *files);
    redset_list list = {.count = COUNT, .files = files};
    redset_file_stream *from, *to;
    unsigned char buf[64];
    scratch_make(folder);
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "d%d/f%d", i / 1000, i);
        files[i] = (redset_file){.name = names[i], .size = (uint64_t)(i % 9)};
        scratch_write(folder, names[i], (size_t)i % 9, (unsigned)i);
    }
    getrlimit(RLIMIT_NOFILE, &before);
    few = (struct rlimit){256, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(redset_list_sum(&list, &err), 0);
    size_t chunk = ceil_div(list.size, CHUNKS);
    assert_int_equal(redset_file_stream_open(dir, &list, CHUNKS, chunk, &from, &err), 0);
    assert_int_equal(redset_file_output_create(dir, &list, CHUNKS, chunk, &to, &err), 0);
    for (size_t done = 0; done < chunk; done += sizeof buf)
        for (int c = 0; c < CHUNKS; c++) {
            size_t n = chunk - done < sizeof buf ? chunk - done : sizeof buf;
            assert_int_equal(redset_file_stream_read(from, c, buf, n, &err), 0);
            assert_int_equal(redset_file_stream_write(to, c, buf, n, &err), 0);
        }
    assert_int_equal(redset_file_stream_check_sizes(from, &err), 0);
    redset_file_stream_set_crcs(from, files);
    assert_int_equal(redset_file_output_complete(to, &err), 0);
    assert_int_equal(redset_file_output_commit(to, &err), 0);
    redset_file_stream_free(from);
    redset_file_stream_free(to);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < COUNT; i++)
        assert_true(scratch_same(folder, names[i], (size_t)i % 9, (unsigned)i));
    assert_int_equal(scratch_count(folder), 10);
    close(dir);
    free(names);
    free(files);
    scratch_remove(folder);
}

/* Writes the files of s into the open directory dir. Returns the code of the first
 * failure. */
static int copy_into(sample *s, int dir, int chunks, redset_error *err)
{
    enum { PIECE = 100 };
    size_t chunk = ceil_div(s->list.size, chunks);
    redset_file_stream *to;
    int rc = redset_file_output_create(dir, &s->list, chunks, chunk, &to, err);
    if (rc) return rc;
    for (size_t done = 0; done < chunk; done += PIECE)
        for (int c = 0; c < chunks && !rc; c++) {
            size_t n = chunk - done < PIECE ? chunk - done : PIECE;
            const unsigned char *from = s->bytes + (size_t)c * chunk + done;
            rc = redset_file_stream_write(to, c, from, n, err);
        }
    if (!rc) rc = redset_file_output_complete(to, err);
    if (!rc) rc = redset_file_output_clear_way(to, err);
    if (!rc) rc = redset_file_output_commit(to, err);
    redset_file_stream_free(to);
    return rc;
}

static void test_output(void **state)
{
    char folder[64];
    redset_error err;
    sample s;
    sample_make(&s, MIXED, mixed);
    for (int chunks = 1; chunks <= 5; chunks++) {
        scratch_make(folder);
        int dir = open(folder, O_RDONLY | O_DIRECTORY);
        scratch_write(folder, "file1", 77, 9); /* a damaged one is replaced */
        assert_int_equal(copy_into(&s, dir, chunks, &err), 0);
        for (int i = 0; i < MIXED; i++)
            assert_true(scratch_same(folder, s.names[i], mixed[i], (unsigned)i));
        assert_int_equal(scratch_count(folder), 7); /* a, and file1 2 4 5 7 8 */
        close(dir);
        scratch_remove(folder);
    }
    sample_remove(&s);
}

static void test_output_wrong_checksum(void **state)
{
    char folder[64];
    redset_error err;
    sample s;
    sample_make(&s, 3, (size_t[]){10, 20, 30});
    scratch_make(folder);
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    s.files[1].crc ^= 1;
    assert_int_equal(copy_into(&s, dir, 2, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "file1"));
    assert_int_equal(scratch_count(folder), 0);
    close(dir);
    scratch_remove(folder);
    sample_remove(&s);
}

/* Each call fails in turn: its code is returned, and no temporary file stays. Up to the
 * first rename nothing is changed. */
static void test_output_faults(void **state)
{
    char folder[64];
    redset_error err;
    int fired = 1, total = 0;
    sample s;
    sample_make(&s, 4, (size_t[]){100, 0, 300, 200});
    for (int call = FAULT_OPEN; call < FAULT_CALLS; call++) {
        if (call == FAULT_READ) continue;
        for (int n = 1; fired || n == 1; n++) {
            scratch_make(folder);
            int dir = open(folder, O_RDONLY | O_DIRECTORY);
            fault_arm((enum fault_call)call, n, ENOSPC);
            int rc = copy_into(&s, dir, 3, &err);
            fired = fault_disarm();
            assert_int_equal(rc, fired ? -ENOSPC : 0);
            /* every existing file has its final name and all its bytes */
            for (int i = 0; i < 4; i++) {
                char path[1200];
                scratch_path(path, folder, s.names[i]);
                if (access(path, F_OK) == 0 || !fired)
                    assert_true(
                        scratch_same(folder, s.names[i], s.files[i].size, (unsigned)i));
            }
            if (fired && call == FAULT_WRITE) assert_int_equal(scratch_count(folder), 0);
            assert_in_range(scratch_count(folder), 0, 3); /* a, file1, file2 */
            total += fired;
            close(dir);
            scratch_remove(folder);
        }
    }
    assert_true(total > 20);
    sample_remove(&s);
}

/* A link in the place of a directory is set aside, and its target is unchanged. */
static void test_output_link_in_the_way(void **state)
{
    char folder[64], other[64], path[1200];
    redset_error err;
    struct stat st;
    sample s;
    sample_make(&s, 1, (size_t[]){10}); /* a/b0/file */
    scratch_make(folder);
    scratch_make(other);
    scratch_write(other, "b0/file", 33, 7);
    scratch_path(path, folder, "a");
    assert_int_equal(symlink(other, path), 0);
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(copy_into(&s, dir, 1, &err), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_true(scratch_same(folder, s.names[0], 10, 0));
    assert_true(scratch_same(other, "b0/file", 33, 7));
    assert_int_equal(scratch_count(folder), 2); /* a, and a.*.old */
    close(dir);
    scratch_remove(folder);
    scratch_remove(other);
    sample_remove(&s);
}

static void test_output_folder_in_the_way(void **state)
{
    char folder[64];
    redset_error err;
    sample s;
    sample_make(&s, 3, (size_t[]){10, 20, 30});
    scratch_make(folder);
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    scratch_write(folder, "a/b0/file/deep/er", 5, 5);
    scratch_write(folder, "a/b0/other", 6, 6);
    scratch_write(folder, "file2/x", 7, 7);
    assert_int_equal(copy_into(&s, dir, 2, &err), 0);
    for (int i = 0; i < 3; i++)
        assert_true(scratch_same(folder, s.names[i], s.files[i].size, (unsigned)i));
    assert_true(scratch_same(folder, "a/b0/other", 6, 6));
    assert_int_equal(scratch_count(folder), 4); /* file2.*.old, too */
    close(dir);
    scratch_remove(folder);
    sample_remove(&s);
}

/* The entry that other writers set aside, the file that they then put there, and the new
 * name of the entry. */
static char contested[1200], other_file[1200], elsewhere[1200];

static void others_clear_the_way(void)
{
    if (rename(contested, elsewhere) != 0) abort();
    if (mkdir(contested, 0700) != 0) abort();
    scratch_put(other_file, "theirs", 6);
}

static void others_only_set_aside(void)
{
    if (rename(contested, elsewhere) != 0) abort();
}

/* Other writers rebuild files in the same directory, and set the entry aside first. */
static void test_output_others_in_the_way(void **state)
{
    void (*const event[])(void) = {others_clear_the_way, others_only_set_aside};
    char folder[64];
    redset_error err;
    size_t size;
    sample s;
    sample_make(&s, 1, (size_t[]){10}); /* a/b0/file */
    for (int i = 0; i < 2; i++) {
        scratch_make(folder);
        scratch_path(contested, folder, "a");
        scratch_path(other_file, folder, "a/other");
        scratch_path(elsewhere, folder, "a.old");
        assert_int_equal(symlink("/nowhere", contested), 0);
        int dir = open(folder, O_RDONLY | O_DIRECTORY);
        fault_arm_event(FAULT_RENAME, 1, event[i]);
        assert_int_equal(copy_into(&s, dir, 1, &err), 0);
        assert_true(fault_disarm());
        assert_true(scratch_same(folder, s.names[0], 10, 0));
        unsigned char *theirs = scratch_read(folder, "a/other", &size);
        assert_int_equal(theirs != NULL, i == 0);
        free(theirs);
        assert_int_equal(scratch_count(folder), 2); /* a, a.old */
        close(dir);
        scratch_remove(folder);
    }
    sample_remove(&s);
}

/* A file that just got its name is not set aside for another file. */
static void test_output_in_its_own_way(void **state)
{
    char folder[64];
    redset_error err;
    sample s;
    sample_make(&s, 2, (size_t[]){10, 20});
    strcpy(s.names[1], "a");
    scratch_make(folder);
    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(copy_into(&s, dir, 1, &err), -EISDIR);
    assert_true(scratch_same(folder, s.names[0], 10, 0));
    assert_int_equal(scratch_count(folder), 1);
    close(dir);
    scratch_remove(folder);
    sample_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_everything),
        cmocka_unit_test(test_nothing_to_read),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_changed_sizes),
        cmocka_unit_test(test_read_error),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_output_wrong_checksum),
        cmocka_unit_test(test_output_faults),
        cmocka_unit_test(test_output_link_in_the_way),
        cmocka_unit_test(test_output_folder_in_the_way),
        cmocka_unit_test(test_output_others_in_the_way),
        cmocka_unit_test(test_output_in_its_own_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
