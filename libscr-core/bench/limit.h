/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_BENCH_LIMIT_H
#define SCR_BENCH_LIMIT_H

/* Reads, sends and writes bytes in the fastest way, in pieces of one MiB: the minimum
 * that any library needs. For one source file per program. */

#include "load.h"

#include "common/crc32.h"
#include "common/io.h"

typedef struct limit {
    const load *load;
    unsigned char *piece, *other; /* one MiB each */
    uint32_t crc;                 /* of the load's data */
} limit;

static inline limit limit_new(const load *l)
{
    limit m = {l, io_buffer(MiB), io_buffer(MiB), crc32_add(0, l->data, l->size)};
    bench_require(l->b, m.piece && m.other, "no memory");
    return m;
}

static inline void limit_free(const limit *m)
{
    free(m->piece);
    free(m->other);
}

/* Reads bytes of a file that has the data of the load, and checks their checksum. */
static inline bool limit_read(const limit *m, const char *path, size_t bytes)
{
    uint32_t crc = 0;
    size_t done = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY);
    for (; fd >= 0 && n > 0 && done < bytes; done += (size_t)n) {
        n = read(fd, m->piece, bytes - done < MiB ? bytes - done : MiB);
        if (n > 0) crc = crc32_add(crc, m->piece, (size_t)n);
    }
    return fd >= 0 && close(fd) == 0 && done == bytes &&
           (bytes < m->load->size || crc == m->crc);
}

/* Sends bytes to one rank, and receives bytes from another; MPI_PROC_NULL: to or from
 * none. */
static inline void limit_send(const limit *m, int to, int from, double bytes)
{
    for (double done = 0; done < bytes; done += MiB)
        MPI_Sendrecv(m->piece, MiB, MPI_BYTE, to, 0, m->other, MiB, MPI_BYTE, from, 0,
                     m->load->comm, MPI_STATUS_IGNORE);
}

/* Writes over the existing bytes of a file, because new pages cost more. */
static inline bool limit_write(const limit *m, const char *path, double bytes)
{
    bool ok = true;
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    for (double done = 0; ok && done < bytes; done += MiB)
        ok = write(fd, m->other, MiB) == MiB;
    return fd >= 0 && close(fd) == 0 && ok;
}

/* Writes a KiB under a temporary name, syncs it, and renames it. */
static inline bool limit_record(const limit *m, const char *path)
{
    char part[256];
    snprintf(part, sizeof part, "%s.part", path);
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool ok = fd >= 0 && write(fd, m->other, KiB) == KiB && fsync(fd) == 0;
    return fd >= 0 && close(fd) == 0 && ok && rename(part, path) == 0;
}

#endif
