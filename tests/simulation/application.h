/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_APPLICATION_H
#define SIMULATION_APPLICATION_H

/* Files of a simulated application, which repeats short and interrupted transfers.
 * Functions that write or read return false if a call fails. */

#include <cstddef>
#include <string>

namespace sim
{

/* Returns the bytes of the file of a rank; no byte is 0. */
std::string content(const std::string &name, int rank, size_t size);

/* Writes a whole file, or a part of a file that other ranks write, too. */
bool write_file(const std::string &path, const std::string &bytes);
bool write_part(const std::string &path, size_t offset, const std::string &bytes);

/* Reads at most that number of bytes. */
bool read_file(const std::string &path, size_t most, std::string &bytes,
               size_t offset = 0);

} // namespace sim

#endif
