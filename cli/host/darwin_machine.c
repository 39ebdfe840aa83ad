/* SPDX-License-Identifier: Apache-2.0 */
/* macOS: memory, CPUs, and the path of the program. */
#include "host/host.h"

#include <mach-o/dyld.h>
#include <mach/mach.h>
#include <sys/sysctl.h>
#include <unistd.h>

/* Pages that are free, or that hold files and can be read again. */
int64_t cli_host_memory(const char **why)
{
    vm_statistics64_data_t pages;
    mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
    *why = "";
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&pages, &count) !=
        KERN_SUCCESS)
        return INT64_MAX;
    *why = "the machine";
    return ((int64_t)pages.free_count + pages.inactive_count) * (int64_t)sysconf(_SC_PAGESIZE);
}

int cli_host_cpus(void)
{
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 0 && all <= 1 << 20 ? (int)all : 1;
}

bool cli_program_path(char *out, size_t size)
{
    uint32_t room = (uint32_t)size;
    return _NSGetExecutablePath(out, &room) == 0;
}
