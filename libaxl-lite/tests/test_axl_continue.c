/* SPDX-License-Identifier: BSD-3-Clause */
/* A program builds its list again after its predecessor died: the work of the predecessor
 * is not repeated if the list is the same, and counts for nothing if it is not. */
#include "resumed.h"

#include <sys/stat.h>

enum { PARTS = 5, SIZE = PIECE + 777, OUTS = 2, ROOM = 2 * SIZE };

static scratch *s;
static const char program[] = TEST_TRANSFER; /* the path of scr_transfer */

/* The list of one run of the program. */
typedef struct want {
    const char *method;
    int parts; /* number of parts of the list */
    unsigned flags;
    uint64_t shift; /* shift of the destination of the last part */
    bool swapped;   /* the first two parts are swapped */
    double bandwidth;
} want;

static const char *const methods[] = {"sync", "pthread", "daemon"};

static const want plain = {.method = "sync", .parts = PARTS, .flags = AXL_CHECKSUM};

static void name_file(char path[160], const char *kind, int i)
{
    snprintf(path, 160, "%s/%s%d", s->folder, kind, i);
}

/* Parts 0, 2, 4 come from source 0 and go to container 0, the others from 1 to 1; part 4
 * follows part 0 in small. */
static axl_part part_number(int i, char source[160], char destination[160])
{
    name_file(source, "in", i % OUTS);
    name_file(destination, "out", i % OUTS);
    if (i == 4)
        return (axl_part){source, 7, destination, 2 * SIZE - 100, 100, 0, 0, NULL};
    if (i < 2) return (axl_part){source, 0, destination, 0, SIZE, 0, 0, NULL};
    return (axl_part){source, SIZE / 2, destination, SIZE, SIZE / 2, 0, 0, NULL};
}

/* Creates sources and empty containers. */
static void prepare(void)
{
    char path[160];
    nftw(s->folder, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(mkdir(s->folder, 0700), 0);
    for (int i = 0; i < OUTS; i++) {
        unsigned char *bytes = scratch_bytes(SIZE);
        bytes[0] = (unsigned char)i;
        name_file(path, "in", i);
        scratch_write(path, bytes, SIZE);
        name_file(path, "out", i);
        scratch_write(path, "", 0);
        assert_int_equal(truncate(path, ROOM), 0);
        free(bytes);
    }
}

static axl_transfer *make(const want *w)
{
    axl_transfer *t = NULL;
    char source[160], destination[160];
    const axl_options options = {.flags = w->flags,
                                 .state = state_path,
                                 .daemon = program,
                                 .workers = 1,
                                 .bandwidth = w->bandwidth};
    assert_int_equal(axl_create(w->method, &options, &t, NULL), 0);
    tune(t);
    for (int k = 0; k < w->parts; k++) {
        int i = w->swapped && k < 2 ? 1 - k : k;
        axl_part part = part_number(i, source, destination);
        if (i == PARTS - 1) part.destination_offset += w->shift;
        assert_int_equal(axl_add_part(t, &part, NULL), 0);
    }
    return t;
}

/* A process that exits silently after its transfer, whose list is arg, or the one set, or
 * the plain one. */
static const want *want_of_child;

static int dies_afterwards(void *arg)
{
    axl_transfer *t = make(arg ? arg : want_of_child ? want_of_child : &plain);
    int rc = axl_dispatch(t, &told->err);
    _exit(rc ? 1 : 0);
}

static void run_and_die(const want *w)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) dies_afterwards((void *)w);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int wrong_bytes(void)
{
    char source[160], destination[160];
    int wrong = 0;
    for (int i = 0; i < PARTS; i++) {
        axl_part p = part_number(i, source, destination);
        unsigned char *expected = malloc(p.length), *got = malloc(p.length);
        int in = open(source, O_RDONLY), out = open(destination, O_RDONLY);
        assert_int_equal(pread(in, expected, p.length, (off_t)p.source_offset), p.length);
        assert_int_equal(pread(out, got, p.length, (off_t)p.destination_offset),
                         p.length);
        wrong += memcmp(expected, got, p.length) != 0;
        close(in);
        close(out);
        free(expected);
        free(got);
    }
    return wrong;
}

/* Paints the first byte of each part; copied_again counts the parts whose byte has
 * changed. */
static void paint(void)
{
    char source[160], destination[160];
    for (int i = 0; i < PARTS; i++) {
        axl_part p = part_number(i, source, destination);
        int out = open(destination, O_WRONLY);
        assert_int_equal(pwrite(out, "\xAB", 1, (off_t)p.destination_offset), 1);
        close(out);
    }
}

