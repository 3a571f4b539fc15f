/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIMULATION_DAMAGE_H
#define SIMULATION_DAMAGE_H

/* Damage to files while nothing runs: flipped bits, and records of another place or
 * time. */

#include "engine.h"
#include "judge.h"
#include "story.h"

namespace sim
{

/* Damages a file and reports the loss to the judge. before: the disks at the start of the
 * run, nodes first. Returns whether a file was changed. */
bool damage(Machine &machine, const std::vector<std::unique_ptr<Disk>> &before,
            const Strike &strike, Judge &judge);

} // namespace sim

#endif
