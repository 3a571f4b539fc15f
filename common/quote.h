/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_QUOTE_H
#define COMMON_QUOTE_H

/* Texts of unknown origin for terminals. */

#include "common/prefix.h"
#include <stdio.h>

#define quote_text COMMON(quote_text)
#define quote_text_for COMMON(quote_text_for)

/* Writes text so that a terminal obeys nothing in it, and so that the bytes come back
 * exactly: one that is not shown stands as \xNN, a newline as \n, and a backslash comes
 * before each backslash and each of the characters in marks. */
void quote_text(FILE *out, const char *text, const char *marks);

/* The same in memory for a text that reader, a terminal or not, gets later. */
void quote_text_for(FILE *out, FILE *reader, const char *text, const char *marks);

#endif
