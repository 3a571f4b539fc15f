/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of files when something goes wrong: sources that change, full disks, a process
 * that is killed at any system call, and any system call that fails. What is reported as
 * in place is in place, the bytes around a part are never changed, and axl_resume copies
 * the rest. */
#include "container.h"
#include "resumed.h"

#include <sys/mount.h>
#include <zlib.h>

/* ---- faults during the copy ---- */

/* Takes seconds, unless it is stopped. */
static axl_transfer *start_slow(const scratch *s)
{
    axl_transfer *t = NULL;
    axl_progress p;
    const axl_options options = {.flags = AXL_CHECKSUM, .workers = 1, .bandwidth = 4e5};
    assert_int_equal(axl_create("pthread", &options, &t, NULL), 0);
    t->piece = PIECE;
    add(t, part_of(s, 100, 200, IMAGE_MAX - 1000));
    assert_int_equal(axl_dispatch(t, NULL), 0);
    do
        axl_progress_get(t, &p);
    while (p.bytes_done == 0);
    return t;
}

/* The bytes around the part are unchanged, and some of the part was written. */
static void expect_begun(const scratch *s, image *shall)
{
    unsigned char *got = malloc(IMAGE_MAX);
    int fd = open(s->destination, O_RDONLY);
    assert_int_equal(read(fd, got, IMAGE_MAX), IMAGE_MAX);
    assert_memory_equal(got, shall->bytes, 200);
    assert_memory_equal(got + IMAGE_MAX - 800, shall->bytes + IMAGE_MAX - 800, 800);
    assert_memory_not_equal(got + 200, shall->bytes + 200, 1000);
    assert_int_equal(scratch_count(s->folder), 2);
    close(fd);
    free(got);
    free(shall);
}

