/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of files, written into an existing file: all its other bytes remain, with every
 * method and beside other writers. */
#include "container.h"
#include "scratch.h"
#include "src/axl_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <zlib.h>

enum { SIZE = 300000, PIECE = 65536 };

static const char *const methods[] = {"sync", "pthread", "daemon"};
enum { METHODS = 3 };

/* ---- bytes ---- */

/* Not in the order of the container, with a gap, beyond its end, and at odd offsets. */
static void each_method(void **state)
{
    static const struct {
        size_t from, to, length;
    } parts[] = {{99999, 190001, 200001}, {7, 50003, 99992}, {0, 3, 7}, {12345, 0, 3}};
    enum { COUNT = sizeof parts / sizeof parts[0] };
    scratch *s = *state;
    unsigned char *bytes = write_source(s, SIZE);
    for (int run = 0; run < 2 * METHODS; run++) {
        unsigned flags = AXL_KEEP_MODE | AXL_KEEP_TIMES | (run & 1 ? AXL_CHECKSUM : 0);
        image *shall = make_container(s, 200000);
        struct stat before, after;
        assert_int_equal(chmod(s->destination, 0640), 0);
        assert_int_equal(stat(s->destination, &before), 0);
        axl_transfer *t = create_transfer(s, methods[run / 2], flags);
        for (int i = 0; i < COUNT; i++) {
            add(t, part_of(s, parts[i].from, parts[i].to, parts[i].length));
            paint(shall, parts[i].to, bytes + parts[i].from, parts[i].length);
        }
        finish(t);
        for (size_t i = 0; i < COUNT; i++) {
            axl_file file;
            uLong crc = crc32_z(0, bytes + parts[i].from, parts[i].length);
            assert_int_equal(axl_get(t, i, &file), 0);
            assert_int_equal(file.done, 1);
            assert_int_equal(file.size, parts[i].length);
            assert_int_equal(file.crc, flags & AXL_CHECKSUM ? crc : 0);
        }
        axl_progress p;
        axl_progress_get(t, &p);
        assert_true(p.files_done == COUNT && p.bytes == 300003 && p.bytes_done == 300003);
        axl_free(t);
        expect_image(s, shall);
        assert_int_equal(stat(s->destination, &after), 0);
        assert_int_equal(after.st_ino, before.st_ino);
        assert_int_equal(after.st_mode, before.st_mode);
    }
    free(bytes);
}

static void beyond_the_end(void **state)
{
    scratch *s = *state;
    unsigned char *bytes = write_source(s, SIZE);
    for (unsigned flags = 0; flags <= AXL_CHECKSUM; flags++) {
        image *shall = make_container(s, 0);
        axl_transfer *t = create_transfer(s, "sync", flags);
        add(t, part_of(s, 5, 700001, 1000));
        add(t, part_of(s, 5, 1000, 1));
        paint(shall, 700001, bytes + 5, 1000);
        paint(shall, 1000, bytes + 5, 1);
        finish(t);
        axl_free(t);
        expect_image(s, shall);
    }
    free(bytes);
}

static void files_beside_parts(void **state)
{
    scratch *s = *state;
    char whole[2][160];
    unsigned char *bytes = write_source(s, SIZE);
    image *shall = make_container(s, 1000);
    axl_transfer *t = create_transfer(s, "pthread", AXL_CHECKSUM);
    for (int i = 0; i < 2; i++) {
        snprintf(whole[i], sizeof whole[i], "%s/whole%d", s->folder, i);
        add(t, part_of(s, 0, 10 + 100 * (uint64_t)i, 30));
        paint(shall, 10 + 100 * (uint64_t)i, bytes, 30);
        assert_int_equal(axl_add(t, s->source, whole[i], NULL), 0);
    }
    finish(t);
    axl_free(t);
    expect_image(s, shall);
    scratch_expect(whole[0], bytes, SIZE);
    scratch_expect(whole[1], bytes, SIZE);
    assert_int_equal(scratch_count(s->folder), 4);
    free(bytes);
}

static void of_no_length(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    axl_file file;
    free(write_source(s, 100));
    image *shall = make_container(s, 50);
    axl_transfer *t = create_transfer(s, "sync", AXL_CHECKSUM);
    add(t, part_of(s, 100, 20, 0));
    add(t, part_of(s, 0, 70, 0));
    finish(t);
    assert_int_equal(axl_get(t, 1, &file), 0);
    assert_true(file.done == 1 && file.size == 0 && file.crc == 0);
    axl_free(t);
    t = create_transfer(s, "sync", 0);
    add(t, part_of(s, 101, 20, 0));
    assert_int_equal(axl_dispatch(t, &err), -ENODATA);
    axl_free(t);
    expect_image(s, shall);
    assert_int_equal(unlink(s->destination), 0);
    t = create_transfer(s, "sync", 0);
    add(t, part_of(s, 0, 0, 0));
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, &err), -ENOENT);
    axl_free(t);
}

