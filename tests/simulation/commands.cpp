/* SPDX-License-Identifier: BSD-3-Clause */
/* Background programs: scr_transfer. */
#include "engine.h"

extern "C" {
#include "src/axl_private.h"
}

namespace sim
{

/* scr_transfer --background --leave FILE */
int run_command(const std::vector<std::string> &words)
{
    static const volatile int never = 0;
    axl_service service{};
    service.path = words.back().c_str();
    service.interval = 1;
    service.leave = true;
    service.background = true;
    service.stop = &never;
    service.owner = -1;
    axl_error err = {""};
    int rc = axl_serve(&service, &err);
    return rc == -EBUSY ? AXL_ATTENDED : rc ? 1 : 0;
}

} // namespace sim
