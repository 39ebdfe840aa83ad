/* SPDX-License-Identifier: Apache-2.0 */
/* embla/text.hpp - tokenizers, text of tokens, and vectors of texts. A part of embla.hpp; the
 * comments are in embla_text.h. Link libembla_text. */
#ifndef EMBLA_TEXT_HPP
#define EMBLA_TEXT_HPP

#include <initializer_list>
#include <iterator>
#include <optional>
#include <vector>

#include "../embla_text.h"
#include "checkpoint.hpp"

namespace embla
{

using tokenize_options = zeroed<embla_tokenize_options>;
using detokenizer_options = zeroed<embla_detokenizer_options>;
using encoder_options = zeroed<embla_encoder_options>;
using encode_options = zeroed<embla_encode_options>;

/* Texts of a call: of anything whose elements are strings. Only places and lengths are kept, so
 * the strings must be there until the call returns. */
class texts
{
  public:
    template <class C, class = std::enable_if_t<std::is_convertible_v<
                           decltype(*std::begin(std::declval<const C &>())), std::string_view>>>
    texts(const C &list)
    {
        using element = decltype(*std::begin(list));
        static_assert(std::is_lvalue_reference_v<element> ||
                          std::is_trivially_copyable_v<detail::plain<element>>,
                      "the strings must be there until the call returns");
        for (const auto &text : list) add(text);
    }
    texts(std::initializer_list<std::string_view> list)
    {
        for (const std::string_view text : list) add(text);
    }
    std::size_t size() const noexcept
    {
        return places_.size();
    }
    embla_texts get() const noexcept
    {
        embla_texts out{};
        out.texts = places_.data();
        out.lengths = lengths_.data();
        out.count = places_.size();
        return out;
    }

  private:
    void add(std::string_view text)
    {
        places_.push_back(text.data());
        lengths_.push_back(text.size());
    }

    std::vector<const char *> places_;
    std::vector<std::size_t> lengths_;
};

/* ---- tokenizer ---- */

class tokenizer : public handle<tokenizer, embla_tokenizer, embla_tokenizer_free>
{
  public:
    tokenizer() noexcept = default;
    static tokenizer open_file(zstring path)
    {
        embla_tokenizer *out = nullptr;
        check(embla_tokenizer_open_file(path, &out));
        return adopt(out);
    }
    static tokenizer open_bytes(const_memory bytes, zstring name)
    {
        embla_tokenizer *out = nullptr;
        check(embla_tokenizer_open_bytes(bytes.data(), bytes.bytes(), name, &out));
        return adopt(out);
    }
    static tokenizer open(const checkpoint &from)
    {
        embla_tokenizer *out = nullptr;
        check(embla_tokenizer_open(from.get(), &out));
        return adopt(out);
    }
    static void compile(zstring path, zstring to)
    {
        check(embla_tokenizer_compile(path, to));
    }
    static void copy(zstring from, zstring to)
    {
        check(embla_tokenizer_copy(from, to));
    }
    vocab words() const
    {
        embla_vocab *out = nullptr;
        check(embla_tokenizer_words(get(), &out));
        return vocab::adopt(out);
    }
    embla_tokenizer_info describe() const
    {
        embla_tokenizer_info out{};
        check(embla_tokenizer_describe(get(), &out));
        return out;
    }
    /* Nothing if there is no such token. */
    std::optional<std::string_view> text(std::int32_t token) const noexcept
    {
        std::size_t length = 0;
        const char *found = embla_tokenizer_text(get(), token, &length);
        return detail::text(found, length);
    }
    /* Nothing if no token has this string. */
    std::optional<std::int32_t> token(std::string_view text) const noexcept
    {
        const std::int32_t found = embla_tokenizer_token(get(), text.data(), text.size());
        if (found < 0) return std::nullopt;
        return found;
    }
};

/* ---- tokenized ---- */

/* It keeps how many texts there were, which C has no function for. Results are valid until it is
 * used again. */
class tokenized : public handle<tokenized, embla_tokenized, embla_tokenized_free>
{
  public:
    tokenized() noexcept = default;
    explicit tokenized(const tokenizer &by)
    {
        embla_tokenized *out = nullptr;
        check(embla_tokenized_new(by.get(), &out));
        hold(out, true);
    }
    std::size_t count() const noexcept
    {
        return embla_tokenized_count(get());
    }
    span<const std::int32_t> tokens() const noexcept
    {
        return {embla_tokenized_tokens(get()), count()};
    }
    /* Empty unless they were asked for. */
    span<const embla_text_span> offsets() const noexcept
    {
        return counted(embla_tokenized_offsets(get()));
    }
    span<const std::uint8_t> special() const noexcept
    {
        return counted(embla_tokenized_special(get()));
    }
    /* Both are empty unless a pair was tokenized. */
    span<const std::uint8_t> types() const noexcept
    {
        return counted(embla_tokenized_types(get()));
    }
    span<const std::uint8_t> sides() const noexcept
    {
        return counted(embla_tokenized_sides(get()));
    }
    /* One more than there are texts; empty unless a batch was tokenized with this object. */
    span<const std::size_t> starts() const noexcept
    {
        return {embla_tokenized_starts(get()), starts_};
    }
    std::size_t cut() const noexcept
    {
        return embla_tokenized_cut(get());
    }

