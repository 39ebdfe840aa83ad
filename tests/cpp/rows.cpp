/* SPDX-License-Identifier: Apache-2.0 */
/* embla/base.hpp and embla/table.hpp: arrays, errors, handles, tables, and what is done with rows.
 */
#include <array>
#include <cmath>
#include <cstring>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "expect.hpp"

namespace
{

const std::array<float, 5 * 2> numbers = {0.1f, -0.2f, 0.5f,  0.6f,  -0.9f,
                                          0.1f, 0.4f,  -0.5f, -0.1f, 0.8f};

embla::table five_rows()
{
    embla::table_layout layout;
    layout.dtype = EMBLA_F32;
    layout.rows = 5;
    layout.dim = 2;
    return embla::table::view(layout, numbers);
}

/* What must not compile is asked of the types. */
template <class A, class B> constexpr bool makes = std::is_constructible_v<A, B>;
static_assert(makes<embla::span<const float>, const std::vector<float> &>);
static_assert(makes<embla::span<const float>, std::vector<float>>);
static_assert(makes<embla::span<float>, std::vector<float> &>);
static_assert(!makes<embla::span<float>, const std::vector<float> &>);
static_assert(!makes<embla::span<float>, std::vector<float>>); /* it would be written, and lost */
static_assert(!makes<embla::span<const float>, std::vector<double> &>);
static_assert(makes<embla::memory, std::vector<double> &>);
static_assert(!makes<embla::memory, const std::vector<double> &>);
static_assert(!makes<embla::memory, std::vector<double>>);
static_assert(makes<embla::const_memory, const std::vector<double> &>);
static_assert(makes<embla::const_memory, std::string_view>);
static_assert(std::is_nothrow_move_constructible_v<embla::table>);
static_assert(!std::is_copy_constructible_v<embla::table>);
static_assert(!std::is_copy_assignable_v<embla::store>);
static_assert(!std::is_copy_constructible_v<embla::ticket>);

void arrays_become_spans()
{
    std::vector<float> vector = {1, 2, 3};
    float array[2] = {4, 5};
    const embla::span<const float> of_vector = vector, of_array = array, of_constant = numbers;
    EXPECT(of_vector.size() == 3 && of_vector.data() == vector.data() && of_vector[2] == 3);
    EXPECT(of_array.size() == 2 && of_array.data() == array);
    EXPECT(of_constant.size() == 10 && embla::span<float>().empty());
    const embla::span<const float> part = of_vector.subspan(1, 2);
    EXPECT(part.size() == 2 && part[0] == 2 && part.end() - part.begin() == 2);
    EXPECT(thrown([&] { part.subspan(1, 2); }).status == EMBLA_ERR_RANGE);
    EXPECT(thrown([&] { part.subspan(3, 0); }).status == EMBLA_ERR_RANGE);
    float sum = 0;
    for (const float number : part) sum += number;
    EXPECT(sum == 5);
    const embla::memory bytes = vector, of_pointer(array, sizeof array);
    EXPECT(bytes.bytes() == 12 && bytes.data() == vector.data() && of_pointer.bytes() == 8);
#if defined(__cpp_lib_span)
    const std::span<float> theirs = vector;
    const embla::span<const float> ours = theirs;
    const std::span<const float> back = ours;
    EXPECT(ours.size() == 3 && back.data() == vector.data() && back.size() == 3);
    const embla::span<float> temporary = std::span<float>(vector);
    EXPECT(embla::memory(std::span<float>(vector)).bytes() == 12 && temporary.size() == 3);
#endif
}

void errors_have_a_status_and_a_sentence()
{
    const embla::table table = five_rows();
    const std::vector<std::int32_t> wrong = {2, 5, 0};
    std::vector<float> out(6, 7);
    const thrown range([&] { embla::lookup(table, wrong, out); });
    EXPECT(range.status == EMBLA_ERR_RANGE);
    EXPECT(range.sentence == "token 5 at index 1 is out of range: the table has 5 rows");
    EXPECT(range.sentence == embla_error());
    const std::string name = std::string("a\0b", 3);
    EXPECT(thrown([&] { embla::dtype_find(name); }).status == EMBLA_ERR_ARGUMENT);
    EXPECT(thrown([] { embla::dtype_find("f31"); }).status == EMBLA_ERR_NOT_FOUND);
    EXPECT(thrown([] { embla::check(EMBLA_OK); }).status == EMBLA_OK);
    EXPECT(std::string(embla::status_name(EMBLA_ERR_SHAPE)) == "shape");
}

void a_result_that_is_too_small_is_refused_before_it_is_written()
{
    const embla::table table = five_rows();
    const std::vector<std::int32_t> tokens = {2, 3, 0};
    std::vector<float> out(5, 7);
    const thrown shape([&] { embla::lookup(table, tokens, out); });
    EXPECT(shape.status == EMBLA_ERR_SHAPE);
    EXPECT(shape.sentence == "out has 20 bytes; this call needs 24");
    for (const float number : out) EXPECT(number == 7);
    out.assign(8, 7);
    embla::lookup(table, tokens, out); /* a larger one is allowed */
    EXPECT(out[0] == -0.9f && out[5] == -0.2f && out[6] == 7);

    embla::lookup_options options;
    std::vector<std::uint16_t> half(6);
    options.out_dtype = EMBLA_BF16;
    embla::lookup(table, tokens, half, options);
    half.pop_back();
    EXPECT(thrown([&] { embla::lookup(table, tokens, half, options); }).status == EMBLA_ERR_SHAPE);
    options = {};
    options.out_stride = 12; /* the last row has no gap behind it: 2 x 12 + 8 */
    std::vector<std::byte> apart(32);
    embla::lookup(table, tokens, apart, options);
    EXPECT(std::memcmp(&apart[24], &numbers[0], 8) == 0);
    apart.pop_back();
    EXPECT(thrown([&] { embla::lookup(table, tokens, apart, options); }).sentence ==
           "out has 31 bytes; this call needs 32");
    options.out_stride = SIZE_MAX / 2;
    EXPECT(thrown([&] { embla::lookup(table, tokens, apart, options); }).status == EMBLA_ERR_SHAPE);
    options = {};
    options.raw = true;
    const std::vector<std::int64_t> rows = {4};
    std::vector<std::byte> stored(8);
    embla::lookup_rows(table, rows, stored, options);
    EXPECT(std::memcmp(stored.data(), &numbers[8], 8) == 0);
#if __cplusplus >= 202002L
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* gcc: the others are 0 */
    embla::lookup(table, tokens, out, {.threads = 2});
#pragma GCC diagnostic pop
#endif
}

void handles_are_moved_and_freed_once()
{
    embla::table one(EMBLA_F32, 3, 2);
    one.write(1, std::array<float, 4>{1, 2, 3, 4});
    const embla_table *const inside = one.get();
    embla::table two = std::move(one);
    EXPECT(!one && two && two.get() == inside);
    const thrown moved([&] { embla::lookup(one, std::array<std::int32_t, 1>{0}); });
    EXPECT(moved.status == EMBLA_ERR_ARGUMENT);
    EXPECT(one.rows() == 0 && one.row(0).empty() && one.data().empty());
    one = std::move(two);
    embla::table &same = one;
    one = std::move(same); /* itself */
    EXPECT(one.get() == inside && !two);
    one = embla::table(EMBLA_F32, 1, 1); /* the old one is freed */
    EXPECT(one.rows() == 1);
    {
        const embla::table borrowed = embla::table::borrow(one.get());
        EXPECT(borrowed.rows() == 1);
    }
    EXPECT(one.rows() == 1); /* whoever borrowed it did not free it */
    embla_table *const given = one.release();
    EXPECT(!one && given != nullptr);
    const embla::table back = embla::table::adopt(given);
    EXPECT(back.dim() == 1);
}

void a_table_is_made_read_and_written()
{
    const std::int64_t mapping[3] = {4, 4, 0};
    embla::table_options options;
    options.token_rows = mapping;
    options.token_count = 3;
    embla::table table(EMBLA_F32, 5, 2, options);
    table.write(0, numbers);
    EXPECT(table.rows() == 5 && table.dim() == 2 && table.tokens() == 3);
    EXPECT(table.dtype() == EMBLA_F32 && table.scale() == 1);
    EXPECT(table.placement() == EMBLA_PLACEMENT_RAM && table.row_bytes() == 8);
    EXPECT(std::string(embla::placement_name(table.placement())) == "ram");
    EXPECT(table.row_stride() == 8 && table.data().size() == 40 && table.row(4).size() == 8);
    EXPECT(table.row(5).empty() && five_rows().data().empty());
    EXPECT(std::memcmp(table.row(4).data(), &numbers[8], 8) == 0);
    const std::vector<std::int32_t> tokens = {2, 1};
    std::vector<std::int64_t> rows(2);
    table.find_rows(tokens, rows);
    EXPECT(rows[0] == 0 && rows[1] == 4);
    rows.pop_back();
    EXPECT(thrown([&] { table.find_rows(tokens, rows); }).status == EMBLA_ERR_SHAPE);
    table.check_tokens(tokens);
    table.check_rows(rows);
    EXPECT(thrown([&] { table.check_tokens(std::vector<std::int32_t>{3}); }).status ==
           EMBLA_ERR_RANGE);
    EXPECT(embla::lookup(table, tokens) == std::vector<float>({0.1f, -0.2f, -0.1f, 0.8f}));
    EXPECT(thrown([&] { table.write(0, std::vector<float>(3)); }).status == EMBLA_ERR_SHAPE);
    embla::init_options how;
    how.seed = 1;
    table.init(how);
    EXPECT(embla::lookup(table, tokens)[0] != 0.1f);
}

void dtypes_and_row_formats_convert_numbers()
{
    const std::vector<float> in(32, 0.5f);
    std::vector<std::byte> stored(34);
    std::vector<float> out(32);
    EXPECT(embla::dtype_find("q8_0") == EMBLA_Q8_0);
    EXPECT(std::string(embla::dtype_name(EMBLA_Q8_0)) == "q8_0");
    EXPECT(embla::dtype_row_bytes(EMBLA_Q8_0, 32) == 34);
    EXPECT(thrown([] { embla::dtype_row_bytes(EMBLA_Q8_0, 31); }).status == EMBLA_ERR_SHAPE);
    embla::dtype_encode(EMBLA_Q8_0, in, stored);
    embla::dtype_decode(EMBLA_Q8_0, stored, out);
    EXPECT(std::fabs(out[31] - 0.5f) < 0.01f);
    stored.pop_back();
    EXPECT(thrown([&] { embla::dtype_encode(EMBLA_Q8_0, in, stored); }).status == EMBLA_ERR_SHAPE);
    EXPECT(thrown([&] { embla::dtype_decode(EMBLA_Q8_0, stored, out); }).status == EMBLA_ERR_SHAPE);

    embla::row_format format;
    format.dim = 16;
    format.dtype = EMBLA_F16;
    EXPECT(embla::row_bytes(format) == 32);
    std::vector<std::byte> rows(64);
    embla::row_encode(format, in, 2, rows);
    embla::row_decode(format, rows, 2, out);
    EXPECT(out == in);
    EXPECT(thrown([&] { embla::row_decode(format, rows, 3, out); }).status == EMBLA_ERR_SHAPE);
    EXPECT(thrown([&] { embla::row_encode(format, in, 3, rows); }).status == EMBLA_ERR_SHAPE);
    EXPECT(thrown([&] { embla::row_decode(format, rows, SIZE_MAX / 2, out); }).status ==
           EMBLA_ERR_SHAPE);
}

void tokens_become_vectors_with_positions()
{
    const embla::table table = five_rows();
    const std::vector<std::int32_t> tokens = {2, 3, 0, 1};
    std::vector<float> x(8), waves(4), pooled(4);
    embla::sinusoid(0, 2, 2, waves);
    EXPECT(waves[0] == 0 && waves[1] == 1);
    EXPECT(thrown([&] { embla::sinusoid(0, 3, 2, waves); }).status == EMBLA_ERR_SHAPE);
    embla::table_layout layout;
    layout.dtype = EMBLA_F32;
    layout.rows = layout.dim = 2;
    const embla::table positions = embla::table::view(layout, waves);
    embla::embed_options options;
    options.position_table = positions.get();
    embla::embed(table, tokens, 2, 2, x, options);
    EXPECT(x[0] == -0.9f && x[1] == 0.1f + 1.0f && x[4] == 0.1f);
    EXPECT(thrown([&] { embla::embed(table, tokens, 2, 3, x); }).status == EMBLA_ERR_SHAPE);
    EXPECT(thrown([&] { embla::embed(table, tokens, 2, 2, waves); }).status == EMBLA_ERR_SHAPE);

    embla::pool(x, 2, 2, 2, pooled);
    EXPECT(pooled[0] == (x[0] + x[2]) / 2);
    EXPECT(thrown([&] { embla::pool(x, 3, 2, 2, pooled); }).status == EMBLA_ERR_SHAPE);
    EXPECT(thrown([&] { embla::pool(x, 4, 1, 2, pooled); }).status == EMBLA_ERR_SHAPE);
    embla::pool_options sum;
    sum.kind = EMBLA_POOL_SUM;
    embla::lookup_pool(table, tokens, 2, 2, pooled, sum);
    EXPECT(pooled[0] == -0.9f + 0.4f);
    EXPECT(thrown([&] { embla::lookup_pool(table, tokens, 4, 2, pooled); }).status ==
           EMBLA_ERR_SHAPE);

    const std::vector<float> across = {3, 4}, along = {4, -3};
    EXPECT(embla::norm(across) == 5 && embla::dot(across, along) == 0);
    EXPECT(embla::cosine(across, across) == 1);
    EXPECT(thrown([&] { embla::dot(across, x); }).status == EMBLA_ERR_SHAPE);
}

void rotations_know_the_size_of_a_head()
{
    const embla::rope rope(4);
    const std::vector<std::int64_t> positions = {0, 7};
    const std::vector<float> before = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<float> x = before;
    rope.apply(positions, 2, x);
    EXPECT(x[0] == 1 && x[8] != 1);
    rope.transpose(positions, 2, x);
    for (std::size_t i = 0; i < x.size(); i++) EXPECT(std::fabs(x[i] - before[i]) < 1e-5f);
    x.pop_back();
    EXPECT(thrown([&] { rope.apply(positions, 2, x); }).sentence ==
           "x has 15 numbers; this call needs 16");
    embla::rope_layout layout;
    layout.group_stride = 11; /* the last group has no gap behind it: 11 + 4 */
    rope.apply(positions, 1, x, layout);
    layout.group_stride = 12;
    EXPECT(thrown([&] { rope.transpose(positions, 1, x, layout); }).status == EMBLA_ERR_SHAPE);
}

void run_here(void *, std::size_t count, embla_parallel_part part, void *job)
{
    for (std::size_t i = 0; i < count; i++) part(job, i);
}

} // namespace

void test_rows()
{
    EXPECT(std::string(embla::version()) == embla_version());
    EXPECT(std::string(embla::kernels_at(0)) == "scalar" && !embla::kernels_at(-1));
    EXPECT(*embla::kernels_name() != 0 && *embla::build_info() != 0 && embla::max_threads() >= 1);
    embla::set_parallel(run_here, nullptr, 3);
    EXPECT(embla::default_threads() == 3);
    embla::set_parallel(nullptr, nullptr, 0);
    embla::guard();
    arrays_become_spans();
    errors_have_a_status_and_a_sentence();
    a_result_that_is_too_small_is_refused_before_it_is_written();
    handles_are_moved_and_freed_once();
    a_table_is_made_read_and_written();
    dtypes_and_row_formats_convert_numbers();
    tokens_become_vectors_with_positions();
    rotations_know_the_size_of_a_head();
}
