/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef AXL_AXL_NAMES_H
#define AXL_AXL_NAMES_H

/* The names of the functions of this library in its shared and static libraries. Other
 * libraries have functions with the same source names. With these macros a program can
 * link both, in any order, and each library calls its own functions
 * (docs/decisions/0020-unique-symbols.md). The other headers include this file. */

#define axl_add scr_axl_add
#define axl_add_part scr_axl_add_part
#define axl_cancel scr_axl_cancel
#define axl_checksum scr_axl_checksum
#define axl_continue scr_axl_continue
#define axl_copy scr_axl_copy
#define axl_count scr_axl_count
#define axl_create scr_axl_create
#define axl_dispatch scr_axl_dispatch
#define axl_free scr_axl_free
#define axl_get scr_axl_get
#define axl_is_busy scr_axl_is_busy
#define axl_look scr_axl_look
#define axl_progress_get scr_axl_progress_get
#define axl_resume scr_axl_resume
#define axl_set_opened scr_axl_set_opened
#define axl_set_patience scr_axl_set_patience
#define axl_set_private scr_axl_set_private
#define axl_set_progress scr_axl_set_progress
#define axl_set_slots scr_axl_set_slots
#define axl_test scr_axl_test
#define axl_wait scr_axl_wait

#endif
