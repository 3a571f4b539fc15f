/* SPDX-License-Identifier: BSD-3-Clause */
/* mpishim.so: makes MPI programs of many ranks run well on few cores, for tests and
 * demonstrations.
 *
 * Debian 12's MPICH 4.0.2 (over UCX 1.13) waits by polling and never yields: with more
 * ranks than cores a barrier takes 40 ms. Loaded with LD_PRELOAD, this module
 *   - sleeps SHIM_NS nanoseconds (50000) after SHIM_SPINS (20) consecutive polls that
 *     found nothing;
 *   - continues to poll while MPI_Finalize waits for the process manager, where ranks on
 *     different nodes would otherwise wait for each other forever. Only one thread at a
 *     time may be inside MPI. */
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

unsigned ucp_worker_progress(void *worker);
void *ucp_disconnect_nb(void *endpoint);
void ucp_worker_destroy(void *worker);

typedef unsigned (*progress_fn)(void *);
typedef void *(*disconnect_fn)(void *);
typedef void (*destroy_fn)(void *);
typedef ssize_t (*read_fn)(int, void *, size_t);

static progress_fn real_progress;
static disconnect_fn real_disconnect;
static destroy_fn real_destroy;
static read_fn real_read;
static void *last_worker;
static int finalizing, pmi_fd = -1;
static unsigned spins = 20;
static long nap = 50000;

static void *next_symbol(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void init(void)
{
    const char *value;
    *(void **)&real_progress = next_symbol("ucp_worker_progress");
    *(void **)&real_disconnect = next_symbol("ucp_disconnect_nb");
    *(void **)&real_destroy = next_symbol("ucp_worker_destroy");
    *(void **)&real_read = next_symbol("read");
    if ((value = getenv("SHIM_SPINS"))) spins = (unsigned)atoi(value);
    if ((value = getenv("SHIM_NS"))) nap = atol(value);
    if ((value = getenv("PMI_FD"))) pmi_fd = atoi(value);
    if (real_progress && nap) prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
}

unsigned ucp_worker_progress(void *worker)
{
    static __thread unsigned idle;
    if (!real_progress) init(); /* the program, such as Python, has loaded MPI since */
    unsigned events = real_progress(worker);
    last_worker = worker;
    if (events) {
        idle = 0;
    } else if (++idle > spins && nap) {
        struct timespec t = {0, nap};
        idle = 0;
        nanosleep(&t, NULL);
    }
    return events;
}

void *ucp_disconnect_nb(void *endpoint)
{
    finalizing = 1;
    if (!real_disconnect) init();
    return real_disconnect(endpoint);
}

void ucp_worker_destroy(void *worker)
{
    if (worker == last_worker) last_worker = NULL;
    if (!real_destroy) init();
    real_destroy(worker);
}

ssize_t read(int fd, void *buf, size_t size)
{
    if (!real_read) init();
    if (fd == pmi_fd && finalizing && last_worker) {
        struct pollfd p = {fd, POLLIN, 0};
        while (poll(&p, 1, 1) == 0)
            real_progress(last_worker);
    }
    return real_read(fd, buf, size);
}
