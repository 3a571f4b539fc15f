/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals under MPI: every rank learns of a signal that any rank received, and handlers
 * of the application continue to work; the number of messages of SCR_Need_checkpoint and
 * SCR_Should_exit; and jumps of the wall clock have no effect. */
#include "count_mpi.h"
#include "scr.h"
#include <signal.h>
#include <sys/syscall.h>

static time_t jump; /* offset of the wall clock */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long rc = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += jump;
    return (int)rc;
}

static void use_folder(const char *folder)
{
    setenv("SCR_PREFIX", folder, 1);
    setenv("SCR_CNTL_BASE", folder, 1);
    setenv("SCR_CACHE_BASE", folder, 1);
    setenv("SCR_COPY_TYPE", "SINGLE", 1);
}

static int need(void)
{
    int flag = 7;
    CHECK_INT(SCR_Need_checkpoint(&flag), SCR_SUCCESS);
    return flag;
}

static int should_exit(void)
{
    int flag = 7;
    CHECK_INT(SCR_Should_exit(&flag), SCR_SUCCESS);
    return flag;
}

static void start(void)
{
    CHECK_INT(SCR_Init(), SCR_SUCCESS);
}

static void end(void)
{
    CHECK_INT(SCR_Finalize(), SCR_SUCCESS);
}

/* ---- messages ---- */

static void count(int (*call)(void), int flag, long collectives)
{
    begin_counting(MPI_COMM_WORLD);
    CHECK_INT(call(), flag);
    tally t = end_counting(MPI_COMM_WORLD);
    CHECK_INT(t.own[COLLECTIVES], collectives);
    CHECK_INT(t.sum[SENDS], 0);
    CHECK_INT(t.sum[SHARED], 0);
}

/* One operation; one more if a rank other than 0 is the first to report a signal. */
static void test_messages(void)
{
    application = MPI_COMM_WORLD;
    start();
    for (int i = 0; i < 3; i++) {
        count(need, 0, 1);
        count(should_exit, 0, 1);
    }
    if (check_rank == check_ranks - 1) raise(SIGUSR1);
    count(need, 1, check_ranks > 1 ? 2 : 1);
    for (int i = 0; i < 3; i++) {
        count(should_exit, 1, 1);
        count(need, 1, 1);
    }
    end();
}

/* ---- one rank, any rank ---- */

static void test_each_rank(void)
{
    static const int numbers[] = {SIGTERM, SIGUSR1};
    for (int from = 0; from < check_ranks; from++)
        for (int i = 0; i < 2; i++) {
            start();
            CHECK_INT(need() + should_exit(), 0);
            if (check_rank == from) raise(numbers[i]);
            CHECK_INT(i ? should_exit() : need(), 1);
            CHECK_INT(i ? need() : should_exit(), 1);
            end();
            start(); /* the next run does not know of it */
            CHECK_INT(need() + should_exit(), 0);
            end();
        }
}

static void test_all_ranks(void)
{
    start();
    CHECK_INT(should_exit(), 0);
    raise(SIGTERM);
    raise(SIGUSR1);
    CHECK_INT(should_exit(), 1);
    end();
}

/* A signal during other calls of SCR is not lost. */
static void test_not_lost(void)
{
    char name[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    start();
    CHECK_INT(need(), 0);
    CHECK_INT(SCR_Start_output("a", SCR_FLAG_CHECKPOINT), SCR_SUCCESS);
    if (check_rank == 0) raise(SIGTERM);
    snprintf(name, sizeof name, "%s/a/%d", getenv("SCR_PREFIX"), check_rank);
    CHECK_INT(SCR_Route_file(name, path), SCR_SUCCESS);
    FILE *out = fopen(path, "w");
    CHECK(out && fclose(out) == 0);
    CHECK_INT(SCR_Complete_output(1), SCR_SUCCESS);
    CHECK_INT(should_exit(), 1);
    end();
}

/* ---- handlers of the application ---- */

static volatile sig_atomic_t plain_calls, info_calls;
static struct sigaction chained;

static void plain(int number)
{
    plain_calls++;
}

/* Like a library that installed its handler after ours, and calls ours as its
 * predecessor. */
static void with_info(int number, siginfo_t *info, void *where)
{
    info_calls += info->si_signo == number;
    if (chained.sa_flags & SA_SIGINFO) chained.sa_sigaction(number, info, where);
}

static void install_plain(int flags)
{
    struct sigaction action = {.sa_handler = plain, .sa_flags = flags};
    plain_calls = 0;
    sigaction(SIGUSR1, &action, NULL);
}

static void install_with_info(struct sigaction *before)
{
    struct sigaction action = {.sa_sigaction = with_info, .sa_flags = SA_SIGINFO};
    info_calls = 0;
    sigaction(SIGUSR1, &action, before);
}

static int in_force(int number, void (*handler)(int))
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    return !(now.sa_flags & SA_SIGINFO) && now.sa_handler == handler;
}

