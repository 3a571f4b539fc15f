/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of transfer methods: one row per name that users may configure, including
 * methods that this build lacks. */
#include "src/axl_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const axl_method bbapi_method = {.name = "bbapi"};
static const axl_method dw_method = {.name = "dw"};

static const axl_method *const methods[] = {
    &axl_sync, &axl_pthread, &axl_daemon, &bbapi_method, &dw_method,
};

enum { METHODS = sizeof methods / sizeof methods[0] };

static void method_list_available(char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < METHODS; i++)
        if (methods[i]->start && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     methods[i]->name);
}

int axl_method_find(const char *name, const axl_method **method, axl_error *err)
{
    char available[128];
    method_list_available(available, sizeof available);
    for (int i = 0; i < METHODS; i++) {
        if (!name || strcmp(name, methods[i]->name) != 0) continue;
        if (!methods[i]->start)
            return err_set(err, -ENOTSUP,
                           "transfer method \"%s\" is not part of this build; "
                           "available: %s",
                           name, available);
        *method = methods[i];
        return 0;
    }
    return err_set(err, -EINVAL, "unknown transfer method \"%.60s\"; available: %s",
                   name ? name : "", available);
}
