// Every op on the GPU against the referee, as op_table_test.cpp does on the CPU.
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using testing::MemoryLayout;
using testing::Sample;

// What says where its result goes, says the GPU.
void put_on_gpu(Sample& sample) {
  FieldTexts fields = sample.fields;
  fields.emplace_back("device", "cuda:0");
  try {
    sample.attrs = sample.op->parse(fields);
  } catch (const Error&) {
  }
}

class GpuOpTable : public ::testing::TestWithParam<const Op*> {};

TEST_P(GpuOpTable, AgreesWithTheReferee) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  const Op& op = *GetParam();
  int run = 0, failures = 0;
  for (int d = 0; d < kRealDTypeCount; ++d) {
    DType dtype = DType(d);
    for (MemoryLayout layout : testing::kAllLayouts) {
      // f32 in every layout, the others in one each.
      bool chosen = dtype == kFloat32 || layout == testing::kAllLayouts[size_t(dtype) % std::size(testing::kAllLayouts)];
      if (op.alias ? layout != MemoryLayout::kContiguous : !chosen) continue;
      for (Sample& sample : testing::samples_of(op, dtype)) {
        if (!sample.accepted()) continue;
        put_on_gpu(sample);
        std::string what = format("{} ({}) with x = {}, {}", op.name, sample.text, dtype, testing::name_of(layout));
        try {
          TensorList got = testing::run_eagerly(sample, layout, cuda());
          std::vector<Array> want = testing::referee(sample);
          ASSERT_EQ(got.size(), want.size()) << what;
          for (size_t i = 0; i < got.size(); ++i) {
            Tolerance tolerance = op.tolerance;
            // Tensor cores take the weights of attention in the operands' type.
            tolerance.partial = tolerance.partial || op.kind == OpKind::kComposite;
            std::string wrong = testing::difference(got[i], want[i], tolerance);
            if (!wrong.empty() && ++failures <= 4) ADD_FAILURE() << what << ": " << wrong;
          }
        } catch (const std::exception& e) {
          if (++failures <= 4) ADD_FAILURE() << what << ": " << e.what();
        }
        ++run;
      }
    }
  }
  EXPECT_GT(run, 0) << op.name << " accepted none of its samples";
}

std::vector<const Op*> ops() {
  std::vector<const Op*> out;
  for (auto* op : all_ops())
    // The branches of samples of control flow are graphs on the CPU.
    if (op->kind != OpKind::kInput && op->kind != OpKind::kScalar && op->name != "cond" && op->name != "while_loop")
      out.push_back(op);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, GpuOpTable, ::testing::ValuesIn(ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace sinter
