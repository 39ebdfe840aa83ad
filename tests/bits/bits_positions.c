/* SPDX-License-Identifier: Apache-2.0 */
/* Positions by formula: sinusoidal, and rotary in every order and scaling. */
#include <stdlib.h>
#include <string.h>

#include "bits.h"

enum { DIM = 64, COUNT = 40, HEADS = 3 };

static void note_sinusoids(void)
{
    float *out = bits_room(200 * 96 * sizeof *out);
    OK(embla_sinusoid(0, 200, 96, 0, out));
    bits_note_f32(out, 200 * 96, "sinusoid");
    OK(embla_sinusoid(100000, 200, 96, 500000, out));
    bits_note_f32(out, 200 * 96, "sinusoid.far");
    OK(embla_sinusoid(INT64_C(1) << 40, 200, 96, 0, out));
    bits_note_f32(out, 200 * 96, "sinusoid.farther");
    free(out);
}

static void note_rope(const embla_rope_options *options, const char *name)
{
    const size_t numbers = COUNT * HEADS * DIM;
    embla_rope *rope = NULL;
    float *x = bits_numbers(21, numbers);
    int64_t positions[COUNT];
    uint64_t seed = 22;
    for (size_t i = 0; i < COUNT; i++)
        positions[i] = i < COUNT / 2 ? (int64_t)i : (int64_t)bits_below(&seed, 1u << 20);
    OK(embla_rope_new(DIM, options, &rope));
    OK(embla_rope_apply(rope, positions, COUNT, HEADS, NULL, x));
    bits_note_f32(x, numbers, "rope.%s", name);
    OK(embla_rope_transpose(rope, positions, COUNT, HEADS, NULL, x));
    bits_note_f32(x, numbers, "rope.%s.transpose", name);
    embla_rope_free(rope);
    free(x);
}

void bits_positions(void)
{
    note_sinusoids();
    note_rope(NULL, "plain");
    note_rope(&(embla_rope_options){.order = EMBLA_ROPE_ORDER_HALF_SPLIT, .cached = 30}, "halves");
    note_rope(&(embla_rope_options){.theta = 500000}, "theta");
    note_rope(&(embla_rope_options){.scaling = EMBLA_ROPE_SCALING_LINEAR, .factor = 4}, "linear");
    note_rope(&(embla_rope_options){.scaling = EMBLA_ROPE_SCALING_NTK, .factor = 4}, "ntk");
    note_rope(&(embla_rope_options){.scaling = EMBLA_ROPE_SCALING_YARN,
                                    .factor = 16,
                                    .context = 4096,
                                    .order = EMBLA_ROPE_ORDER_HALF_SPLIT},
              "yarn");
    note_rope(
        &(embla_rope_options){
            .scaling = EMBLA_ROPE_SCALING_LLAMA3, .theta = 500000, .factor = 8, .context = 8192},
        "llama3");
}
