/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_QUOTE_H
#define SCR_QUOTE_H

/* Texts of unknown origin for terminals and for programs. */

#include <stdbool.h>
#include <stdio.h>

/* Writes text so that a terminal shows no control sequences and a reader can restore the
 * bytes: a byte that is not shown is written as \xNN, a newline as \n, and a backslash
 * precedes each backslash and each of the characters in marks. */
void scr_quote_text(FILE *out, const char *text, const char *marks);

/* Writes text as a JSON string, with its quotes. Returns false if text is not UTF-8: JSON
 * cannot represent such bytes, and each is written as the character with its number. */
bool scr_quote_json(FILE *out, const char *text);

/* Do the same in memory for a text that is later written to reader, a terminal or not. */
void scr_quote_text_for(FILE *out, FILE *reader, const char *text);
bool scr_quote_json_for(FILE *out, FILE *reader, const char *text);

#endif
