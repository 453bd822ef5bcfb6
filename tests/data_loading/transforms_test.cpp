#include "sinter/data/transforms.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/data/data_loader.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"
#include "tests/data_loading/recorded_files.h"
#include "tests/support/error_of.h"

namespace sinter::data::transforms {
namespace {

using Values = std::vector<int64_t>;

// What was resized to record the values.
Tensor picture() {
  Tensor out = empty({3, 11, 13}, kUInt8);
  auto* at = out.data_ptr<uint8_t>();
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 11; ++y)
      for (int x = 0; x < 13; ++x) *at++ = uint8_t((7 * x + 13 * y * y + 50 * c + x * y) % 256);
  return out;
}

Tensor counted(int64_t channels, int64_t height, int64_t width) {
  return arange(channels * height * width).to(kUInt8).view({channels, height, width});
}

template <size_t N>
Values values_of(const int (&recorded)[N]) {
  return Values(recorded, recorded + N);
}

TEST(Resize, GivesPillowsBytes) {
  Tensor small = Resize(4, 5)(picture());
  EXPECT_TRUE(small.sizes().same_as({3, 4, 5}));
  EXPECT_EQ(small.to_vector<int64_t>(), values_of(recorded::kSmaller));
  EXPECT_EQ(Resize(6, 20)(picture()).to_vector<int64_t>(), values_of(recorded::kWiderLower));
  EXPECT_EQ(Resize(3, 13)(picture()).to_vector<int64_t>(), values_of(recorded::kLower));
  // Not row by row.
  Tensor turned = picture().permute({0, 2, 1}).contiguous().permute({0, 2, 1});
  EXPECT_EQ(Resize(4, 5)(turned).to_vector<int64_t>(), values_of(recorded::kSmaller));
}

TEST(Resize, GivesPillowsFloats) {
  Tensor result = Resize(7, 4)(ToFloat()(picture().slice(0, 0, 1)));
  const auto values = result.to_vector<float>();
  ASSERT_EQ(values.size(), std::size(recorded::kFloats));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], recorded::kFloats[i], 1e-6) << i;
}

TEST(Resize, KeepsTheShapeOfThePicture) {
  EXPECT_TRUE(Resize(5)(picture()).sizes().same_as({3, 5, 5}));  // 13 * 5 / 11 = 5.9
  EXPECT_TRUE(Resize(22)(picture()).sizes().same_as({3, 22, 26}));
  EXPECT_TRUE(Resize(22)(counted(1, 4, 2)).sizes().same_as({1, 44, 22}));
  EXPECT_EQ(Resize(11, 13)(picture()).to_vector<int64_t>(), picture().to_vector<int64_t>());
  EXPECT_NE(message_of([] { Resize(5)(arange(12).view({1, 3, 4})); }).find("u8 and f32"), std::string::npos);
  EXPECT_NE(message_of([] { Resize(5)(empty({1, 0, 4}, kUInt8)); }).find("a picture of [1, 0, 4]"), std::string::npos);
  EXPECT_NE(message_of([] { Resize(5)(empty({4, 4}, kUInt8)); }).find("[channels, height, width]"), std::string::npos);
  EXPECT_NE(message_of([] { Resize(0); }).find("a side of 0"), std::string::npos);
}

TEST(CenterCrop, TakesTheMiddleAndPadsWhatIsMissing) {
  EXPECT_EQ(CenterCrop(2)(counted(1, 4, 4)).to_vector<int64_t>(), (Values{5, 6, 9, 10}));
  EXPECT_EQ(CenterCrop({1, 2})(counted(1, 4, 5)).to_vector<int64_t>(), (Values{12, 13}));  // 1.5 is 2 in Python
  EXPECT_EQ(CenterCrop(2)(counted(1, 3, 3)).to_vector<int64_t>(), (Values{0, 1, 3, 4}));   // 0.5 is 0
  EXPECT_EQ(CenterCrop({2, 5})(counted(1, 2, 2)).to_vector<int64_t>(), (Values{0, 0, 1, 0, 0, 0, 2, 3, 0, 0}));
}

