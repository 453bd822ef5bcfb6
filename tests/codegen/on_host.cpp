#include "tests/codegen/on_host.h"

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/sample.h"

namespace sinter::testing {

namespace {

// Few, so that blocks take several turns.
constexpr int kMultiprocessors = 2;
// Times: a row of 9 elements becomes one that four warps of 64 lanes share.
constexpr int64_t kLonger = 151;
// Longer rows are cut before they become a kernel's: in one piece their sums round more than the tolerance allows.
constexpr int64_t kMostElements = 8192;

// The sample with its first operand so many times as long along one dimension; nothing where the op does not take that.
std::optional<Sample> longer(const Op& op, std::string_view text, DType dtype, bool last) {
  SampleText parsed = parse_sample(text);
  if (parsed.operands.empty() || parsed.operands[0].scalar || parsed.operands[0].sizes.empty()) return std::nullopt;
  IntList sizes = parsed.operands[0].sizes;
  (last ? sizes.back() : sizes[0]) *= kLonger;
  const size_t open = text.find('['), close = text.find(']');
  std::string changed(text.substr(0, open + 1));
  for (size_t d = 0; d < sizes.size(); ++d) changed += (d ? ", " : "") + std::to_string(sizes[d]);
  Sample sample = sample_from(op, changed + std::string(text.substr(close)), dtype);
  if (sample.operands[0].values.numel() > kMostElements || !sample.accepted()) return std::nullopt;
  return sample;
}

bool joins(const Op& op) { return op.kind == OpKind::kReduce || op.kind == OpKind::kScan; }

}  // namespace

std::optional<OnHostCase> on_host_case(Sample sample, MemoryLayout layout, const GpuFacts& facts,
                                       const std::string& name) {
  OnHostCase out;
  std::vector<Layout> layouts;
  for (auto& operand : sample.operands) {
    out.operands.push_back(operand.scalar ? Tensor() : lay_out(operand.values, layout));
    Layout own{.scalar = operand.scalar, .strides = {}};
    if (!operand.scalar)
      for (int64_t stride : out.operands.back().impl().strides) own.strides.push_back(stride);
    layouts.push_back(own);
  }
  auto types = sample.types();
  OpCall call{*sample.op, types, sample.attrs};
  const Type type = sample.op->infer(call)[0];
  layouts.push_back(contiguous_layout(type.shape));
  const LoopNest nest = lower(call, type, layouts);
  for (auto* axes : {&nest.rows, &nest.inner})
    for (auto& axis : *axes)
      if (axis.extent.same_as(0)) return std::nullopt;
  // A scatter changes a copy of its first operand.
  out.result =
      sample.op->kind == OpKind::kScatter ? out.operands[0].clone().contiguous() : zeros(type.shape, type.dtype);
  out.kernel = cuda_text(nest, name, facts);
  out.what = format("{} ({}) giving {}, {}, {} lanes", sample.op->name, sample.text, type.dtype, name_of(layout),
                    facts.target.lane_width);
  out.sample = std::move(sample);
  return out;
}

std::string run_on_host(const OnHostCase& one, const KernelsOnHost& kernels) {
  std::vector<int64_t> slots;
  for (size_t i = 0; i < one.operands.size(); ++i)
    slots.push_back(one.sample.operands[i].scalar ? eager::slot_of(one.sample.operands[i].number)
                                                  : eager::slot_of(one.operands[i].impl()));
  slots.push_back(eager::slot_of(one.result.impl()));
  int64_t error[3] = {};
  slots.push_back(int64_t(reinterpret_cast<uintptr_t>(error)));
  const int64_t range = one.kernel.range.number(), work = one.kernel.work.number();
  auto problem =
      kernels.run(one.kernel, codegen::gpu_geometry(one.kernel, range, work, kMultiprocessors), range, slots);
  if (!problem.empty()) return problem;
  if (error[0]) return format("index {} is out of range {}", error[1], error[2]);
  return difference(one.result, referee(one.sample)[0], one.sample.op->tolerance);
}

int expect_right_on_host(const Op& op, int lanes, uint64_t one_of) {
  const Target target = gpu_target(lanes);
  std::vector<OnHostCase> cases;
  std::vector<codegen::GpuKernelText> kernels;
  auto add = [&](const Sample& sample, DType dtype, MemoryLayout layout) {
    uint64_t draw = hash_text(format("{} {} {} {}", op.name, sample.text, dtype, name_of(layout)));
    if (draw % one_of != 0 || !sample.accepted()) return;
    // Most as they are written for tensors of some size, some for few elements, some for very many.
    const GpuFacts facts{.target = target, .lanes = (draw >> 16 & 3) != 0, .wide = (draw >> 24 & 3) == 0};
    auto one = on_host_case(sample, layout, facts, format("k{}", cases.size()));
    if (!one) return;
    kernels.push_back(one->kernel);
    cases.push_back(std::move(*one));
  };
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const DType dtype = DType(d);
    for (MemoryLayout layout : kAllLayouts) {
      // As in the op table: f32 in every layout, the others in one each.
      bool chosen = dtype == kFloat32 || layout == kAllLayouts[size_t(dtype) % std::size(kAllLayouts)];
      if (op.alias ? layout != MemoryLayout::kContiguous : !chosen) continue;
      for (auto& sample : samples_of(op, dtype)) add(sample, dtype, layout);
    }
    for (auto& text : sample_texts(op))
      for (bool last : {true, false})
        if (auto sample = joins(op) ? longer(op, text, dtype, last) : std::nullopt)
          add(*sample, dtype, last ? MemoryLayout::kContiguous : MemoryLayout::kTransposed);
  }
  if (cases.empty()) return 0;
  KernelsOnHost program(kernels, target);
  int wrong = 0;
  for (auto& one : cases) {
    std::string problem = run_on_host(one, program);
    if (!problem.empty() && ++wrong <= 4) ADD_FAILURE() << one.what << ": " << problem << "\n" << one.kernel.text;
  }
  return int(cases.size());
}

std::vector<const Op*> ops_with_loops() {
  std::vector<const Op*> out;
  for (auto* op : all_ops())
    if (is_loops(*op)) out.push_back(op);
  return out;
}

}  // namespace sinter::testing
