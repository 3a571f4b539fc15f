/* SPDX-License-Identifier: BSD-3-Clause */
/* A transfer with a state file that is killed at any system call, and one in which any
 * system call fails: no destination ever has wrong bytes, and axl_resume copies the rest,
 * without repeating what is in place. */
#include "resumed.h"

#include <zlib.h>

enum { FILES = 4 };

static const size_t sizes[FILES] = {1000, 4 * PIECE + 777, 0, PIECE};

static scratch *s;
static const char program[] = TEST_TRANSFER; /* the path of scr_transfer */

static void name_files(int i, char source[160], char destination[160])
{
    snprintf(source, 160, "%s/in%d", s->folder, i);
    snprintf(destination, 160, "%s/out/%d/file%d", s->folder, i / 2, i);
}

static unsigned char *bytes_of(int i)
{
    unsigned char *bytes = scratch_bytes(sizes[i]);
    for (size_t k = 0; k < sizes[i]; k++)
        bytes[k] = (unsigned char)(bytes[k] + i);
    return bytes;
}

/* Creates the sources, nothing else. */
static void prepare(void)
{
    char source[160], destination[160];
    nftw(s->folder, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(mkdir(s->folder, 0700), 0);
    for (int i = 0; i < FILES; i++) {
        unsigned char *bytes = bytes_of(i);
        name_files(i, source, destination);
        scratch_write(source, bytes, sizes[i]);
        free(bytes);
    }
}

static int transfer(void *arg)
{
    char source[160], destination[160];
    axl_transfer *t = NULL;
    const axl_options options = {.flags = AXL_CHECKSUM, .state = state_path};
    int rc = axl_create("sync", &options, &t, &told->err);
    for (int i = 0; i < FILES && !rc; i++) {
        name_files(i, source, destination);
        rc = axl_add(t, source, destination, &told->err);
    }
    end_transfer(t, rc);
    return 0;
}

static void try(nth_fault fault)
{
    prepare();
    run_with_fault(transfer, fault);
}

/* Returns in inodes the files that are in place, 0 for others. Every file in place has
 * the right bytes. */
static int look(ino_t inodes[FILES])
{
    char source[160], destination[160];
    int wrong = 0;
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        name_files(i, source, destination);
        inodes[i] = 0;
        if (stat(destination, &st) != 0) continue;
        unsigned char *expected = bytes_of(i), *got = malloc(sizes[i] + 1);
        int fd = open(destination, O_RDONLY);
        inodes[i] = st.st_ino;
        if (read(fd, got, sizes[i] + 1) != (ssize_t)sizes[i] ||
            memcmp(got, expected, sizes[i]) != 0)
            WRONG("file %d has wrong bytes\n", i);
        close(fd);
        free(expected);
        free(got);
    }
    return wrong;
}

static int count_temporary(void)
{
    char folder[160];
    int count = 0;
    for (int k = 0; k < 2; k++) {
        snprintf(folder, sizeof folder, "%s/out/%d", s->folder, k);
        DIR *dir = opendir(folder);
        for (struct dirent *e; dir && (e = readdir(dir));)
            count += strstr(e->d_name, ".tmp") != NULL;
        if (dir) closedir(dir);
    }
    return count;
}

/* After the first process: files in place are right, and the rest is copied by resuming
 * or, if there is no state file, by starting from the beginning. */
static int check_rest(unsigned at)
{
    ino_t before[FILES], after[FILES];
    int wrong = look(before), state = access(state_path, F_OK) == 0;
    int done = told->rc == 0 && nth_returned(&result) == 0;
    if (!done && state && resume() == -ENODATA) state = 0;
    if (!done && !state) {
        told->err.text[0] = 0;
        transfer(NULL);
    }
    if (told->rc) return WRONG("after call %u: %s\n", at, told->err.text);
    wrong += look(after);
    for (int i = 0; i < FILES; i++) {
        if (!after[i]) WRONG("after call %u file %d is missing\n", at, i);
        if (state && before[i] && before[i] != after[i])
            WRONG("after call %u file %d was copied again\n", at, i);
    }
    if (count_temporary() > !state)
        WRONG("after call %u %d temporary files stay\n", at, count_temporary());
    if (access(state_path, F_OK) == 0) WRONG("after call %u the state file stays\n", at);
    return wrong;
}

static void killed_at_any_call(void **state)
{
    int wrong = 0;
    nth_fault fault = {1, NTH_KILL};
    for (; fault.at <= NTH_CALLS; fault.at += STEP) {
        try(fault);
        if (result.count < fault.at) break;
        assert_true(nth_was_killed(&result));
        wrong += check_rest(fault.at);
    }
    print_message("killed at system calls 1 to %u, step %d\n", fault.at - 1, STEP);
    assert_int_equal(told->rc, 0);
    assert_true(fault.at > 100);
    assert_int_equal(wrong, 0);
}

