/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_QUOTE_H
#define SCR_QUOTE_H

/* Texts of unknown origin for terminals and for programs. */

#include <stdio.h>

/* Writes text so that a terminal obeys nothing in it, and so that the bytes come back
 * exactly: one that is not shown stands as \xNN, a newline as \n, and a backslash comes
 * before each backslash and each of the characters in marks. */
void scr_quote_text(FILE *out, const char *text, const char *marks);

/* Writes text as a JSON string, with its quotes. 0 if it is not UTF-8: JSON has no place
 * for such bytes, and each stands as the character of its number; otherwise 1. */
int scr_quote_json(FILE *out, const char *text);

#endif
