#pragma once
// The texts of generated kernels, for people.
#include <string>
#include <vector>

namespace sinter {

struct Plan;
struct Step;

struct KernelText {
  std::string name;
  std::string loops;     // as lowered; empty where only the code is known
  std::string schedule;  // how they run in lanes, where that is a decision of its own
  std::string code;      // without the prelude that all kernels share

  bool operator==(const KernelText&) const = default;
};

// While alive, every kernel that this thread makes for the CPU leaves its text here, wherever its code comes from.
class KernelTexts {
 public:
  KernelTexts();
  ~KernelTexts();
  KernelTexts(const KernelTexts&) = delete;

  void add(KernelText text) { list_.push_back(std::move(text)); }
  std::vector<KernelText> take() { return std::move(list_); }
  // Null when nobody collects.
  static KernelTexts* current();

 private:
  std::vector<KernelText> list_;
};

// The kernels that were generated for a step: those of its prologue, of its siblings and of what follows its products
// are apart. None where an op's eager kernel or a library runs it. Texts are made anew: what runs keeps none of them.
std::vector<KernelText> texts_of(const Plan& plan, const Step& step);

}  // namespace sinter
