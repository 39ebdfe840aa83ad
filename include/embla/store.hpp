/* SPDX-License-Identifier: Apache-2.0 */
/* embla/store.hpp - giant tables: folds, n-gram hashers, stores, packs, batches, tickets, swaps. A
 * part of embla.hpp; the comments are in embla_store.h.
 *
 * The size of a result depends on the row format. To describe a store asks the system about its
 * memory, which takes a while: so a store is described once, and store, batch, tickets and swap
 * keep the row format beside the handle of C. */
#ifndef EMBLA_STORE_HPP
#define EMBLA_STORE_HPP

#include <string>
#include <vector>

#include "../embla_store.h"
#include "checkpoint.hpp"

namespace embla
{

using ngram_parameters = zeroed<embla_ngram_parameters>;
using ngram_options = zeroed<embla_ngram_options>;
using frequent_options = zeroed<embla_frequent_options>;
using store_engine_options = zeroed<embla_store_engine_options>;
using store_options = zeroed<embla_store_options>;
using pack_options = zeroed<embla_pack_options>;
using store_lookup_options = zeroed<embla_store_lookup_options>;
using tickets_options = zeroed<embla_tickets_options>;
using ticket_request = zeroed<embla_ticket_request>;

namespace detail
{
/* A handle that knows the row format of its store. */
template <class D, class C, void (*Free)(C *)> class row_handle : public handle<D, C, Free>
{
  public:
    static D adopt(C *pointer, const embla_row_format &format) noexcept
    {
        D made = handle<D, C, Free>::adopt(pointer);
        made.format_ = format;
        return made;
    }
    static D borrow(C *pointer, const embla_row_format &format) noexcept
    {
        D made = handle<D, C, Free>::borrow(pointer);
        made.format_ = format;
        return made;
    }
    const embla_row_format &format() const noexcept
    {
        return format_;
    }

  protected:
    embla_row_format format_{};
};
} // namespace detail

/* ---- fold ---- */

class fold : public handle<fold, embla_fold, embla_fold_free>
{
  public:
    fold() noexcept = default;
    explicit fold(span<const std::int32_t> folded)
    {
        embla_fold *out = nullptr;
        check(embla_fold_new(folded.data(), folded.size(), &out));
        hold(out, true);
    }
    static fold open(zstring path)
    {
        embla_fold *out = nullptr;
        check(embla_fold_open(path, &out));
        return adopt(out);
    }
    std::string checksum() const
    {
        char out[33] = "";
        embla_fold_checksum(get(), out);
        return out;
    }
    /* Throws unless the checksum is that of the fold. */
    void require(zstring checksum) const
    {
        check(embla_fold_require(get(), checksum));
    }
};

/* ---- n-gram hasher ---- */

/* A fold that is given must outlive the hasher. */
class ngram : public handle<ngram, embla_ngram, embla_ngram_free>
{
  public:
    ngram() noexcept = default;
    explicit ngram(const embla_ngram_parameters &parameters)
    {
        embla_ngram *out = nullptr;
        check(embla_ngram_new(&parameters, &out));
        hold(out, true);
    }
    /* nullptr as `folded` means that tokens are already folded. */
    static ngram new_model(zstring name, std::int32_t layer = -1,
                           const embla::fold *folded = nullptr)
    {
        embla_ngram *out = nullptr;
        check(embla_ngram_new_model(name, layer, folded ? folded->get() : nullptr, &out));
        return adopt(out);
    }
    static const char *model_name(std::size_t n) noexcept
    {
        return embla_ngram_model_name(n);
    }
    static ngram open(const checkpoint &from, std::int32_t layer = -1,
                      const embla::fold *folded = nullptr)
    {
        embla_ngram *out = nullptr;
        check(
            embla_ngram_open(from.get(), layer, folded != nullptr ? folded->get() : nullptr, &out));
        return adopt(out);
    }
    /* It is the hasher's; empty if it has none. */
    embla::fold fold() const noexcept
    {
        return embla::fold::borrow(const_cast<embla_fold *>(embla_ngram_fold(get())));
    }
    embla_ngram_info describe() const
    {
        embla_ngram_info out{};
        check(embla_ngram_describe(get(), &out));
        return out;
    }
    /* options.history and .barrier, if set, have batch x history and batch x length elements: that
     * is not checked. */
    void rows(span<const std::int32_t> tokens, std::size_t batch, std::size_t length,
              span<std::int64_t> out, const embla_ngram_options &options = {}) const
    {
        detail::same("tokens", tokens.size(), detail::times(batch, length));
        detail::need("out", out.size(), detail::times(tokens.size(), describe().rows_per_token),
                     "numbers");
        check(embla_ngram_rows(get(), tokens.data(), batch, length, &options, out.data()));
    }
};

/* ---- frequent n-grams ---- */

class frequent : public handle<frequent, embla_frequent, embla_frequent_free>
{
  public:
    frequent() noexcept = default;
    explicit frequent(const embla_frequent_options &options)
    {
        embla_frequent *out = nullptr;
        check(embla_frequent_new(&options, &out));
        hold(out, true);
    }
    std::size_t count() const noexcept
    {
        std::size_t count = 0, each = 0;
        return embla_frequent_rows(get(), &count, &each) != nullptr ? count : 0;
    }
    std::size_t rows_per_ngram() const noexcept
    {
        std::size_t count = 0, each = 0;
        return embla_frequent_rows(get(), &count, &each) != nullptr ? each : 0;
    }
    /* (count, rows_per_ngram) */
    span<const std::int64_t> rows() const noexcept
    {
        std::size_t count = 0, each = 0;
        const std::int64_t *found = embla_frequent_rows(get(), &count, &each);
        return {found, found != nullptr ? count * each : 0};
    }
};

/* ---- store ---- */

namespace detail
{
inline std::size_t store_bytes(const embla_row_format &format, std::size_t count,
                               const embla_store_lookup_options &options)
{
    if (count == 0) return 0;
    const std::size_t per_token = options.rows_per_token != 0 ? options.rows_per_token : 1;
    const std::size_t vectors = options.sum ? 1 : per_token;
    std::size_t columns = options.columns;
    if (columns == 0 && options.first_column < format.dim)
        columns = format.dim - options.first_column;
    std::size_t each = times(columns, written(options.out_dtype));
    if (options.raw) {
        embla_row_format part = format;
        part.dim = columns;
        check(embla_row_bytes(&part, &each));
    }
    const std::size_t row = options.row_stride != 0 ? options.row_stride : each;
    const std::size_t token =
        options.token_stride != 0 ? options.token_stride : times(vectors, row);
    return extent(count / per_token, token, extent(vectors, row, each));
}
} // namespace detail

class store : public detail::row_handle<store, embla_store, embla_store_free>
{
  public:
    store() noexcept = default;
    /* layer -1 means the first that has a table. */
    static store open(const checkpoint &from, zstring name = nullptr, std::int32_t layer = -1,
                      const embla_store_options &options = {})
    {
        embla_store *out = nullptr;
        embla::check(embla_store_open(from.get(), name, layer, &options, &out));
        return adopt(out);
    }
    static store open_extents(const embla_row_format &format, span<const embla_extent> extents,
                              const embla_store_options &options = {})
    {
        embla_store *out = nullptr;
        embla::check(
            embla_store_open_extents(&format, extents.data(), extents.size(), &options, &out));
        return adopt(out, format);
    }
    static store view(const embla_row_format &format, std::int64_t rows, const_memory data,
                      std::size_t stride = 0)
    {
        embla_store *out = nullptr;
        embla::check(embla_store_view(&format, rows, data.data(), data.bytes(), stride, &out));
        return adopt(out, format);
    }
    using row_handle::adopt;
    using row_handle::borrow;
    static store adopt(embla_store *pointer)
    {
        store made = adopt(pointer, {});
        made.format_ = made.describe().format;
        return made;
    }
    static store borrow(embla_store *pointer)
    {
        store made = borrow(pointer, {});
        made.format_ = made.describe().format;
        return made;
    }
    static embla_sweep_report sweep(zstring folder, bool unused)
    {
        embla_sweep_report out{};
        embla::check(embla_store_sweep(folder, unused, &out));
        return out;
    }

