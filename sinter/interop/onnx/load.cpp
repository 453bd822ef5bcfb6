#include "sinter/interop/onnx/load.h"

#include <filesystem>

#include "sinter/base/error.h"
#include "sinter/interop/onnx.h"
#include "sinter/interop/onnx/table.h"
#include "sinter/interop/onnx/translate.h"

namespace sinter {

namespace interop::onnx {

ImportedProgram read_file(const std::string& path) {
  auto file = std::make_shared<MappedFile>("load_onnx", path);
  const std::string name = format("'{}'", path);
  const Model model = read_model(file->bytes(), name);
  if (auto opset = model.opsets.find(""); opset != model.opsets.end())
    check(opset->second <= kNewestOpset, "load_onnx: {} is written with version {} of the operators; this reads up to {}", name,
          opset->second, kNewestOpset);
  const TensorFiles files(file, name, std::filesystem::path(path).parent_path().string());
  Translation translated = translate(model, files, find_schema, name);
  ImportedProgram out{.reader = "load_onnx", .file = path, .program = std::move(translated.program), .tensors = {}};
  for (auto& tensor : translated.tensors)
    out.tensors.push_back({.kind = tensor.kind,
                           .name = tensor.name,
                           .requires_grad = tensor.kind == ProgramInput::Kind::kParameter,
                           .tensor = tensor.tensor});
  return out;
}

}  // namespace interop::onnx

ExportedModel load_onnx(const std::string& path) {
  return ExportedModel(std::make_shared<ExportedModelImpl>(interop::onnx::read_file(path)));
}

}  // namespace sinter
