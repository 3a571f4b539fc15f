/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_ALIVE_H
#define TOOL_ALIVE_H

/* Signs of life: a command that works for long on another node prints an empty line now
 * and then, so that who waits for it can tell it from one whose node lost its power.
 *
 *     tool_alive *alive = tool_alive_begin(15);
 *     ... copies ...
 *     tool_alive_end(&alive);
 *
 * Where nobody reads them any more, SIGPIPE ends the command. */

typedef struct tool_alive tool_alive;

/* Prints a line to standard output every so many seconds; 0: none. NULL where there are
 * none, or where there is no thread to be had; nothing else is different then. Whatever
 * stdout holds back is written before. */
tool_alive *tool_alive_begin(int seconds);

/* The last one was printed. *alive may be NULL, and is afterwards. */
void tool_alive_end(tool_alive **alive);

#endif
