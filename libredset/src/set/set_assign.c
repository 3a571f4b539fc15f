/* SPDX-License-Identifier: BSD-3-Clause */
/* Assigns processes to sets, round robin, and a scheme to each set. */
#include "src/set/set.h"

#include "common/errtext.h"
#include "src/codec/flow.h"
#include <errno.h>

int redset_choose(int procs, int largest_group, int set_size, int position,
                  redset_place *place)
{
    if (procs < 1 || largest_group < 1 || largest_group > procs || set_size < 1)
        return -EINVAL;
    if (position < 0 || position >= procs) return -EINVAL;
    /* a multiple: if groups have the same size, processes of one group have the same
     * partner groups */
    int sets = procs / set_size / largest_group * largest_group;
    if (sets == 0) sets = largest_group;
    if (set_size == 1) sets = procs;
    place->sets = sets;
    place->set = position % sets;
    place->member = position / sets;
    place->members = redset_assign_members(procs, sets, place->set);
    return 0;
}

int redset_assign_members(int procs, int sets, int set)
{
    return procs / sets + (set < procs % sets);
}

int redset_assign_scheme(redset_scheme scheme, int failures, redset_place *place,
                         redset_error *err)
{
    redset_place assigned = *place;
    int wanted = failures && scheme != REDSET_XOR ? failures : 1;
    assigned.scheme = place->members == 1 ? REDSET_SINGLE : scheme;
    assigned.failures = wanted < place->members ? wanted : place->members - 1;
    if (assigned.scheme == REDSET_SINGLE) assigned.failures = 0;
    redset_shape shape = redset_place_shape(&assigned);
    if (redset_shape_check(&shape) != 0)
        return err_set(err, -EINVAL,
                       "a set of %d members is too large for RS: at most %d",
                       place->members, REDSET_RS_MEMBERS_MAX);
    *place = assigned;
    return 0;
}
