// Every op against what PyTorch recorded: eager and the referee agree with it within the op's tolerance.
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <sstream>

#include "sinter/io/safetensors.h"
#include "tests/support/recorded.h"

namespace sinter {
namespace {

using testing::MemoryLayout;

constexpr auto kHowToRecord = "; record it again: build/bin/dump_samples | python3 tools/record_ops.py (see there)";

const SafeTensorsFile& recording() {
  static const SafeTensorsFile file(SINTER_TEST_DATA "/recorded/ops.safetensors");
  return file;
}

const std::set<std::string>& refused_by_pytorch() {
  static const auto names = [] {
    std::istringstream in(recording().metadata().at("refused"));
    return std::set<std::string>(std::istream_iterator<std::string>(in), {});
  }();
  return names;
}

class Recorded : public ::testing::TestWithParam<const Op*> {};

TEST_P(Recorded, AgreesWithPyTorch) {
  const Op& op = *GetParam();
  auto& metadata = recording().metadata();
  if (metadata.contains("ours:" + std::string(op.name))) return;
  auto cases = testing::recorded_cases(op);
  auto digest = metadata.find(std::string(op.name));
  ASSERT_NE(digest, metadata.end()) << op.name << " is not recorded" << kHowToRecord;
  ASSERT_EQ(digest->second, testing::digest_of(cases)) << op.name << " was recorded for other samples" << kHowToRecord;

  // What is recorded is rounded once to its dtype.
  Tolerance tolerance = op.tolerance;
  tolerance.ulp += 1;
  int compared = 0;
  for (auto& [name, sample] : cases) {
    if (refused_by_pytorch().contains(name)) continue;
    std::string what = format("{} ({})", name, sample.text);
    auto referee = testing::referee(sample);
    auto eager = testing::run_eagerly(sample, MemoryLayout::kContiguous);
    ASSERT_EQ(eager.size(), referee.size());
    for (size_t i = 0; i < eager.size(); ++i) {
      Array want = to_array(recording().tensor(format("{}/{}", name, i)));
      EXPECT_EQ(testing::difference(eager[i], want, tolerance), "") << what << ", eager result " << i;
      EXPECT_EQ(testing::difference(to_tensor(referee[i]), want, tolerance), "")
          << what << ", result " << i << " of the referee";
    }
    ++compared;
  }
  EXPECT_GT(compared, 0) << "PyTorch refused every sample of " << op.name;
}

TEST(Recording, NamesOnlyOpsThatExist) {
  for (auto& [key, value] : recording().metadata()) {
    if (key == "refused") continue;
    EXPECT_TRUE(find_op(key.starts_with("ours:") ? key.substr(5) : key)) << key << kHowToRecord;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Recorded, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace sinter
