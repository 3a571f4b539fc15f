/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_APPLICATION_H
#define SIMULATION_APPLICATION_H

/* Files of a simulated application, which repeats a short or interrupted transfer.
 * write_file and read_file are false where a call fails. */

#include <cstddef>
#include <string>

namespace sim
{

/* Bytes of the file of a rank; none is 0. */
std::string content(const std::string &name, int rank, size_t size);

bool write_file(const std::string &path, const std::string &bytes);

/* At most that number of bytes. */
bool read_file(const std::string &path, size_t most, std::string &bytes);

} // namespace sim

#endif