    void unshare() const
    {
        embla::check(embla_store_unshare(get()));
    }
    embla_store_info describe() const
    {
        embla_store_info out{};
        embla::check(embla_store_describe(get(), &out));
        return out;
    }
    void warm(const embla_store_options &options = {}) const
    {
        embla::check(embla_store_warm(get(), &options));
    }
    /* All of them. */
    std::vector<embla_chunk> chunks(std::size_t max_bytes = 0) const
    {
        std::size_t count = 0;
        embla::check(embla_store_chunks(get(), max_bytes, 0, nullptr, &count));
        std::vector<embla_chunk> out(count);
        embla::check(embla_store_chunks(get(), max_bytes, count, out.data(), &count));
        return out;
    }
    /* Throws if a file of the store has been changed since it was opened. */
    void check() const
    {
        embla::check(embla_store_check(get()));
    }
    embla_verify_report verify(std::int64_t sample = 0, std::uint64_t seed = 0) const
    {
        embla_verify_report out{};
        embla::check(embla_store_verify(get(), sample, seed, &out));
        return out;
    }
    void lookup(span<const std::int64_t> rows, memory out,
                const embla_store_lookup_options &options = {}) const
    {
        detail::need("out", out.bytes(), detail::store_bytes(format_, rows.size(), options),
                     "bytes");
        embla::check(embla_store_lookup(get(), rows.data(), rows.size(), &options, out.data()));
    }
};

inline const char *reader_name(embla_reader_kind kind) noexcept
{
    return embla_reader_name(kind);
}

/* ---- pack ---- */

inline embla_pack_report pack_write(const store &source, zstring path,
                                    const embla_pack_options &options = {})
{
    embla_pack_report out{};
    check(embla_pack_write(source.get(), path, &options, &out));
    return out;
}
/* An empty source means that the pack is compared with its checksums alone. */
inline embla_pack_report pack_verify(const checkpoint &pack, const store &source = {},
                                     const embla_pack_options &options = {})
{
    embla_pack_report out{};
    check(embla_pack_verify(pack.get(), source.get(), &options, &out));
    return out;
}

/* ---- batch ---- */

class batch : public detail::row_handle<batch, embla_batch, embla_batch_free>
{
  public:
    batch() noexcept = default;
    batch(const store &rows, std::size_t capacity)
    {
        format_ = rows.format();
        embla_batch *out = nullptr;
        check(embla_batch_new(rows.get(), capacity, &out));
        hold(out, true);
    }
    void lookup(span<const std::int64_t> rows, memory out,
                const embla_store_lookup_options &options = {})
    {
        detail::need("out", out.bytes(), detail::store_bytes(format_, rows.size(), options),
                     "bytes");
        check(embla_batch_lookup(get(), rows.data(), rows.size(), &options, out.data()));
    }
    embla_batch_info describe() const
    {
        embla_batch_info out{};
        check(embla_batch_describe(get(), &out));
        return out;
    }
    void verify(std::size_t every)
    {
        check(embla_batch_verify(get(), every));
    }
};

/* ---- tickets ---- */

/* Rows that are under way. Whoever forgets it cancels it, so that nothing is written to an array
 * that has ended, also when an error is thrown. Its tickets must be there until it has ended. */
class ticket
{
  public:
    ticket() noexcept = default; /* none */
    ticket(embla_tickets *tickets, embla_ticket number) noexcept
        : tickets_(tickets), number_(number)
    {
    }
    ticket(ticket &&other) noexcept
        : tickets_(other.tickets_), number_(std::exchange(other.number_, 0))
    {
    }
    ticket &operator=(ticket &&other) noexcept
    {
        if (this != &other) {
            forget();
            tickets_ = other.tickets_;
            number_ = std::exchange(other.number_, 0);
        }
        return *this;
    }
    ticket(const ticket &) = delete;
    ticket &operator=(const ticket &) = delete;
    ~ticket()
    {
        forget();
    }
    explicit operator bool() const noexcept
    {
        return number_ != 0;
    }
    embla_ticket number() const noexcept
    {
        return number_;
    }
    bool done() const
    {
        bool out = false;
        check(embla_ticket_done(tickets_, number_, &out));
        return out;
    }
    void wait()
    {
        check(embla_ticket_wait(tickets_, std::exchange(number_, 0)));
    }
    void cancel()
    {
        check(embla_ticket_cancel(tickets_, std::exchange(number_, 0)));
    }

