/* SPDX-License-Identifier: Apache-2.0 */
/* embla/text.hpp: tokens of texts, text of tokens, vectors of texts. */
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "expect.hpp"

namespace
{

embla::tokenizer story()
{
    return embla::tokenizer::open_file(demo + "/story/tokenizer.json");
}

void a_tokenizer_is_opened_in_several_ways()
{
    const std::string path = demo + "/story/tokenizer.json", compiled = folder + "/compiled",
                      copied = folder + "/tokenizer.json";
    const embla::tokenizer tokenizer = story();
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT(embla::tokenizer::open_bytes(bytes, "bytes").describe().tokens == 302);
    EXPECT(embla::tokenizer::open(embla::checkpoint::open(demo + "/story")).describe().kind ==
           EMBLA_TOKENIZER_WORDLEVEL);
    embla::tokenizer::compile(path, compiled);
    EXPECT(std::string(embla::tokenizer::open_file(compiled).describe().source) == "compiled");
    embla::tokenizer::copy(path, copied);
    EXPECT(std::filesystem::file_size(copied) == std::filesystem::file_size(path));
    EXPECT(tokenizer.text(301) == "<bos>" && tokenizer.token("<bos>") == 301);
    EXPECT(!tokenizer.text(-1) && !tokenizer.token("no such string"));
    EXPECT(tokenizer.words().word(301) == "<bos>");
    EXPECT(thrown([] { embla::tokenizer::open_file("/nowhere"); }).status == EMBLA_ERR_NOT_FOUND);
}

void texts_become_tokens_and_tokens_text()
{
    const embla::tokenizer tokenizer = story();
    embla::tokenized tokenized(tokenizer);
    embla::tokenize_options options;
    options.offsets = true;
    embla::tokenize(tokenized, "the cat saw a queen", options);
    EXPECT(tokenized.count() > 0 && tokenized.tokens().size() == tokenized.count());
    EXPECT(tokenized.offsets().size() == tokenized.count() && tokenized.offsets()[0].begin == 0);
    EXPECT(tokenized.special().size() == tokenized.count() && tokenized.cut() == 0);
    EXPECT(tokenized.types().empty() && tokenized.sides().empty() && tokenized.starts().empty());
    const std::vector<std::int32_t> tokens(tokenized.tokens().begin(), tokenized.tokens().end());
    EXPECT(embla::detokenize(tokenized, tokens) == "the cat saw a queen");

    const std::vector<std::string> lines = {"the cat", "", "the cat saw a queen"};
    embla::tokenize_batch(tokenized, lines);
    EXPECT(tokenized.starts().size() == 4 && tokenized.starts()[0] == 0);
    EXPECT(tokenized.starts()[1] == tokenized.starts()[2] && tokenized.offsets().empty());
    EXPECT(tokenized.starts()[3] == tokenized.count());
    embla::tokenize_batch(tokenized, {"the cat"});
    EXPECT(tokenized.starts().size() == 2);
    embla::tokenize_pair(tokenized, "the cat", "a queen");
    EXPECT(tokenized.sides().size() == tokenized.count() && tokenized.starts().empty());
    EXPECT(tokenized.types().size() == tokenized.count());

    embla::detokenizer stream(tokenizer);
    std::string text;
    for (const std::int32_t token : tokens) text += stream.add(token);
    text += stream.end();
    EXPECT(text == "the cat saw a queen");
    stream.begin();
    EXPECT(stream.add(tokens) == text);
    embla::tokenize_options strict;
    strict.strict = true;
    EXPECT(thrown([&] { embla::tokenize(tokenized, "\xff", strict); }).status != EMBLA_OK);
}

void texts_become_vectors()
{
    const embla::encoder encoder = embla::encoder::open(demo + "/words.vec");
    const embla_encoder_info info = encoder.describe();
    EXPECT(info.dim == 32 && std::string(embla::compat_name(info.compat)) == "words");
    EXPECT(encoder.tokenizer().describe().tokens > 0);
    const std::array<std::string_view, 2> lines = {"the cat", "a queen"};
    std::vector<float> out(2 * info.dim);
    std::vector<embla_encoded> details(2);
    encoder.encode(lines, out, details);
    EXPECT(details[1].tokens == 2);
    EXPECT(encoder.encode(lines) == out);
    embla::encode_options options;
    options.dim = 8;
    EXPECT(encoder.encode(lines, options).size() == 16);
    out.pop_back();
    EXPECT(thrown([&] { encoder.encode(lines, out); }).status == EMBLA_ERR_SHAPE);
    out.resize(2 * info.dim);
    details.pop_back();
    EXPECT(thrown([&] { encoder.encode(lines, out, details); }).status == EMBLA_ERR_SHAPE);
    const thrown missing([] { embla::encoder::open("/nowhere"); });
    EXPECT(missing.status == EMBLA_ERR_NOT_FOUND);
}

void n_grams_are_looked_for()
{
    const embla::checkpoint words = embla::checkpoint::open(demo + "/words.vec");
    EXPECT(thrown([&] { embla::subwords::open(words); }).status == EMBLA_ERR_NOT_FOUND);
    const embla::subwords none;
    std::vector<float> out(4);
    EXPECT(none.dim() == 0);
    EXPECT(thrown([&] { none.vector("cat", out); }).status == EMBLA_ERR_ARGUMENT);
}

} // namespace

void test_texts()
{
    a_tokenizer_is_opened_in_several_ways();
    texts_become_tokens_and_tokens_text();
    texts_become_vectors();
    n_grams_are_looked_for();
}
