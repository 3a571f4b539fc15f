/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_NAMES_PRIVATE_H
#define AXL_NAMES_PRIVATE_H

/* What functions are called that only other parts of this library may call; see
 * axl_names.h. */

#define axl_serve scr_axl_serve

#endif
