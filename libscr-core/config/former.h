/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_FORMER_H
#define SCR_FORMER_H

/* Names in configurations of earlier versions, up to SCR 3.1. */

/* The name that a parameter has now; NULL: not another one. */
const char *scr_former_name(const char *former);

/* The other way; NULL: it had no other name. */
const char *scr_former_of(const char *name);

/* Names without a meaning here are warned about and ignored. */

/* Why it has none, to follow on "because"; NULL: there was no such name. */
const char *scr_former_reason(const char *name);

#endif
