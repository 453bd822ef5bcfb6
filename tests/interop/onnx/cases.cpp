#include "tests/interop/onnx/cases.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/interop/onnx.h"
#include "sinter/interop/onnx/protobuf_api.h"
#include "sinter/interop/onnx/tensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter::testing {

using protozero::pbf_reader;

namespace {

struct Case {
  std::string_view name, model;
  std::vector<std::string_view> inputs, outputs;
  double rtol = 0, atol = 0;
};

std::string_view view_of(pbf_reader& from) { return interop::onnx::view_of(from); }

Case read_case(pbf_reader from) {
  Case out;
  while (from.next()) {
    switch (from.tag()) {
      case 1: out.name = view_of(from); break;
      case 2: out.model = view_of(from); break;
      case 3: out.inputs.push_back(view_of(from)); break;
      case 4: out.outputs.push_back(view_of(from)); break;
      case 5: out.rtol = from.get_double(); break;
      case 6: out.atol = from.get_double(); break;
      default: from.skip();
    }
  }
  return out;
}

Tensor read_value(std::string_view bytes) {
  static const interop::onnx::TensorFiles kFiles(nullptr, "the case", "");
  for (pbf_reader from(bytes.data(), bytes.size()); from.next();) {
    std::string_view content = view_of(from);
    check(from.tag() == 1, "it has a {}, which is no tensor", content);
    return kFiles.read({.name = "", .bytes = content});
  }
  throw_error("a value is missing");
}

// Models as files, one after another.
class ModelFile {
 public:
  ~ModelFile() { close(file_); }
  std::string with(std::string_view bytes) {
    check(ftruncate(file_, 0) == 0 && pwrite(file_, bytes.data(), bytes.size(), 0) == ssize_t(bytes.size()), "no memory file");
    return "/proc/self/fd/" + std::to_string(file_);
  }

 private:
  const int file_ = memfd_create("case.onnx", MFD_CLOEXEC);
};

std::string difference(const Tensor& have, const Tensor& want, const Case& c) {
  if (!have.defined()) return "it is undefined";
  if (have.dtype() != want.dtype() || !(have.sizes() == want.sizes()))
    return format("it is {}{} and not {}{}", have.dtype(), have.sizes(), want.dtype(), want.sizes());
  const Tensor a = have.to(kFloat64), b = want.to(kFloat64);
  // As the wheel compares: equal, or within both tolerances; half types have a few digits.
  const double rtol = have.dtype() == kBFloat16 ? std::max(c.rtol, 1e-2) : c.rtol;
  const Tensor near = (a == b) | (isnan(a) & isnan(b)) | ((a - b).abs() <= b.abs() * rtol + c.atol);
  if (near.all().item<bool>()) return "";
  const Tensor off = masked_fill((a - b).abs(), near, 0);
  return format("{} of {} elements are off, by up to {}", near.logical_not().sum().item<int64_t>(), int64_t(near.numel()),
                off.max().item<double>());
}

std::string first_difference(const TensorList& have, const TensorList& want, const Case& c, const char* how) {
  if (have.size() != want.size()) return format("{}{} results and not {}", how, have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (std::string off = difference(have[i], want[i], c); !off.empty()) return format("{}result {}: {}", how, i, off);
  return "";
}

CaseResult check_case(const Case& c, ModelFile& file, bool compiled) {
  CaseResult out{.name = std::string(c.name)};
  NoGradGuard no_grad;
  try {
    TensorList inputs, wanted;
    for (auto& input : c.inputs) inputs.push_back(read_value(input));
    for (auto& output : c.outputs) wanted.push_back(read_value(output));
    ExportedModel model = load_onnx(file.with(c.model));
    out.message = first_difference(model->forward(inputs), wanted, c, "");
    if (out.message.empty() && compiled) out.message = first_difference(compile(model)(inputs), wanted, c, "compiled: ");
    if (!out.message.empty()) out.verdict = CaseVerdict::kWrong;
  } catch (const Error& error) {
    out.verdict = CaseVerdict::kRefused;
    out.message = error.message();
  } catch (const InternalError& error) {
    out.verdict = CaseVerdict::kWrong;
    out.message = error.what();
  }
  return out;
}

}  // namespace

void check_cases(const std::string& path, const std::string& only, bool compiled,
                 const std::function<void(const CaseResult&)>& visit) {
  const MappedFile file("onnx_cases", path);
  ModelFile model;
  for (pbf_reader from(file.data(), file.size()); from.next();) {
    const Case c = read_case(from.get_message());
    if (c.name.find(only) != std::string_view::npos) visit(check_case(c, model, compiled));
  }
}

std::map<std::string, std::string> read_known_cases(const std::string& path) {
  std::ifstream file(path);
  check(bool(file), "'{}' cannot be read", path);
  std::map<std::string, std::string> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(": ");
    check(colon != std::string::npos, "'{}' is no line 'name: reason'", line);
    check(out.emplace(line.substr(0, colon), line.substr(colon + 2)).second, "'{}' is there twice", line);
  }
  return out;
}

}  // namespace sinter::testing
