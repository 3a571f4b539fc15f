/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

/* Characters in texts of unknown origin that are shown to people. */

#include "common/prefix.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define utf8_length COMMON(utf8_length)
#define utf8_is_hidden COMMON(utf8_is_hidden)
#define utf8_is_shown COMMON(utf8_is_shown)
#define utf8_is_narrow COMMON(utf8_is_narrow)
#define utf8_mask COMMON(utf8_mask)

/* Length of the UTF-8 character at text, and the character; 0 if there is none: cut off,
 * longer than needed, a surrogate, or beyond U+10FFFF. */
size_t utf8_length(const char *text, uint32_t *character);

/* Controls, blanks but the space, characters without width, and those that turn the
 * direction of writing: what a reader would not see, or take for something else. */
bool utf8_is_hidden(uint32_t character);

/* Whether the locale of the environment is one of UTF-8. In others terminals take the
 * bytes 0x80 to 0x9f for controls, which are also parts of characters. */
bool utf8_is_shown(void);

/* Whether out is a terminal with such a locale. */
bool utf8_is_narrow(FILE *out);

/* Replaces what is hidden, or no character, by question marks; is_narrow: all that is not
 * ASCII. */
void utf8_mask(char *text, bool is_narrow);

#endif