static void any_call_fails(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EDQUOT};
    int wrong = 0;
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        nth_fault fault = {1, errors[e]};
        unsigned failed = 0, points = 0;
        for (; fault.at <= NTH_CALLS; fault.at += STEP) {
            try(fault);
            if (result.count < fault.at) break;
            const nth_call *call = &result.calls[fault.at - 1];
            if (call->answer == NTH_GO) continue; /* of a sanitizer's memory */
            if (nth_returned(&result) != 0) WRONG("dead after call %u\n", fault.at);
            if ((told->rc == 0) != (told->err.text[0] == 0))
                WRONG("%d with text '%s'\n", told->rc, told->err.text);
            failed += told->rc != 0;
            points++;
            if (nth_is(call, "unlink")) continue; /* the file stays */
            wrong += check_rest(fault.at);
        }
        print_message("%s at each of %u system calls: %u transfers failed\n",
                      strerror(errors[e]), points, failed);
    }
    assert_int_equal(wrong, 0);
}

/* A transfer that takes seconds, with small pieces. */
static axl_transfer *start_slow(const char *method, unsigned flags)
{
    char source[160], destination[160];
    axl_transfer *t = NULL;
    const axl_options options = {
        .flags = flags, .workers = 1, .bandwidth = 2e5, .state = state_path};
    prepare();
    assert_int_equal(axl_create(method, &options, &t, NULL), 0);
    tune(t);
    for (int i = 0; i < FILES; i++) {
        name_files(i, source, destination);
        assert_int_equal(axl_add(t, source, destination, NULL), 0);
    }
    assert_int_equal(axl_dispatch(t, NULL), 0);
    return t;
}

static void expect_all_in_place(void)
{
    ino_t inodes[FILES];
    assert_int_equal(look(inodes), 0);
    for (int i = 0; i < FILES; i++)
        assert_true(inodes[i] != 0);
    assert_int_equal(count_temporary(), 0);
    assert_int_equal(access(state_path, F_OK), -1);
}

/* A second process that wants to work on the same state file is refused and does no harm,
 * even if it cancels a transfer that it never had. */
static void only_one_works_on_it(void **state)
{
    static const char *const methods[] = {"sync", "pthread", "daemon"};
    axl_transfer *t = start_slow("pthread", AXL_CHECKSUM), *other;
    for (size_t m = 0; m < 3; m++) {
        axl_error err = {""};
        assert_int_equal(axl_resume(state_path, methods[m], &other, &err), 0);
        assert_int_equal(axl_dispatch(other, &err), -EBUSY);
        assert_non_null(strstr(err.text, state_path));
        assert_int_equal(axl_wait(other, NULL), -EBUSY);
        assert_int_equal(axl_cancel(other, NULL), 0);
        axl_free(other);
        assert_int_equal(access(state_path, F_OK), 0);
    }
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
    expect_all_in_place();
}

/* A transfer freed while it runs can be resumed, and continues from its recorded
 * progress. */
static void freed_and_resumed(void **state)
{
    axl_progress p;
    axl_transfer *t = start_slow("pthread", AXL_CHECKSUM);
    do
        axl_progress_get(t, &p);
    while (p.bytes_done < sizes[0] + 2 * PIECE);
    axl_free(t);
    assert_int_equal(access(state_path, F_OK), 0);
    assert_int_equal(count_temporary(), 1);
    assert_int_equal(axl_resume(state_path, "sync", &t, NULL), 0);
    tune(t);
    t->bandwidth = 0;
    assert_int_equal(t->items[0].file.done, 1);
    assert_true(t->items[1].begin >= PIECE && t->items[1].begin < sizes[1]);
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    for (size_t i = 0; i < FILES; i++) {
        axl_file file;
        unsigned char *bytes = bytes_of((int)i);
        assert_int_equal(axl_get(t, i, &file), 0);
        assert_int_equal(file.crc, crc32_z(0, bytes, sizes[i]));
        free(bytes);
    }
    axl_free(t);
    expect_all_in_place();
}

/* Data copied from a source that has since changed is not used. */
static void source_that_changed_meanwhile(void **state)
{
    char source[160], destination[160];
    axl_progress p;
    axl_transfer *t = start_slow("pthread", AXL_CHECKSUM);
    do
        axl_progress_get(t, &p);
    while (p.bytes_done < sizes[0] + 2 * PIECE);
    axl_free(t);
    name_files(1, source, destination);
    unsigned char *bytes = bytes_of(1);
    bytes[0] ^= 1;
    scratch_write(source, bytes, sizes[1]);
    assert_int_equal(axl_resume(state_path, "sync", &t, NULL), 0);
    t->bandwidth = 0;
    assert_int_equal(axl_dispatch(t, NULL), 0);
    assert_int_equal(axl_wait(t, NULL), 0);
    axl_free(t);
    scratch_expect(destination, bytes, sizes[1]);
    free(bytes);
    assert_int_equal(count_temporary(), 0);
}

