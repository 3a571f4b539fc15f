/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FORMER_H
#define SCR_FORMER_H

/* Names in configurations of earlier versions, up to SCR 3.1. */

/* Returns the present name of a parameter with a former name; NULL: it was not
 * renamed. */
const char *scr_former_name(const char *former);

/* Returns the former name of a parameter; NULL: none. */
const char *scr_former_of(const char *name);

/* Names of earlier versions that have no meaning now are ignored with a warning. */

/* Returns why a name has no meaning now, as the rest of a sentence after "because"; NULL:
 * no earlier version had the name. */
const char *scr_former_reason(const char *name);

#endif
