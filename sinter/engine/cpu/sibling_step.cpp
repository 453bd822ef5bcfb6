// Small kernels that do not wait for each other, in one loop over the pieces of all.
#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/cpu/nest_step.h"
#include "sinter/engine/step/joined_name.h"

namespace sinter {

namespace {

class CpuSiblingStep final : public CompiledStep {
 public:
  CpuSiblingStep(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                 std::span<const TensorImpl* const> outputs) {
    const Graph& body = *attrs.body;
    std::vector<std::string> names;
    for (auto& node : body.nodes()) {
      if (node.op != &fused_op()) continue;
      Sibling sibling;
      std::vector<const TensorImpl*> own_inputs, own_outputs;
      for (auto& v : node.inputs) {
        auto at = std::find(body.inputs().begin(), body.inputs().end(), v) - body.inputs().begin();
        // A number has no place among the operands.
        SINTER_INTERNAL_ASSERT(at < int64_t(inputs.size()), "a sibling reads what is not an operand");
        sibling.operands.push_back(int(at));
        own_inputs.push_back(inputs[size_t(at)]);
      }
      for (size_t j = 0; j < body.outputs().size(); ++j)
        if (body.outputs()[j].node == &node) {
          sibling.operands.push_back(int(inputs.size() + j));
          own_outputs.push_back(outputs[j]);
        }
      sibling.step = std::make_unique<CpuNestStep>(node.attrs.as<FusedAttrs>(), own_inputs, own_outputs);
      names.push_back(sibling.step->name());
      if (indexing_.empty()) indexing_ = sibling.step->indexing();
      siblings_.push_back(std::move(sibling));
    }
    name_ = joined_name(names);
  }

  void load() override {
    for (auto& sibling : siblings_) sibling.step->load();
  }
  bool is_loaded() const override {
    return std::all_of(siblings_.begin(), siblings_.end(), [](auto& s) { return s.step->is_loaded(); });
  }
  size_t code_length() const override {
    size_t length = 0;
    for (auto& sibling : siblings_) length += sibling.step->code_length();
    return length;
  }

  void launch(const StepArguments& arguments) const override {
    struct Ready {
      const CpuNestStep* step;
      size_t args;
      int64_t grain, first;  // counted in pieces
    };
    SmallVector<Ready, 8> all;
    SmallVector<int64_t, 128> args;
    IndexError error(indexing_);
    int64_t pieces = 0;
    for (auto& sibling : siblings_) {
      auto& step = *sibling.step;
      if (!step.kernel()) continue;
      Ready ready{&step, args.size(), step.grain(), pieces};
      for (int at : sibling.operands) args.push_back(arguments[size_t(at)]);
      args.append(step.params());
      args.push_back(error.cell());
      pieces += (step.range() + ready.grain - 1) / ready.grain;
      all.push_back(ready);
    }
    // A piece each, and all of them small: not worth waking anybody.
    parallel_for(0, pieces, pieces == int64_t(all.size()) ? pieces : 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        size_t i = all.size() - 1;
        while (all[i].first > piece) --i;
        int64_t from = (piece - all[i].first) * all[i].grain;
        all[i].step->kernel()->function(args.data() + all[i].args, from, std::min(from + all[i].grain, all[i].step->range()));
      }
    });
    error.check();
  }

 private:
  struct Sibling {
    std::unique_ptr<CpuNestStep> step;
    std::vector<int> operands;  // positions of its operands and results among all
  };
  std::vector<Sibling> siblings_;
  std::string indexing_;
};

}  // namespace

std::unique_ptr<CompiledStep> make_cpu_siblings(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                                std::span<const TensorImpl* const> outputs) {
  return std::make_unique<CpuSiblingStep>(attrs, inputs, outputs);
}

}  // namespace sinter
