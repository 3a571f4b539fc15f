/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_APPLICATION_H
#define SIMULATION_APPLICATION_H

/* Files of a simulated application, which repeats a short or interrupted transfer.
 * Functions that write or read are false where a call fails. */

#include <cstddef>
#include <string>

namespace sim
{

/* Bytes of the file of a rank; none is 0. */
std::string content(const std::string &name, int rank, size_t size);

/* The whole file, or a part that others write, too. */
bool write_file(const std::string &path, const std::string &bytes);
bool write_part(const std::string &path, size_t offset, const std::string &bytes);

/* At most that number of bytes. */
bool read_file(const std::string &path, size_t most, std::string &bytes,
               size_t offset = 0);

} // namespace sim

#endif