static int folder_fails; /* the directory of the first files */

int fsync(int fd)
{
    char path[160];
    struct stat ours, st;
    snprintf(path, sizeof path, "%s/out/0", s ? s->folder : "");
    if (!folder_fails || fstat(fd, &ours) != 0 || stat(path, &st) != 0 ||
        ours.st_ino != st.st_ino)
        return (int)syscall(SYS_fsync, fd);
    errno = EIO;
    return -1;
}

/* A name that a power loss may undo is not relied on, also not by the process that
 * resumes and finds the file in place. */
static void a_name_is_synced(void **state)
{
    char source[160], destination[160];
    axl_transfer *t = NULL;
    axl_file file;
    const axl_options options = {.flags = AXL_CHECKSUM, .state = state_path};
    prepare();
    name_files(0, source, destination);
    assert_int_equal(axl_create("sync", &options, &t, NULL), 0);
    assert_int_equal(axl_add(t, source, destination, NULL), 0);
    folder_fails = 1;
    for (int i = 0; i < 3; i++) {
        if (i == 2) folder_fails = 0;
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_int_equal(axl_wait(t, NULL), folder_fails ? -EIO : 0);
        assert_int_equal(axl_get(t, 0, &file), 0);
        assert_int_equal(file.done, !folder_fails);
        axl_free(t);
        if (folder_fails) assert_int_equal(axl_resume(state_path, "sync", &t, NULL), 0);
    }
    unsigned char *bytes = bytes_of(0);
    scratch_expect(destination, bytes, sizes[0]);
    free(bytes);
    assert_int_equal(access(state_path, F_OK), -1);
}

/* ---- compared ---- */

static void change(const char *path, const char *how, size_t size)
{
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    if (strcmp(how, "altered") == 0)
        assert_int_equal(pwrite(fd, "\xAB\xCD", 2, (off_t)size / 2), 2);
    if (strcmp(how, "cut") == 0) assert_int_equal(ftruncate(fd, (off_t)size / 2), 0);
    if (strcmp(how, "removed") == 0) assert_int_equal(unlink(path), 0);
    close(fd);
}

static void find_temporary(char path[480])
{
    char folder[160];
    snprintf(folder, sizeof folder, "%s/out/0", s->folder);
    DIR *dir = opendir(folder);
    struct dirent *e;
    while ((e = readdir(dir)) && !strstr(e->d_name, ".tmp")) {
    }
    assert_non_null(e);
    snprintf(path, 480, "%s/%s", folder, e->d_name);
    closedir(dir);
}

/* When the process ends, file 0 is in place and file 1 is half copied: both are then
 * changed. */
static void what_differs_is_copied_again(void **state)
{
    static const char *const hows[] = {"altered", "cut", "removed", "kept"};
    static const char *const methods[] = {"sync", "pthread", "daemon"};
    for (size_t k = 0; k < 12; k++) {
        const char *how = hows[k / 3];
        char source[160], destination[160], temporary[480];
        ino_t before[FILES], after[FILES];
        axl_progress p;
        axl_transfer *t = start_slow("pthread", AXL_COMPARE);
        do
            axl_progress_get(t, &p);
        while (p.bytes_done < sizes[0] + 3 * PIECE);
        axl_free(t);
        assert_int_equal(look(before), 0);
        assert_true(before[0] != 0 && before[1] == 0);
        name_files(0, source, destination);
        change(destination, how, sizes[0]);
        find_temporary(temporary);
        change(temporary, how, PIECE);
        assert_int_equal(axl_resume(state_path, methods[k % 3], &t, NULL), 0);
        t->bandwidth = 0;
        t->daemon_path = strdup(program);
        assert_int_equal(axl_dispatch(t, NULL), 0);
        assert_int_equal(axl_wait(t, NULL), 0);
        axl_free(t);
        expect_all_in_place();
        look(after);
        assert_int_equal(before[0] == after[0], strcmp(how, "kept") == 0);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_at_any_call),
                                       cmocka_unit_test(any_call_fails),
                                       cmocka_unit_test(only_one_works_on_it),
                                       cmocka_unit_test(freed_and_resumed),
                                       cmocka_unit_test(a_name_is_synced),
                                       cmocka_unit_test(what_differs_is_copied_again),
                                       cmocka_unit_test(source_that_changed_meanwhile)};
    return cmocka_run_group_tests(tests, begin, end);
}