  private:
    void forget() noexcept
    {
        if (number_ == 0) return;
        const embla_status ended = embla_ticket_cancel(tickets_, std::exchange(number_, 0));
        static_cast<void>(ended); /* of a ticket that is known, only in a forked child */
    }

    embla_tickets *tickets_ = nullptr;
    embla_ticket number_ = 0;
};

class tickets : public detail::row_handle<tickets, embla_tickets, embla_tickets_free>
{
  public:
    tickets() noexcept = default;
    explicit tickets(const store &rows, const embla_tickets_options &options = {})
    {
        format_ = rows.format();
        embla_tickets *out = nullptr;
        check(embla_tickets_new(rows.get(), &options, &out));
        hold(out, true);
    }

    /* `out` must stay where it is until the ticket has ended. An error with EMBLA_ERR_BUSY means:
     * wait for an older ticket, then try again. */
    ticket submit(span<const std::int64_t> rows, memory out,
                  const embla_store_lookup_options &options = {})
    {
        detail::need("out", out.bytes(), detail::store_bytes(format_, rows.size(), options),
                     "bytes");
        ticket_request request = of(rows);
        request.lookup = &options;
        request.out = out.data();
        return submit(request);
    }
    /* The rows of tokens; history as in embla_ngram_options, empty if all begins here. */
    ticket submit(const ngram &hasher, span<const std::int32_t> tokens,
                  span<const std::int32_t> history, memory out,
                  const embla_store_lookup_options &options = {})
    {
        const std::size_t per_token = hasher.describe().rows_per_token;
        embla_store_lookup_options sized = options;
        if (sized.rows_per_token == 0) sized.rows_per_token = per_token;
        detail::need("out", out.bytes(),
                     detail::store_bytes(format_, detail::times(tokens.size(), per_token), sized),
                     "bytes");
        ticket_request request = of(hasher, tokens, history);
        request.lookup = &options;
        request.out = out.data();
        return submit(request);
    }
    /* With all that C can ask for, such as a flag. Sizes are not checked. */
    ticket submit(const embla_ticket_request &request)
    {
        embla_ticket number = 0;
        check(embla_ticket_submit(get(), &request, &number));
        return ticket(get(), number);
    }
    void prefetch(span<const std::int64_t> rows)
    {
        prefetch(of(rows));
    }
    void prefetch(const ngram &hasher, span<const std::int32_t> tokens,
                  span<const std::int32_t> history)
    {
        prefetch(of(hasher, tokens, history));
    }
    void prefetch(const embla_ticket_request &request)
    {
        check(embla_tickets_prefetch(get(), &request));
    }
    int event() const noexcept
    {
        return embla_tickets_event(get());
    }
    embla_tickets_info describe() const
    {
        embla_tickets_info out{};
        check(embla_tickets_describe(get(), &out));
        return out;
    }

