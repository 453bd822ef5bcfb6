#include "sinter/capture/lazy.h"

#include "sinter/capture/recorder.h"
#include "sinter/ops/define.h"
#include "sinter/ops/known_ops.h"

namespace sinter::capture {

namespace {

DType number_type(DType dtype) { return is_floating(dtype) ? kFloat64 : dtype == kBool ? kBool : kInt64; }

class LazyItem final : public LazyNumber {
 public:
  LazyItem(Recorder& recorder, const Tensor& tensor) : recorder_(recorder), tensor_(tensor) {
    if (auto* where = UserPosition::current()) where_ = *where;
  }

  // An operator has no position of its own: the question is asked where the number was taken.
  Scalar value() const override {
    auto here = at_its_line();
    return ask().number(tensor_);
  }
  bool truth() const override {
    auto here = at_its_line();
    return ask().truth(tensor_);
  }
  Scalar shown() const override {
    auto here = at_its_line();
    return ask().show(tensor_);
  }
  Tensor tensor() const override { return tensor_; }

  Scalar combine(const char* op, const Scalar& other, bool reversed) const override {
    struct Named {
      std::string_view sign;
      const Op* op;
    };
    auto& ops = known_ops();
    const Named table[] = {{"+", &ops.add}, {"-", &ops.sub}, {"*", &ops.mul}, {"/", &ops.div},
                           {"<", &ops.lt},  {"<=", &ops.le}, {"==", &ops.eq}};
    auto here = at_its_line();
    for (auto& [sign, found] : table) {
      if (sign != op) continue;
      TensorArg operands[] = {TensorArg(tensor_), TensorArg(other)};
      if (reversed) std::swap(operands[0], operands[1]);
      return lazy_scalar(ask(), Dispatcher::instance().run_one(*found, operands, {}));
    }
    SINTER_INTERNAL_ASSERT(false, "no op is written {}", op);
  }

 private:
  std::unique_ptr<UserPosition> at_its_line() const {
    return where_ ? std::make_unique<UserPosition>(*where_, "compile") : nullptr;
  }
  Recorder& ask() const {
    check(Tracer::current() == &recorder_, "a number of a captured program is used after its capture has ended: return it");
    return recorder_;
  }

  Recorder& recorder_;
  Tensor tensor_;
  std::optional<std::source_location> where_;
};

}  // namespace

Scalar lazy_scalar(Recorder& recorder, const Tensor& tensor) {
  return Scalar(make_intrusive<LazyItem>(recorder, tensor), number_type(tensor.dtype()));
}

}  // namespace sinter::capture
