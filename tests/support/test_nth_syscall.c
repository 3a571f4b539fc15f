/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the tool that stops a function at its n-th system call: it counts correctly,
 * affects the right call, and acts before the call happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "nth_syscall.h"
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

enum { WRITES = 5 };

static nth_result result;
static struct {
    int done, error; /* writes that returned; the errno of the failed write */
} * shared;
static int pipe_ends[2];

static int write_some(void *arg)
{
    for (shared->done = 0; shared->done < WRITES; shared->done++)
        if (write(pipe_ends[1], "x", 1) != 1) {
            shared->error = errno;
            return 7;
        }
    return 42;
}

static int bytes_in_pipe(void)
{
    char bytes[64];
    ssize_t n = read(pipe_ends[0], bytes, sizeof bytes);
    return n < 0 ? 0 : (int)n;
}

static void run(int (*function)(void *), nth_decide *decide, void *arg)
{
    memset(shared, 0, sizeof *shared);
    int rc = nth_run(function, NULL, decide, arg, &result);
    if (!rc) return;
    print_message("the kernel refuses seccomp notifications: %s\n", strerror(rc));
    skip();
}

static void counts_and_names(void **state)
{
    nth_fault none = {0, 0};
    run(write_some, nth_at, &none);
    assert_int_equal(nth_returned(&result), 42);
    assert_int_equal(result.count, WRITES);
    for (int i = 0; i < WRITES; i++) {
        assert_string_equal(result.calls[i].name, "write");
        assert_int_equal(result.calls[i].args[0], pipe_ends[1]);
        assert_int_equal(result.calls[i].answer, NTH_GO);
    }
    assert_int_equal(bytes_in_pipe(), WRITES);
    assert_int_equal(nth_next(&result, "write", 2), 3);
    assert_int_equal(nth_next(&result, "fsync", 0), 0);
}

static void kills_before_the_call(void **state)
{
    for (unsigned n = 1; n <= WRITES; n++) {
        nth_fault fault = {n, NTH_KILL};
        run(write_some, nth_at, &fault);
        assert_true(nth_was_killed(&result));
        assert_int_equal(nth_returned(&result), -1);
        assert_int_equal(result.count, n);
        assert_int_equal(shared->done, n - 1);
        assert_int_equal(bytes_in_pipe(), n - 1);
    }
}

static void answers_in_place_of_the_call(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EINTR, ENOLCK};
    for (unsigned n = 1; n <= 4; n++) {
        nth_fault fault = {n, errors[n - 1]};
        run(write_some, nth_at, &fault);
        assert_int_equal(nth_returned(&result), 7);
        assert_int_equal(shared->error, errors[n - 1]);
        assert_int_equal(result.count, n);
        assert_int_equal(result.calls[n - 1].answer, errors[n - 1]);
        assert_int_equal(bytes_in_pipe(), n - 1);
    }
}

static int look_into_pipe(void *arg, unsigned n, const nth_call *call)
{
    *(int *)arg += bytes_in_pipe() == (n > 1);
    return NTH_GO;
}

static void the_child_stands_still_meanwhile(void **state)
{
    int right = 0;
    run(write_some, look_into_pipe, &right);
    assert_int_equal(nth_returned(&result), 42);
    assert_int_equal(right, WRITES);
    assert_int_equal(bytes_in_pipe(), 1);
}

static int take_memory(void *arg)
{
    char *block = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? errno : munmap(block, 4096);
}

static void memory_calls_count(void **state)
{
    nth_fault fault = {1, ENOMEM};
    run(take_memory, nth_at, &fault);
    assert_true(nth_is_memory(&result.calls[0]));
    assert_int_equal(result.count, NTH_SANITIZED ? 2 : 1);
    assert_int_equal(nth_returned(&result), NTH_SANITIZED ? 0 : ENOMEM);
}

static int send_and_die(void *arg)
{
    struct msghdr nothing = {0};
    sendmsg(pipe_ends[1], &nothing, 0);
    raise(SIGTERM);
    return 0;
}

static void messages_count_and_signals_are_seen(void **state)
{
    nth_fault none = {0, 0};
    run(send_and_die, nth_at, &none);
    assert_true(result.count > 1);
    assert_int_equal(result.calls[0].number, __NR_sendmsg);
    assert_true(WIFSIGNALED(result.status));
    assert_int_equal(WTERMSIG(result.status), SIGTERM);
    assert_false(nth_was_killed(&result));
}

/* The kernel grants one listener, and the outer one exists already. */
static int watch_again(void *arg)
{
    nth_fault none = {0, 0};
    shared->error = nth_run(write_some, NULL, nth_at, &none, &result);
    return 0;
}

static void a_refusal_is_told(void **state)
{
    nth_fault none = {0, 0};
    run(watch_again, nth_at, &none);
    assert_int_equal(nth_returned(&result), 0);
    assert_int_equal(shared->error, EBUSY);
    assert_int_equal(shared->done, 0);
    assert_int_equal(bytes_in_pipe(), 0);
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void nothing_is_left(void **state)
{
    int before = descriptors();
    for (unsigned n = 0; n < 4; n++) {
        nth_fault fault = {n, NTH_KILL};
        run(write_some, nth_at, &fault);
        bytes_in_pipe();
    }
    assert_int_equal(descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static int make_shared(void **state)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : pipe2(pipe_ends, O_NONBLOCK | O_CLOEXEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_names),
        cmocka_unit_test(kills_before_the_call),
        cmocka_unit_test(answers_in_place_of_the_call),
        cmocka_unit_test(the_child_stands_still_meanwhile),
        cmocka_unit_test(memory_calls_count),
        cmocka_unit_test(messages_count_and_signals_are_seen),
        cmocka_unit_test(a_refusal_is_told),
        cmocka_unit_test(nothing_is_left),
    };
    return cmocka_run_group_tests(tests, make_shared, NULL);
}
