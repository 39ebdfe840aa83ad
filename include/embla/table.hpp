/* SPDX-License-Identifier: Apache-2.0 */
/* embla/table.hpp - tables and what is done with their rows: dtypes, row formats, lookup, embed,
 * positions, pooling, geometry. A part of embla.hpp; the comments are in embla.h. */
#ifndef EMBLA_TABLE_HPP
#define EMBLA_TABLE_HPP

#include <vector>

#include "base.hpp"

namespace embla
{

class checkpoint;

using table_options = zeroed<embla_table_options>;
using table_layout = zeroed<embla_table_layout>;
using init_options = zeroed<embla_init_options>;
using lookup_options = zeroed<embla_lookup_options>;
using embed_options = zeroed<embla_embed_options>;
using rope_options = zeroed<embla_rope_options>;
using rope_layout = zeroed<embla_rope_layout>;
using pool_options = zeroed<embla_pool_options>;
using row_format = zeroed<embla_row_format>;

/* ---- dtypes and row formats ---- */

inline const char *dtype_name(embla_dtype dtype) noexcept
{
    return embla_dtype_name(dtype);
}
inline embla_dtype dtype_find(zstring name)
{
    embla_dtype out{};
    check(embla_dtype_find(name, &out));
    return out;
}
inline std::size_t dtype_row_bytes(embla_dtype dtype, std::size_t dim)
{
    std::size_t out = 0;
    check(embla_dtype_row_bytes(dtype, dim, &out));
    return out;
}
/* As many numbers as out has. */
inline void dtype_decode(embla_dtype dtype, const_memory in, span<float> out, float scale = 0)
{
    detail::need("in", in.bytes(), dtype_row_bytes(dtype, out.size()), "bytes");
    check(embla_dtype_decode(dtype, in.data(), out.size(), scale, out.data()));
}
inline void dtype_encode(embla_dtype dtype, span<const float> in, memory out, float scale = 0)
{
    detail::need("out", out.bytes(), dtype_row_bytes(dtype, in.size()), "bytes");
    check(embla_dtype_encode(dtype, in.data(), in.size(), scale, out.data()));
}
inline std::size_t row_bytes(const embla_row_format &format)
{
    std::size_t out = 0;
    check(embla_row_bytes(&format, &out));
    return out;
}
inline void row_decode(const embla_row_format &format, const_memory rows, std::size_t count,
                       span<float> out)
{
    detail::need("rows", rows.bytes(), detail::times(count, row_bytes(format)), "bytes");
    detail::need("out", out.size(), detail::times(count, format.dim), "numbers");
    check(embla_row_decode(&format, rows.data(), count, out.data()));
}
inline void row_encode(const embla_row_format &format, span<const float> in, std::size_t count,
                       memory out)
{
    detail::need("in", in.size(), detail::times(count, format.dim), "numbers");
    detail::need("out", out.bytes(), detail::times(count, row_bytes(format)), "bytes");
    check(embla_row_encode(&format, in.data(), count, out.data()));
}
inline const char *placement_name(embla_placement placement) noexcept
{
    return embla_placement_name(placement);
}

/* ---- table ---- */

class table : public handle<table, embla_table, embla_table_free>
{
  public:
    table() noexcept = default;
    table(embla_dtype dtype, std::int64_t rows, std::size_t dim,
          const embla_table_options &options = {})
    {
        embla_table *out = nullptr;
        check(embla_table_new(dtype, rows, dim, &options, &out));
        hold(out, true);
    }
    /* The bytes must stay where they are until the table is freed. */
    static table view(const embla_table_layout &layout, const_memory data,
                      const embla_table_options &options = {})
    {
        embla_table *out = nullptr;
        check(embla_table_view(&layout, data.data(), data.bytes(), &options, &out));
        return adopt(out);
    }
    static table open(const checkpoint &from, zstring name = nullptr,
                      const embla_table_options &options = {}); /* in checkpoint.hpp */