TEST(RandomCrop, ReachesEveryPlace) {
  std::map<Values, int> seen;
  RandomCrop crop(2);
  for (int64_t i = 0; i < 600; ++i) {
    Random random(1, 0, i);
    ++seen[crop(counted(1, 3, 4), random).to_vector<int64_t>()];
  }
  ASSERT_EQ(seen.size(), 6u);
  for (auto& [piece, count] : seen) EXPECT_GT(count, 60);
  EXPECT_TRUE(seen.contains({6, 7, 10, 11}));
  // With zeros around.
  std::set<Values> padded;
  for (int64_t i = 0; i < 600; ++i) {
    Random random(2, 0, i);
    padded.insert(RandomCrop(2, 1)(counted(1, 2, 2), random).to_vector<int64_t>());
  }
  EXPECT_EQ(padded.size(), 9u);
  EXPECT_TRUE(padded.contains({0, 1, 2, 3}));
  EXPECT_TRUE(padded.contains({3, 0, 0, 0}));
  EXPECT_TRUE(padded.contains({0, 0, 0, 1}));
  Random random(1, 0, 0);
  EXPECT_NE(message_of([&] { RandomCrop(5)(counted(1, 4, 6), random); }).find("5 x 5 pixels of a picture of 4 x 6"),
            std::string::npos);
  EXPECT_NE(message_of([] { RandomCrop(5, -1); }).find("a padding of -1"), std::string::npos);
}

TEST(RandomHorizontalFlip, FlipsAsOftenAsItShould) {
  Tensor image = counted(2, 2, 3);
  Random random(1, 0, 0);
  EXPECT_EQ(RandomHorizontalFlip(1)(image, random).to_vector<int64_t>(),
            (Values{2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9}));
  EXPECT_EQ(RandomHorizontalFlip(0)(image, random).to_vector<int64_t>(), image.to_vector<int64_t>());
  int flipped = 0;
  for (int i = 0; i < 2000; ++i) flipped += RandomHorizontalFlip(0.3)(image, random).to_vector<int64_t>()[0] == 2;
  EXPECT_NEAR(flipped, 600, 80);
  EXPECT_NE(message_of([] { RandomHorizontalFlip(1.5); }).find("no probability"), std::string::npos);
}

TEST(ToFloatAndNormalize, Compute) {
  Tensor image = ToFloat()(tensor({0, 51, 255, 102}, kUInt8).view({2, 1, 2}));
  EXPECT_EQ(image.to_vector<float>(), (std::vector<float>{0, 51 / 255.f, 1, 102 / 255.f}));
  EXPECT_EQ(ToFloat()(full({1, 1, 2}, 3, kFloat64)).to_vector<float>(), (std::vector<float>{3, 3}));
  Tensor normal = Normalize({0.5, 0.25}, {0.5, 2})(image);
  EXPECT_EQ(normal.to_vector<float>(),
            (std::vector<float>{-1, (51 / 255.f - 0.5f) / 0.5f, 0.375f, (102 / 255.f - 0.25f) / 2}));
  EXPECT_EQ(Normalize({1}, {1})(image).to_vector<float>()[2], 0);
  EXPECT_NE(message_of([&] {
              Normalize({1, 2, 3}, {1, 1, 1})(image);
            }).find("3 means for 2 channels"),
            std::string::npos);
  EXPECT_NE(message_of([] { Normalize({1}, {1})(counted(1, 2, 2)); }).find("ToFloat comes before"), std::string::npos);
  EXPECT_NE(message_of([] { Normalize({1}, {0}); }).find("a deviation is zero"), std::string::npos);
  EXPECT_NE(message_of([] { Normalize({1, 2}, {1}); }).find("2 means and 1 deviations"), std::string::npos);
}

TEST(Transforms, DoNotDependOnTheNumberOfWorkers) {
  Tensor images = arange(20 * 3 * 12 * 12).to(kUInt8).view({20, 3, 12, 12});
  auto dataset = TensorDataset(images, arange(20))
                     .map(RandomCrop(10, 2))
                     .map(RandomHorizontalFlip())
                     .map(Resize(6))
                     .map(CenterCrop(4))
                     .map(ToFloat())
                     .map(Normalize({0.5}, {0.25}));
  auto epochs = [&](int64_t workers, uint64_t seed) {
    std::vector<float> out;
    auto loader = make_data_loader(dataset, DataLoaderOptions(3).shuffle(true).seed(seed).workers(workers));
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto& batch : *loader) {
        auto values = batch.data.to_vector<float>();
        out.insert(out.end(), values.begin(), values.end());
      }
    return out;
  };
  const auto expected = epochs(0, 1);
  EXPECT_EQ(expected.size(), 2u * 20 * 3 * 16);
  EXPECT_EQ(epochs(1, 1), expected);
  EXPECT_EQ(epochs(4, 1), expected);
  EXPECT_NE(epochs(4, 2), expected);
}

}  // namespace
}  // namespace sinter::data::transforms
