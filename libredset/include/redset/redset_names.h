/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDSET_REDSET_NAMES_H
#define REDSET_REDSET_NAMES_H

/* The symbols of the functions in the shared and static libraries. Other libraries have
 * functions of the same names: with these symbols a program can use both, in any link
 * order, and each library calls its own functions
 * (docs/decisions/0020-unique-symbols.md). Included by the other headers. */

#define redset_adopt scr_redset_adopt
#define redset_adopt_with scr_redset_adopt_with
#define redset_choose scr_redset_choose
#define redset_create scr_redset_create
#define redset_encode scr_redset_encode
#define redset_encode_with scr_redset_encode_with
#define redset_file_name scr_redset_file_name
#define redset_file_name_parse scr_redset_file_name_parse
#define redset_found_free scr_redset_found_free
#define redset_free scr_redset_free
#define redset_get_place scr_redset_get_place
#define redset_manifest_free scr_redset_manifest_free
#define redset_measure scr_redset_measure
#define redset_read_header scr_redset_read_header
#define redset_rebuild scr_redset_rebuild
#define redset_rebuild_folder scr_redset_rebuild_folder
#define redset_rebuild_folder_with scr_redset_rebuild_folder_with
#define redset_recover scr_redset_recover
#define redset_scheme_from_name scr_redset_scheme_from_name
#define redset_scheme_name scr_redset_scheme_name
#define redset_set_piece scr_redset_set_piece
#define redset_set_progress scr_redset_set_progress
#define redset_verify scr_redset_verify
#define redset_verify_folder scr_redset_verify_folder

#endif
