#include "sinter/capture/compiler.h"

#include <algorithm>

#include "sinter/runtime/code_store.h"

namespace sinter::compiler {

namespace {

constexpr std::string_view kStances[] = {"default", "force_eager", "eager_on_recompile", "fail_on_recompile"};

void mark(const Tensor& tensor, int64_t dim, bool dynamic, const SizeRange& range) {
  dim = wrap_dim(dynamic ? "mark_dynamic" : "mark_static", dim, tensor.dim());
  auto marks = std::make_shared<SizeMarks>();
  if (auto& before = tensor.impl().marks) *marks = *before;
  std::erase_if(marks->marks, [&](auto& m) { return m.dim == dim; });
  marks->marks.push_back({dim, dynamic, range.min, range.max});
  tensor.impl().marks = std::move(marks);
}

}  // namespace

void reset() {
  for (auto& function : capture::all_functions()) function->reset();
}

bool is_compiling() { return capture::is_capturing(); }

size_t save_artifacts(const std::string& file) {
  return runtime::CodeStore(runtime::CodeStore::default_directory()).export_to(file);
}

size_t load_artifacts(const std::string& file) {
  return runtime::CodeStore(runtime::CodeStore::default_directory()).import_from(file);
}

void set_stance(std::string_view stance) {
  auto* found = std::find(std::begin(kStances), std::end(kStances), stance);
  std::string known;
  for (auto& name : kStances) known += (known.empty() ? "" : ", ") + std::string(name);
  check(found != std::end(kStances), "set_stance: there is no stance '{}'; the stances are {}", stance, known);
  capture::set_stance(capture::Stance(found - std::begin(kStances)));
}

void mark_dynamic(const Tensor& tensor, int64_t dim, const SizeRange& range, Where where) {
  UserPosition here(where);
  check(range.min <= range.max, "mark_dynamic: the range [{}, {}] is empty", range.min, range.max);
  check(range.min <= tensor.size(dim) && tensor.size(dim) <= range.max,
        "mark_dynamic: dimension {} has size {}, which is outside [{}, {}]", dim, tensor.size(dim), range.min, range.max);
  mark(tensor, dim, true, range);
}

void mark_static(const Tensor& tensor, int64_t dim, Where where) {
  UserPosition here(where);
  mark(tensor, dim, false, {});
}

}  // namespace sinter::compiler
