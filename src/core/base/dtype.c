/* SPDX-License-Identifier: Apache-2.0 */
/* The dtype table, and functions that query it. */
#include "base/dtype.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/status.h"

static const embla_dtype_info infos[] = {
    [EMBLA_F32] = {"f32", 1, 4, false, &embla_codec_f32},
    [EMBLA_F64] = {"f64", 1, 8, false, &embla_codec_f64},
    [EMBLA_F16] = {"f16", 1, 2, false, &embla_codec_f16},
    [EMBLA_BF16] = {"bf16", 1, 2, false, &embla_codec_bf16},
    [EMBLA_F8_E4M3] = {"f8_e4m3", 1, 1, true, &embla_codec_f8_e4m3},
    [EMBLA_F8_E5M2] = {"f8_e5m2", 1, 1, true, &embla_codec_f8_e5m2},
    [EMBLA_I8] = {"i8", 1, 1, true, &embla_codec_i8},
    [EMBLA_Q8_0] = {"q8_0", 32, 34, false, &embla_codec_q8_0},
    [EMBLA_Q4_0] = {"q4_0", 32, 18, false, &embla_codec_q4_0},
    [EMBLA_Q4_1] = {"q4_1", 32, 20, false, &embla_codec_q4_1},
    [EMBLA_Q5_0] = {"q5_0", 32, 22, false, &embla_codec_q5_0},
    [EMBLA_Q5_1] = {"q5_1", 32, 24, false, &embla_codec_q5_1},
    [EMBLA_Q3_K] = {"q3_k", 256, 110, false, &embla_codec_q3_k},
    [EMBLA_Q4_K] = {"q4_k", 256, 144, false, &embla_codec_q4_k},
    [EMBLA_Q5_K] = {"q5_k", 256, 176, false, &embla_codec_q5_k},
    [EMBLA_Q6_K] = {"q6_k", 256, 210, false, &embla_codec_q6_k},
    [EMBLA_IQ4_NL] = {"iq4_nl", 32, 18, false, &embla_codec_iq4_nl},
    [EMBLA_IQ4_XS] = {"iq4_xs", 256, 136, false, &embla_codec_iq4_xs},
    [EMBLA_MXFP4] = {"mxfp4", 32, 17, false, &embla_codec_mxfp4},
    [EMBLA_NVFP4] = {"nvfp4", 64, 36, false, &embla_codec_nvfp4},
    [EMBLA_F4_E2M1] = {"f4_e2m1", 2, 1, true, &embla_codec_f4_e2m1},
};
enum { COUNT = sizeof infos / sizeof infos[0] };

const embla_dtype_info *embla_dtype_find_info(embla_dtype dtype)
{
    if ((unsigned)dtype >= COUNT || !infos[dtype].name) return NULL;
    return &infos[dtype];
}

embla_status embla_dtype_check(embla_dtype dtype, const embla_dtype_info **out)
{
    const embla_dtype_info *info = embla_dtype_find_info(dtype);
    if (!info)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown dtype %d; dtypes are 1 to %d", (int)dtype,
                          (int)COUNT - 1);
    *out = info;
    return EMBLA_OK;
}

const char *embla_dtype_name(embla_dtype dtype)
{
    const embla_dtype_info *info = embla_dtype_find_info(dtype);
    return info ? info->name : NULL;
}

embla_status embla_dtype_find(const char *name, embla_dtype *out)
{
    char names[256] = "";
    size_t used = 0;
    if (!name || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_dtype_find: name or out is NULL");
    for (int i = 1; i < COUNT; i++) {
        if (strcmp(name, infos[i].name) == 0) {
            *out = (embla_dtype)i;
            return EMBLA_OK;
        }
        int wrote = snprintf(names + used, sizeof names - used, " %s", infos[i].name);
        if (wrote > 0 && (size_t)wrote < sizeof names - used) used += (size_t)wrote;
    }
    return embla_fail(EMBLA_ERR_NOT_FOUND, "unknown dtype '%.64s'; dtypes are%s", name, names);
}

embla_status embla_dtype_row_bytes(embla_dtype dtype, size_t dim, size_t *out)
{
    const embla_dtype_info *info;
    uint64_t bytes;
    EMBLA_TRY(embla_dtype_check(dtype, &info));
    EMBLA_NEED(out);
    if ((dim & (info->block - 1)) != 0)
        return embla_fail(EMBLA_ERR_SHAPE, "dim %zu is not a multiple of %zu, the block size of %s",
                          dim, info->block, info->name);
    if (!embla_mul_ok(dim >> __builtin_ctzll(info->block), info->block_bytes, &bytes) ||
        !embla_size_ok(bytes, out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "a row of %zu %s numbers does not fit in memory", dim,
                          info->name);
    return EMBLA_OK;
}

embla_status embla_dtype_scale(embla_dtype dtype, float scale, float *out)
{
    const embla_dtype_info *info;
    EMBLA_TRY(embla_dtype_check(dtype, &info));
    if (!isfinite(scale))
        return embla_fail(EMBLA_ERR_ARGUMENT, "scale is %g; it must be finite", (double)scale);
    if (!info->scaled && scale != 0.0f && scale != 1.0f)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s has no scale; scale is %g, but must be 0 or 1",
                          info->name, (double)scale);
    *out = scale == 0.0f ? 1.0f : scale;
    return EMBLA_OK;
}

embla_decode_fn *embla_dtype_decoder(embla_dtype dtype, embla_isa isa)
{
    const embla_codec *codec = infos[dtype].codec;
    return EMBLA_ISA_PICK(codec->decode, isa);
}

embla_encode_fn *embla_dtype_encoder(embla_dtype dtype, embla_isa isa)
{
    const embla_codec *codec = infos[dtype].codec;
    return EMBLA_ISA_PICK(codec->encode, isa);
}

bool embla_dtype_writes(embla_dtype dtype)
{
    const embla_dtype_info *info = embla_dtype_find_info(dtype);
    return info && info->codec->encode[EMBLA_ISA_SCALAR];
}

embla_status embla_dtype_check_writes(embla_dtype dtype)
{
    if (embla_dtype_writes(dtype)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "%s is read-only: encoding is not supported",
                      embla_dtype_name(dtype));
}

/* The checks that decode and encode share. */
static embla_status check_coding(embla_dtype dtype, const void *in, size_t dim, float *scale,
                                 const void *out)
{
    size_t bytes;
    EMBLA_TRY(embla_dtype_row_bytes(dtype, dim, &bytes));
    EMBLA_TRY(embla_dtype_scale(dtype, *scale, scale));
    if (dim > 0 && (!in || !out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu numbers, but %s is NULL", dim,
                          in ? "out" : "in");
    return EMBLA_OK;
}

embla_status embla_dtype_decode(embla_dtype dtype, const void *in, size_t dim, float scale,
                                float *out)
{
    EMBLA_TRY(check_coding(dtype, in, dim, &scale, out));
    if (dim == 0) return EMBLA_OK;
    embla_dtype_decoder(dtype, embla_kernels_get()->isa)(in, dim, scale, EMBLA_WRITE_PLAIN, out);
    return EMBLA_OK;
}

embla_status embla_dtype_encode(embla_dtype dtype, const float *in, size_t dim, float scale,
                                void *out)
{
    EMBLA_TRY(check_coding(dtype, in, dim, &scale, out));
    EMBLA_TRY(embla_dtype_check_writes(dtype));
    if (dim == 0) return EMBLA_OK;
    embla_dtype_encoder(dtype, embla_kernels_get()->isa)(in, dim, scale, out);
    return EMBLA_OK;
}
