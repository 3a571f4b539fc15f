/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMMON_PREFIX_H
#define COMMON_PREFIX_H

/* Every library compiles its own hidden copy of the sources in common/. The build defines
 * COMMON_PREFIX (the library's own name), and each common function takes that name as a
 * prefix, so that static and shared libraries can be linked into one program without a
 * clash. */

#ifndef COMMON_PREFIX
#error "COMMON_PREFIX must be defined by the build (see the meson.build of a library)"
#endif

#define COMMON_PASTE_(prefix, name) prefix##_common_##name
#define COMMON_PASTE(prefix, name) COMMON_PASTE_(prefix, name)
#define COMMON(name) COMMON_PASTE(COMMON_PREFIX, name)

#endif
