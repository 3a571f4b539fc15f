/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of signals; see config/signals.h. */
#include "config/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <strings.h>

const scr_signal_name scr_signal_names[SCR_SIGNALS] = {
    {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"INT", SIGINT},
    {"HUP", SIGHUP},   {"QUIT", SIGQUIT}, {"XCPU", SIGXCPU}};

static int signals_find(const char *name, size_t length)
{
    if (length > 3 && strncasecmp(name, "SIG", 3) == 0) {
        name += 3;
        length -= 3;
    }
    for (int i = 0; i < SCR_SIGNALS; i++)
        if (strlen(scr_signal_names[i].name) == length &&
            strncasecmp(scr_signal_names[i].name, name, length) == 0)
            return i;
    return -1;
}

int scr_signals_parse(const char *text, unsigned *set)
{
    static const char between[] = ", ";
    unsigned found = 0;
    int i = 0;
    if (strcasecmp(text, "NONE") == 0) {
        *set = 0;
        return 0;
    }
    for (text += strspn(text, between); *text; text += strspn(text, between)) {
        size_t length = strcspn(text, between);
        i = signals_find(text, length);
        if (i < 0) return -EINVAL;
        found |= 1u << i;
        text += length;
    }
    if (!found) return -EINVAL;
    *set = found;
    return 0;
}

const char *scr_signal_text(int number)
{
    for (int i = 0; i < SCR_SIGNALS; i++)
        if (scr_signal_names[i].number == number) return scr_signal_names[i].name;
    return "?";
}
