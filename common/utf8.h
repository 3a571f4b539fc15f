/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

/* Characters in texts of unknown origin that are shown to users. */

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

/* Returns the length of the UTF-8 character at text, and the character; 0 if it is
 * invalid: incomplete, longer than needed, a surrogate, or beyond U+10FFFF. */
size_t utf8_length(const char *text, uint32_t *character);

/* Whether a reader would not see the character or mistake it: control characters, blanks
 * except the space, characters without width, and characters that change the writing
 * direction. */
bool utf8_is_hidden(uint32_t character);

/* Whether the locale of the environment uses UTF-8. In other locales, terminals interpret
 * the bytes 0x80 to 0x9f, which also occur within characters, as controls. */
bool utf8_is_shown(void);

/* Whether out is a terminal without such a locale. */
bool utf8_is_narrow(FILE *out);

/* Replaces hidden and invalid characters by question marks; is_narrow: also all
 * characters that are not ASCII. */
void utf8_mask(char *text, bool is_narrow);

#endif
