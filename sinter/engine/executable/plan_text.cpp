// The plan for people.
#include "sinter/engine/executable/plan.h"

namespace sinter {

namespace {

const char* kind_name(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::kView:
      return "view";
    case Step::Kind::kPointwise:
      return "pointwise";
    case Step::Kind::kKernel:
      return "kernel";
    case Step::Kind::kOpaque:
      return "opaque";
    case Step::Kind::kFused:
      return "fused";
    case Step::Kind::kWrite:
      return "write";
    case Step::Kind::kCopy:
      return "copy";
  }
  return "";
}

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {}

  std::string run() {
    std::string out;
    for (auto& step : plan_.steps) out += line(step) + "\n";
    for (size_t j = 0; j < plan_.outputs.size(); ++j) out += format("output {}: {}\n", j, output(plan_.outputs[j]));
    int64_t loose = 0;
    for (auto& storage : plan_.storages)
      if (storage.kind == Storage::Kind::kLoose) loose += storage.block.bytes;
    out += format("peak: {} bytes of arena", plan_.arena_bytes);
    if (loose) out += format(", {} bytes outside it", loose);
    return out + format("; copied: {} bytes\n", plan_.copied_bytes);
  }

 private:
  std::string line(const Step& step) const {
    std::string inputs;
    for (auto& o : step.inputs) inputs += (inputs.empty() ? "" : ", ") + operand(o);
    std::string out = format("{} {}({})", kind_name(step.kind), step.op->name, inputs);
    if (auto attrs = step.attrs.text(); !attrs.empty()) out += " {" + attrs + "}";
    for (int r : step.results)
      out += " -> " + slot(r) + " " + place(plan_.storages[size_t(plan_.slots[size_t(r)].storage)]);
    if (!step.candidate.empty()) out += " by " + step.candidate;
    return step.in_place ? out + " in place" : out;
  }

  std::string operand(const Operand& o) const {
    if (o.slot >= 0) return slot(o.slot);
    return o.number_input >= 0 ? format("number of input {}", o.number_input) : to_string(o.number);
  }

  std::string slot(int index) const {
    auto& impl = plan_.slots[size_t(index)].geometry.impl();
    std::string out = format("%{} {}{}", index, impl.dtype, impl.sizes);
    return impl.contiguous ? out : out + format(" strides {}", impl.strides);
  }

  static std::string place(const Storage& storage) {
    switch (storage.kind) {
      case Storage::Kind::kArena:
        return format("@{}+{}", storage.block.offset, storage.block.bytes);
      case Storage::Kind::kInput:
        return format("@input {}", storage.index);
      case Storage::Kind::kOutput:
        return format("@output {}", storage.index);
      case Storage::Kind::kLoose:
        return "@own memory";
    }
    return "";
  }

  std::string output(const PlannedOutput& output) const {
    switch (output.kind) {
      case PlannedOutput::Kind::kFresh:
        return slot(output.slot);
      case PlannedOutput::Kind::kWritten:
        return format("input {}", output.input);
      case PlannedOutput::Kind::kNumber:
        return operand(output.number);
    }
    return "";
  }

  const Plan& plan_;
};

}  // namespace

std::string Plan::text() const { return Printer(*this).run(); }

}  // namespace sinter
