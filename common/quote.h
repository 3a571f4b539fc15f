/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_QUOTE_H
#define COMMON_QUOTE_H

/* Output of texts of unknown origin to terminals. */

#include "common/prefix.h"
#include <stdio.h>

#define quote_text COMMON(quote_text)
#define quote_text_for COMMON(quote_text_for)

/* Writes text so that a terminal interprets nothing in it, and so that the bytes can be
 * restored exactly: bytes that are not shown become \xNN, a newline becomes \n, and a
 * backslash precedes each backslash and each of the characters in marks. */
void quote_text(FILE *out, const char *text, const char *marks);

/* Like quote_text, writing to memory (out) a text that is later written to reader, a
 * terminal or not. */
void quote_text_for(FILE *out, FILE *reader, const char *text, const char *marks);

#endif
