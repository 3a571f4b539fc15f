/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TV_DATA_DISPLAY_H
#define TV_DATA_DISPLAY_H

/* Stand-in for the TotalView header of the same name, with what its documentation allows
 * callbacks to use. The test receives the rows. */

#define TV_ttf_type_ascii_string "$string"

enum {
    TV_ttf_ec_ok,
    TV_ttf_ec_not_active,
    TV_ttf_ec_invalid_characters,
    TV_ttf_ec_buffer_exhausted
};

enum {
    TV_ttf_format_ok,
    TV_ttf_format_ok_elide,
    TV_ttf_format_failed,
    TV_ttf_format_raw,
    TV_ttf_format_never
};

int TV_ttf_add_row(const char *field_name, const char *type_name,
                   const void *value_address);

#endif
