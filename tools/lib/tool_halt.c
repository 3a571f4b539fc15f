/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages about halt conditions; see tool_halt.h. */
#include "lib/tool_halt.h"

#include "lib/tool.h"
#include "lib/tool_manager.h"
#include "lib/tool_words.h"
#include <errno.h>
#include <kvtree/kvtree_util.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int halt_text_begins(const char *text, const char *start)
{
    return text && strncmp(text, start, strlen(start)) == 0;
}

/* Returns a copy of halt without the reason that SCR recorded itself. all 0: removes that
 * reason only if it says that the program called SCR_Finalize. */
static kvtree *halt_text_copy(const kvtree *halt, int all)
{
    kvtree *rest = kvtree_new();
    if (!rest || kvtree_merge(rest, halt) != 0) {
        kvtree_delete(&rest);
        return NULL;
    }
    const char *reason = kvtree_elem_get_first_val(rest, SCR_HALT_KEY_REASON);
    if (all || halt_text_begins(reason, SCR_HALT_FINALIZED))
        scr_halt_drop_own_reason(rest);
    return rest;
}

int tool_halt_stopped(const kvtree *halt, const scr_halt_end *end, int64_t now,
                      char reason[SCR_HALT_REASON_SIZE])
{
    kvtree *rest = halt_text_copy(halt, 0);
    int stopped = rest ? scr_halt_check(rest, end, now, reason) : -ENOMEM;
    kvtree_delete(&rest);
    return stopped;
}

bool tool_halt_is_own(const kvtree *halt, const scr_halt_end *end, int64_t now)
{
    char ignored[SCR_HALT_REASON_SIZE];
    kvtree *rest = halt_text_copy(halt, 1);
    bool own = rest && kvtree_get(halt, SCR_HALT_KEY_REASON) &&
               !kvtree_get(rest, SCR_HALT_KEY_REASON) &&
               !scr_halt_check(rest, end, now, ignored);
    kvtree_delete(&rest);
    return own;
}

char *tool_halt_remove(const char *path)
{
    const char *const list[] = {"scr_halt", "--remove", path, NULL};
    tool_words words = {0};
    tool_words_add_all(&words, list);
    return tool_words_line(&words);
}

/* A reason that SCR recorded itself needs no remedy: the next run removes it. */
char *tool_halt_remedy(const kvtree *halt, const scr_halt_end *end, int64_t now,
                       const char *path)
{
    char *text = NULL;
    int own = tool_halt_is_own(halt, end, now);
    kvtree *rest = halt_text_copy(halt, 1);
    if (!rest) return NULL;
    int wish = !own && scr_halt_is_request(rest, now);
    kvtree_delete(&rest);
    char *command = wish ? tool_halt_remove(path) : NULL;
    if (wish && !command) return NULL;
    int n =
        wish  ? asprintf(&text, "to continue: %s, and start it again", command)
        : own ? asprintf(&text, "to continue: start it again; nothing has to be removed")
              : asprintf(&text, "to continue: start it again in a new allocation");
    free(command);
    return n < 0 ? NULL : text;
}

char *tool_halt_damaged(const char *path)
{
    char *text = NULL, *command = tool_halt_remove(path);
    int n = command
                ? asprintf(&text,
                           "what the halt file asked for is lost; to continue: %s, and "
                           "start it again",
                           command)
                : -1;
    free(command);
    return n < 0 ? NULL : text;
}

/* ---- the halt file ---- */

enum { ANSWER = 30 /* timeout of the batch system in seconds */ };

/* Finds the end of the allocation if a condition depends on it. If the batch system does
 * not answer, this is reported and the end remains unknown. */
static int halt_find_end(const tool_prefix *prefix, const kvtree *halt, scr_halt_end *end)
{
    int code = tool_manager_find_end(prefix, 0, end);
    if (code == COMMAND_GOOD && !end->time && kvtree_get(halt, SCR_HALT_KEY_SECONDS))
        tool_manager_end(ANSWER, end);
    return code;
}

int tool_halt_find(const tool_prefix *prefix, kvtree *halt, scr_halt_end *end,
                   char reason[SCR_HALT_REASON_SIZE])
{
    kvtree_error err = {"no memory"};
    int rc = halt ? scr_halt_read(prefix->dir, halt, &err) : -ENOMEM;
    int code = halt_find_end(prefix, halt, end);
    if (rc) tool_say(HALT_FILE_UNREADABLE, "%s: %s", prefix->path, err.text);
    char *remedy = rc == -EBADMSG ? tool_halt_damaged(prefix->path) : NULL;
    if (remedy) tool_say(HALT_REMEDY, "%s", remedy);
    free(remedy);
    if (rc || code != COMMAND_GOOD) return -1;
    return scr_halt_check(halt, end, time(NULL), reason);
}
