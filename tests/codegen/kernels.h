#pragma once
// Kernels of all ops and of all kinds as text, to see whether a compiler takes them.
#include <functional>
#include <set>

#include "tests/codegen/nests.h"

namespace sinter {

class Kernels {
 public:
  explicit Kernels(const Target& target) : target_(target) {}

  void add(const LoopNest& nest, GpuFacts facts = {}) {
    facts.target = target_;
    add_as([&](const std::string& name) { return cuda_text(nest, name, facts); });
  }
  // Texts that are known already are left out.
  void add_as(const std::function<codegen::GpuKernelText(const std::string& name)>& emit) {
    if (!seen_.insert(emit("same").text).second) return;
    names_.push_back(format("k{}", names_.size()));
    texts_.push_back(emit(names_.back()).text);
  }
  // Of one op of each kind in every dtype, of the others in the first that they take.
  void add_every_op();
  // With and without vectors, spread in every way, alone, side by side and inside other kernels.
  void add_every_kind();

  size_t size() const { return texts_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  // The texts, so many in one program.
  std::vector<std::string> programs(size_t at_once) const {
    std::vector<std::string> out;
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (i % at_once == 0) out.emplace_back();
      out.back() += texts_[i];
    }
    return out;
  }

 private:
  Target target_;
  std::set<std::string> seen_;
  std::vector<std::string> names_, texts_;
};

}  // namespace sinter