    std::int64_t rows() const noexcept
    {
        return embla_table_rows(get());
    }
    std::size_t dim() const noexcept
    {
        return embla_table_dim(get());
    }
    std::int64_t tokens() const noexcept
    {
        return embla_table_tokens(get());
    }
    embla_dtype dtype() const noexcept
    {
        return embla_table_dtype(get());
    }
    float scale() const noexcept
    {
        return embla_table_scale(get());
    }
    embla_placement placement() const noexcept
    {
        return embla_table_placement(get());
    }
    std::size_t row_bytes() const noexcept
    {
        return embla_table_row_bytes(get());
    }
    std::size_t row_stride() const noexcept
    {
        return embla_table_row_stride(get());
    }
    /* Empty if there is no such row, or if the rows are not in memory. */
    span<const std::byte> row(std::int64_t row) const noexcept
    {
        const void *found = embla_table_row(get(), row);
        return {static_cast<const std::byte *>(found), found != nullptr ? row_bytes() : 0};
    }
    /* From row 0 to the end of the last row; empty if the table is read-only. */
    span<std::byte> data()
    {
        void *found = embla_table_data(get());
        const auto count = static_cast<std::size_t>(found != nullptr ? rows() : 0);
        return {static_cast<std::byte *>(found), detail::extent(count, row_stride(), row_bytes())};
    }
    void find_rows(span<const std::int32_t> tokens, span<std::int64_t> out) const
    {
        detail::need("out", out.size(), tokens.size(), "numbers");
        check(embla_table_find_rows(get(), tokens.data(), tokens.size(), out.data()));
    }
    /* embla_table_find_rows without an output */
    void check_tokens(span<const std::int32_t> tokens) const
    {
        check(embla_table_find_rows(get(), tokens.data(), tokens.size(), nullptr));
    }
    void check_rows(span<const std::int64_t> rows) const
    {
        check(embla_table_check_rows(get(), rows.data(), rows.size()));
    }
    void init(const embla_init_options &options = {})
    {
        check(embla_table_init(get(), &options));
    }
    /* Whole rows: as many as the values are. */
    void write(std::int64_t first, span<const float> values)
    {
        const std::size_t each = dim(), count = each != 0 ? values.size() / each : 0;
        detail::same("values", values.size(), detail::times(count, each));
        check(embla_table_write(get(), first, count, values.data()));
    }
};

/* ---- lookup and embed ---- */

namespace detail
{
inline std::size_t lookup_bytes(const table &from, std::size_t count,
                                const embla_lookup_options &options)
{
    const std::size_t each =
        options.raw ? from.row_bytes() : times(from.dim(), written(options.out_dtype));
    return extent(count, options.out_stride, each);
}
} // namespace detail

inline void lookup(const table &from, span<const std::int32_t> tokens, memory out,
                   const embla_lookup_options &options = {})
{
    detail::need("out", out.bytes(), detail::lookup_bytes(from, tokens.size(), options), "bytes");
    check(embla_lookup(from.get(), tokens.data(), tokens.size(), &options, out.data()));
}
/* The rows as f32, in a new array. */
inline std::vector<float> lookup(const table &from, span<const std::int32_t> tokens)
{
    std::vector<float> out(detail::times(tokens.size(), from.dim()));
    lookup(from, tokens, out);
    return out;
}
inline void lookup_rows(const table &from, span<const std::int64_t> rows, memory out,
                        const embla_lookup_options &options = {})
{
    detail::need("out", out.bytes(), detail::lookup_bytes(from, rows.size(), options), "bytes");
    check(embla_lookup_rows(from.get(), rows.data(), rows.size(), &options, out.data()));
}
/* options.positions, if it is set, has batch x length numbers: that is not checked. */
inline void embed(const table &from, span<const std::int32_t> tokens, std::size_t batch,
                  std::size_t length, memory out, const embla_embed_options &options = {})
{
    const std::size_t count = detail::times(batch, length);
    const std::size_t each = detail::times(from.dim(), detail::written(options.out_dtype));
    detail::same("tokens", tokens.size(), count);
    detail::need("out", out.bytes(), detail::extent(count, options.out_stride, each), "bytes");
    check(embla_embed(from.get(), tokens.data(), batch, length, &options, out.data()));
}

/* ---- positions by formula ---- */

inline void sinusoid(std::int64_t first, std::size_t count, std::size_t dim, span<float> out,
                     double base = 0)
{
    detail::need("out", out.size(), detail::times(count, dim), "numbers");
    check(embla_sinusoid(first, count, dim, base, out.data()));
}

/* It keeps dim beside the handle of C, which has no function for it. */
class rope : public handle<rope, embla_rope, embla_rope_free>
{
  public:
    rope() noexcept = default;
    explicit rope(std::size_t dim, const embla_rope_options &options = {}) : dim_(dim)
    {
        embla_rope *out = nullptr;
        check(embla_rope_new(dim, &options, &out));
        hold(out, true);
    }
    static rope adopt(embla_rope *pointer, std::size_t dim) noexcept
    {
        rope made = handle::adopt(pointer);
        made.dim_ = dim;
        return made;
    }
    static rope borrow(embla_rope *pointer, std::size_t dim) noexcept
    {
        rope made = handle::borrow(pointer);
        made.dim_ = dim;
        return made;
    }
    /* A group of heads for each position. */
    void apply(span<const std::int64_t> positions, std::size_t heads, span<float> x,
               const embla_rope_layout &layout = {}) const
    {
        detail::need("x", x.size(), numbers(positions.size(), heads, layout), "numbers");
        check(
            embla_rope_apply(get(), positions.data(), positions.size(), heads, &layout, x.data()));
    }
    void transpose(span<const std::int64_t> positions, std::size_t heads, span<float> x,
                   const embla_rope_layout &layout = {}) const
    {
        detail::need("x", x.size(), numbers(positions.size(), heads, layout), "numbers");
        check(embla_rope_transpose(get(), positions.data(), positions.size(), heads, &layout,
                                   x.data()));
    }

