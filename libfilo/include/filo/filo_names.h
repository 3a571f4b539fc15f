/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILO_FILO_NAMES_H
#define FILO_FILO_NAMES_H

/* The symbols of the functions of this library in its shared and static libraries. Other
 * libraries have functions of the same names: with these symbols a program can use both,
 * in any link order, and each library calls its own functions
 * (docs/decisions/0020-unique-symbols.md). Included by the other headers. */

#define filo_begun_sweep scr_filo_begun_sweep
#define filo_check_names scr_filo_check_names
#define filo_extract scr_filo_extract
#define filo_extract_with scr_filo_extract_with
#define filo_fetch scr_filo_fetch
#define filo_file_note_time scr_filo_file_note_time
#define filo_file_was_written scr_filo_file_was_written
#define filo_files_free scr_filo_files_free
#define filo_find_owners scr_filo_find_owners
#define filo_flush scr_filo_flush
#define filo_flush_abandon scr_filo_flush_abandon
#define filo_flush_files scr_filo_flush_files
#define filo_flush_forget scr_filo_flush_forget
#define filo_flush_free scr_filo_flush_free
#define filo_flush_left scr_filo_flush_left
#define filo_flush_start scr_filo_flush_start
#define filo_flush_stop scr_filo_flush_stop
#define filo_flush_test scr_filo_flush_test
#define filo_flush_wait scr_filo_flush_wait
#define filo_map_read scr_filo_map_read
#define filo_map_read_rank scr_filo_map_read_rank
#define filo_map_write scr_filo_map_write
#define filo_read_map scr_filo_read_map
#define filo_register scr_filo_register
#define filo_write_map scr_filo_write_map

#endif