static void back_to_default(void)
{
    memset(&chained, 0, sizeof chained);
    signal(SIGUSR1, SIG_DFL);
}

static void test_own_before(void)
{
    install_plain(0);
    start();
    CHECK(!in_force(SIGUSR1, plain));
    raise(SIGUSR1);
    CHECK_INT(plain_calls, 1);
    raise(SIGUSR1); /* now as without SCR */
    CHECK_INT(plain_calls, 2);
    CHECK(in_force(SIGUSR1, plain));
    CHECK_INT(should_exit(), 1);
    end();
    CHECK(in_force(SIGUSR1, plain));
    install_with_info(NULL);
    start();
    raise(SIGUSR1);
    CHECK_INT(info_calls, 1);
    CHECK_INT(should_exit(), 1);
    end();
    back_to_default();
}

/* A handler for a single signal gets a single signal. */
static void test_own_once(void)
{
    install_plain((int)SA_RESETHAND);
    start();
    raise(SIGUSR1);
    CHECK_INT(plain_calls, 1);
    CHECK(in_force(SIGUSR1, SIG_DFL));
    CHECK_INT(should_exit(), 1);
    end();
    CHECK(in_force(SIGUSR1, SIG_DFL));
}

static void test_own_after(void)
{
    start();
    install_plain(0);
    raise(SIGUSR1);
    CHECK_INT(plain_calls, 1);
    CHECK_INT(should_exit(), 0); /* only the application handles it */
    CHECK(in_force(SIGUSR1, plain));
    end();
    CHECK(in_force(SIGUSR1, plain));
    back_to_default();
}

/* The handler of the application calls ours as its predecessor, stays in force, and keeps
 * our handler beyond SCR_Finalize and into the next run, whose handler is installed after
 * it. */
static void test_own_hands_over(void)
{
    struct sigaction now;
    start();
    install_with_info(&chained);
    raise(SIGUSR1);
    CHECK_INT(info_calls, 1);
    sigaction(SIGUSR1, NULL, &now);
    CHECK(now.sa_flags & SA_SIGINFO && now.sa_sigaction == with_info);
    CHECK_INT(should_exit(), 1);
    end();
    raise(SIGUSR1);
    CHECK_INT(info_calls, 2);
    start();
    CHECK_INT(should_exit(), 0);
    raise(SIGUSR1);
    CHECK_INT(info_calls, 3);
    CHECK_INT(should_exit(), 1);
    end();
    back_to_default();
}

/* Handlers in force before SCR_Init are restored by SCR_Finalize; ignored signals stay
 * ignored; no other signal is affected. */
static void test_restored(void)
{
    signal(SIGUSR1, SIG_IGN);
    start();
    CHECK(in_force(SIGUSR1, SIG_IGN));
    CHECK(!in_force(SIGTERM, SIG_DFL));
    CHECK(in_force(SIGUSR2, SIG_DFL));
    CHECK(in_force(SIGINT, SIG_DFL));
    end();
    CHECK(in_force(SIGUSR1, SIG_IGN));
    CHECK(in_force(SIGTERM, SIG_DFL));
    back_to_default();
}

static void test_chosen(void)
{
    setenv("SCR_HALT_SIGNALS", "SIGUSR2", 1);
    start();
    CHECK(in_force(SIGTERM, SIG_DFL));
    CHECK(in_force(SIGUSR1, SIG_DFL));
    CHECK_INT(should_exit(), 0);
    raise(SIGUSR2);
    CHECK_INT(should_exit(), 1);
    end();
    setenv("SCR_HALT_SIGNALS", "NONE", 1);
    start();
    CHECK(in_force(SIGTERM, SIG_DFL));
    end();
    unsetenv("SCR_HALT_SIGNALS");
}

/* ---- clocks ---- */

static void test_clock(void)
{
    setenv("SCR_CHECKPOINT_SECONDS", "1h", 1);
    start();
    double before = MPI_Wtime();
    CHECK_INT(need(), 0);
    jump = 100000000;
    CHECK_INT(need(), 0);
    if (MPI_Wtime() < before + 1000 && check_rank == 0)
        printf("MPI_Wtime does not follow the clock of the day here\n");
    end();
    jump = 0;
    unsetenv("SCR_CHECKPOINT_SECONDS");
}

int main(int argc, char **argv)
{
    char folder[64];
    check_begin(&argc, &argv);
    check_folder(folder);
    use_folder(folder);
    test_messages();
    test_each_rank();
    test_all_ranks();
    test_not_lost();
    test_own_before();
    test_own_once();
    test_own_after();
    test_own_hands_over();
    test_restored();
    test_chosen();
    test_clock();
    check_remove(folder);
    return check_end();
}
