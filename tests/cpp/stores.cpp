/* SPDX-License-Identifier: Apache-2.0 */
/* embla/store.hpp: hashers, stores, packs, batches, tickets and swaps. */
#include <cstring>
#include <fstream>
#include <vector>

#include "expect.hpp"

namespace
{

constexpr std::int64_t ROWS = 1000;
constexpr std::size_t DIM = 8;

/* Number i of all rows. */
float number(double i)
{
    return static_cast<float>(i);
}

embla::row_format format()
{
    embla::row_format made;
    made.dim = DIM;
    made.dtype = EMBLA_F32;
    return made;
}

std::vector<float> truth(float first = 0)
{
    std::vector<float> made(static_cast<std::size_t>(ROWS) * DIM);
    for (std::size_t i = 0; i < made.size(); i++) made[i] = first + static_cast<float>(i);
    return made;
}

/* A store whose rows are in a file. */
embla::store in_file(const std::string &name, const std::vector<float> &rows)
{
    const std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(rows.data()),
               static_cast<std::streamsize>(rows.size() * sizeof(float)));
    embla_extent extent{};
    extent.file = path.c_str();
    extent.rows = ROWS;
    embla::store_options options;
    options.placement = EMBLA_PLACEMENT_DIRECT;
    return embla::store::open_extents(format(), std::vector<embla_extent>{extent}, options);
}

embla::ngram hasher(const embla::fold *fold = nullptr)
{
    embla::ngram_parameters parameters;
    parameters.kind = fold != nullptr ? EMBLA_NGRAM_ENGRAM : EMBLA_NGRAM_QWEN;
    parameters.vocab = fold != nullptr ? 50 : 100;
    parameters.orders = 3;
    parameters.rows_per_ngram = 2;
    parameters.base = 150;
    parameters.seed = 1234;
    parameters.eos = 2;
    parameters.fold = fold != nullptr ? fold->get() : nullptr;
    return embla::ngram(parameters);
}

void folds_have_a_checksum()
{
    std::vector<std::int32_t> folded(100);
    for (std::size_t i = 0; i < folded.size(); i++) folded[i] = static_cast<std::int32_t>(i / 2);
    const embla::fold fold(folded);
    const std::string checksum = fold.checksum();
    EXPECT(checksum.size() == 32 && embla::fold().checksum().empty());
    fold.require(checksum);
    EXPECT(thrown([&] { fold.require(std::string(32, '0')); }).status == EMBLA_ERR_FORMAT);
    EXPECT(thrown([] { embla::fold::open("/nowhere"); }).status == EMBLA_ERR_NOT_FOUND);
    folded[0] = 7;
    EXPECT(thrown([&] { embla::fold{folded}; }).status == EMBLA_ERR_FORMAT);
    const embla::ngram folding = hasher(&fold);
    EXPECT(folding.fold() && folding.fold().checksum() == checksum);
}

void tokens_become_row_numbers()
{
    const embla::ngram ngram = hasher();
    const embla_ngram_info info = ngram.describe();
    const std::vector<std::int32_t> tokens = {7, 44, 99, 7, 44, 99};
    std::vector<std::int64_t> rows(tokens.size() * info.rows_per_token);
    EXPECT(info.rows_per_token == 4 && info.history == 2 && info.rows <= ROWS && !ngram.fold());
    ngram.rows(tokens, 2, 3, rows);
    EXPECT(rows[0] == rows[12] && rows[11] == rows[23]); /* two sequences of the same tokens */
    EXPECT(thrown([&] { ngram.rows(tokens, 3, 3, rows); }).status == EMBLA_ERR_SHAPE);
    rows.pop_back();
    EXPECT(thrown([&] { ngram.rows(tokens, 2, 3, rows); }).status == EMBLA_ERR_SHAPE);
    EXPECT(embla::ngram::model_name(0) != nullptr && embla::ngram::model_name(10000) == nullptr);
    const embla::ngram known = embla::ngram::new_model(embla::ngram::model_name(0));
    EXPECT(known.describe().rows > 0);
    EXPECT(thrown([] { embla::ngram::new_model("nobody"); }).status == EMBLA_ERR_NOT_FOUND);
    const embla::checkpoint words = embla::checkpoint::open(demo + "/words.vec");
    EXPECT(thrown([&] { embla::ngram::open(words); }).status == EMBLA_ERR_NOT_FOUND);
    EXPECT(thrown([&] { embla::store::open(words, "nothing"); }).status != EMBLA_OK);
}

