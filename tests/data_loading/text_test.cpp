#include <gtest/gtest.h>

#include <fstream>

#include "sinter/data/data_loader.h"
#include "sinter/data/tokens.h"
#include "sinter/io/tokenizer/tokenizer.h"
#include "tests/support/own_directory.h"

namespace sinter::data {
namespace {

TEST(TextDataset, IsTheTokenizersIds) {
  auto tokenizer = Tokenizer::from_pretrained(SINTER_SOURCE_DIR "/assets/whale-5m");
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Call me Ishmael. Some years ago, never mind how long precisely. ";
  const auto ids = tokenizer.encode(text, /*add_special_tokens=*/false);
  auto dataset = TokenDataset::from_text(tokenizer, text, TokenOptions(16).vocab_size(tokenizer.vocab_size()));
  EXPECT_EQ(dataset.tokens(), int64_t(ids.size()));
  ASSERT_EQ(dataset.size(), (int64_t(ids.size()) - 17) / 16 + 1);
  EXPECT_EQ(dataset.get(2).data.to_vector<int64_t>(), std::vector<int64_t>(ids.begin() + 32, ids.begin() + 48));
  EXPECT_EQ(dataset.get(2).target.to_vector<int64_t>(), std::vector<int64_t>(ids.begin() + 33, ids.begin() + 49));

  OwnDirectory own;
  std::ofstream(own.file("text.txt"), std::ios::binary) << text;
  auto from_file = TokenDataset::from_text_file(tokenizer, own.file("text.txt"), TokenOptions(16));
  EXPECT_EQ(from_file.size(), dataset.size());
  EXPECT_EQ(from_file.get(1).data.to_vector<int64_t>(), dataset.get(1).data.to_vector<int64_t>());

  auto loader = make_data_loader(dataset, DataLoaderOptions(4).workers(2).drop_last(true));
  for (auto& batch : *loader) EXPECT_TRUE(batch.target.sizes().same_as({4, 16}));
}

}  // namespace
}  // namespace sinter::data