static int copied_again(void)
{
    char source[160], destination[160];
    unsigned char byte;
    int again = 0;
    for (int i = 0; i < PARTS; i++) {
        axl_part p = part_number(i, source, destination);
        int out = open(destination, O_RDONLY);
        assert_int_equal(pread(out, &byte, 1, (off_t)p.destination_offset), 1);
        again += byte != 0xAB;
        close(out);
    }
    return again;
}

/* Continues, and returns the verdict of axl_continue. */
static int go_on(const want *w)
{
    axl_error err = {""};
    axl_transfer *t = make(w);
    int verdict = axl_continue(t, &err);
    if (verdict < 0) fail_msg("%s", err.text);
    if (verdict == 0) assert_int_equal(access(state_path, F_OK), -1);
    if (axl_dispatch(t, &err) || axl_wait(t, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < axl_count(t); i++) {
        axl_file file;
        assert_int_equal(axl_get(t, i, &file), 0);
        assert_int_equal(file.done, 1);
    }
    axl_free(t);
    assert_int_equal(access(state_path, F_OK), -1);
    return verdict;
}

static void killed_at_any_call(void **state)
{
    nth_fault fault = {1, NTH_KILL};
    int continued = 0;
    for (; fault.at <= NTH_CALLS; fault.at += STEP) {
        prepare();
        run_with_fault(dies_afterwards, fault);
        if (result.count < fault.at) break;
        assert_true(nth_was_killed(&result));
        continued += go_on(&plain) == AXL_CONTINUES;
        assert_int_equal(wrong_bytes(), 0);
    }
    print_message("killed at system calls 1 to %u: %d times there was something to go "
                  "on with\n",
                  fault.at - 1, continued);
    assert_true(fault.at > 60 / STEP && continued > 20 / STEP);
}

static void finished_is_not_copied_again(void **state)
{
    for (size_t m = 0; m < 3; m++) {
        want next = plain;
        next.method = methods[m];
        prepare();
        run_and_die(&plain);
        assert_int_equal(wrong_bytes(), 0);
        paint();
        assert_int_equal(go_on(&next), AXL_CONTINUES);
        assert_int_equal(copied_again(), 0);
    }
}

/* Nothing that was done before counts. */
static void expect_anew(const want *next)
{
    assert_int_equal(go_on(next), 0);
    assert_int_equal(copied_again(), next->parts);
}

static void other_lists(void **state)
{
    want others[5];
    for (int i = 0; i < 5; i++)
        others[i] = plain;
    others[0].parts = PARTS - 1;
    others[1].shift = 1;
    others[2].swapped = true;
    others[3].flags = 0;
    others[4].method = "daemon";
    others[4].shift = 3;
    for (int i = 0; i < 5; i++) {
        prepare();
        run_and_die(&plain);
        paint();
        assert_int_equal(go_on(&others[i]), 0);
        /* a part with a new place leaves the byte at its old place unchanged */
        assert_int_equal(copied_again(), PARTS - (i == 0 || others[i].shift > 0));
    }
}

static void no_state(void **state)
{
    prepare();
    paint();
    expect_anew(&plain);
}

static void damaged_state(void **state)
{
    prepare();
    run_and_die(&plain);
    paint();
    assert_int_equal(truncate(state_path, 100), 0);
    expect_anew(&plain);
}

static void source_that_changed(void **state)
{
    char path[160];
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 12345}};
    prepare();
    run_and_die(&plain);
    paint();
    name_file(path, "in", 1);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    expect_anew(&plain);
}

static void destination_that_is_another(void **state)
{
    char path[160];
    prepare();
    run_and_die(&plain);
    paint();
    name_file(path, "out", 0);
    assert_int_equal(truncate(path, ROOM / 2), 0);
    assert_int_equal(truncate(path, ROOM / 2), 0);
    assert_int_equal(go_on(&plain), 0);
    assert_int_equal(wrong_bytes(), 0);
}

static void refused(void **state)
{
    axl_error err = {""};
    axl_transfer *t = NULL;
    prepare();
    assert_int_equal(axl_create("sync", NULL, &t, NULL), 0);
    assert_int_equal(axl_continue(t, &err), -EINVAL);
    assert_non_null(strstr(err.text, "no state file"));
    axl_free(t);
    t = make(&plain);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_continue(t, &err), -EINVAL);
    assert_non_null(strstr(err.text, "dispatched"));
    axl_free(t);
}

/* ---- compared ---- */

/* What may happen to container 0 between two runs: to part 0 only, or to all of it. */
static void alter(void)
{
    char path[160];
    name_file(path, "out", 0);
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "\xAB", 1, SIZE / 2), 1);
    close(fd);
}

