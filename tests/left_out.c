/* SPDX-License-Identifier: Apache-2.0 */
/* For systems that cannot run every case of a test program: the folder of the system has the list
 * left_out.h, and its posix.h calls these functions. */
#include "left_out.h"

#undef _cmocka_run_group_tests

#include "check.h"

int test_lacks(const char *what);
int test_run(const char *group, const struct CMUnitTest *tests, size_t count,
             CMFixtureFunction setup, CMFixtureFunction teardown);

int test_lacks(const char *what)
{
    print_message("%s\n", what);
    skip();
    return -1;
}

static void leave_out(void **state)
{
    (void)test_lacks(*state);
}

int test_run(const char *group, const struct CMUnitTest *tests, size_t count,
             CMFixtureFunction setup, CMFixtureFunction teardown)
{
    struct CMUnitTest *all = malloc(count * sizeof *all);
    if (!all) abort();
    memcpy(all, tests, count * sizeof *all);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < COUNT_OF(left_out); k++) {
            if (!all[i].name || strcmp(all[i].name, left_out[k].name) != 0) continue;
            all[i] = (struct CMUnitTest){.name = all[i].name, .test_func = leave_out};
            all[i].initial_state = (void *)(uintptr_t)left_out[k].reason;
        }
    int failed = _cmocka_run_group_tests(group, all, count, setup, teardown);
    free(all);
    return failed;
}
