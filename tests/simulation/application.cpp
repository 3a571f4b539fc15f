/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a simulated application; see application.h. */
#include "application.h"

#include "random.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/types.h>

extern "C" {
int simulated_open64(const char *path, int flags, ...);
int simulated_close(int fd);
ssize_t simulated_pread64(int fd, void *buf, size_t size, off_t offset);
ssize_t simulated_pwrite64(int fd, const void *buf, size_t size, off_t offset);
}

namespace sim
{

std::string content(const std::string &name, int rank, size_t size)
{
    std::string bytes(size, 0);
    Random random(static_cast<uint64_t>(rank) + 2);
    for (const char c : name)
        random = Random(random.next() + static_cast<unsigned char>(c));
    for (char &c : bytes)
        c = static_cast<char>(random.between(1, 255));
    return bytes;
}

static bool write_at(const std::string &path, int flags, size_t offset,
                     const std::string &bytes)
{
    const int fd = simulated_open64(path.c_str(), O_WRONLY | O_CREAT | flags, 0600);
    if (fd < 0) return false;
    size_t done = 0;
    ssize_t n = 0;
    while (done < bytes.size()) {
        n = simulated_pwrite64(fd, &bytes[done], bytes.size() - done,
                               static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        done += static_cast<size_t>(n);
    }
    const int closed = simulated_close(fd);
    return n >= 0 && (closed == 0 || errno == EINTR);
}

bool write_file(const std::string &path, const std::string &bytes)
{
    return write_at(path, O_TRUNC, 0, bytes);
}

bool write_part(const std::string &path, size_t offset, const std::string &bytes)
{
    return write_at(path, 0, offset, bytes);
}

bool read_file(const std::string &path, size_t most, std::string &bytes, size_t offset)
{
    const int fd = simulated_open64(path.c_str(), O_RDONLY);
    if (fd < 0) return false;
    bytes.assign(most, 0);
    size_t done = 0;
    ssize_t n = 1;
    while (n != 0 && done < most) {
        n = simulated_pread64(fd, &bytes[done], most - done,
                              static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        done += static_cast<size_t>(n);
    }
    simulated_close(fd);
    bytes.resize(done);
    return n >= 0;
}

} // namespace sim
