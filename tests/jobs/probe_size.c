/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of single transfers, of system calls on files and of MPI between processes: the
 * functions below precede the real ones, also for the libraries. */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { READ, WRITE, MESSAGE, KINDS };

static const char *const names[KINDS] = {"read", "write", "message"};
static atomic_size_t largest[KINDS]; /* libraries have threads */

static void note(enum kind kind, size_t size)
{
    size_t before = largest[kind];
    while (size > before &&
           !atomic_compare_exchange_weak(&largest[kind], &before, size)) {
    }
}

/* Counts only files, since MPI uses descriptors, too. */
static ssize_t note_file(enum kind kind, int fd, ssize_t size)
{
    struct stat st;
    int error = errno;
    if (size > 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) note(kind, (size_t)size);
    errno = error;
    return size;
}

long probe_largest(const char *what)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(what, names[i]) == 0) return (long)atomic_exchange(&largest[i], 0);
    return -1;
}

/* ISO C does not convert a data pointer to a function; POSIX does. The real functions are
 * the 64-bit ones, for large files. */
#define REAL(name, ...)                                                                  \
    static ssize_t (*real)(__VA_ARGS__);                                                 \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

ssize_t read(int fd, void *buf, size_t size)
{
    REAL("read", int, void *, size_t);
    return note_file(READ, fd, real(fd, buf, size));
}

ssize_t pread(int fd, void *buf, size_t size, off_t at)
{
    REAL("pread64", int, void *, size_t, off_t);
    return note_file(READ, fd, real(fd, buf, size, at));
}

ssize_t write(int fd, const void *buf, size_t size)
{
    REAL("write", int, const void *, size_t);
    return note_file(WRITE, fd, real(fd, buf, size));
}

ssize_t pwrite(int fd, const void *buf, size_t size, off_t at)
{
    REAL("pwrite64", int, const void *, size_t, off_t);
    return note_file(WRITE, fd, real(fd, buf, size, at));
}

int MPI_Isend(const void *buf, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    note(MESSAGE, (size_t)n * (size_t)size);
    return PMPI_Isend(buf, n, type, peer, tag, comm, request);
}