void a_store_looks_rows_up()
{
    const std::vector<float> all = truth();
    const embla::store store = embla::store::view(format(), ROWS, all);
    const std::vector<std::int64_t> rows = {3, 999, 0, 3};
    std::vector<float> out(4 * DIM);
    store.lookup(rows, out);
    EXPECT(out[0] == number(3 * DIM) && out[DIM] == number(999 * DIM) &&
           out[3 * DIM] == number(3 * DIM));
    EXPECT(store.format().dim == DIM && store.describe().rows == ROWS);
    EXPECT(store.chunks().size() == 1 && store.chunks()[0].bytes == all.size() * sizeof(float));
    store.warm();
    store.check();
    EXPECT(thrown([&] { store.verify(); }).status == EMBLA_ERR_UNSUPPORTED);
    EXPECT(thrown([&] { store.unshare(); }).status == EMBLA_ERR_ARGUMENT);
    EXPECT(embla::store::borrow(const_cast<embla_store *>(store.get())).format().dim == DIM);
    EXPECT(embla::store::sweep(folder, false).copies == 0);

    out.pop_back();
    EXPECT(thrown([&] { store.lookup(rows, out); }).sentence ==
           "out has 124 bytes; this call needs 128");
    embla::store_lookup_options options; /* one vector for two rows: half as many */
    options.rows_per_token = 2;
    options.sum = true;
    out.assign(2 * DIM, 0);
    store.lookup(rows, out, options);
    EXPECT(out[0] == number(1002 * DIM) && out[DIM] == number(3 * DIM));
    options = {};
    options.first_column = 6; /* two columns of each */
    out.assign(8, 0);
    store.lookup(rows, out, options);
    EXPECT(out[0] == number(3 * DIM + 6) && out[7] == number(3 * DIM + 7));
    options.raw = true;
    store.lookup(rows, out, options);
    EXPECT(out[7] == number(3 * DIM + 7));
    out.pop_back();
    EXPECT(thrown([&] { store.lookup(rows, out, options); }).status == EMBLA_ERR_SHAPE);
    options = {};
    options.rows_per_token = 2; /* first rows of all tokens, then the second ones */
    options.token_stride = DIM * sizeof(float);
    options.row_stride = 2 * DIM * sizeof(float);
    out.assign(4 * DIM, 0);
    store.lookup(rows, out, options);
    EXPECT(out[DIM] == 0 && out[2 * DIM] == number(999 * DIM));
    options.first_column = DIM;
    EXPECT(thrown([&] { store.lookup(rows, out, options); }).status != EMBLA_OK);
}

void a_batch_fetches_each_row_once()
{
    const std::vector<float> all = truth();
    const embla::store store = embla::store::view(format(), ROWS, all);
    embla::batch batch(store, 16);
    const std::vector<std::int64_t> rows = {3, 3, 3, 5};
    std::vector<float> out(4 * DIM);
    batch.lookup(rows, out);
    batch.verify(0);
    EXPECT(out[2 * DIM] == number(3 * DIM) && batch.describe().unique == 2);
    out.pop_back();
    EXPECT(thrown([&] { batch.lookup(rows, out); }).status == EMBLA_ERR_SHAPE);
    const embla::batch moved = std::move(batch);
    EXPECT(moved.describe().asked == 4);
    EXPECT(embla::batch::borrow(const_cast<embla_batch *>(moved.get()), store.format())
               .describe()
               .asked == 4);
}

void tickets_bring_rows()
{
    const embla::store store = in_file("rows", truth());
    const embla::ngram ngram = hasher();
    embla::tickets tickets(store);
    const std::vector<std::int64_t> rows = {3, 999};
    std::vector<float> out(2 * DIM), second(2 * DIM);
    embla::ticket ticket = tickets.submit(rows, out);
    embla::ticket other = tickets.submit(rows, second);
    EXPECT(ticket && ticket.number() != other.number());
    ticket.wait();
    EXPECT(!ticket && out[DIM] == number(999 * DIM));
    EXPECT(thrown([&] { ticket.wait(); }).status == EMBLA_ERR_ARGUMENT);
    while (!other.done()) {
    }
    other.wait();
    EXPECT(second == out);
    out.pop_back();
    EXPECT(thrown([&] { ticket = tickets.submit(rows, out); }).status == EMBLA_ERR_SHAPE);

    { /* one is forgotten, as when an error is thrown: it is cancelled */
        const embla::ticket forgotten = tickets.submit(rows, second);
        embla::ticket moved = tickets.submit(rows, second), empty = std::move(moved);
        EXPECT(!moved && empty);
        empty.cancel();
        EXPECT(!empty);
        moved = tickets.submit(rows, second);
        moved = embla::ticket(); /* another */
    }
    EXPECT(tickets.describe().cancelled == 3);

    const std::vector<std::int32_t> tokens = {7, 44}, history = {1, 3};
    std::vector<std::int64_t> hashed(8);
    std::vector<float> wanted(8 * DIM), got(8 * DIM);
    embla::ngram_options before;
    before.history = history.data();
    ngram.rows(tokens, 1, 2, hashed, before);
    store.lookup(hashed, wanted);
    tickets.submit(ngram, tokens, history, got).wait();
    EXPECT(got == wanted);
    got.pop_back();
    EXPECT(thrown([&] { tickets.submit(ngram, tokens, history, got); }).status == EMBLA_ERR_SHAPE);
    got.resize(8 * DIM);
    const embla::span<const std::int32_t> short_history(history.data(), 1);
    EXPECT(thrown([&] { tickets.submit(ngram, tokens, short_history, got); }).status ==
           EMBLA_ERR_SHAPE);
    tickets.prefetch(rows);
    tickets.prefetch(ngram, tokens, history);
    embla::ticket_request request;
    std::uint64_t flag = 0;
    request.rows = rows.data();
    request.count = rows.size();
    request.out = second.data();
    request.flag = &flag;
    request.value = 5;
    embla::ticket flagged = tickets.submit(request);
    flagged.wait();
    EXPECT(flag == 5 && tickets.event() == -1);
}

