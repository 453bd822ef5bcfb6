// Every op × dtype × memory layout against the referee, from the op list itself: a new op is tested by existing.
#include <gtest/gtest.h>

#include <set>

#include "sinter/base/error.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using testing::MemoryLayout;
using testing::Sample;

// Of each kind one op runs every dtype in every layout; the others meet every dtype and every layout, but not each pair.
bool is_representative(const Op& op) {
  static const std::set<std::string_view> names = {"add", "where", "tanh", "sum", "amax", "gather", "constant_pad_nd", "cumsum",
                                                   "scatter_add", "permute", "mm", "sort", "_to_copy"};
  return names.contains(op.name);
}

std::vector<MemoryLayout> layouts_for(const Op& op, DType dtype) {
  // Ops that name strides themselves (view, as_strided) depend on the layout: the indexing tests cover them.
  if (op.alias) return {MemoryLayout::kContiguous};
  if (is_representative(op) || dtype == kFloat32) return {std::begin(testing::kAllLayouts), std::end(testing::kAllLayouts)};
  return {testing::kAllLayouts[size_t(dtype) % std::size(testing::kAllLayouts)]};
}

class OpTable : public ::testing::TestWithParam<const Op*> {};

TEST_P(OpTable, AgreesWithTheReferee) {
  const Op& op = *GetParam();
  if (op.sees_complex) return;  // tests/ops/complex_test.cpp
  int run = 0, failures = 0;
  for (int d = 0; d < kRealDTypeCount; ++d) {
    DType dtype = DType(d);
    for (MemoryLayout layout : layouts_for(op, dtype)) {
      for (Sample& sample : testing::samples_of(op, dtype)) {
        if (!sample.accepted()) continue;
        std::string what = format("{} ({}) with x = {}, {}", op.name, sample.text, dtype, testing::name_of(layout));
        try {
          TensorList got = testing::run_eagerly(sample, layout);
          std::vector<Array> want = testing::referee(sample);
          ASSERT_EQ(got.size(), want.size()) << what;
          for (size_t i = 0; i < got.size(); ++i) {
            std::string wrong = testing::difference(got[i], want[i], op.tolerance);
            if (!wrong.empty() && ++failures <= 8) ADD_FAILURE() << what << ": " << wrong;
          }
        } catch (const std::exception& e) {
          if (++failures <= 8) ADD_FAILURE() << what << ": " << e.what();
        }
        ++run;
      }
    }
  }
  EXPECT_GT(run, 0) << op.name << " accepted none of its samples";
}

std::vector<const Op*> ops_of(std::initializer_list<OpKind> kinds) {
  std::vector<const Op*> out;
  for (auto* op : all_ops())
    for (OpKind kind : kinds)
      if (op->kind == kind) out.push_back(op);
  return out;
}

std::string test_name(const ::testing::TestParamInfo<const Op*>& info) { return std::string(info.param->name); }

INSTANTIATE_TEST_SUITE_P(Pointwise, OpTable, ::testing::ValuesIn(ops_of({OpKind::kPointwise})), test_name);
INSTANTIATE_TEST_SUITE_P(Views, OpTable, ::testing::ValuesIn(ops_of({OpKind::kView})), test_name);
INSTANTIATE_TEST_SUITE_P(Reductions, OpTable, ::testing::ValuesIn(ops_of({OpKind::kReduce, OpKind::kScan})), test_name);
INSTANTIATE_TEST_SUITE_P(Loops, OpTable, ::testing::ValuesIn(ops_of({OpKind::kLoop, OpKind::kScatter})), test_name);
INSTANTIATE_TEST_SUITE_P(Whole, OpTable, ::testing::ValuesIn(ops_of({OpKind::kOpaque, OpKind::kComposite})), test_name);

}  // namespace
}  // namespace sinter
