/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCR_SIGNALS_H
#define SCR_SIGNALS_H

/* Names of the signals that can request a halt: SCR_HALT_SIGNALS. */

typedef struct scr_signal_name {
    const char *name; /* "TERM" */
    int number;
} scr_signal_name;

enum { SCR_SIGNALS = 7 };
extern const scr_signal_name scr_signal_names[SCR_SIGNALS];

/* Parses "TERM,USR1", "SIGTERM USR1" or "NONE", in any case. Bit i of *set stands for
 * scr_signal_names[i]. Returns 0 or -EINVAL. */
int scr_signals_parse(const char *text, unsigned *set);

/* Returns the name of a signal in the table; "?" for others. */
const char *scr_signal_text(int number);

#endif
