/* SPDX-License-Identifier: Apache-2.0 */
/* embla/checkpoint.hpp: what is in a file, and the words of rows. */
#include <cstring>
#include <vector>

#include "expect.hpp"

namespace
{

void a_file_of_words_is_opened()
{
    const embla::vocab words = embla::vocab::open(embla::checkpoint::open(demo + "/words.vec"));
    EXPECT(words.count() > 100 && words.end() >= words.count());
    EXPECT(*words.source() != 0);
    const std::optional<std::int32_t> cat = words.find("cat");
    EXPECT(cat && words.word(*cat) == "cat" && !words.find("whale") && !words.word(-1));
    const embla::span<const embla_word> all = words.words();
    EXPECT(all.size() == static_cast<std::size_t>(words.count()));
    EXPECT(std::string_view(all[0].bytes, all[0].length) == words.word(all[0].token));
    const embla::vocab file = embla::vocab::open_file(demo + "/story/tokenizer.json");
    EXPECT(file.count() > 0);
    EXPECT(thrown([] { embla::vocab::open_file("/nowhere"); }).status == EMBLA_ERR_NOT_FOUND);
}

void a_model_shows_its_tensors()
{
    const embla::checkpoint model = embla::checkpoint::open(demo + "/story");
    EXPECT(std::string(model.format()) == "safetensors" && model.files().size() >= 1);
    EXPECT(model.text("model_type") == "embla" && !model.text("nothing"));
    EXPECT(model.integer("hidden_size") == 32 && !model.integer("nothing"));
    EXPECT(model.real("norm_epsilon") == 1e-05 && !model.real("nothing"));
    EXPECT(!model.integers("nothing"));
    EXPECT(model.tensors().size() > 5);
    for (const char *note : model.notes()) EXPECT(*note != 0);
    const char *why = nullptr;
    const embla_tensor head = model.find("lm_head"), tokens = model.role(EMBLA_ROLE_TOKENS, &why);
    EXPECT(head.role == EMBLA_ROLE_HEAD && head.rank == 2 && head.shape[1] == 32);
    EXPECT(std::string(embla::role_name(head.role)) == "head" && why != nullptr);
    const thrown missing([&] { model.find("lm_haed"); });
    EXPECT(missing.status == EMBLA_ERR_NOT_FOUND);
    EXPECT(missing.sentence.find("lm_head") != std::string::npos);
    EXPECT(model.tie().kind == EMBLA_TIE_UNTIED);
    EXPECT(std::string(embla::tie_name(EMBLA_TIE_UNTIED)) == "untied");
    EXPECT(model.facts().tokens == tokens.shape[0]);

    std::vector<float> row(32);
    model.read(tokens.name, 32 * sizeof(float), row);
    const embla::table table = embla::table::open(model);
    EXPECT(embla::lookup(table, std::vector<std::int32_t>{1}) == row);
    const embla::table other = embla::table::open(model, "lm_head");
    EXPECT(other.rows() == head.shape[0] && other.placement() == EMBLA_PLACEMENT_MAPPED);
    EXPECT(thrown([&] { embla::table::open(model, "nothing"); }).status == EMBLA_ERR_NOT_FOUND);
}

void a_list_of_integers_is_read()
{
    const std::string path = folder + "/lists";
    EXPECT(std::system(("cp -r " + demo + "/story " + path +
                        " && sed -i 's/\"vocab_size\"/\"some\": "
                        "[3, 1, 2], &/' " +
                        path + "/config.json")
                           .c_str()) == 0);
    const embla::checkpoint model = embla::checkpoint::open(path);
    EXPECT(model.integers("some") == std::vector<std::int64_t>({3, 1, 2}));
    EXPECT(!model.integer("some"));
}

void a_table_in_memory_becomes_a_checkpoint()
{
    embla::table table(EMBLA_F32, 3, 2);
    const embla::checkpoint plain = embla::checkpoint::view(table);
    EXPECT(std::string(plain.tensors()[0].name) == "vectors");
    EXPECT(plain.tensors()[0].shape[0] == 3);
    const embla::vocab words = embla::vocab::open_file(demo + "/words.vec");
    const thrown many([&] { embla::checkpoint::view(table, words); });
    EXPECT(many.status == EMBLA_ERR_SHAPE);
}

} // namespace

void test_checkpoints()
{
    a_file_of_words_is_opened();
    a_model_shows_its_tensors();
    a_list_of_integers_is_read();
    a_table_in_memory_becomes_a_checkpoint();
    EXPECT(thrown([] { embla::checkpoint::open("/nowhere"); }).status == EMBLA_ERR_NOT_FOUND);
}
