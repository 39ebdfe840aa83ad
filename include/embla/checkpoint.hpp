/* SPDX-License-Identifier: Apache-2.0 */
/* embla/checkpoint.hpp - checkpoints and words: what embla.h opens, and what embla_checkpoint.h
 * shows. A part of embla.hpp; the comments are in those headers. */
#ifndef EMBLA_CHECKPOINT_HPP
#define EMBLA_CHECKPOINT_HPP

#include <optional>
#include <vector>

#include "../embla_checkpoint.h"
#include "table.hpp"

namespace embla
{

using open_options = zeroed<embla_open_options>;

namespace detail
{
/* What is not there is no error; the first says whether it is. */
inline bool found(embla_status status)
{
    if (status != EMBLA_ERR_NOT_FOUND) check(status);
    return status == EMBLA_OK;
}
inline std::optional<std::string_view> text(const char *bytes, std::size_t length)
{
    if (bytes == nullptr) return std::nullopt;
    return std::string_view(bytes, length);
}
} // namespace detail

class vocab;

/* ---- checkpoint ---- */

class checkpoint : public handle<checkpoint, embla_checkpoint, embla_checkpoint_free>
{
  public:
    checkpoint() noexcept = default;
    static checkpoint open(zstring path, const embla_open_options &options = {})
    {
        embla_checkpoint *out = nullptr;
        check(embla_checkpoint_open(path, &options, &out));
        return adopt(out);
    }
    /* Table and words must outlive it. */
    static checkpoint view(const table &rows);
    static checkpoint view(const table &rows, const vocab &words);

    const char *format() const noexcept
    {
        return embla_checkpoint_format(get());
    }
    span<const embla_file> files() const noexcept
    {
        std::size_t count = 0;
        const embla_file *found = embla_checkpoint_files(get(), &count);
        return {found, found != nullptr ? count : 0};
    }
    span<const char *const> notes() const noexcept
    {
        std::size_t count = 0;
        const char *const *found = embla_checkpoint_notes(get(), &count);
        return {found, found != nullptr ? count : 0};
    }
    std::optional<std::string_view> text(zstring key) const
    {
        const char *found = embla_checkpoint_text(get(), key);
        if (found == nullptr) return std::nullopt;
        return std::string_view(found);
    }
    std::optional<std::int64_t> integer(zstring key) const
    {
        std::int64_t out = 0;
        if (!detail::found(embla_checkpoint_integer(get(), key, &out))) return std::nullopt;
        return out;
    }
    std::optional<std::vector<std::int64_t>> integers(zstring key) const
    {
        std::size_t count = 0;
        if (!detail::found(embla_checkpoint_integers(get(), key, 0, nullptr, &count)))
            return std::nullopt;
        std::vector<std::int64_t> out(count);
        check(embla_checkpoint_integers(get(), key, count, out.data(), &count));
        return out;
    }
    std::optional<double> real(zstring key) const
    {
        double out = 0;
        if (!detail::found(embla_checkpoint_real(get(), key, &out))) return std::nullopt;
        return out;
    }
    span<const embla_tensor> tensors() const noexcept
    {
        std::size_t count = 0;
        const embla_tensor *found = embla_checkpoint_tensors(get(), &count);
        return {found, found != nullptr ? count : 0};
    }
    /* A tensor that is not there is an error, because the sentence suggests another name. */
    embla_tensor find(zstring name) const
    {
        embla_tensor out{};
        check(embla_checkpoint_find(get(), name, &out));
        return out;
    }
    embla_tensor role(embla_role role, const char **why = nullptr) const
    {
        embla_tensor out{};
        check(embla_checkpoint_role(get(), role, &out, why));
        return out;
    }
    /* As many bytes as out has. */
    void read(zstring name, std::int64_t offset, memory out) const
    {
        check(embla_checkpoint_read(get(), name, offset, out.bytes(), out.data()));
    }
    embla_facts facts() const
    {
        embla_facts out{};
        check(embla_checkpoint_facts(get(), &out));
        return out;
    }
    embla_tie tie(std::int64_t sample = 0) const
    {
        embla_tie out{};
        check(embla_checkpoint_tie(get(), sample, &out));
        return out;
    }
};

inline const char *role_name(embla_role role) noexcept
{
    return embla_role_name(role);
}
inline const char *tie_name(embla_tie_kind kind) noexcept
{
    return embla_tie_name(kind);
}

inline table table::open(const checkpoint &from, zstring name, const embla_table_options &options)
{
    embla_table *out = nullptr;
    check(embla_table_open(from.get(), name, &options, &out));
    return adopt(out);
}

/* ---- vocab ---- */

class vocab : public handle<vocab, embla_vocab, embla_vocab_free>
{
  public:
    vocab() noexcept = default;
    static vocab open(const checkpoint &from)
    {
        embla_vocab *out = nullptr;
        check(embla_vocab_open(from.get(), &out));
        return adopt(out);
    }
    static vocab open_file(zstring path)
    {
        embla_vocab *out = nullptr;
        check(embla_vocab_open_file(path, &out));
        return adopt(out);
    }
    const char *source() const noexcept
    {
        return embla_vocab_source(get());
    }
    std::int64_t count() const noexcept
    {
        return embla_vocab_count(get());
    }
    std::int64_t end() const noexcept
    {
        return embla_vocab_end(get());
    }
    /* Nothing if the token has no word. */
    std::optional<std::string_view> word(std::int32_t token) const noexcept
    {
        std::size_t length = 0;
        const char *found = embla_vocab_word(get(), token, &length);
        return detail::text(found, length);
    }
    span<const embla_word> words() const noexcept
    {
        std::size_t count = 0;
        const embla_word *found = embla_vocab_words(get(), &count);
        return {found, found != nullptr ? count : 0};
    }
    /* Nothing if no token has this word. */
    std::optional<std::int32_t> find(std::string_view word) const
    {
        std::int32_t out = 0;
        if (!detail::found(embla_vocab_find(get(), word.data(), word.size(), &out)))
            return std::nullopt;
        return out;
    }
};

inline checkpoint checkpoint::view(const table &rows)
{
    embla_checkpoint *out = nullptr;
    check(embla_checkpoint_view(rows.get(), nullptr, &out));
    return adopt(out);
}
inline checkpoint checkpoint::view(const table &rows, const vocab &words)
{
    embla_checkpoint *out = nullptr;
    check(embla_checkpoint_view(rows.get(), words.get(), &out));
    return adopt(out);
}

} // namespace embla
#endif
