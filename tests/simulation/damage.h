/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_DAMAGE_H
#define SIMULATION_DAMAGE_H

/* Damage to files while nothing runs: bits that flip, records of another place or time.
 */

#include "engine.h"
#include "judge.h"
#include "story.h"

namespace sim
{

/* before: the disks when the run began, those of nodes first. The judge gets what is lost
 * by it. Returns whether a file was changed. */
bool damage(Machine &machine, const std::vector<std::unique_ptr<Disk>> &before,
            const Strike &strike, Judge &judge);

} // namespace sim

#endif