/* Cuts the source without changing its time or the bytes of the part. */
static void cut_beyond(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(truncate(path, IMAGE_MAX - 1), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void source_changes(void **state)
{
    scratch *s = *state;
    axl_error err = {""};
    for (int change = 0; change < 2; change++) {
        image *shall = make_container(s, IMAGE_MAX);
        free(write_source(s, IMAGE_MAX));
        axl_transfer *t = start_slow(s);
        if (change)
            cut_beyond(s->source);
        else
            scratch_write(s->source, "other bytes", 11);
        assert_int_equal(axl_wait(t, &err), -ESTALE);
        assert_non_null(strstr(err.text, s->source));
        axl_free(t);
        expect_begun(s, shall);
    }
}

static void cancelled(void **state)
{
    scratch *s = *state;
    axl_file file;
    image *shall = make_container(s, IMAGE_MAX);
    free(write_source(s, IMAGE_MAX));
    axl_transfer *t = start_slow(s);
    assert_int_equal(axl_cancel(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), -ECANCELED);
    assert_int_equal(axl_get(t, 0, &file), 0);
    assert_int_equal(file.done, 0);
    axl_free(t);
    expect_begun(s, shall);
}

/* A file system of its own, which ends with the child: 1 MiB, half of it for the first
 * part, and too little for the second one. */
static int fill_disk(scratch *s, int read_only)
{
    char folder[128];
    axl_error err;
    snprintf(folder, sizeof folder, "%s/out", s->folder);
    snprintf(s->destination, sizeof s->destination, "%s/out/container", s->folder);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) return 2;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", folder, "tmpfs", 0, "size=1m") != 0)
        return 77;
    scratch_write(s->destination, "old", 3);
    if (read_only && mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return 77;
    axl_transfer *t = NULL;
    const axl_options options = {.flags = AXL_CHECKSUM};
    if (axl_create("sync", &options, &t, &err) != 0) return 2;
    add(t, part_of(s, 0, 3, 100000));
    add(t, part_of(s, 0, 100003, IMAGE_MAX));
    int rc = axl_dispatch(t, &err);
    if (!rc) rc = axl_wait(t, &err);
    axl_free(t);
    if (rc != (read_only ? -EROFS : -ENOSPC) || !strstr(err.text, s->destination))
        return 3;
    int fd = open(s->destination, O_RDONLY);
    char got[3];
    return read(fd, got, 3) == 3 && memcmp(got, "old", 3) == 0 ? 0 : 4;
}

static void no_room(void **state)
{
    scratch *s = *state;
    int status = 0;
    free(write_source(s, IMAGE_MAX));
    for (int read_only = 0; read_only < 2; read_only++) {
        fflush(NULL);
        pid_t child = fork();
        assert_int_not_equal(child, -1);
        if (child == 0) _exit(fill_disk(s, read_only));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77) skip(); /* only root may mount */
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* ---- at any system call ---- */

/* Parts of a file with several pieces and a hole, and of a small file, which is also
 * moved as a whole. */
enum { SIZE = 3 * PIECE + 777, HOLE = PIECE + 5000, HOLE_END = 2 * PIECE, PARTS = 3 };

static scratch *own;
static char small[160], whole[160];

static const struct {
    size_t from, to, length;
    int small;
} parts[PARTS] = {{1, 100, 1000, 1}, {11, 5000, SIZE - 500, 0}, {SIZE - 50, 20, 50, 0}};

static unsigned char *source_bytes(void)
{
    unsigned char *bytes = scratch_bytes(SIZE);
    memset(bytes + HOLE, 0, HOLE_END - HOLE);
    return bytes;
}

/* Creates sources and a container of this size, nothing else. Returns the expected final
 * content of the container. */
static image *prepare(size_t size)
{
    nftw(own->folder, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(mkdir(own->folder, 0700), 0);
    image *shall = make_container(own, size);
    unsigned char *bytes = source_bytes();
    scratch_write(small, bytes, 2000);
    scratch_write(own->source, bytes, HOLE);
    int fd = open(own->source, O_WRONLY);
    assert_int_equal(pwrite(fd, bytes + HOLE_END, SIZE - HOLE_END, HOLE_END),
                     SIZE - HOLE_END);
    close(fd);
    for (int i = 0; i < PARTS; i++)
        paint(shall, parts[i].to, bytes + parts[i].from, parts[i].length);
    free(bytes);
    return shall;
}

static axl_part part_number(int i)
{
    axl_part part = part_of(own, parts[i].from, parts[i].to, parts[i].length);
    if (parts[i].small) part.source = small;
    return part;
}

static int create_all(const axl_options *options, const char *method, axl_transfer **t)
{
    int rc = axl_create(method, options, t, &told->err);
    for (int i = 0; i < PARTS && !rc; i++) {
        axl_part part = part_number(i);
        rc = axl_add_part(*t, &part, &told->err);
    }
    return rc ? rc : axl_add(*t, small, whole, &told->err);
}

static int transfer(void *arg)
{
    axl_transfer *t = NULL;
    const axl_options options = {.flags = AXL_CHECKSUM, .state = state_path};
    int rc = create_all(&options, "sync", &t);
    end_transfer(t, rc);
    return 0;
}

static image *try(nth_fault fault, ino_t *inode)
{
    struct stat st;
    image *shall = prepare(50000);
    assert_int_equal(stat(own->destination, &st), 0);
    *inode = st.st_ino;
    run_with_fault(transfer, fault);
    return shall;
}

/* The container is still the same file, and has old bytes between the parts; if complete,
 * all bytes are right. */
static int look(const image *shall, ino_t inode, bool complete)
{
    static unsigned char got[IMAGE_MAX];
    struct stat st;
    int wrong = 0, fd = open(own->destination, O_RDONLY);
    ssize_t size = read(fd, got, sizeof got);
    if (fstat(fd, &st) != 0 || st.st_ino != inode) WRONG("it is another file\n");
    close(fd);
    if (size < 50000 || (complete && size != (ssize_t)shall->size))
        WRONG("it has %zd bytes\n", size);
    if (memcmp(got, shall->bytes, 20) != 0 ||
        memcmp(got + 70, shall->bytes + 70, 30) != 0 ||
        memcmp(got + 1100, shall->bytes + 1100, 3900) != 0)
        WRONG("bytes between the parts were changed\n");
    if (complete && memcmp(got, shall->bytes, shall->size) != 0) WRONG("wrong bytes\n");
    return wrong;
}

/* After the first process, the rest is copied by resuming or, if there is no state file,
 * by starting from the beginning. */
static int check_rest(const image *shall, ino_t inode, unsigned at)
{
    bool done = told->rc == 0 && nth_returned(&result) == 0;
    int wrong = look(shall, inode, done), state = access(state_path, F_OK) == 0;
    if (!done && state && resume() == -ENODATA) state = 0;
    if (!done && !state) {
        told->err.text[0] = 0;
        transfer(NULL);
    }
    if (told->rc) return WRONG("after call %u: %s\n", at, told->err.text);
    wrong += look(shall, inode, true);
    if (access(whole, F_OK) != 0) WRONG("the file is missing\n");
    if (access(state_path, F_OK) == 0) WRONG("the state file stays\n");
    return wrong ? WRONG("that was after call %u\n", at) : 0;
}

/* Data written through a descriptor is synced before the descriptor is closed. */
static int count_unsynced(void)
{
    char dirty[64] = {0};
    int count = 0;
    for (unsigned n = 0; n < result.count && n < NTH_CALLS; n++) {
        const nth_call *call = &result.calls[n];
        char *fd = &dirty[call->args[0] & 63];
        if (nth_is(call, "pwrite")) *fd = 1;
        if (nth_is(call, "fsync")) *fd = 0;
        if (nth_is(call, "close")) count += *fd;
    }
    return count;
}

static void killed_at_any_call(void **state)
{
    int wrong = 0;
    ino_t inode;
    nth_fault fault = {1, NTH_KILL};
    for (; fault.at <= NTH_CALLS; fault.at += STEP) {
        image *shall = try(fault, &inode);
        if (result.count >= fault.at) wrong += check_rest(shall, inode, fault.at);
        free(shall);
        if (result.count < fault.at) break;
    }
    print_message("killed at system calls 1 to %u, step %d\n", fault.at - 1, STEP);
    assert_int_equal(told->rc, 0);
    assert_true(fault.at > 100 && fault.at < NTH_CALLS);
    assert_int_equal(count_unsynced(), 0);
    assert_int_equal(wrong, 0);
}

/* Calls of which none may fail unnoticed. */
static bool matters(const nth_call *call)
{
    return nth_is(call, "fsync") || nth_is(call, "pwrite") || nth_is(call, "pread");
}

static int check_failure(const image *shall, ino_t inode, unsigned at)
{
    int wrong = 0;
    const nth_call *call = &result.calls[at - 1];
    if (nth_returned(&result) != 0) WRONG("dead after call %u\n", at);
    if ((told->rc == 0) != (told->err.text[0] == 0))
        WRONG("%d with text '%s'\n", told->rc, told->err.text);
    if (matters(call) && told->rc != -call->answer)
        WRONG("%s, call %u, failed, and the result is %d\n", call->name, at, told->rc);
    if (nth_is(call, "unlink")) return wrong; /* a file that cannot be removed stays */
    return wrong + check_rest(shall, inode, at);
}

static void any_call_fails(void **state)
{
    static const int errors[] = {EIO, ENOSPC};
    int wrong = 0;
    ino_t inode;
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        nth_fault fault = {1, errors[e]};
        unsigned points = 0, failed = 0;
        do {
            image *shall = try(fault, &inode);
            bool hit =
                result.count >= fault.at && result.calls[fault.at - 1].answer != NTH_GO;
            points += hit;
            failed += hit && told->rc != 0;
            if (hit) wrong += check_failure(shall, inode, fault.at);
            free(shall);
        } while (result.count >= fault.at && (fault.at += STEP) <= NTH_CALLS);
        print_message("%s at each of %u system calls: %u transfers failed\n",
                      strerror(errors[e]), points, failed);
        assert_true(points > 10 && failed > 5);
    }
    assert_int_equal(wrong, 0);
}

/* ---- resumed ---- */

/* Stopped when some pieces of the large part were written, and resumed from its state
 * file. */
static axl_transfer *stop_and_resume(void)
{
    axl_transfer *t = NULL;
    axl_progress p;
    const axl_options options = {
        .flags = AXL_CHECKSUM, .workers = 1, .bandwidth = 2e5, .state = state_path};
    assert_int_equal(create_all(&options, "pthread", &t), 0);
    tune(t);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    do
        axl_progress_get(t, &p);
    while (p.bytes_done < parts[0].length + 2 * PIECE);
    axl_free(t);
    assert_int_equal(axl_resume(state_path, "sync", &t, NULL), 0);
    tune(t);
    t->bandwidth = 0;
    return t;
}

static void expect_all(axl_transfer *t, image *shall)
{
    for (size_t i = 0; i < PARTS; i++) {
        axl_file file;
        assert_int_equal(axl_get(t, i, &file), 0);
        assert_int_equal(file.size, parts[i].length);
        assert_int_equal(file.crc,
                         crc32_z(0, shall->bytes + parts[i].to, parts[i].length));
    }
    axl_free(t);
    expect_image(own, shall);
    assert_int_equal(access(state_path, F_OK), -1);
}

static void goes_on_where_it_was(void **state)
{
    image *shall = prepare(50000);
    axl_transfer *t = stop_and_resume();
    assert_int_equal(t->items[0].file.done, 1);
    assert_true(t->items[1].begin >= PIECE && t->items[1].begin < t->items[1].size);
    uint64_t begin = t->items[1].begin;
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(t->items[1].begin, begin);
    assert_int_equal(axl_wait(t, NULL), 0);
    expect_all(t, shall);
}

/* Nothing written earlier exists any more. */
static void container_is_another_one(void **state)
{
    free(prepare(50000));
    axl_transfer *t = stop_and_resume();
    assert_int_equal(unlink(own->destination), 0);
    image *shall = make_container(own, 0);
    unsigned char *bytes = source_bytes();
    for (int i = 0; i < PARTS; i++)
        paint(shall, parts[i].to, bytes + parts[i].from, parts[i].length);
    free(bytes);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    expect_all(t, shall);
}

static void source_that_changed_meanwhile(void **state)
{
    image *shall = prepare(50000);
    axl_transfer *t = stop_and_resume();
    int fd = open(own->source, O_WRONLY);
    assert_int_equal(pwrite(fd, "changed", 7, 100), 7);
    assert_int_equal(close(fd), 0);
    paint(shall, 5000 + 100 - 11, "changed", 7);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    expect_all(t, shall);
}

static int begin(void **state)
{
    void *made;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (told == MAP_FAILED || scratch_make(&made) != 0) return -1;
    own = made;
    snprintf(state_path, sizeof state_path, "%s/state.scrinfo", own->folder);
    snprintf(small, sizeof small, "%s/small", own->folder);
    snprintf(whole, sizeof whole, "%s/whole", own->folder);
    return 0;
}

static int end(void **state)
{
    void *made = own;
    munmap(told, sizeof *told);
    return scratch_remove(&made);
}

static void source_is_exchanged_before_continue(void **state)
{
    scratch *s = *state;
    char file[160];
    struct stat st;
    free(write_source(s, 100));
    free(make_container(s, 100));
    assert_int_equal(unlink(s->destination), 0);
    snprintf(file, sizeof file, "%s/state.scrinfo", s->folder);
    assert_int_equal(stat(s->source, &st), 0);
    axl_part part = part_of(s, 0, 0, 100);
    part.device = st.st_dev;
    part.inode = st.st_ino;
    for (int exchanged = 0; exchanged < 2; exchanged++, part.inode++) {
        axl_transfer *t = NULL;
        const axl_options options = {.state = file};
        assert_int_equal(axl_create("sync", &options, &t, NULL), 0);
        add(t, part);
        assert_true(axl_continue(t, NULL) >= 0);
        assert_int_equal(axl_dispatch(t, NULL), exchanged ? -ESTALE : 0);
        assert_int_equal(axl_wait(t, NULL), exchanged ? -ESTALE : -ENOENT);
        axl_free(t);
    }
}

int main(void)
{
#define WITH_FOLDER(test)                                                                \
    cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(source_changes),
        WITH_FOLDER(cancelled),
        WITH_FOLDER(no_room),
        WITH_FOLDER(source_is_exchanged_before_continue),
        cmocka_unit_test(killed_at_any_call),
        cmocka_unit_test(any_call_fails),
        cmocka_unit_test(goes_on_where_it_was),
        cmocka_unit_test(container_is_another_one),
        cmocka_unit_test(source_that_changed_meanwhile),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
