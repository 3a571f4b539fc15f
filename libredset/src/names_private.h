/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_NAMES_PRIVATE_H
#define REDSET_NAMES_PRIVATE_H

/* The symbols of functions that the MPI part calls; see redset_names.h. */

#define redset_assign_scheme scr_redset_assign_scheme
#define redset_layout_done scr_redset_layout_done
#define redset_set_adopt scr_redset_set_adopt
#define redset_set_encode scr_redset_set_encode
#define redset_set_locate scr_redset_set_locate
#define redset_set_measure scr_redset_set_measure
#define redset_set_rebuild scr_redset_set_rebuild
#define redset_set_verify scr_redset_set_verify
#define redset_transport_compare scr_redset_transport_compare

#endif