void a_pack_has_the_rows_of_a_store()
{
    const embla::store store = in_file("source", truth());
    const embla::ngram ngram = hasher();
    std::vector<std::int32_t> tokens(500);
    for (std::size_t i = 0; i < tokens.size(); i++)
        tokens[i] = static_cast<std::int32_t>(3 + i % 7);
    embla::frequent_options count;
    count.ngram = ngram.get();
    count.tokens = tokens.data();
    count.length = tokens.size();
    count.max_ngrams = 10;
    const embla::frequent frequent(count);
    EXPECT(frequent.count() > 0 && frequent.rows_per_ngram() == 2);
    EXPECT(frequent.rows().size() == frequent.count() * 2);
    embla::pack_options options;
    options.rows_per_ngram = frequent.rows_per_ngram();
    options.bundles = frequent.rows().data();
    options.bundle_count = frequent.count();
    const std::string path = folder + "/pack.safetensors";
    const embla_pack_report written = embla::pack_write(store, path, options);
    EXPECT(written.rows == ROWS && written.bundles > 0);
    const embla::checkpoint pack = embla::checkpoint::open(path);
    EXPECT(embla::pack_verify(pack).different == 0);
    EXPECT(embla::pack_verify(pack, store).different == 0);
    const embla::store packed = embla::store::open(pack);
    std::vector<float> out(DIM);
    packed.lookup(std::vector<std::int64_t>{17}, out);
    EXPECT(out[0] == number(17 * DIM) && packed.format().dim == DIM);
    EXPECT(std::string(embla::reader_name(EMBLA_READER_PREAD)) == "pread");
    EXPECT(packed.verify(10).different == 0);
}

void a_table_is_replaced_while_it_is_used()
{
    const std::vector<float> first = truth(), second = truth(0.5f);
    embla::store store = embla::store::view(format(), ROWS, first);
    embla::tickets tickets(store);
    embla::swap swap(std::move(store), std::move(tickets));
    EXPECT(!store && !tickets);
    const std::vector<std::int64_t> rows = {1};
    std::vector<float> out(DIM);
    embla::swap_version old = swap.acquire();
    swap.replace(embla::store::view(format(), ROWS, second));
    old.store().lookup(rows, out);
    EXPECT(out[0] == number(DIM) && old.number() == 1);
    embla::tickets theirs = old.tickets();
    theirs.submit(rows, out).wait();
    EXPECT(out[1] == number(DIM + 1));
    {
        const embla::swap_version now = swap.acquire();
        now.store().lookup(rows, out);
        EXPECT(out[0] == number(DIM + 0.5f) && now.number() == 2 && !now.tickets());
    }
    embla::row_format wider = format();
    wider.dim = 4;
    embla::store other = embla::store::view(wider, ROWS, second);
    EXPECT(thrown([&] { swap.replace(std::move(other)); }).status == EMBLA_ERR_SHAPE);
    EXPECT(other.describe().rows == ROWS); /* it is still ours */
    old = swap.acquire();
    EXPECT(old.number() == 2);
    old.release();
    EXPECT(old.number() == 0 && !old.store());
}

} // namespace

void test_stores()
{
    folds_have_a_checksum();
    tokens_become_row_numbers();
    a_store_looks_rows_up();
    a_batch_fetches_each_row_once();
    tickets_bring_rows();
    a_pack_has_the_rows_of_a_store();
    a_table_is_replaced_while_it_is_used();
}