  private:
    static ticket_request of(span<const std::int64_t> rows) noexcept
    {
        ticket_request request;
        request.rows = rows.data();
        request.count = rows.size();
        return request;
    }
    static ticket_request of(const ngram &hasher, span<const std::int32_t> tokens,
                             span<const std::int32_t> history)
    {
        ticket_request request;
        if (!history.empty()) detail::same("history", history.size(), hasher.describe().history);
        request.ngram = hasher.get();
        request.tokens = tokens.data();
        request.length = tokens.size();
        request.history = history.empty() ? nullptr : history.data();
        return request;
    }
};

/* ---- swap ---- */

/* A version that is in use: it is released when this ends, after its tickets. */
class swap_version
{
  public:
    swap_version() noexcept = default;
    swap_version(embla_swap *from, const embla_row_format &format) noexcept
        : from_(from), version_(embla_swap_acquire(from)), format_(format)
    {
    }
    swap_version(swap_version &&other) noexcept
        : from_(other.from_), version_(std::exchange(other.version_, nullptr)),
          format_(other.format_)
    {
    }
    swap_version &operator=(swap_version &&other) noexcept
    {
        std::swap(from_, other.from_);
        std::swap(version_, other.version_);
        std::swap(format_, other.format_);
        return *this;
    }
    swap_version(const swap_version &) = delete;
    swap_version &operator=(const swap_version &) = delete;
    ~swap_version()
    {
        release();
    }
    void release() noexcept
    {
        if (version_ != nullptr) embla_swap_release(from_, std::exchange(version_, nullptr));
    }
    std::uint64_t number() const noexcept
    {
        return version_ != nullptr ? version_->number : 0;
    }
    /* Both are the version's; the tickets are empty if none were given. */
    embla::store store() const noexcept
    {
        return embla::store::borrow(
            version_ != nullptr ? const_cast<embla_store *>(version_->store) : nullptr, format_);
    }
    embla::tickets tickets() const noexcept
    {
        return embla::tickets::borrow(version_ != nullptr ? version_->tickets : nullptr, format_);
    }

  private:
    embla_swap *from_ = nullptr;
    const embla_swap_version *version_ = nullptr;
    embla_row_format format_{};
};

class swap : public detail::row_handle<swap, embla_swap, embla_swap_free>
{
  public:
    swap() noexcept = default;
    /* Takes over store and tickets; if this throws, they are still the caller's. */
    explicit swap(store &&rows, tickets &&of_rows = {})
    {
        format_ = rows.format();
        embla_swap *out = nullptr;
        check(embla_swap_new(rows.get(), of_rows.get(), &out));
        rows.release();
        of_rows.release();
        hold(out, true);
    }
    swap_version acquire() noexcept
    {
        return swap_version(get(), format_);
    }
    void replace(store &&rows, tickets &&of_rows = {})
    {
        check(embla_swap_replace(get(), rows.get(), of_rows.get()));
        rows.release();
        of_rows.release();
    }
};

} // namespace embla
#endif