  private:
    friend void tokenize(tokenized &, std::string_view, const embla_tokenize_options &);
    friend void tokenize_batch(tokenized &, const texts &, const embla_tokenize_options &);
    friend void tokenize_pair(tokenized &, std::string_view, std::string_view,
                              const embla_tokenize_options &);

    template <class T> span<const T> counted(const T *found) const noexcept
    {
        return {found, found != nullptr ? count() : 0};
    }

    std::size_t starts_ = 0;
};

inline void tokenize(tokenized &into, std::string_view text,
                     const embla_tokenize_options &options = {})
{
    into.starts_ = 0;
    check(embla_tokenize(into.get(), text.data(), text.size(), &options));
}
inline void tokenize_batch(tokenized &into, const texts &list,
                           const embla_tokenize_options &options = {})
{
    const embla_texts all = list.get();
    into.starts_ = 0;
    check(embla_tokenize_batch(into.get(), &all, &options));
    into.starts_ = list.size() + 1;
}
inline void tokenize_pair(tokenized &into, std::string_view first, std::string_view second,
                          const embla_tokenize_options &options = {})
{
    into.starts_ = 0;
    check(embla_tokenize_pair(into.get(), first.data(), first.size(), second.data(), second.size(),
                              &options));
}
/* The text is valid until `by` is used again; its tokens are kept. */
inline std::string_view detokenize(tokenized &by, span<const std::int32_t> tokens,
                                   bool skip_special = false)
{
    const char *text = nullptr;
    std::size_t length = 0;
    check(embla_detokenize(by.get(), tokens.data(), tokens.size(), skip_special, &text, &length));
    return {text, length};
}

/* ---- detokenizer ---- */

/* A text that it returns is valid until it is used again. */
class detokenizer : public handle<detokenizer, embla_detokenizer, embla_detokenizer_free>
{
  public:
    detokenizer() noexcept = default;
    explicit detokenizer(const tokenizer &by, const embla_detokenizer_options &options = {})
    {
        embla_detokenizer *out = nullptr;
        check(embla_detokenizer_new(by.get(), &options, &out));
        hold(out, true);
    }
    std::string_view add(span<const std::int32_t> tokens)
    {
        const char *text = nullptr;
        std::size_t length = 0;
        check(embla_detokenizer_add(get(), tokens.data(), tokens.size(), &text, &length));
        return {text, length};
    }
    std::string_view add(std::int32_t token)
    {
        return add(span<const std::int32_t>(&token, 1));
    }
    std::string_view end()
    {
        const char *text = nullptr;
        std::size_t length = 0;
        check(embla_detokenizer_end(get(), &text, &length));
        return {text, length};
    }
    void begin() noexcept
    {
        embla_detokenizer_begin(get());
    }
};

/* ---- subwords ---- */

class subwords : public handle<subwords, embla_subwords, embla_subwords_free>
{
  public:
    subwords() noexcept = default;
    static subwords open(const checkpoint &from)
    {
        embla_subwords *out = nullptr;
        check(embla_subwords_open(from.get(), &out));
        return adopt(out);
    }
    std::size_t dim() const noexcept
    {
        return embla_subwords_dim(get());
    }
    /* How many n-grams of the word there are; with 0, out is untouched. */
    std::size_t vector(std::string_view word, span<float> out) const
    {
        std::size_t grams = 0;
        detail::need("out", out.size(), dim(), "numbers");
        if (!detail::found(
                embla_subwords_vector(get(), word.data(), word.size(), out.data(), &grams)))
            return 0;
        return grams;
    }
};

/* ---- encoder ---- */

class encoder : public handle<encoder, embla_encoder, embla_encoder_free>
{
  public:
    encoder() noexcept = default;
    static encoder open(zstring path, const embla_encoder_options &options = {})
    {
        embla_encoder *out = nullptr;
        check(embla_encoder_open(path, &options, &out));
        return adopt(out);
    }
    embla_encoder_info describe() const
    {
        embla_encoder_info out{};
        check(embla_encoder_describe(get(), &out));
        return out;
    }
    /* It is the encoder's. */
    embla::tokenizer tokenizer() const noexcept
    {
        return embla::tokenizer::borrow(
            const_cast<embla_tokenizer *>(embla_encoder_tokenizer(get())));
    }
    /* A vector for each text; `details` may be empty. */
    void encode(const texts &list, span<float> out, span<embla_encoded> details = {},
                const embla_encode_options &options = {}) const
    {
        const embla_texts all = list.get();
        const std::size_t dim = options.dim != 0 ? options.dim : describe().dim;
        detail::need("out", out.size(), detail::times(list.size(), dim), "numbers");
        if (!details.empty()) detail::need("details", details.size(), list.size(), "elements");
        check(embla_encoder_encode(get(), &all, &options, out.data(),
                                   details.empty() ? nullptr : details.data()));
    }
    /* The vectors in a new array. */
    std::vector<float> encode(const texts &list, const embla_encode_options &options = {}) const
    {
        const std::size_t dim = options.dim != 0 ? options.dim : describe().dim;
        std::vector<float> out(detail::times(list.size(), dim));
        encode(list, out, {}, options);
        return out;
    }
};

inline const char *compat_name(embla_compat compat) noexcept
{
    return embla_compat_name(compat);
}

} // namespace embla
#endif
