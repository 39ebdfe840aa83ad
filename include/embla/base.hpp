/* SPDX-License-Identifier: Apache-2.0 */
/* embla/base.hpp - what the other parts of embla.hpp are made of: errors, arrays of the caller,
 * handles; and what belongs to no handle, such as the version. */
#ifndef EMBLA_BASE_HPP
#define EMBLA_BASE_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "../embla.h"

namespace embla
{

/* ---- errors ---- */

/* A call that failed: what() is the sentence of embla_error(). */
class error : public std::runtime_error
{
  public:
    error(embla_status status, const std::string &sentence)
        : std::runtime_error(sentence), status_(status)
    {
    }
    embla_status status() const noexcept
    {
        return status_;
    }

  private:
    embla_status status_;
};

/* Throws what a call of C returned, unless it is EMBLA_OK. */
inline void check(embla_status status)
{
    if (status != EMBLA_OK) throw error(status, embla_error());
}

/* ---- arrays of the caller ---- */

namespace detail
{
template <class C> using element_of = std::remove_pointer_t<decltype(std::declval<C &>().data())>;
template <class C> using size_of = decltype(std::size_t{std::declval<C &>().size()});
template <class C> using plain = std::remove_cv_t<std::remove_reference_t<C>>;

/* An array that ends with the expression may be read, not written to. Views are trivially
 * copyable: what they show does not end with them. */
template <class C, class T>
inline constexpr bool may_end =
    std::is_lvalue_reference_v<C> || std::is_const_v<T> || std::is_trivially_copyable_v<plain<C>>;
} // namespace detail

/* Elements of an array that another owns: std::span of C++20, as far as it is needed here. */
template <class T> class span
{
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using pointer = T *;
    using reference = T &;
    using iterator = T *;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }
    template <std::size_t N> constexpr span(T (&array)[N]) noexcept : data_(array), size_(N)
    {
    }
    /* Of anything that has data() and size(). */
    template <
        class C, class E = detail::element_of<C>, class = detail::size_of<C>,
        class = std::enable_if_t<!std::is_same_v<detail::plain<C>, span> &&
                                 std::is_convertible_v<E (*)[], T (*)[]> && detail::may_end<C, T>>>
    constexpr span(C &&array) noexcept : data_(array.data()), size_(array.size())
    {
    }

    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T &operator[](std::size_t i) const
    {
        return data_[i];
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    /* `count` elements from `first` on; EMBLA_ERR_RANGE if there are not so many. */
    constexpr span subspan(std::size_t first, std::size_t count) const
    {
        if (first > size_ || count > size_ - first)
            throw error(EMBLA_ERR_RANGE, std::to_string(count) + " elements from " +
                                             std::to_string(first) + " on, of " +
                                             std::to_string(size_));
        return span(data_ + first, count);
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail
{
/* The bytes of an array; V is void or const void. */
template <class V> class bytes_of
{
  public:
    constexpr bytes_of() noexcept = default;
    constexpr bytes_of(V *data, std::size_t bytes) noexcept : data_(data), bytes_(bytes)
    {
    }
    template <class T, std::size_t N, class = std::enable_if_t<std::is_convertible_v<T *, V *>>>
    constexpr bytes_of(T (&array)[N]) noexcept : data_(array), bytes_(sizeof array)
    {
        static_assert(std::is_trivially_copyable_v<T>, "elements must be plain bytes");
    }
    template <
        class C, class E = element_of<C>, class = size_of<C>,
        class = std::enable_if_t<!std::is_same_v<plain<C>, bytes_of> &&
                                 std::is_convertible_v<E *, V *> && !std::is_void_v<E> &&
                                 may_end<C, std::conditional_t<std::is_const_v<V>, const E, E>>>>
    constexpr bytes_of(C &&array) noexcept
        : data_(array.data()), bytes_(array.size() * sizeof(E)) /* it is in memory: it fits */
    {
        static_assert(std::is_trivially_copyable_v<E>, "elements must be plain bytes");
    }
    constexpr V *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t bytes() const noexcept
    {
        return bytes_;
    }

  private:
    V *data_ = nullptr;
    std::size_t bytes_ = 0;
};

/* Sizes of results. A product that is too large for memory is EMBLA_ERR_SHAPE. */
inline std::size_t times(std::size_t a, std::size_t b)
{
    if (b != 0 && a > SIZE_MAX / b)
        throw error(EMBLA_ERR_SHAPE,
                    std::to_string(a) + " times " + std::to_string(b) + " does not fit in memory");
    return a * b;
}

/* `count` pieces of `size`, `stride` apart; stride 0 means no gap. */
inline std::size_t extent(std::size_t count, std::size_t stride, std::size_t size)
{
    if (count == 0) return 0;
    const std::size_t last = times(count - 1, stride != 0 ? stride : size);
    if (last > SIZE_MAX - size)
        throw error(EMBLA_ERR_SHAPE, std::to_string(count) + " pieces, " + std::to_string(stride) +
                                         " apart, do not fit in memory");
    return last + size;
}

inline void need(const char *what, std::size_t has, std::size_t needs, const char *unit)
{
    if (has < needs)
        throw error(EMBLA_ERR_SHAPE, std::string(what) + " has " + std::to_string(has) + " " +
                                         unit + "; this call needs " + std::to_string(needs));
}

inline void same(const char *what, std::size_t has, std::size_t needs)
{
    if (has != needs)
        throw error(EMBLA_ERR_SHAPE, std::string(what) + " has " + std::to_string(has) +
                                         " elements; the call says " + std::to_string(needs));
}

/* The bytes of a number that a lookup writes; C refuses any other dtype. */
inline std::size_t written(embla_dtype dtype)
{
    return dtype == EMBLA_BF16 || dtype == EMBLA_F16 ? 2 : 4;
}
} // namespace detail

/* Where a call writes bytes, and bytes that a call reads: of any array of plain elements. */
using memory = detail::bytes_of<void>;
using const_memory = detail::bytes_of<const void>;

/* A text that ends with a 0: a literal, a std::string, or nullptr where C allows NULL. */
class zstring
{
  public:
    zstring(const char *text) noexcept : text_(text)
    {
    }
    zstring(const std::string &text) : text_(text.c_str())
    {
        if (text.find('\0') != std::string::npos)
            throw error(EMBLA_ERR_ARGUMENT, "a name or a path has a byte 0 inside: " + text);
    }
    operator const char *() const noexcept
    {
        return text_;
    }

  private:
    const char *text_;
};

/* ---- options and handles ---- */

/* A struct of options in which all is 0, so that every field has its default. */
template <class C> struct zeroed : C {
    zeroed() noexcept : C{}
    {
    }
};

/* What all handles are: a pointer of C that is freed once. D is the class that it becomes. */
template <class D, class C, void (*Free)(C *)> class handle
{
  public:
    handle() noexcept = default; /* empty */
    handle(handle &&other) noexcept
        : pointer_(std::exchange(other.pointer_, nullptr)), owned_(other.owned_)
    {
    }
    handle &operator=(handle &&other) noexcept
    {
        if (this != &other) {
            reset(std::exchange(other.pointer_, nullptr));
            owned_ = other.owned_;
        }
        return *this;
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    ~handle()
    {
        reset(nullptr);
    }

    C *get() noexcept
    {
        return pointer_;
    }
    const C *get() const noexcept
    {
        return pointer_;
    }
    explicit operator bool() const noexcept
    {
        return pointer_ != nullptr;
    }
    /* Gives the handle of C to the caller, who frees it if this one did. */
    C *release() noexcept
    {
        return std::exchange(pointer_, nullptr);
    }
    /* Takes over a handle of C, and frees it. */
    static D adopt(C *pointer) noexcept
    {
        D made;
        made.hold(pointer, true);
        return made;
    }
    /* Uses a handle of C that another owns and frees. */
    static D borrow(C *pointer) noexcept
    {
        D made;
        made.hold(pointer, false);
        return made;
    }

  protected:
    void hold(C *pointer, bool owned) noexcept
    {
        reset(pointer);
        owned_ = owned;
    }

  private:
    void reset(C *pointer) noexcept
    {
        C *old = std::exchange(pointer_, pointer);
        if (owned_) Free(old);
    }

    C *pointer_ = nullptr;
    bool owned_ = true;
};

/* ---- the library ---- */

inline const char *version() noexcept
{
    return embla_version();
}
inline const char *kernels_name() noexcept
{
    return embla_kernels_name();
}
inline const char *kernels_at(int number) noexcept
{
    return embla_kernels_at(number);
}
inline const char *build_info() noexcept
{
    return embla_build_info();
}
inline int max_threads() noexcept
{
    return embla_max_threads();
}
inline int default_threads() noexcept
{
    return embla_default_threads();
}
inline const char *status_name(embla_status status) noexcept
{
    return embla_status_name(status);
}
inline void set_parallel(embla_parallel_run run, void *context, int threads)
{
    check(embla_set_parallel(run, context, threads));
}
inline void guard()
{
    check(embla_guard());
}

} // namespace embla

#if defined(__cpp_lib_span) /* so that std::span can be made of ours */
template <class T> inline constexpr bool std::ranges::enable_borrowed_range<embla::span<T>> = true;
#endif

#endif
