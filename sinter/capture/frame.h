#pragma once
// One call of a compiled function, with its types left out: the tensors among the arguments, and the exact bits of
// everything else. What stays typed is behind two virtual calls that only a capture makes.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sinter/base/small_vector.h"
#include "sinter/tensor/tensor.h"

namespace sinter::capture {

// What a word of `Frame::words` is.
enum class LeafKind : uint8_t {
  kInt,
  kFloat,
  kBool,
  kText,
  kCount,    // how many elements follow
  kPresent,  // which of several things it is: something or nothing, a tensor or a number
  kObject    // the address of what is told by its identity
};

// The value of an exact leaf of one word as people write it; empty for an object.
std::string exact_text(LeafKind kind, int64_t bits);

// A hash of bytes, for what is seen of a function object.
uint64_t hash_state(const void* data, size_t bytes, uint64_t seed);

// Walks over the leaves of arguments or results in order; may replace them.
class LeafVisitor {
 public:
  virtual ~LeafVisitor() = default;
  virtual void tensor(Tensor& tensor) = 0;
  // A size (a Dim) and a number (a Scalar) may become values of the program; the other leaves are part of it.
  virtual void size(Dim& size) = 0;
  virtual void number(Scalar& number) = 0;
  // Something exact: `words` words of this kind; `text` is its value as people write it.
  virtual void exact(LeafKind, size_t words, const std::string& text) = 0;
  // Steps into a part: "[2]", ".mask".
  virtual void enter(const std::string& part) = 0;
  virtual void leave() = 0;
};

struct ResultBox {
  virtual ~ResultBox() = default;
  virtual void visit(LeafVisitor& visitor) = 0;
};

struct Frame {
  SmallVector<const Tensor*, 16> tensors;
  SmallVector<int64_t, 24> words;
  int64_t types = 0;  // differs for other types of arguments
  int64_t state = 0;  // differs for another state of the function object

  virtual ~Frame() = default;
  // Walks over the arguments (not changing them).
  virtual void describe(LeafVisitor& visitor) = 0;
  // Calls the function on a copy of the arguments after `replace` has walked over it.
  virtual std::shared_ptr<ResultBox> invoke(LeafVisitor& replace) = 0;
  // A result with nothing in it; null where there is none, or none can be made.
  virtual std::shared_ptr<ResultBox> blank_result() const = 0;
  // The types of function and arguments, as this build of the program names them.
  virtual const char* type_name() const = 0;
};

// What a call gives back, in the order of the result's leaves.
struct Results {
  std::vector<Tensor> tensors;
  SmallVector<int64_t, 4> sizes;
  std::vector<Tensor> numbers;  // Scalars, as tensors of one element; undefined: as in the prototype
  std::shared_ptr<const void> prototype;
};

}  // namespace sinter::capture
