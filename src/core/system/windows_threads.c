/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: threads, libraries and the process. */
#include "system/system_threads.h"

#include "system/win.h"

#include <limits.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* RtlGenRandom: the name under which advapi32.dll has it. */
BOOLEAN NTAPI SystemFunction036(void *out, ULONG bytes);

/* ---- threads ---- */

enum { STACK_BYTES = 2 << 20 };

typedef struct {
    void *(*run)(void *argument);
    void *argument;
} task;

static unsigned __stdcall run_task(void *given)
{
    task t = *(task *)given;
    free(given);
    (void)t.run(t.argument);
    return 0;
}

void embla_win_stay(void)
{
    HMODULE ours;
    (void)GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                             (const wchar_t *)(uintptr_t)embla_win_stay, &ours);
}

embla_outcome embla_system_start(void *(*run)(void *argument), void *argument, embla_thread *out)
{
    task *t = malloc(sizeof *t);
    if (!t) return embla_win_outcome(ERROR_NOT_ENOUGH_MEMORY);
    *t = (task){.run = run, .argument = argument};
    embla_win_stay();
    uintptr_t thread =
        _beginthreadex(NULL, STACK_BYTES, run_task, t, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (thread == 0) {
        free(t);
        return embla_win_outcome(ERROR_NO_SYSTEM_RESOURCES);
    }
    if (out)
        *out = thread;
    else
        (void)CloseHandle((HANDLE)thread);
    return embla_win_outcome(ERROR_SUCCESS);
}

void embla_system_join(embla_thread thread)
{
    (void)WaitForSingleObject((HANDLE)thread, INFINITE);
    (void)CloseHandle((HANDLE)thread);
}

void embla_system_name_thread(const char *name)
{
    typedef HRESULT(WINAPI * describe)(HANDLE thread, const wchar_t *name);
    wchar_t wide[32];
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    describe call = (describe)embla_system_symbol(kernel, "SetThreadDescription"); /* since 1607 */
    if (call && embla_win_widen(name, wide, sizeof wide / sizeof wide[0]))
        (void)call(GetCurrentThread(), wide);
}

void embla_system_wait(atomic_uint *word, unsigned seen)
{
    (void)WaitOnAddress((volatile void *)(uintptr_t)word, &seen, sizeof seen, INFINITE);
}

void embla_system_wake(atomic_uint *word, int count)
{
    if (count == 1)
        WakeByAddressSingle(word);
    else
        WakeByAddressAll(word);
}

void embla_system_watch_forks(void (*in_child)(void))
{
    (void)in_child;
}

/* A process that may use only some CPUs is in one group, which has at most 64. */
int embla_system_cpus(void)
{
    DWORD_PTR ours = 0, all = 0;
    DWORD every = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    bool known = GetProcessAffinityMask(GetCurrentProcess(), &ours, &all) && ours != 0;
    if (!known || ours == all) return every > 0 && every < INT_MAX ? (int)every : 1;
    return __builtin_popcountll(ours);
}

bool embla_system_key(void (*at_end)(void *value), embla_thread_key *out)
{
    DWORD key = FlsAlloc(at_end);
    if (key == FLS_OUT_OF_INDEXES) return false;
    if (at_end) embla_win_stay();
    *out = key;
    return true;
}

void *embla_system_value(embla_thread_key key)
{
    DWORD before = GetLastError(); /* which this call would set to 0 */
    void *value = FlsGetValue(key);
    SetLastError(before);
    return value;
}

bool embla_system_set_value(embla_thread_key key, void *value)
{
    return FlsSetValue(key, value) != 0;
}

void embla_system_block_signals(embla_signals *before)
{
    *before = (embla_signals){0};
}

void embla_system_restore_signals(const embla_signals *before)
{
    (void)before;
}

/* ---- libraries ---- */

void *embla_system_load(const char *name, unsigned kind, char *why, size_t size)
{
    embla_win_path path;
    HMODULE library;
    if (!name) return (void *)GetModuleHandleW(NULL);
    if (!embla_win_widen(name, path.text, EMBLA_WIN_PATH)) {
        (void)snprintf(why, size, "%s: its name is not valid UTF-8", name);
        return NULL;
    }
    /* A name alone is not looked for in the folder that one happens to be in. */
    DWORD where = embla_system_slash(name) ? 0 : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    library = LoadLibraryExW(path.text, NULL, where);
    if (!library) {
        (void)snprintf(why, size, "%s: ", name);
        size_t used = strnlen(why, size);
        embla_system_describe((int)GetLastError(), why + used, size - used);
        return NULL;
    }
    if (kind & EMBLA_LOAD_STAYS) /* once more, so that unloading leaves it */
        (void)LoadLibraryExW(path.text, NULL, where);
    return (void *)library;
}

void embla_system_unload(void *library)
{
    (void)FreeLibrary((HMODULE)library);
}

void *embla_system_symbol(void *library, const char *name)
{
    return (void *)(uintptr_t)GetProcAddress((HMODULE)library, name);
}

bool embla_system_home(const void *address, char *out, size_t size)
{
    embla_win_path path;
    HMODULE home;
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (const wchar_t *)address, &home))
        return false;
    DWORD length = GetModuleFileNameW(home, path.text, EMBLA_WIN_PATH);
    return length > 0 && length < EMBLA_WIN_PATH && embla_win_narrow(path.text, out, size);
}

/* ---- the process ---- */

long embla_system_process(void)
{
    return (long)GetCurrentProcessId();
}

unsigned embla_system_user(void)
{
    return 0;
}

bool embla_system_random(void *out, size_t bytes)
{
    return bytes <= ULONG_MAX && SystemFunction036(out, (ULONG)bytes);
}

void embla_system_sleep(int64_t nanoseconds)
{
    int64_t milliseconds = (nanoseconds + 999999) / 1000000;
    Sleep(milliseconds > 0 ? (DWORD)(milliseconds < INT_MAX ? milliseconds : INT_MAX) : 0);
}

int64_t embla_system_clock(void)
{
    LARGE_INTEGER now, each;
    (void)QueryPerformanceCounter(&now);
    (void)QueryPerformanceFrequency(&each);
    int64_t seconds = now.QuadPart / each.QuadPart, rest = now.QuadPart % each.QuadPart;
    return seconds * 1000000000 + rest * 1000000000 / each.QuadPart;
}

const char *embla_system_memory_folder(void)
{
    return NULL;
}

embla_outcome embla_system_event(embla_handle *out)
{
    *out = EMBLA_NO_FILE;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

embla_outcome embla_system_signal(embla_handle event)
{
    (void)event;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}
