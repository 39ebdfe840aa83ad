/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that write small checkpoints into a folder and open them: each has a folder of its own,
 * `place`.
 */
#ifndef EMBLA_TESTS_OPENED_H
#define EMBLA_TESTS_OPENED_H

#include "embla_checkpoint.h"
#include "toy.h"

static scratch place;

static inline int opened_setup(void **state)
{
    (void)state;
    scratch_new(&place);
    return 0;
}

static inline int opened_teardown(void **state)
{
    (void)state;
    scratch_free(&place);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened_setup, opened_teardown)

/* Opens name in the folder, "" for the folder itself. */
static inline embla_checkpoint *opened(const char *name)
{
    embla_checkpoint *cp = NULL;
    assert_ok(embla_checkpoint_open(*name ? scratch_path(&place, name) : place.folder, NULL, &cp));
    return cp;
}

static inline size_t tensor_count(const embla_checkpoint *cp)
{
    size_t count;
    (void)embla_checkpoint_tensors(cp, &count);
    return count;
}

/* The n-th note or file; NULL past the last. */
static inline const char *note_at(const embla_checkpoint *cp, size_t n)
{
    size_t count;
    const char *const *notes = embla_checkpoint_notes(cp, &count);
    return n < count ? notes[n] : NULL;
}

static inline const char *file_at(const embla_checkpoint *cp, size_t n, int64_t *bytes)
{
    size_t count;
    const embla_file *files = embla_checkpoint_files(cp, &count);
    if (n < count && bytes) *bytes = files[n].bytes;
    return n < count ? files[n].name : NULL;
}

static inline embla_role role_of(const embla_checkpoint *cp, const char *name)
{
    embla_tensor tensor;
    assert_ok(embla_checkpoint_find(cp, name, &tensor));
    return tensor.role;
}

#endif
