/* SPDX-License-Identifier: Apache-2.0 */
/* For a test that mounts a small file system in a child, which is skipped on Windows. */
#ifndef EMBLA_TESTS_WINDOWS_MOUNT_H
#define EMBLA_TESTS_WINDOWS_MOUNT_H

#define mount(...)     LACKS_FORK
#define umount(folder) LACKS_FORK

#endif