static void alter_last_byte(void)
{
    char path[160];
    name_file(path, "out", 0);
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "\xAB", 1, ROOM - 1), 1);
    close(fd);
}

/* Like a power loss that destroys data, but not the size. */
static void blank(void)
{
    char path[160];
    name_file(path, "out", 0);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(truncate(path, ROOM), 0);
}

static void unreadable(void)
{
    char path[160];
    name_file(path, "out", 0);
    blank();
    assert_int_equal(chmod(path, 0200), 0);
}

/* Makes it readable for later checks. */
static void readable(void)
{
    char path[160];
    name_file(path, "out", 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void cut(void)
{
    char path[160];
    name_file(path, "out", 0);
    assert_int_equal(truncate(path, SIZE), 0);
}

/* Removed, and recreated by a process that knows the required length. */
static void replaced(void)
{
    char path[160];
    name_file(path, "out", 0);
    assert_int_equal(unlink(path), 0);
    scratch_write(path, "", 0);
    assert_int_equal(truncate(path, ROOM), 0);
}

/* Sets an old time on both containers; any write replaces it. */
static void make_old(void)
{
    char path[160];
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 12345}};
    for (int i = 0; i < OUTS; i++) {
        name_file(path, "out", i);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
}

static bool is_old(int i)
{
    char path[160];
    struct stat st;
    name_file(path, "out", i);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mtim.tv_sec == 12345;
}

static void what_differs_is_copied_again(void **state)
{
    static const struct {
        void (*hurt)(void);
        int verdict;
    } harms[] = {{alter, AXL_CONTINUES},      {alter_last_byte, AXL_CONTINUES},
                 {blank, AXL_CONTINUES},      {replaced, AXL_CONTINUES},
                 {unreadable, AXL_CONTINUES}, {cut, 0}};
    for (size_t k = 0; k < 6 * sizeof harms / sizeof *harms; k++) {
        want next = plain;
        next.flags = AXL_COMPARE | (k / 3 % 2 ? AXL_CHECKSUM : 0);
        prepare();
        run_and_die(&next);
        next.method = methods[k % 3];
        assert_int_equal(wrong_bytes(), 0);
        harms[k / 6].hurt();
        make_old();
        assert_int_equal(go_on(&next), harms[k / 6].verdict);
        readable();
        assert_int_equal(wrong_bytes(), 0);
        assert_false(is_old(0));
        assert_int_equal(is_old(1), harms[k / 6].verdict == AXL_CONTINUES);
    }
}

/* Correct data is read, and nothing is written. */
static void what_is_right_is_not_copied_again(void **state)
{
    for (size_t m = 0; m < 3; m++) {
        want next = plain;
        next.flags |= AXL_COMPARE;
        prepare();
        run_and_die(&next);
        next.method = methods[m];
        make_old();
        assert_int_equal(go_on(&next), AXL_CONTINUES);
        assert_true(is_old(0) && is_old(1));
        assert_int_equal(wrong_bytes(), 0);
    }
}

/* A process is killed; then another user changes what it copied, even of a half-copied
 * part. */
static void killed_and_altered(void **state)
{
    const want next = {.method = "sync", .parts = PARTS, .flags = AXL_COMPARE};
    nth_fault fault = {1, NTH_KILL};
    int continued = 0;
    want_of_child = &next;
    for (; fault.at <= NTH_CALLS; fault.at += 3 * STEP) {
        prepare();
        run_with_fault(dies_afterwards, fault);
        if (result.count < fault.at) break;
        alter();
        alter_last_byte();
        continued += go_on(&next) == AXL_CONTINUES;
        assert_int_equal(wrong_bytes(), 0);
    }
    want_of_child = NULL;
    assert_true(continued > 20 / (3 * STEP));
}

/* ---- by scr_transfer, which still runs ---- */

static const want slow = {
    .method = "daemon", .parts = PARTS, .flags = AXL_CHECKSUM, .bandwidth = 2e5};

/* Waits until scr_transfer has copied something, but far from everything. */
static void wait_for_some(void)
{
    kvtree *state = kvtree_new();
    axl_news news;
    axl_command command;
    for (int i = 0; i < 1000; i++) {
        if (axl_owner_is_there(state_path) &&
            axl_state_read(state_path, state, &news, &command, NULL) == 0 && news.running)
            break;
        kvtree_unset_all(state);
        usleep(10000);
    }
    assert_true(news.running && !news.done);
    kvtree_delete(&state);
}

/* Waits until the state file reports part i as in place. */
static void wait_for_part(size_t i)
{
    axl_file file = {.done = 0};
    for (int k = 0; k < 3000 && !file.done; k++) {
        axl_transfer *t = NULL;
        usleep(10000);
        if (axl_resume(state_path, "daemon", &t, NULL) != 0) continue;
        assert_int_equal(axl_get(t, i, &file), 0);
        axl_free(t);
    }
    assert_int_equal(file.done, 1);
}

static void it_is_looked_after(void **state)
{
    char lock[200];
    axl_error err = {""};
    prepare();
    run_and_die(&slow);
    wait_for_some();
    axl_transfer *old = NULL, *t = make(&slow);
    assert_int_equal(axl_resume(state_path, "sync", &old, NULL), 0);
    assert_int_equal(axl_continue(t, &err), AXL_CONTINUES);
    assert_true(t->id == old->id);
    axl_free(old);
    /* the same process has its lock before and afterwards */
    snprintf(lock, sizeof lock, "%s.lock", state_path);
    struct stat before, after;
    assert_int_equal(stat(lock, &before), 0);
    assert_int_equal(axl_dispatch(t, &err), 0);
    assert_int_equal(axl_test(t, &err), AXL_RUNNING);
    assert_int_equal(stat(lock, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_int_equal(axl_wait(t, &err), 0);
    axl_free(t);
    assert_int_equal(wrong_bytes(), 0);
    assert_int_equal(access(state_path, F_OK), -1);
}

static void it_is_stopped_for_another_method(void **state)
{
    prepare();
    run_and_die(&slow);
    wait_for_some();
    assert_int_equal(go_on(&plain), AXL_CONTINUES);
    assert_int_equal(wrong_bytes(), 0);
}

/* The data that scr_transfer copied is compared, even if it would continue. */
static void it_is_stopped_to_compare(void **state)
{
    want next = slow;
    next.flags |= AXL_COMPARE;
    next.bandwidth = 3e4; /* the last part takes a second */
    for (size_t m = 0; m < 3; m++) {
        prepare();
        run_and_die(&next);
        wait_for_part(0);
        blank();
        next.method = methods[m];
        assert_int_equal(go_on(&next), AXL_CONTINUES);
        assert_int_equal(wrong_bytes(), 0);
        next.method = "daemon";
    }
}

static void it_is_stopped_for_another_list(void **state)
{
    want next = slow;
    next.parts--;
    next.bandwidth = 0;
    prepare();
    run_and_die(&slow);
    wait_for_some();
    assert_int_equal(go_on(&next), 0);
}

/* Cancelled before any process continued. */
static void cancelled(void **state)
{
    axl_transfer *t;
    axl_error err = {""};
    for (int m = 0; m < 2; m++) {
        const char *method = m ? "sync" : "daemon";
        prepare();
        run_and_die(&slow);
        wait_for_some();
        assert_int_equal(axl_resume(state_path, method, &t, &err), 0);
        if (m == 1) { /* this method cannot stop another process */
            assert_int_equal(axl_cancel(t, &err), -EBUSY);
            axl_free(t);
            assert_int_equal(axl_daemon_halt(state_path, 60, false, NULL), 0);
            assert_int_equal(axl_resume(state_path, method, &t, &err), 0);
        }
        assert_int_equal(axl_cancel(t, &err), 0);
        assert_int_equal(axl_test(t, &err), -ECANCELED);
        axl_free(t);
        assert_int_equal(access(state_path, F_OK), -1);
        assert_false(axl_owner_is_there(state_path));
    }
}

static int begin(void **state)
{
    void *made;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (told == MAP_FAILED || scratch_make(&made) != 0) return -1;
    s = made;
    snprintf(state_path, sizeof state_path, "%s/state.scrinfo", s->folder);
    return 0;
}

static int end(void **state)
{
    void *made = s;
    munmap(told, sizeof *told);
    return scratch_remove(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_any_call),
        cmocka_unit_test(finished_is_not_copied_again),
        cmocka_unit_test(other_lists),
        cmocka_unit_test(no_state),
        cmocka_unit_test(damaged_state),
        cmocka_unit_test(source_that_changed),
        cmocka_unit_test(destination_that_is_another),
        cmocka_unit_test(refused),
        cmocka_unit_test(what_differs_is_copied_again),
        cmocka_unit_test(what_is_right_is_not_copied_again),
        cmocka_unit_test(killed_and_altered),
        cmocka_unit_test(it_is_looked_after),
        cmocka_unit_test(it_is_stopped_for_another_method),
        cmocka_unit_test(it_is_stopped_to_compare),
        cmocka_unit_test(it_is_stopped_for_another_list),
        cmocka_unit_test(cancelled),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
