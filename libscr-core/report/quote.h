/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_QUOTE_H
#define SCR_QUOTE_H

/* Texts of unknown origin for terminals and for programs. */

#include <stdbool.h>
#include <stdio.h>

/* Writes text without control sequences for a terminal, and so that a reader can restore
 * the bytes: a byte that is not shown stands as \xNN, a newline as \n, and a backslash
 * precedes each backslash and each of the characters in marks. */
void scr_quote_text(FILE *out, const char *text, const char *marks);

/* Writes text as a JSON string, with its quotes. false if it is not UTF-8: JSON cannot
 * represent such bytes, and each stands as the character of its number. */
bool scr_quote_json(FILE *out, const char *text);

/* The same in memory for a text that reader, a terminal or not, gets later. */
void scr_quote_text_for(FILE *out, FILE *reader, const char *text);
bool scr_quote_json_for(FILE *out, FILE *reader, const char *text);

#endif
