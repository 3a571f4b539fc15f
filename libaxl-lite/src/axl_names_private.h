/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_NAMES_PRIVATE_H
#define AXL_NAMES_PRIVATE_H

/* Names of functions that only other parts of this library call; see axl_names.h. */

#define axl_serve scr_axl_serve

#endif
