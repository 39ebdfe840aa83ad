/* SPDX-License-Identifier: Apache-2.0 */
/* The same as engine.c shows, in C++: rows of a giant table come from disk while the layers
 * compute. Handles free themselves, arrays know their size, and a failure is an exception. A ticket
 * that is forgotten, because a guess was wrong or because an exception was thrown, is cancelled:
 * nothing writes to an array that is gone.
 *
 *   c++ -std=c++17 tickets.cpp -o tickets $(pkg-config --cflags --libs embla)
 */
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <embla.hpp>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace
{

constexpr std::size_t dim = 16;

/* A made-up table in a file: number j of row i is i + j / dim. */
embla::store make_store(const std::string &path, std::int64_t rows)
{
    std::vector<float> numbers(static_cast<std::size_t>(rows) * dim);
    for (std::size_t i = 0; i < numbers.size(); i++)
        numbers[i] = static_cast<float>(i) / static_cast<float>(dim);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(float)));

    embla::row_format format;
    embla::store_options direct; /* options begin with all defaults */
    embla_extent extent{};
    format.dim = dim;
    format.dtype = EMBLA_F32;
    direct.placement = EMBLA_PLACEMENT_DIRECT;
    extent.file = path.c_str();
    extent.rows = rows;
    return embla::store::open_extents(format, std::vector<embla_extent>{extent}, direct);
}

embla::ngram make_hasher()
{
    embla::ngram_parameters parameters;
    parameters.kind = EMBLA_NGRAM_QWEN;
    parameters.vocab = 100;
    parameters.orders = 3;
    parameters.rows_per_ngram = 4;
    parameters.base = 1000;
    parameters.seed = 1234;
    parameters.eos = 2;
    return embla::ngram(parameters);
}

/* Tokens that may come next. Each has an array for its rows and a ticket that fills it; the ticket
 * is declared last, so it ends first. */
struct candidate {
    std::int32_t token;
    std::vector<float> rows;
    embla::ticket ticket;
};

} // namespace

int main()
try {
    char folder[] = "/tmp/embla-tickets-XXXXXX";
    if (mkdtemp(folder) == nullptr) return 1;
    const std::string path = std::string(folder) + "/table";
    const embla::ngram ngram = make_hasher();
    const embla_ngram_info info = ngram.describe();
    const embla::store store = make_store(path, info.rows);
    embla::tickets tickets(store); /* after its store: it ends before it */

    std::vector<std::int32_t> text = {7, 44, 12};
    for (int step = 0; step < 4; step++) {
        const embla::span<const std::int32_t> all = text;
        const auto history = all.subspan(all.size() - info.history, info.history);
        std::deque<candidate> candidates;
        for (const std::int32_t guess : {3 * step + 5, 3 * step + 6}) {
            candidate &c = candidates.emplace_back();
            c.token = guess;
            c.rows.resize(info.rows_per_token * dim);
            c.ticket = tickets.submit(ngram, {&c.token, 1}, history, c.rows);
        }
        /* here the first layers compute, and one of the guesses turns out to be right */
        candidate &right = candidates[static_cast<std::size_t>(step % 2)];
        right.ticket.wait();
        const double sum = std::accumulate(right.rows.begin(), right.rows.end(), 0.0);
        std::printf("token %d: %zu rows, sum %.1f\n", right.token, info.rows_per_token, sum);
        text.push_back(right.token);
    } /* the other ticket is cancelled here */

    const embla_tickets_info done = tickets.describe();
    std::printf("%lld tickets, %lld cancelled\n", static_cast<long long>(done.tickets),
                static_cast<long long>(done.cancelled));
    try {
        std::vector<float> small(dim);
        store.lookup(std::vector<std::int64_t>{1, 2}, small);
    } catch (const embla::error &e) {
        std::printf("refused (%s): %s\n", embla::status_name(e.status()), e.what());
    }
    std::remove(path.c_str());
    std::remove(folder);
    return 0;
} catch (const embla::error &e) {
    std::fprintf(stderr, "tickets: %s\n", e.what());
    return 1;
}