  private:
    std::size_t numbers(std::size_t count, std::size_t heads, const embla_rope_layout &layout) const
    {
        if (heads == 0) return 0;
        const std::size_t head = layout.head_stride != 0 ? layout.head_stride : dim_;
        const std::size_t group =
            layout.group_stride != 0 ? layout.group_stride : detail::times(heads, head);
        return detail::extent(count, group, detail::extent(heads, head, dim_));
    }

    std::size_t dim_ = 0;
};

/* ---- pool ---- */

/* options.lengths and .weights, if set, have batch and batch x length numbers: that is not
 * checked. */
inline void pool(span<const float> x, std::size_t batch, std::size_t length, std::size_t dim,
                 span<float> out, const embla_pool_options &options = {})
{
    detail::need("x", x.size(), detail::times(detail::times(batch, length), dim), "numbers");
    detail::need("out", out.size(), detail::times(batch, dim), "numbers");
    check(embla_pool(x.data(), batch, length, dim, &options, out.data()));
}
inline void lookup_pool(const table &from, span<const std::int32_t> tokens, std::size_t batch,
                        std::size_t length, span<float> out, const embla_pool_options &options = {})
{
    detail::same("tokens", tokens.size(), detail::times(batch, length));
    detail::need("out", out.size(), detail::times(batch, from.dim()), "numbers");
    check(embla_lookup_pool(from.get(), tokens.data(), batch, length, &options, out.data()));
}

/* ---- geometry ---- */

inline double dot(span<const float> x, span<const float> y)
{
    detail::same("y", y.size(), x.size());
    return embla_dot(x.data(), y.data(), x.size());
}
inline double norm(span<const float> x) noexcept
{
    return embla_norm(x.data(), x.size());
}
inline double cosine(span<const float> x, span<const float> y)
{
    detail::same("y", y.size(), x.size());
    return embla_cosine(x.data(), y.data(), x.size());
}

} // namespace embla
#endif