/* ---- holes ---- */

static int no_punching;

/* The linker uses this function instead of that of the C library. */
int fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (no_punching) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

/* Holes before, between and after two pieces of data. */
static unsigned char *write_with_holes(const scratch *s, size_t size)
{
    unsigned char *bytes = calloc(size, 1), *data = scratch_bytes(2 * PIECE);
    int fd = open(s->source, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    memcpy(bytes + PIECE, data, 10000);
    memcpy(bytes + 4 * PIECE - 99, data, 2 * PIECE);
    assert_int_equal(pwrite(fd, data, 10000, PIECE), 10000);
    assert_int_equal(pwrite(fd, data, 2 * PIECE, 4 * PIECE - 99), 2 * PIECE);
    close(fd);
    free(data);
    return bytes;
}

static void holes_over_old_bytes(void **state)
{
    enum { FROM = 1001, TO = 2003, LENGTH = IMAGE_MAX - 5000 };
    scratch *s = *state;
    unsigned char *bytes = write_with_holes(s, IMAGE_MAX);
    for (int run = 0; run < 12; run++) {
        struct stat st;
        axl_file file;
        image *shall = make_container(s, run & 1 ? IMAGE_MAX : 8 * PIECE);
        axl_transfer *t = create_transfer(s, run & 2 ? "sync" : "pthread", run & 1);
        t->piece = PIECE;
        no_punching = run >= 8;
        add(t, part_of(s, FROM, TO, LENGTH));
        paint(shall, TO, bytes + FROM, LENGTH);
        finish(t);
        assert_int_equal(axl_get(t, 0, &file), 0);
        if (run & 1) assert_int_equal(file.crc, crc32_z(0, bytes + FROM, LENGTH));
        axl_free(t);
        expect_image(s, shall);
        assert_int_equal(stat(s->destination, &st), 0);
        if (!no_punching) assert_true(512 * st.st_blocks < IMAGE_MAX / 2);
    }
    no_punching = 0;
    free(bytes);
}

/* ---- many ---- */

static atomic_int opened, synced; /* for writing */
static atomic_int read_from;      /* number of times the source was opened */

int openat(int dir, const char *name, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    if ((flags & O_ACCMODE) == O_WRONLY) opened++;
    if ((flags & O_ACCMODE) == O_RDONLY && strstr(name, "/source")) read_from++;
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

int fsync(int fd)
{
    synced++;
    return (int)syscall(SYS_fsync, fd);
}

/* Twenty parts of one destination, also of several pieces, two of another, and one more
 * of the first: the first is opened and synced twice, the other once. Their source is
 * examined once, and each thread opens it once. */
static void parts_share_a_descriptor(void **state)
{
    enum { PARTS = 20, LENGTH = 3 * PIECE + 17 };
    scratch *s = *state;
    char other[160];
    unsigned char *bytes = write_source(s, SIZE);
    snprintf(other, sizeof other, "%s/other", s->folder);
    for (int run = 0; run < 4; run++) {
        image *shall = make_container(s, run & 1 ? IMAGE_MAX : 100);
        scratch_write(other, "", 0);
        axl_transfer *t = create_transfer(s, methods[run / 2], AXL_CHECKSUM);
        t->piece = PIECE;
        for (size_t i = 0; i < PARTS; i++) {
            const size_t to = 10 + i * (LENGTH + i), length = i % 3 ? LENGTH : 5;
            add(t, part_of(s, i, to, length));
            paint(shall, to, bytes + i, length);
        }
        for (uint64_t i = 0; i < 2; i++)
            add(t, (axl_part){s->source, i, other, 10 * i, 10, 0, 0, NULL});
        add(t, part_of(s, 0, 0, 10));
        paint(shall, 0, bytes, 10);
        opened = synced = read_from = 0;
        finish(t);
        assert_int_equal(opened, 3);
        assert_true(run / 2 ? read_from >= 2 && read_from <= 1 + 3 : read_from == 2);
        assert_int_equal(synced, 3);
        for (size_t i = 0; i < PARTS; i++) {
            axl_file file;
            assert_int_equal(axl_get(t, i, &file), 0);
            assert_int_equal(file.crc, crc32_z(0, bytes + i, i % 3 ? LENGTH : 5));
        }
        axl_free(t);
        expect_image(s, shall);
        assert_int_equal(unlink(other), 0);
    }
    free(bytes);
}

static void threads_share_a_part(void **state)
{
    scratch *s = *state;
    unsigned char *bytes = write_source(s, IMAGE_MAX - 100);
    for (unsigned flags = 0; flags <= AXL_CHECKSUM; flags++) {
        axl_file file;
        image *shall = make_container(s, 2 * SIZE);
        axl_transfer *t = create_transfer(s, "pthread", flags);
        t->piece = PIECE;
        add(t, part_of(s, 10, 99, IMAGE_MAX - 110));
        paint(shall, 99, bytes + 10, IMAGE_MAX - 110);
        finish(t);
        assert_int_equal(axl_get(t, 0, &file), 0);
        if (flags) assert_int_equal(file.crc, crc32_z(0, bytes + 10, IMAGE_MAX - 110));
        axl_free(t);
        expect_image(s, shall);
    }
    free(bytes);
}

/* Several pieces of the real size: mostly holes, so that it costs little. */
static void more_than_a_piece(void **state)
{
    static const uint64_t places[] = {0, AXL_PIECE - 50, 2 * AXL_PIECE + 7};
    const uint64_t size = 3 * AXL_PIECE;
    scratch *s = *state;
    unsigned char *bytes = scratch_bytes(100), got[100];
    free(make_container(s, 4096));
    int fd = open(s->source, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pwrite(fd, bytes, 100, (off_t)places[i]), 100);
    close(fd);
    axl_transfer *t = create_transfer(s, "pthread", AXL_CHECKSUM);
    add(t, part_of(s, 0, 1000, size));
    finish(t);
    axl_file file;
    uint32_t crc;
    assert_int_equal(axl_get(t, 0, &file), 0);
    assert_int_equal(axl_checksum(s->source, NULL, &crc, NULL), 0);
    assert_int_equal(file.crc, crc);
    axl_free(t);
    fd = open(s->destination, O_RDONLY);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pread(fd, got, 100, 1000 + (off_t)places[i]), 100);
        assert_memory_equal(got, bytes, 100);
    }
    assert_int_equal(pread(fd, got, 100, 3900), 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(got[i], 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 1000 + size);
    close(fd);
    free(bytes);
}

enum { WRITERS = 2, SOURCES = 8, STRIPES = 40, STRIPE = 1777 };

static void name_source(const scratch *s, int writer, int source, char path[160])
{
    snprintf(path, 160, "%s/in%d-%d", s->folder, writer, source);
}

/* The stripes of all sources of all writers alternate in the container. */
static uint64_t stripe_at(int writer, int source, int stripe)
{
    return (uint64_t)STRIPE * (uint64_t)((stripe * SOURCES + source) * WRITERS + writer);
}

static int write_stripes(const scratch *s, int writer, int ready)
{
    char path[160], go;
    axl_transfer *t =
        create_transfer(s, writer ? "pthread" : "sync", writer ? AXL_CHECKSUM : 0);
    for (int k = STRIPES - 1; k >= 0; k--)
        for (int i = 0; i < SOURCES; i++) {
            name_source(s, writer, i, path);
            add(t, (axl_part){path, (uint64_t)k * STRIPE, s->destination,
                              stripe_at(writer, i, k), STRIPE, 0, 0, NULL});
        }
    if (read(ready, &go, 1) != 0) return 2;
    int rc = axl_dispatch(t, NULL);
    if (!rc) rc = axl_wait(t, NULL);
    axl_free(t);
    return rc != 0;
}

static void two_processes(void **state)
{
    scratch *s = *state;
    char path[160];
    pid_t children[WRITERS];
    int ready[2], status;
    unsigned char *bytes = scratch_bytes(SOURCES * STRIPES * STRIPE + WRITERS);
    image *shall = make_container(s, 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    for (int w = 0; w < WRITERS; w++)
        for (int i = 0; i < SOURCES; i++) {
            const unsigned char *own = bytes + i * STRIPES * STRIPE + w;
            name_source(s, w, i, path);
            scratch_write(path, own, STRIPES * STRIPE);
            for (int k = 0; k < STRIPES; k++)
                paint(shall, stripe_at(w, i, k), own + k * STRIPE, STRIPE);
        }
    fflush(NULL);
    for (int w = 0; w < WRITERS; w++)
        if ((children[w] = fork()) == 0) {
            close(ready[1]);
            _exit(write_stripes(s, w, ready[0]));
        }
    close(ready[0]);
    close(ready[1]); /* both start */
    for (int w = 0; w < WRITERS; w++) {
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    expect_image(s, shall);
    free(bytes);
}

/* ---- what is refused ---- */

static void refuse_part(const axl_part *part, int code, const char *text)
{
    axl_error err = {""};
    axl_transfer *t = NULL;
    assert_int_equal(axl_create("sync", NULL, &t, NULL), 0);
    int rc = axl_add_part(t, part, &err);
    if (!rc) rc = axl_dispatch(t, &err);
    if (!rc) rc = axl_wait(t, &err);
    assert_int_equal(rc, code);
    if (!strstr(err.text, text)) fail_msg("'%s' without '%s'", err.text, text);
    axl_free(t);
}

static void source_refused(void **state)
{
    scratch *s = *state;
    axl_part part = part_of(s, 0, 0, 10);
    image *shall = make_container(s, 50);
    part = part_of(s, 90, 20, 11);
    refuse_part(&part, -ENOENT, s->source);
    free(write_source(s, 100));
    refuse_part(&part, -ENODATA, "source has 100 bytes, not 11 from byte 90 on");
    part = part_of(s, 0, INT64_MAX, 1);
    refuse_part(&part, -EINVAL, "no file is that long");
    part = part_of(s, UINT64_MAX, 0, 2);
    refuse_part(&part, -EINVAL, s->source);
    part = part_of(s, 1, 0, UINT64_MAX);
    refuse_part(&part, -EINVAL, s->source);
    part.source = NULL;
    refuse_part(&part, -EINVAL, "a file");
    part = part_of(s, 0, 0, 1);
    part.destination = "";
    refuse_part(&part, -EINVAL, "empty path");
    expect_image(s, shall);
}

static void destination_refused(void **state)
{
    scratch *s = *state;
    char target[160], missing[160];
    axl_part part;
    free(write_source(s, 100));
    snprintf(s->destination, sizeof s->destination, "%s/other", s->folder);
    snprintf(target, sizeof target, "%s/target", s->folder);
    snprintf(missing, sizeof missing, "%s/no/folder", s->folder);
    scratch_write(target, "keep", 4);
    part = part_of(s, 0, 0, 10);
    refuse_part(&part, -ENOENT, s->destination);
    assert_int_equal(symlink(target, s->destination), 0);
    refuse_part(&part, -ELOOP, s->destination);
    assert_int_equal(unlink(s->destination), 0);
    assert_int_equal(mkfifo(s->destination, 0600), 0);
    refuse_part(&part, -EINVAL, "not a regular file");
    part.destination = s->folder;
    refuse_part(&part, -EISDIR, s->folder);
    part.destination = missing;
    refuse_part(&part, -ENOENT, missing);
    part.destination = s->source;
    refuse_part(&part, -EINVAL, "source and destination");
    scratch_expect(target, "keep", 4);
    assert_int_equal(scratch_count(s->folder), 3);
}

/* Another file, with the same size and time, gets the name of the source that was checked
 * or seen. */
static void source_is_exchanged(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    struct stat st;
    free(write_source(s, 100));
    free(make_container(s, 100));
    assert_int_equal(stat(s->source, &st), 0);
    axl_part part = part_of(s, 0, 0, 100);
    part.device = st.st_dev;
    part.inode = st.st_ino;
    for (int exchanged = 0; exchanged < 3; exchanged++) {
        axl_transfer *t = create_transfer(s, "sync", 0);
        add(t, part);
        part.inode = exchanged ? 0 : part.inode + 1;
        if (exchanged) part.seen = &st;
        st.st_ino = (ino_t)-1;
        assert_int_equal(axl_dispatch(t, NULL), exchanged == 1 ? -ESTALE : 0);
        assert_int_equal(axl_wait(t, &err), exchanged ? -ESTALE : 0);
        if (exchanged)
            assert_non_null(strstr(err.text, "another file is in the place of"));
        axl_free(t);
    }
}

/* axl_dispatch does not look again at a source that axl_look has seen, but the source
 * must be the same when it is read. */
static void source_is_seen(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    struct stat seen;
    free(write_source(s, 100));
    free(make_container(s, 100));
    axl_part part = part_of(s, 0, 0, 100);
    assert_int_equal(axl_look(s->source, &seen, &err), 0);
    part.seen = &seen;
    for (int now = 0; now < 4; now++) {
        static const int dispatched[] = {0, -ENODATA, 0, 0};
        static const int copied[] = {0, -ENODATA, -ESTALE, -ENOENT};
        axl_transfer *t = create_transfer(s, "sync", 0);
        seen.st_size -= now == 1;
        if (now == 3) assert_int_equal(unlink(s->source), 0);
        add(t, part);
        assert_int_equal(axl_dispatch(t, &err), dispatched[now]);
        assert_int_equal(axl_wait(t, &err), copied[now]);
        axl_free(t);
        if (now == 1) part.length--; /* a different file from the one seen */
    }
    assert_int_equal(axl_look(s->source, &seen, &err), -ENOENT);
    assert_int_equal(axl_look(s->folder, &seen, &err), -EISDIR);
    assert_int_equal(symlink(s->folder, s->source), 0);
    assert_int_equal(axl_look(s->source, &seen, &err), -ELOOP);
}

static void twice_in_a_list(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    axl_transfer *t = create_transfer(s, "sync", 0);
    axl_part part = {"/a", 0, "/x", 10, 5, 0, 0, NULL};
    add(t, part);
    part.source = "/b";
    assert_int_equal(axl_add_part(t, &part, &err), -EEXIST);
    assert_string_equal(err.text, "add /b: a part of /a goes to byte 10 of /x");
    part.destination_offset = 15;
    add(t, part);
    assert_int_equal(axl_add(t, "/c", "/x", &err), -EEXIST);
    assert_string_equal(err.text, "add /c: /x is the destination of /a already");
    assert_int_equal(axl_add(t, "/c", "/y", NULL), 0);
    part.destination = "/y";
    assert_int_equal(axl_add_part(t, &part, &err), -EEXIST);
    assert_string_equal(err.text, "add /b: /y is the destination of /c already");
    assert_int_equal(axl_count(t), 3);
    axl_free(t);
}

/* With a linear search through the parts of a file this takes minutes. */
static void many_in_a_list(void **state)
{
    scratch *s = *state;
    axl_transfer *t = create_transfer(s, "sync", 0);
    axl_part part = {"/source", 0, "/container", 0, 10, 0, 0, NULL};
    for (; part.destination_offset < 2000000; part.destination_offset += 10)
        add(t, part);
    for (part.destination_offset = 0; part.destination_offset < 2000000;
         part.destination_offset += 10000)
        assert_int_equal(axl_add_part(t, &part, NULL), -EEXIST);
    assert_int_equal(axl_count(t), 200000);
    axl_free(t);
}

/* A source with many parts has as many entries in the state file. */
static void many_of_one_source(void **state)
{
    enum { COUNT = 5000 };
    scratch *s = *state;
    axl_transfer *t = create_transfer(s, "sync", 0),
                 *read = create_transfer(s, "sync", 0);
    axl_part part = {"/the/source", 1, "/container", 2, 3, 0, 0, NULL};
    axl_error err = {""};
    kvtree *tree;
    for (int i = 0; i < COUNT; i++, part.source_offset += 7, part.destination_offset += 9)
        add(t, part);
    assert_int_equal(axl_add(t, "/the/source", "/copy", NULL), 0);
    assert_int_equal(axl_state_build(t, &tree), 0);
    if (axl_state_fill(read, tree, &err) != 0) fail_msg("%s", err.text);
    kvtree_delete(&tree);
    assert_int_equal(axl_count(read), COUNT + 1);
    for (int i = 0; i <= COUNT; i++) {
        const axl_item *a = &t->items[i], *b = &read->items[i];
        assert_string_equal(b->file.source, "/the/source");
        assert_string_equal(a->file.destination, b->file.destination);
        assert_true(a->part == b->part && a->size == b->size);
        assert_true(a->from == b->from && a->to == b->to);
    }
    axl_free(t);
    axl_free(read);
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(each_method),
        WITH_FOLDER(beyond_the_end),
        WITH_FOLDER(files_beside_parts),
        WITH_FOLDER(of_no_length),
        WITH_FOLDER(holes_over_old_bytes),
        WITH_FOLDER(threads_share_a_part),
        WITH_FOLDER(parts_share_a_descriptor),
        WITH_FOLDER(more_than_a_piece),
        WITH_FOLDER(two_processes),
        WITH_FOLDER(source_refused),
        WITH_FOLDER(destination_refused),
        WITH_FOLDER(twice_in_a_list),
        WITH_FOLDER(many_in_a_list),
        WITH_FOLDER(many_of_one_source),
        WITH_FOLDER(source_is_exchanged),
        WITH_FOLDER(source_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
