/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_NAMES_PRIVATE_H
#define FILO_NAMES_PRIVATE_H

/* The symbols of functions that only other parts of this library may call; see
 * filo_names.h. */

#define filo_begun_remove scr_filo_begun_remove
#define filo_begun_write scr_filo_begun_write
#define filo_map_check scr_filo_map_check
#define filo_map_fill scr_filo_map_fill
#define filo_map_files scr_filo_map_files
#define filo_map_make_folder scr_filo_map_make_folder
#define filo_map_set_dataset scr_filo_map_set_dataset

#endif
