#include "sinter/interop/value.h"

#include "sinter/base/format.h"

namespace sinter::interop {

std::string describe(const Value& value) {
  struct {
    std::string operator()(Value::None) { return "None"; }
    std::string operator()(bool b) { return b ? "True" : "False"; }
    std::string operator()(const Dim& d) { return format("the integer {}", d); }
    std::string operator()(const Scalar& s) { return s.is_lazy() ? "a number" : format("the number {}", s); }
    std::string operator()(const std::string& s) { return format("the text '{}'", s); }
    std::string operator()(DType d) { return format("the dtype {}", d); }
    std::string operator()(MemoryFormat) { return "a memory format"; }
    std::string operator()(const Device& d) { return format("the device {}", d); }
    std::string operator()(const Tensor& t) { return t.defined() ? "a tensor" : "an undefined tensor"; }
    std::string operator()(const ValueList& list) { return format("a list of {}", list.size()); }
    std::string operator()(const std::shared_ptr<const HostTensor>&) { return "a tensor"; }
  } text;
  return std::visit(text, value.held);
}

}  // namespace sinter::interop
